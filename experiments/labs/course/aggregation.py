"""Aggregators on the tested switch: the packets that checks send, and the checks of the packets that leave.

Most checks compare the program with itself: earlier rounds, other slots, forged packets and repeated gradients must not
change the packets that leave for a gradient.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
WORKERS, MOST_WORKERS = 4, 8
"""The workers of most jobs, and the most of all."""
GROUP = 1


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
        """Send a gradient, by default to its own port; return the packets that leave.

        Raises `WrongError` if one of them does not belong to an aggregation.
        """
        left = self.bench.send(self.port_of(gradient) if port is None else port, gradient.packed())
        found = [(port, agg) for port, packet in left if (agg := agg_in(packet)) is not None]
        if len(found) < len(left):
            raise self.bench.wrong("what leaves is no packet of an aggregation", "a packet of all its headers, or none")
        return found

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
        if unordered(left) == unordered(usual):
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


def unordered(left: Left) -> Left:
    """Packets that have left, in an order that does not depend on that in which they have."""
    return sorted(left, key=str)


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
    """A gradient of each worker for a round of a slot; each has its own Ethernet addresses."""
    return [
        Agg(GRADIENT, worker, slot, number, bench.drawn_values(), ethernet=bench.drawn_ethernet()) for worker in order
    ]


def forged_with(job: Job, gradient: Agg, **fields: Any) -> tuple[Agg, int]:
    """A gradient with other fields, and the port of its worker."""
    return replace(gradient, **fields), job.port_of(gradient)


Forgery = Callable[[Job, Agg], tuple[Agg, int]]
"""Turns a gradient into a forged packet; returns it with its port."""


def forgeries(slots: int, slot: int, more: Mapping[str, Forgery] = {}) -> dict[str, Forgery]:
    """The forgeries of a gradient for a slot that every lab with one job tests, and `more`."""
    return {
        "a gradient from a port without a worker": lambda job, each: (each, 64 + job.port_of(each)),
        "a gradient with another number than that of its port's worker": lambda job, each: (
            each,
            job.ports[(each.worker + 1) % WORKERS],
        ),
        **{
            f"a gradient for slot {number}, where {slots - 1} is the last,": partial(forged_with, slot=number)
            for number in (slots + slot, slots, 256 * slots + slot)
        },
        **more,
        "a result that a worker sends": partial(forged_with, kind=RESULT),
        **{f"a packet of kind {kind}": partial(forged_with, kind=kind) for kind in (0, 3, 255)},
    }


def check_forgeries(bench: Bench, slots: int, more: Mapping[str, Forgery] = {}) -> None:
    """Raise `WrongError` for a forged gradient, of any of the slots, that leaves or changes the sum."""
    slot = bench.random.randrange(slots)
    every = forgeries(slots, slot, more)
    for what, forge in every.items():
        job, gradients = Job(bench), drawn_round(bench, slot=slot)
        job.judge_forgeries(what, [forge(job, each) for each in drawn_round(bench, slot=slot)], gradients)
    forged = [forge(job, bench.random.choice(drawn_round(bench, slot=slot))) for forge in every.values()]
    script = [*(each for each in forged if each[0].slot == slot), *sent_by_all(job, gradients)]
    check_every_slot(job, slots, gradients, script, "a packet that is not admitted, or a gradient after it")
    job = Job(bench, 1)
    for number in (slots, slots + slot, 256 * slots + slot):
        if job.send(drawn_round(bench, (0,), slot=number)[0]):
            cause = (
                f"in a job of one worker, a gradient for slot {number} is not dropped, where {slots - 1} is the last"
            )
            raise bench.wrong(cause, "drop")


# -- labs 2 and 3: many slots at once

Place = tuple[int, int]
"""A slot and one of its rounds."""


def drawn_rounds(
    bench: Bench, slots: Iterable[int], count: int, workers: int = WORKERS, versions: int = 2
) -> dict[Place, list[Agg]]:
    """A gradient of each worker for each round of these slots; rounds use the versions in turn."""
    return {
        (slot, number): [
            replace(each, version=number % versions)
            for each in drawn_round(bench, range(workers), slot=slot, number=number)
        ]
        for slot in slots
        for number in range(count)
    }


def interleaved(bench: Bench, rounds: dict[Place, list[Agg]]) -> list[Agg]:
    """The gradients in a random feasible order: a slot's next round begins when the previous one is complete.

    The order begins with a gradient of each slot, so that all are in use at once.
    """
    order = {place: bench.random.sample(gradients, len(gradients)) for place, gradients in rounds.items()}
    sent = {place: int(place[1] == 0) for place in rounds}
    found = [order[place][0] for place in bench.random.sample(list(rounds), len(rounds)) if sent[place]]
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


def sums_of(job: Job, order: Sequence[Agg]) -> list[Left]:
    """The packets that leave for the gradients of one slot, round after round, from a program without mistakes."""
    left: list[Left] = []
    for count, gradient in enumerate(order, 1):
        sent = [each for each in order[:count] if each.round == gradient.round]
        ports = job.ports if len(sent) == WORKERS else []
        left.append([(port, gradient.result(total(sent))) for port in ports])
    return left


def check_slots(bench: Bench, slots: int, rounds_of_each: int) -> None:
    """All slots are in use at the same time, each at its own pace: each sends the same as slot 0 alone.

    Only some slots' gradients are sent in slot 0. If their sums are right, those of all other slots have to be, too.
    Another item tests the slot in the header of what leaves.
    """
    job, rounds = Job(bench), drawn_rounds(bench, range(slots), rounds_of_each)
    order = interleaved(bench, rounds)
    tried = [0, 1, slots // 2 - 1, slots // 2, slots - 2, slots - 1, *bench.random.sample(range(slots), 4)]
    usual = {}
    for slot in tried:
        in_slot_0 = without_repeats(job, [replace(each, slot=0) for each in order if each.slot == slot])
        usual[slot] = changed(in_slot_0, partial(replace, slot=slot))
    exact = {slot: sums_of(job, [each for each in order if each.slot == slot]) for slot in range(slots)}
    if all(list(map(unordered, found)) == list(map(unordered, exact[slot])) for slot, found in usual.items()):
        usual = exact
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


Script = Sequence[tuple[Agg, int]]
"""Packets, and the ports by which they enter."""
MOST_OTHERS = 4
"""The slots with mistakes of other items after which no further slots are tried."""


def sent_by_all(job: GradedAggregator, gradients: Iterable[Agg]) -> Script:
    """Gradients with the ports of their workers."""
    return [(each, job.port_of(each)) for each in gradients]


def twice(gradients: Sequence[Agg]) -> list[Agg]:
    """Gradients of a round, each twice in a row but the last, which completes the sum."""
    return [each for gradient in gradients[:-1] for each in (gradient, gradient)] + [gradients[-1]]


def check_every_slot(job: GradedAggregator, slots: int, gradients: Sequence[Agg], script: Script, what: str) -> None:
    """Raise `WrongError` unless each slot sends for a script what the slot of `gradients` sends.

    The slots are used one after the other; one that differs also in a restarted switch. Other items test slots where
    the gradients alone send something else, slots that depend on others, and the slot in the header of what leaves.
    """
    at, plain = gradients[0].slot, sent_by_all(job, gradients)

    def sent_in(slot: int, packets: Script) -> Iterator[Left]:
        for packet, port in packets:
            left = job.send(replace(packet, slot=slot) if packet.slot == at else packet, port)
            yield unordered([(out, replace(each, slot=at)) for out, each in left])

    def alone(slot: int, packets: Script) -> list[Left]:
        job.begin()
        return list(sent_in(slot, packets))

    sums, usual, others = alone(at, plain), alone(at, script), 0
    for slot in job.bench.random.sample(range(slots), slots):
        if list(sent_in(slot, script)) == usual:
            continue
        if alone(slot, plain) == sums:
            job.begin()
            for left, wanted in zip(sent_in(slot, script), usual, strict=True):
                if left != wanted:
                    expected = [(port, replace(packet, slot=slot).packed()) for port, packet in wanted]
                    raise job.bench.wrong(f"{what}: slot {slot} does not send what slot {at} sends", expected)
        others += 1
        if others == MOST_OTHERS:
            return
