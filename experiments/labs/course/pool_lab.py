"""Lab 3: a pool of slots in two versions: a program, and answers about its throughput in virtual time.

As in lab 2, each item looks at one property of the program, and most compare it with itself: other slots, earlier
rounds and gradients that come again must make no difference to what leaves for a gradient. `ModelPool` stands for a
program that does not sum yet. Answers are held against the curve of the student's own program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, Literal

import yaml
from pydantic import Field

from inakit.experiments.labs.course.graded_switch import SANDBOX, Bench, ProgramPart
from inakit.experiments.labs.course.lab_star import MOST_SLOTS, SIZE, Star, StarSwitch, throughput
from inakit.experiments.labs.course.packets import GRADIENT, RESULT, VALUES, Agg, Values, agg_in, summed
from inakit.experiments.labs.course.sum_lab import (
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
from inakit.experiments.labs.grading.items import Finding, Item, Packets, WrongError
from inakit.experiments.labs.grading.submission import Submission
from inakit.experiments.labs.sandbox.sandboxed_switch import SandboxedSwitch, switch_limits
from inakit.switch.entries import SwitchEntries
from inakit.topo.errors import InputError, RunError
from inakit.topo.files.reader import FileKind, ParsedFile, PlainLoader, Record, validate

Version = dict[int, Values]
"""The gradients in a sum, by worker."""


class ModelPool:
    """A switch that sums gradients of workers in slots of two versions, and answers who asks again."""

    def __init__(self) -> None:
        self.fresh()

    def fresh(self) -> None:
        """Start anew."""
        self.workers: dict[int, int] = {}
        self.sums: dict[tuple[int, int], Version] = {}

    def install(self, entries: SwitchEntries) -> None:
        """Take the numbers of workers by their ports."""
        self.workers = {int(str(entry.key[0])): entry.params[0] for entry in entries.tables}

    def inject(self, port: int, packet: bytes) -> Packets:
        """What leaves for a gradient that a worker may send."""
        found = agg_in(packet)
        if found is None or self.workers.get(port) != found.worker:
            return []
        seen = self.sums.setdefault((found.slot, found.version), {})
        again = found.worker in seen
        seen.setdefault(found.worker, found.values)
        if len(seen) < len(self.workers):
            return []
        if not again:
            self.sums.pop((found.slot, 1 - found.version), None)
        result = found.result(summed(list(seen.values()))).packed()
        return [(at, result) for at in ([port] if again else self.workers)]


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


def usual_of(bench: Bench, gradients: list[Agg], ports: list[int]) -> list[Left]:
    """What leaves for the gradients of one round in a switch that does nothing else, as if in their own version."""
    left = alone(bench, [replace(each, version=0) for each in gradients], ports)
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


FILE = "answers.yml"
KIND = FileKind("file of answers", max_bytes=1 << 14, tells_lines=True)
MOST_BRACKETS = 100
"""PyYAML takes a second for a few thousand brackets inside each other."""
NEAR = 0.02
"""How far a measured figure may be from the grader's own, as a fraction."""
FLAT = 0.999
"""The throughput from which it is called flat, as a fraction of that with all slots."""

NUMBER = "a number greater than 0"
SLOTS_EXPECTED = f"a whole number of slots from 1 to {MOST_SLOTS}"
Number = float | int


class Measured(Record):
    """What was measured on the network of the task."""

    one_slot_mbps: Number = Field(gt=0, allow_inf_nan=False, description=NUMBER)
    all_slots_mbps: Number = Field(gt=0, allow_inf_nan=False, description=NUMBER)
    flat_from_slots: int = Field(ge=1, le=MOST_SLOTS, description=SLOTS_EXPECTED)


class Explained(Record):
    """Why the curve bends where it does."""

    round_trip_us: Number = Field(gt=0, allow_inf_nan=False, description=NUMBER)
    bandwidth_delay_product_bytes: Number = Field(gt=0, allow_inf_nan=False, description=NUMBER)


class Predicted(Record):
    """From how many slots throughput is flat on other networks."""

    flat_at_300_mbps: int = Field(ge=1, le=MOST_SLOTS, description=SLOTS_EXPECTED)
    flat_at_100_us: int = Field(ge=1, le=MOST_SLOTS, description=SLOTS_EXPECTED)
    flat_with_8_workers: int = Field(ge=1, le=MOST_SLOTS, description=SLOTS_EXPECTED)


