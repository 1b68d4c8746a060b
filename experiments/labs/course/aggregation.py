"""Aggregators on the tested switch: the packets that checks send, and the checks of the packets that leave.

Most checks compare the program with itself: earlier rounds, other slots, forged packets and repeated gradients must not
change the packets that leave for a gradient.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from inakit.experiments.labs.grading.bench import Bench
from inakit.experiments.labs.grading.packets import GRADIENT, RESULT, VALUES, Agg, Values, agg_in, explain_sum, summed
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
        """Send gradients to a restarted switch; return each one's packets. Raises `WrongError` if nothing is summed.

        What is summed depends on the gradients before.
        """
        small = [replace(each, values=(number + 1,) * VALUES) for number, each in enumerate(gradients)]
        usual = self.left_after(small)
        for at in range(2):
            other = [
                replace(each, values=(1 << 20,) * VALUES) if number == at else each for number, each in enumerate(small)
            ]
            if self.left_after(other)[at + 1 :] != usual[at + 1 :]:
                return self.left_after(gradients)
        raise self.bench.wrong("the program sums nothing yet, so that this cannot be tested", "a sum")

    def left_after(self, gradients: Sequence[Agg]) -> list[Left]:
        """Send gradients to a restarted switch; return each one's packets."""
        self.begin()
        return [self.send(gradient) for gradient in gradients]

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
        """Raise `WrongError` for a forged packet that leaves, or that changes the packets for the gradients.

        The forged packets are sent before the first gradient, and again between the gradients.
        """
        usual = self.alone(gradients)
        self.begin()
        others = {f"forged {name}": values for name, values in self.named(packet for packet, _ in forged).items()}
        for gradient, left in zip(gradients, usual, strict=True):
            for packet, port in forged:
                if self.send(packet, port):
                    raise self.bench.wrong(f"{what} is not dropped: a packet leaves")
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


def forged_with(job: Job, gradient: Agg, **fields: Any) -> tuple[Agg, int]:
    """A gradient with other fields, and the port of its worker."""
    return replace(gradient, **fields), job.port_of(gradient)


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
        **{
            f"a gradient for slot {number}, where {slots - 1} is the last,": partial(forged_with, slot=number)
            for number in (slot, slots, 256 * slots + 1)
        },
        **more,
        "a result that a worker sends": partial(forged_with, kind=RESULT),
        **{f"a packet of kind {kind}": partial(forged_with, kind=kind) for kind in (0, 3, 255)},
    }


def check_forgeries(bench: Bench, forgeries: Mapping[str, Forgery], slot: int) -> None:
    """Raise `WrongError` for a forged gradient of a slot that leaves or changes the sum."""
    for what, forge in forgeries.items():
        job, gradients = Job(bench), drawn_round(bench, slot=slot)
        job.judge_forgeries(what, [forge(job, each) for each in drawn_round(bench, slot=slot)], gradients)


# -- labs 2 and 3: many slots at once

Place = tuple[int, int]
"""A slot and one of its rounds."""


def drawn_rounds(bench: Bench, slots: Iterable[int], count: int) -> dict[Place, list[Agg]]:
    """A gradient of each worker for each round of these slots; even rounds use version 0, odd ones version 1."""
    return {
        (slot, number): [replace(each, version=number % 2) for each in drawn_round(bench, slot=slot, number=number)]
        for slot in slots
        for number in range(count)
    }


def interleaved(bench: Bench, rounds: dict[Place, list[Agg]]) -> list[Agg]:
    """The gradients in a random feasible order: a slot's next round begins when the previous one is complete."""
    sent = dict.fromkeys(rounds, 0)
    order = {place: bench.random.sample(gradients, len(gradients)) for place, gradients in rounds.items()}
    found: list[Agg] = []
    while True:
        open_now = [p for p in rounds if sent[p] < WORKERS and sent.get((p[0], p[1] - 1), WORKERS) == WORKERS]
        if not open_now:
            return found
        place = bench.random.choice(open_now)
        found.append(order[place][sent[place]])
        sent[place] += 1


def changed(left: Sequence[Left], change: Callable[[Agg], Agg]) -> list[Left]:
    """Packets that have left, changed."""
    return [[(port, change(packet)) for port, packet in packets] for packets in left]


def without_repeats(job: Job, order: Sequence[Agg]) -> list[Left]:
    """Send each gradient once; return the packets that leave. Raises `WrongError` if nothing is summed."""
    job.alone(sorted((each for each in order if each.round == 0), key=lambda each: each.worker))
    job.begin()
    return [job.send(gradient) for gradient in order]


def check_slots(bench: Bench, slots: int, rounds_of_each: int) -> None:
    """All slots are in use at the same time, each at its own pace: each sends the same as slot 0 alone.

    Another item tests the slot in the header of what leaves.
    """
    job, rounds = Job(bench), drawn_rounds(bench, range(slots), rounds_of_each)
    order = interleaved(bench, rounds)
    tried = [0, 1, slots // 2 - 1, slots // 2, slots - 2, slots - 1, *bench.random.sample(range(slots), 4)]
    usual = {}
    for slot in tried:
        in_slot_0 = without_repeats(job, [replace(each, slot=0) for each in order if each.slot == slot])
        usual[slot] = changed(in_slot_0, partial(replace, slot=slot))
    job.begin()
    for gradient in order:
        slot, number = gradient.slot, gradient.round
        (left,) = changed([job.send(gradient)], partial(replace, slot=slot))
        if slot in usual:
            likely = sorted({(slot + by) % slots for by in (1, -1, slots // 2)})
            others = {
                f"slot {n}'s gradient of the same worker": rounds[n, number][gradient.worker].values for n in likely
            }
            what = f"all {slots} slots are in use, and in slot {slot}"
            job.judge_same(left, usual[slot].pop(0), rounds[slot, number], what, others)
