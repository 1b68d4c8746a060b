"""Aggregators on the tested switch: the packets that checks send, and the checks of the packets that leave.

Most checks compare the program with itself: earlier rounds, other slots, forged packets and repeated gradients must not
change the packets that leave for a gradient.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from inakit.experiments.labs.grading.bench import Bench
from inakit.experiments.labs.grading.packets import GRADIENT, RESULT, Agg, Values, agg_in, explain_sum, summed
from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry
from inakit.switch.interpret.interpreted_switch import Packets

Left = list[tuple[int, Agg]]
"""The packets of aggregations that have left, with their ports."""
Named = Mapping[str, Values]
WORKERS = 4
GROUP = 1


def aggregates(packets: Packets) -> Left:
    """The packets that belong to an aggregation."""
    return [(port, found) for port, packet in packets if (found := agg_in(packet)) is not None]


def total(gradients: Iterable[Agg]) -> Values:
    """The sum of gradients."""
    return summed([gradient.values for gradient in gradients])


class GradedAggregator(ABC):
    """An aggregator on the tested switch. `who`, `senders` and `packet` are its words in messages."""

    who, senders, packet = "worker", "workers", "result"
    bench: Bench

    @abstractmethod
    def begin(self) -> None:
        """Restart the switch with this aggregator only."""

    @abstractmethod
    def port_of(self, gradient: Agg) -> int:
        """The port by which a gradient enters."""

    @abstractmethod
    def expected(self, gradient: Agg, values: Values) -> Packets:
        """The packets that leave when this gradient completes a sum."""

    def send(self, gradient: Agg, port: int | None = None) -> Left:
        """Send a gradient, by default to its own port; return the packets of aggregations that leave."""
        return aggregates(self.bench.send(self.port_of(gradient) if port is None else port, gradient.packed()))

    def named(self, gradients: Iterable[Agg]) -> dict[str, Values]:
        """The values of gradients, by their names in messages."""
        return {f"{self.who} {gradient.worker}'s gradient": gradient.values for gradient in gradients}

    def alone(self, gradients: Sequence[Agg]) -> list[Left]:
        """Send gradients to a restarted switch; return each one's packets. Raises `WrongError` if nothing is summed."""
        self.begin()
        left = [self.send(gradient) for gradient in gradients]
        sent = {gradient.values for gradient in gradients}
        if not any(packet.values not in sent for packets in left for _, packet in packets):
            raise self.bench.wrong("the program sums nothing yet, so that this cannot be tested", "a sum")
        return left

    def judge_same(self, left: Left, usual: Left, sent: Sequence[Agg], what: str, others: Named) -> None:
        """Raise `WrongError` unless the same packets leave as without other traffic."""
        if sorted(left, key=str) == sorted(usual, key=str):
            return
        expected = [(port, packet.packed()) for port, packet in usual]
        if left and not usual:
            raise self.bench.wrong(f"{what}: a {self.packet} leaves before all {self.senders} have sent")
        if usual and not left:
            raise self.bench.wrong(
                f"{what}: no {self.packet} leaves when all {self.senders} have sent", expected, "drop"
            )
        got, right = left[0][1].values, usual[0][1].values
        if got == right:
            raise self.bench.wrong(f"{what}: what leaves, or where, is not the same as without", expected)
        why = explain_sum(got, self.named(sent), others)
        raise self.bench.wrong(f"{what}: {why}" if why else what, expected, first_difference(got, right))

    def judge_sum(self, got: Values, sent: Sequence[Agg]) -> None:
        """Raise `WrongError` unless these values are the sum of the gradients that were sent."""
        if why := explain_sum(got, self.named(sent)):
            right = total(sent)
            raise self.bench.wrong(why, self.expected(sent[-1], right), first_difference(got, right))

    def judge_forgeries(self, what: str, forged: Sequence[tuple[Agg, int]], gradients: Sequence[Agg]) -> None:
        """Raise `WrongError` for a forged packet that leaves, or that changes the packets for the gradients."""
        usual = self.alone(gradients)
        self.begin()
        for packet, port in forged:
            if self.send(packet, port):
                raise self.bench.wrong(f"{what} is not dropped: a packet leaves")
        others = {f"forged {name}": values for name, values in self.named(packet for packet, _ in forged).items()}
        for gradient, left in zip(gradients, usual, strict=True):
            self.judge_same(self.send(gradient), left, gradients, f"{what} counts", others)


def first_difference(got: Values, right: Values) -> str:
    """The name of the first value that is wrong."""
    return f"values.v{next(n for n, (one, other) in enumerate(zip(got, right, strict=True)) if one != other)}"


# -- labs 2 to 4: one job, workers at ports


class Job(GradedAggregator):
    """A job on the restarted student's switch: worker n is at `ports[n]`."""

    def __init__(self, bench: Bench, workers: int = WORKERS) -> None:
        self.bench, self.ports = bench, bench.drawn_ports(workers)
        self.begin()

    def begin(self) -> None:
        self.bench.start(job_entries(self.ports))

    def port_of(self, gradient: Agg) -> int:
        return self.ports[gradient.worker]

    def expected(self, gradient: Agg, values: Values) -> Packets:
        """A result at each worker's port."""
        return [(port, gradient.result(values).packed()) for port in self.ports]


def job_entries(ports: Sequence[int]) -> SwitchEntries:
    """The entries of a job whose worker n is at `ports[n]`."""
    full = (1 << len(ports)) - 1
    at = tuple(TableEntry("worker_at", (port,), "is_worker", (worker, full)) for worker, port in enumerate(ports))
    return SwitchEntries("switch", at, (MulticastGroup(GROUP, tuple(ports)),))


def drawn_round(bench: Bench, order: Iterable[int] = range(WORKERS), slot: int = 0, number: int = 0) -> list[Agg]:
    """A gradient of each worker for a round of a slot."""
    return [Agg(GRADIENT, worker, slot, number, bench.drawn_values()) for worker in order]


Forgery = Callable[[Job, Agg], tuple[Agg, int]]
"""Turns a gradient into a forged packet; returns it with its port."""


def forgeries(slots: int, slot: int, more: Mapping[str, Forgery] = {}) -> dict[str, Forgery]:
    """The forgeries that every lab with one job tests, and `more`; `slot` is a number beyond the switch's slots."""
    return {
        "a gradient from a port without a worker": lambda job, each: (each, 64 + job.port_of(each)),
        "a gradient with another number than that of its port's worker": lambda job, each: (
            each,
            job.ports[(each.worker + 1) % WORKERS],
        ),
        f"a gradient for slot {slot}, where {slots - 1} is the last,": lambda job, each: (
            replace(each, slot=slot),
            job.port_of(each),
        ),
        **more,
        "a result that a worker sends": lambda job, each: (replace(each, kind=RESULT), job.port_of(each)),
    }


def check_forgeries(bench: Bench, forgeries: Mapping[str, Forgery], slot: int) -> None:
    """Raise `WrongError` for a forged gradient of a slot that leaves or changes the sum."""
    for what, forge in forgeries.items():
        job, gradients = Job(bench), drawn_round(bench, slot=slot)
        job.judge_forgeries(what, [forge(job, each) for each in drawn_round(bench, slot=slot)], gradients)