class Answers(Record):
    """The file of answers. `why` is for people to read."""

    version: Literal[1] = Field(description="the number 1")
    measured: Measured = Field(description="the figures of step 6")
    explained: Explained = Field(description="the figures of step 7")
    predicted: Predicted = Field(description="the figures of step 8")
    why: str = Field(default="", max_length=4000, description="a few sentences")


TASK = Star()
"""The network of the task."""
OTHERS = {
    "flat_at_300_mbps": replace(TASK, rate_bps=300e6),
    "flat_at_100_us": replace(TASK, delay_s=100e-6),
    "flat_with_8_workers": replace(TASK, workers=8),
}


def read_answers(text: str) -> Answers:
    """The answers in a text; `InputError` names the first mistake and its line."""
    if max(text.count("["), text.count("{")) > MOST_BRACKETS:
        raise InputError(f"{FILE} is not YAML as in the task: it has more than {MOST_BRACKETS} brackets")
    if len(text) > KIND.max_bytes:
        raise InputError(f"{FILE} has {len(text)} characters: expected at most {KIND.max_bytes}")
    try:
        loader = PlainLoader(text)
        tree = loader.get_single_node()
        document = loader.construct_document(tree) if tree else None
    except yaml.MarkedYAMLError as error:
        line = f" line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InputError(f"{FILE}{line}: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise InputError(f"{FILE} is not YAML: expected the file of the task with its numbers filled in") from None
    return validate(ParsedFile(Path(FILE), KIND, document, tree), Answers)


@dataclass(frozen=True)
class Curve:
    """The throughput of a program over its pool, in bit/s; what is asked twice is measured once."""

    measure: Callable[[Star, int], float]
    known: dict[tuple[Star, int], float] = field(default_factory=dict)

    def at(self, star: Star, slots: int) -> float:
        """The throughput with so many slots."""
        key = (star, slots)
        if key not in self.known:
            self.known[key] = self.measure(star, slots)
        return self.known[key]

    def is_flat(self, star: Star, slots: int) -> bool:
        """Whether more slots would not help."""
        return self.at(star, slots) >= FLAT * self.at(star, MOST_SLOTS)


# -- the items


def check_measured(answers: Answers, curve: Curve) -> None:
    """Throughput with one slot, with all of them, and the number of slots from which it is flat."""
    measured = answers.measured
    for name, slots, said in (
        ("one_slot_mbps", 1, measured.one_slot_mbps),
        ("all_slots_mbps", MOST_SLOTS, measured.all_slots_mbps),
    ):
        check_near(f"measured.{name}", said, curve.at(TASK, slots) / 1e6, "Mbit/s")
    flat_from("measured.flat_from_slots", measured.flat_from_slots, curve, TASK)


def check_explained(answers: Answers, curve: Curve) -> None:
    """The round trip is what a pool of one slot shows, and the bandwidth-delay product its product with the rate."""
    round_trip_s = SIZE * 8 / curve.at(TASK, 1)
    check_near("explained.round_trip_us", answers.explained.round_trip_us, round_trip_s * 1e6, "us")
    product = round_trip_s * TASK.rate_bps / 8
    check_near(
        "explained.bandwidth_delay_product_bytes", answers.explained.bandwidth_delay_product_bytes, product, "bytes"
    )


def check_predicted(answers: Answers, curve: Curve) -> None:
    """The number of slots from which throughput is flat on networks that differ in one thing."""
    for name, star in OTHERS.items():
        flat_from(f"predicted.{name}", getattr(answers.predicted, name), curve, star)


def check_near(name: str, said: float, right: float, unit: str) -> None:
    """Raise `WrongError` unless a figure is about what the grader has measured."""
    if not math.isclose(said, right, rel_tol=NEAR):
        raise WrongError(
            f"{FILE}: {name} is {said:.6g} {unit}, where {TASK} give something else: {hint_of(said, right)}"
        )


def hint_of(said: float, right: float) -> str:
    """In what a figure is wrong, without the right one."""
    factor = said / right
    known = {
        8.0: "eight times as much, as of bits taken for bytes",
        1 / 8: "an eighth, as of bytes taken for bits",
        1000.0: "a thousand times as much",
        0.001: "a thousandth",
        1e6: "a million times as much",
        1e-6: "a millionth",
        0.5: "half as much",
        2.0: "twice as much",
    }
    found = next((text for times, text in known.items() if math.isclose(factor, times, rel_tol=NEAR)), "")
    return f"it is {found}" if found else f"it is too {'great' if factor > 1 else 'small'}"


