"""Lab 3, the switch: what is graded of a pool of slots in two versions, and how it is tested.

As in lab 2, each item looks at one property, and most compare the program with itself: other slots, earlier rounds and
gradients that come again must make no difference to what leaves for a gradient.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from inakit.experiments.labs.course.bench import Bench
from inakit.experiments.labs.course.packets import GRADIENT, RESULT, VALUES, Agg, Values
from inakit.experiments.labs.course.sum import (
    WORKERS,
    Job,
    Left,
    Named,
    alone,
    drawn_round,
    forged_result,
    from_elsewhere,
    judge_forgeries,
    judge_same,
    judge_sum,
    of_another,
    total,
)

SLOTS = 64
ROUNDS = 5
Place = tuple[int, int]
"""A slot, and one of its rounds."""


def drawn_rounds(bench: Bench, slots: Iterable[int], count: int) -> dict[Place, list[Agg]]:
    """A gradient of each worker for each round of these slots; even rounds use version 0, odd ones version 1."""
    return {
        (slot, number): [replace(each, version=number % 2) for each in drawn_round(bench, slot=slot, number=number)]
        for slot in slots
        for number in range(count)
    }


def interleaved(bench: Bench, rounds: dict[Place, list[Agg]]) -> list[Agg]:
    """The gradients in a drawn order in which workers can send them: the next round of a slot when all had the last."""
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


def in_version_0(gradient: Agg) -> Agg:
    """The same gradient as the first round of its slot."""
    return replace(gradient, version=0)


def usual_of(bench: Bench, gradients: list[Agg], ports: list[int]) -> list[Left]:
    """What leaves for the gradients of one round in a switch that does nothing else, as if in their own version."""
    left = alone(bench, [in_version_0(each) for each in gradients], ports)
    version = gradients[0].version
    return [[(port, replace(packet, version=version)) for port, packet in packets] for packets in left]


# -- the items


def check_admission(bench: Bench) -> None:
    """What no worker may send neither leaves nor counts."""
    forgeries = {
        "a gradient from a port without a worker": from_elsewhere,
        "a gradient with another number than that of its port's worker": of_another,
        f"a gradient for slot {SLOTS}, where {SLOTS - 1} is the last,": lambda job, each: (
            replace(each, slot=SLOTS),
            job.ports[each.worker],
        ),
        "a gradient of version 2": lambda job, each: (replace(each, version=2), job.ports[each.worker]),
        "a result that a worker sends": forged_result,
    }
    judge_forgeries(bench, forgeries, slot=0)


def check_sum(bench: Bench) -> None:
    """The sum leaves with the last gradient, as a result, once by each worker's port."""
    for _ in range(3):
        job = Job(bench)
        order = bench.random.sample(range(WORKERS), WORKERS)
        gradients = drawn_round(bench, order, bench.random.randrange(SLOTS - 1), bench.random.getrandbits(16))
        for count, gradient in enumerate(gradients, 1):
            left = job.send(gradient)
            if left and count < WORKERS:
                raise bench.wrong(f"a packet leaves when {count} of {WORKERS} workers have sent")
        expected = job.expected(gradient, total(gradients))
        if not left:
            raise bench.wrong("no result leaves, though all workers have sent", expected, "drop")
        judge_sum(job, left[0][1].values, gradients)
        if left[0][1].kind != RESULT:
            raise bench.wrong(f"what leaves has kind {left[0][1].kind}, not {RESULT}", expected, "agg.kind")
        got = [(port, packet.packed()) for port, packet in left]
        bench.same(got, expected, "the result does not leave once by each worker's port, with slot and version kept")