def flat_from(name: str, slots: int, curve: Curve, star: Star) -> None:
    """Raise `WrongError` unless throughput is flat from just so many slots on."""
    most = curve.at(star, MOST_SLOTS) / 1e6
    if not curve.is_flat(star, slots):
        got = curve.at(star, slots) / 1e6
        raise WrongError(
            f"{FILE}: {name} is {slots}, but with so many slots throughput is {got:.1f} Mbit/s, and with "
            f"{MOST_SLOTS} {most:.1f} ({star}): it still grows"
        )
    if slots > 1 and curve.is_flat(star, slots - 1):
        raise WrongError(f"{FILE}: {name} is {slots}, but {slots - 1} slots give the same {most:.1f} Mbit/s ({star})")


PROGRAM = "pool"
MEASURING_S = 30
"""The processor time that a program has for all that is measured."""


@dataclass(frozen=True)
class AnswersBench:
    """What an item about answers is given."""

    answers: Answers
    curve: Curve


def of_answers(check: Any) -> Any:
    def checked(bench: AnswersBench) -> None:
        check(bench.answers, bench.curve)

    return checked


OF_PROGRAM = (
    Item("admission", "who may send what", 10, "Step 1", check_admission),
    Item("sum", "the sum of one slot", 10, "Step 1", check_sum),
    Item("pool", "all slots at once", 10, "Step 2", check_pool),
    Item("versions", "two versions, round after round", 15, "Step 3", check_versions),
    Item("again", "a gradient comes again before the sum is complete", 10, "Step 4", check_again),
    Item("shadow", "a gradient comes again when the sum is complete", 15, "Step 5", check_shadow),
)
OF_ANSWERS = (
    Item("measured", "throughput over the pool's size", 10, "Step 6", of_answers(check_measured)),
    Item("explained", "round trip and bandwidth-delay product", 10, "Step 7", of_answers(check_explained)),
    Item("predicted", "other networks", 10, "Step 8", of_answers(check_predicted)),
)
NAMES_OF_ANSWERS = {item.name for item in OF_ANSWERS}


class OpenedPool:
    """A submission's program and answers. What is wrong with one of them is told at the items that need it."""

    def __init__(self, submission: Submission, target: str, stack: ExitStack) -> None:
        self.submission, self.stack, self.failed = submission, stack, False
        self.program = ProgramPart(submission, PROGRAM, target, stack)
        self.curve: Curve | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What was graded, and what of the sandbox is not enforced here."""
        return self.program.notes

    def bench(self, item: Item, random: Random) -> Bench | AnswersBench:
        """The bench of an item; `InputError` if there is no program, or no answers, for it."""
        if item.name in NAMES_OF_ANSWERS:
            if self.curve is None:
                self.curve = Curve(self.measuring())
            return AnswersBench(read_answers(self.submission.text(FILE)), self.curve)
        return self.program.needed.bench(item, random)

    def measuring(self) -> Any:
        """What measures throughput: with the student's program, or where that fails with the course's own."""
        switch: StarSwitch = ModelPool()
        if self.program.opened is not None and not self.failed:
            limits = replace(switch_limits(), cpu_s=MEASURING_S, wall_s=2.0 * MEASURING_S)
            own = SandboxedSwitch(self.program.text, PROGRAM, limits)
            self.stack.callback(own.close)
            switch = own

        def measure(star: Star, slots: int) -> float:
            try:
                return throughput(switch, star, slots)
            except RunError as error:
                raise WrongError(f"in virtual time ({star}) {error}") from None

        return measure

    def after(self, item: Item, *, passed: bool) -> None:
        """Hear whether an item has its points."""
        self.failed |= not passed and item.name not in NAMES_OF_ANSWERS

    def finding(self, wrong: WrongError) -> Finding:
        """The packets that show what is wrong; for answers the sentence is all."""
        return Finding(wrong.cause) if self.program.opened is None else self.program.opened.finding(wrong)


@dataclass(frozen=True)
class PoolLab:
    """Lab 3."""

    name: str = "3-pool"
    title: str = "A pool of slots, and its throughput"
    hours: str = "6 to 8"
    files: tuple[str, ...] = (f"{PROGRAM}.p4", FILE)
    items: tuple[Item, ...] = (*OF_PROGRAM, *OF_ANSWERS)

    @contextmanager
    def open(self, submission: Submission, target: str = SANDBOX) -> Iterator[OpenedPool]:
        """Open a submission."""
        with ExitStack() as stack:
            yield OpenedPool(submission, target, stack)