def check_pool(bench: Bench) -> None:
    """All slots are used at the same time, each at its own pace: a slot sends what it sends when it is alone."""
    ports, rounds = bench.drawn_ports(WORKERS), drawn_rounds(bench, range(SLOTS), 2)
    order = interleaved(bench, rounds)
    tried = [0, 1, SLOTS // 2 - 1, SLOTS // 2, SLOTS - 2, SLOTS - 1, *bench.random.sample(range(SLOTS), 4)]
    usual = {slot: in_slot_0(bench, [each for each in order if each.slot == slot], ports) for slot in tried}
    job = Job(bench, ports)
    for gradient in order:
        left, slot, number = job.send(gradient), gradient.slot, gradient.round
        if slot in usual:
            others = {
                f"slot {n}'s gradient of the same worker": rounds[n, number][gradient.worker].values for n in near(slot)
            }
            what = f"all {SLOTS} slots are in use, and in slot {slot}"
            judge_same(job, left, usual[slot].pop(0), rounds[slot, number], what, others)


def in_slot_0(bench: Bench, gradients: list[Agg], ports: list[int]) -> list[Left]:
    """What would leave for the gradients of a slot if it did what slot 0 does alone."""
    slot = gradients[0].slot
    left = without(bench, [replace(each, slot=0) for each in gradients], ports)
    return [[(port, replace(packet, slot=slot)) for port, packet in packets] for packets in left]


def near(slot: int) -> list[int]:
    """The slots that a mistake is likely to mix up with a slot."""
    return sorted({(slot + by) % SLOTS for by in (1, -1, SLOTS // 2)})


def check_versions(bench: Bench) -> None:
    """Round after round of a slot: each sends what the slot sends when it is used for the first time."""
    ports, slot = bench.drawn_ports(WORKERS), bench.random.randrange(SLOTS - 1)
    rounds = drawn_rounds(bench, (slot,), ROUNDS)
    order = interleaved(bench, rounds)
    usual = {place: usual_of(bench, of_place(order, place), ports) for place in rounds}
    job, sums = Job(bench, ports), {number: total(rounds[slot, number]) for number in range(ROUNDS)}
    for gradient in order:
        number = gradient.round
        others: Named = {f"the sum of round {n}": sums[n] for n in range(number)}
        what = f"in round {number} of slot {slot} (version {gradient.version})"
        judge_same(job, job.send(gradient), usual[slot, number].pop(0), rounds[slot, number], what, others)


def of_place(order: Sequence[Agg], place: Place) -> list[Agg]:
    """The gradients of a slot's round, in their order."""
    return [each for each in order if (each.slot, each.round) == place]


def check_again(bench: Bench) -> None:
    """A gradient that comes again before the sum is complete makes no difference."""
    for again in range(WORKERS - 1):
        ports = bench.drawn_ports(WORKERS)
        rounds = drawn_rounds(bench, (bench.random.randrange(SLOTS - 1),), 2)
        order = [gradient for gradients in rounds.values() for gradient in gradients]
        usual = without(bench, order, ports)
        job = Job(bench, ports)
        for gradient, left in zip(order, usual, strict=True):
            what = f"worker {again} sent its gradient of round {gradient.round} twice, before all had sent"
            judge_same(job, job.send(gradient), left, rounds[gradient.slot, gradient.round], what, {})
            if gradient.worker == again and left == [] and job.send(gradient):
                raise bench.wrong(f"{what}: a packet leaves for the second")


def without(bench: Bench, order: Sequence[Agg], ports: list[int]) -> list[Left]:
    """What leaves for these gradients when none comes again; `WrongError` if nothing is summed at all."""
    alone(bench, [each for each in order if each.round == 0], ports)
    job = Job(bench, ports)
    return [job.send(gradient) for gradient in order]


def check_shadow(bench: Bench) -> None:
    """Who asks again for a sum that is complete gets it, alone, also when others have gone on to the next round."""
    for on in range(WORKERS):
        ports, slot = bench.drawn_ports(WORKERS), bench.random.randrange(SLOTS - 1)
        rounds = drawn_rounds(bench, (slot,), 3)
        order = [gradient for gradients in rounds.values() for gradient in gradients]
        usual = without(bench, order, ports)
        job, kept = Job(bench, ports), Kept.of(usual[WORKERS - 1], rounds[slot, 0])
        for number, (gradient, left) in enumerate(zip(order, usual, strict=True)):
            what = f"round {gradient.round} after a worker has asked for round 0 again"
            judge_same(job, job.send(gradient), left, rounds[slot, gradient.round], what, {"the kept sum": kept.values})
            if number == WORKERS - 1 + on:
                for asks in range(on, WORKERS):
                    judge_answer(job, rounds[slot, 0][asks], kept, on, rounds[slot, 1][:on])


@dataclass(frozen=True)
class Kept:
    """The values that left when a sum was complete, and those of its elements that were right, or all if none was."""

    values: Values
    elements: tuple[int, ...]

    @classmethod
    def of(cls, left: Left, gradients: list[Agg]) -> Kept:
        """What left when the last of these gradients came; zeros if nothing did."""
        values, wanted = left[0][1].values if left else (0,) * VALUES, total(gradients)
        right = tuple(n for n in range(VALUES) if values[n] == wanted[n])
        return cls(values, right or tuple(range(VALUES)))


def judge_answer(job: Job, gradient: Agg, kept: Kept, on: int, later: list[Agg]) -> None:
    """Raise `WrongError` unless a gradient that comes again is answered with the sum that was kept, and only there."""
    others = f"{on} other{' has' if on == 1 else 's have'} sent round 1"
    asks = f"worker {gradient.worker} sends round 0 again, whose result it lacks, when {others}"
    left, port = job.send(gradient), job.ports[gradient.worker]
    expected = [(port, gradient.result(kept.values).packed())]
    if not left:
        raise job.bench.wrong(f"{asks}: it gets no answer", expected, "drop")
    if [at for at, _ in left] != [port]:
        raise job.bench.wrong(f"{asks}: the answer leaves by port {', '.join(str(at) for at, _ in left)}", expected)
    packet = left[0][1]
    if any(packet.values[n] != kept.values[n] for n in kept.elements):
        mixed = {f"round 1 of worker {each.worker}": each.values for each in later}
        cause = f"{asks}: the answer is not the sum that left before"
        twice = {**mixed, "its gradient": gradient.values}
        found = next((name for name, values in twice.items() if added(kept.values, values) == packet.values), "")
        raise job.bench.wrong(f"{cause}{f', but {found} is added to it' if found else ''}", expected, "values.v0")
    if packet.kind != RESULT:
        raise job.bench.wrong(f"{asks}: the answer has kind {packet.kind}, not {RESULT}", expected, "agg.kind")
    if packet != gradient.result(packet.values):
        raise job.bench.wrong(f"{asks}: the answer is not of its slot and version", expected, "agg.slot")


def added(one: Values, other: Values) -> Values:
    """The sum of two."""
    return total([Agg(GRADIENT, 0, 0, 0, one), Agg(GRADIENT, 0, 0, 0, other)])
