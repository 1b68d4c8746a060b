"""Lab 3: a pool of slots in two versions: a program, and answers about its throughput in virtual time.

Each item about the program tests one property. `ModelPool` replaces a program that does not sum yet. Answers are
compared with the curve of the student's own program: the throughput of a job with workers around one switch, over the
size of the pool. The engine is that of `inakit.topo.virtual`; the switch processes one packet at a time, in no time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from inakit.experiments.labs.course.aggregation import (
    MOST_WORKERS,
    WORKERS,
    Job,
    changed,
    check_every_slot,
    check_forgeries,
    check_slots,
    drawn_round,
    drawn_rounds,
    forged_with,
    interleaved,
    job_entries,
    sent_by_all,
    total,
    twice,
    without_repeats,
)
from inakit.experiments.labs.grading.bench import Bench
from inakit.experiments.labs.grading.graded_switch import SentSwitch
from inakit.experiments.labs.grading.lab import Item, Lab, WrongError, scored
from inakit.experiments.labs.grading.packets import GRADIENT, RESULT, VALUES, Agg, Values, agg_in, ipv4, summed
from inakit.experiments.labs.grading.submission import read_submission
from inakit.experiments.labs.sandbox.process import EndedError
from inakit.experiments.labs.sandbox.sandboxed_switch import SandboxedSwitch, switch_limits
from inakit.switch.entries import SwitchEntries
from inakit.switch.interpret.interpreted_switch import Packets
from inakit.topo.errors import InputError, RunError
from inakit.topo.files.reader import FileKind, Record, parse_text, validate
from inakit.topo.virtual.engine import PS_PER_S, Engine

FRAME = np.dtype([("bytes", np.uint8, 64)])
SIZE = len(Agg(GRADIENT, 0, 0, 0, (0,) * 8).packed())
"""The bytes of a gradient packet and of a result packet."""
MOST_SLOTS = 64
TIMED_ROUNDS = 4


@dataclass(frozen=True)
class Star:
    """Workers around one switch; each link has this rate and delay in each direction."""

    workers: int = 4
    rate_bps: float = 100e6
    delay_s: float = 25e-6

    def __post_init__(self) -> None:
        if not 1 <= self.workers <= MOST_WORKERS:
            raise InputError(f"{self.workers} workers: expected 1 to {MOST_WORKERS}")
        if not 1e3 <= self.rate_bps <= 1e12 or not 0 <= self.delay_s <= 1:
            raise InputError(f"{self.rate_bps:g} bit/s, {self.delay_s:g} s: expected 1k to 1T bit/s and 0 to 1 s")

    def __str__(self) -> str:
        return f"{self.workers} workers, {self.rate_bps / 1e6:g} Mbit/s, {self.delay_s * 1e6:g} us"


def throughput(switch: SentSwitch, star: Star, slots: int) -> float:
    """The rate in bit/s at which each worker sends with a pool of `slots` slots.

    It is measured on a job of `ROUNDS` rounds, from the end of the first round. Raises `RunError` if the job does not
    end, or if a sum is wrong.
    """
    if not 1 <= slots <= MOST_SLOTS:
        raise InputError(f"{slots} slots: expected 1 to {MOST_SLOTS}")
    run = StarRun(switch, star, slots)
    with closing(run.engine):
        ends = run.go()
    return (TIMED_ROUNDS - 1) * slots * SIZE * 8 * PS_PER_S / (ends[-1] - ends[0])


class StarRun:
    """One run. Nodes are the workers and, for each worker, its port of the switch."""

    def __init__(self, switch: SentSwitch, star: Star, slots: int) -> None:
        self.switch, self.star, self.slots = switch, star, slots
        self.engine = Engine(2 * star.workers, [1] * 2 * star.workers, FRAME)
        for worker in range(star.workers):
            host, port = (worker, 0), (star.workers + worker, 0)
            for link, end, peer in ((2 * worker, host, port), (2 * worker + 1, port, host)):
                delay_ps = round(star.delay_s * PS_PER_S)
                self.engine.connect(link, end, peer, rate_bps=star.rate_bps, delay_ps=delay_ps, limit=0)
        switch.fresh()
        switch.install(job_entries(list(range(1, star.workers + 1))))
        self.rounds = [[0] * slots for _ in range(star.workers)]
        self.ended = [[0] * star.workers for _ in range(TIMED_ROUNDS)]

    def go(self) -> list[int]:
        """The time at which the last worker had the last result of each round, in ps."""
        for worker in range(self.star.workers):
            for slot in range(self.slots):
                self.send(2 * worker, self.gradient(worker, slot).packed())
        while (at := self.engine.next_ps()) is not None:
            self.engine.run(at)
            came = [(int(e["node"]), e["frame"]["bytes"][: e["length"]].tobytes()) for e in self.engine.take()]
            for node, packet in came:
                self.arrive(node, packet)
        stuck = next((w for w, rounds in enumerate(self.rounds) if min(rounds) < TIMED_ROUNDS), None)
        if stuck is not None:
            slot = self.rounds[stuck].index(min(self.rounds[stuck]))
            what = f"round {self.rounds[stuck][slot]} of slot {slot}"
            raise RunError(f"with {self.slots} slots, worker {stuck} never gets a result of {what}")
        return [max(each) for each in self.ended]

    def send(self, link: int, packet: bytes) -> None:
        """Put a packet on a link."""
        frames = np.zeros(1, FRAME)
        frames["bytes"][0, : len(packet)] = np.frombuffer(packet, np.uint8)
        self.engine.send(np.array([link], np.uint32), np.array([len(packet)], np.uint32), frames)

    def arrive(self, node: int, packet: bytes) -> None:
        """Deliver a packet to the switch by a worker's port, or to a worker."""
        workers = self.star.workers
        if node < workers:
            found = agg_in(packet)
            if found is not None:
                self.receive(node, found)
            return
        for port, left in self.switch.inject(node - workers + 1, packet):
            if 1 <= port <= workers and len(left) <= FRAME.itemsize:
                self.send(2 * (port - 1) + 1, left)

    def receive(self, worker: int, packet: Agg) -> None:
        """Deliver an expected result to a worker, which sends the slot's next gradient."""
        slot = packet.slot
        if packet.kind != RESULT or slot >= self.slots:
            return
        number = self.rounds[worker][slot]
        if packet.round != number or number == TIMED_ROUNDS:
            return
        if packet.values != summed([values_of(each, slot, number) for each in range(self.star.workers)]):
            raise RunError(
                f"with {self.slots} slots, worker {worker} gets a wrong sum of round {number} of slot {slot}"
            )
        self.ended[number][worker] = self.engine.now_ps
        self.rounds[worker][slot] += 1
        if number + 1 < TIMED_ROUNDS:
            self.send(2 * worker, self.gradient(worker, slot).packed())

    def gradient(self, worker: int, slot: int) -> Agg:
        """The next gradient of a worker for a slot."""
        number = self.rounds[worker][slot]
        return Agg(GRADIENT, worker, slot, number, values_of(worker, slot, number), version=number % 2)


def values_of(worker: int, slot: int, number: int) -> Values:
    """Different values for each gradient."""
    first = ((number * MOST_SLOTS + slot) * MOST_WORKERS + worker) * VALUES
    return tuple(range(first, first + VALUES))


BAR = 40
"""The length in characters of a bar for the full rate of a link."""


def curve(path: Path, star: Star, slots: Sequence[int]) -> Iterator[tuple[int, float, str]]:
    """Measure the program in a file with each of these pool sizes; yield each with its rate in bit/s, and a bar.

    The program has its time for each size anew. Raises `RunError` if it needs more, or ends.
    """
    texts = read_submission(path).texts
    if path.name not in texts or path.suffix != ".json":
        raise InputError(f"{path}: expected a compiled program, such as pool.json (`inakit p4c pool.p4` writes it)")
    for each in slots:
        with closing(SandboxedSwitch(texts[path.name], path.stem)) as switch:
            try:
                rate_bps = throughput(switch, star, each)
            except EndedError as error:
                raise RunError(f"{path} with {each} slots: {error}") from None
        yield each, rate_bps, "#" * round(BAR * rate_bps / star.rate_bps)


# -- the program

SLOTS, ROUNDS = 64, 5


def check_admission(bench: Bench) -> None:
    """Forbidden packets of workers are dropped and not counted."""
    more = {f"a gradient of version {each}": partial(forged_with, version=each) for each in (2, 3, 128)}
    check_forgeries(bench, SLOTS, more)
    other = ipv4(bench.random.getrandbits(32), bench.random.getrandbits(32), payload=bench.random.randbytes(40))
    bench.same(bench.send(Job(bench).ports[0], other), [], "a packet that belongs to no aggregation is not dropped")


def check_sum(bench: Bench) -> None:
    """The sum leaves with the last gradient as a result, once by each worker's port."""
    for workers in (WORKERS, MOST_WORKERS, 2):
        job = Job(bench, workers)
        order = bench.random.sample(range(workers), workers)
        gradients = drawn_round(bench, order, bench.random.randrange(SLOTS - 1), bench.random.getrandbits(32))
        if workers == 2:
            gradients[0] = replace(gradients[0], values=(0,) * VALUES)
        for count, gradient in enumerate(gradients, 1):
            left = job.send(gradient)
            if left and count < workers:
                raise bench.wrong(f"a packet leaves when {count} of {workers} workers have sent")
        expected = job.expected(gradient, total(gradients))
        if not left:
            raise bench.wrong("no result leaves, though all workers have sent", expected, "drop")
        job.judge_sum(left[0][1].values, gradients)
        if left[0][1].kind != RESULT:
            raise bench.wrong(f"what leaves has kind {left[0][1].kind}, not {RESULT}", expected, "agg.kind")
        got = [(port, packet.packed()) for port, packet in left]
        bench.same(got, expected, "the result does not leave once by each worker's port, with slot and version kept")


def check_versions(bench: Bench) -> None:
    """Several rounds of a slot: each sends the same as the first use of the slot, whatever the header has as round."""
    job, slot = Job(bench), bench.random.randrange(SLOTS - 1)
    rounds = drawn_rounds(bench, (slot,), ROUNDS)
    order = interleaved(bench, rounds)
    said = [2 * bench.random.getrandbits(30) for _ in range(ROUNDS)]
    usual = {}
    for number in range(ROUNDS):
        alone = [replace(each, version=0, round=said[number]) for each in order if each.round == number]
        usual[number] = changed(job.alone(alone), partial(replace, version=number % 2))
    sums = {number: total(rounds[slot, number]) for number in range(ROUNDS)}
    job.begin()
    for gradient in order:
        number = gradient.round
        others = {f"the sum of round {n}": sums[n] for n in range(number)}
        what = f"in round {number} of slot {slot} (version {gradient.version})"
        left = job.send(replace(gradient, round=said[number]))
        job.judge_same(left, usual[number].pop(0), rounds[slot, number], what, others)
    first, second, third, *_ = rounds.values()
    check_every_slot(job, SLOTS, first, sent_by_all(job, [*first, *second, *third]), "three rounds")


def check_again(bench: Bench) -> None:
    """A gradient that is repeated before the sum is complete has no effect, nor on the other version's kept sum."""
    for workers, again in ((MOST_WORKERS, range(MOST_WORKERS - 1)), *((WORKERS, (n,)) for n in range(WORKERS - 1))):
        job = Job(bench, workers)
        rounds = drawn_rounds(bench, (bench.random.randrange(SLOTS - 1),), 2, workers)
        first, second = rounds.values()
        order = [*first, *second[:-1], first[-1], second[-1]]  # the last worker also asks for the result of round 0
        usual = without_repeats(job, order) if workers == WORKERS else job.left_after(order)
        job.begin()
        for gradient, left in zip(order, usual, strict=True):
            sent = gradient.worker if gradient.worker in again else again[-1]
            what = f"worker {sent} sent its gradient of round {gradient.round} twice, before all had sent"
            job.judge_same(job.send(gradient), left, rounds[gradient.slot, gradient.round], what, {})
            if gradient.worker in again and left == [] and job.send(gradient):
                raise bench.wrong(f"{what}: a packet leaves for the second")
    script = sent_by_all(job, [*twice(first), *twice(second)])
    check_every_slot(job, SLOTS, [*first, *second], script, "gradients that are sent twice")


def check_shadow(bench: Bench) -> None:
    """Only the worker that asks again for a complete sum gets it, even if others have begun the next round."""
    for workers, on in ((MOST_WORKERS, 0), *((WORKERS, on) for on in range(WORKERS))):
        job, slot = Job(bench, workers), bench.random.randrange(SLOTS - 1)
        rounds = drawn_rounds(bench, (slot,), 3, workers)
        order = [gradient for gradients in rounds.values() for gradient in gradients]
        usual = without_repeats(job, order) if workers == WORKERS else job.left_after(order)
        job.begin()
        kept: Values = (0,) * VALUES
        complete = [number for number, left in enumerate(usual) if left]
        if workers > WORKERS and complete != list(range(workers - 1, len(order), workers)):
            continue  # another item tests the sums of eight workers
        for number, (gradient, left) in enumerate(zip(order, usual, strict=True)):
            what = f"round {gradient.round} after a worker has asked for an earlier round again"
            job.judge_same(job.send(gradient), left, rounds[slot, gradient.round], what, {"the kept sum": kept})
            if (number + 1) % workers == 0:
                kept = left[0][1].values if left else (0,) * VALUES
            if number + 1 - on in (workers, 2 * workers):
                later = (number + 1 - on) // workers
                for asks in range(on, workers):
                    judge_answer(job, rounds[slot, later - 1], asks, kept, rounds[slot, later][:on])
    first, second, _ = rounds.values()
    again = sent_by_all(job, [*first, *first, *second, *second])
    check_every_slot(job, SLOTS, [*first, *second], again, "gradients that are sent again when all have sent")


def judge_answer(job: Job, gradients: list[Agg], asks: int, kept: Values, later: list[Agg]) -> None:
    """Raise `WrongError` unless only the sender of a repeated gradient is answered, with the kept sum.

    The comparison uses the correct elements of the kept sum, or all if none is correct: another item tests the sum.
    """
    gradient, on = gradients[asks], len(later)
    others = f"{on} other{' has' if on == 1 else 's have'} sent round {gradient.round + 1}"
    what = f"worker {asks} sends round {gradient.round} again, whose result it lacks, when {others}"
    left, port = job.send(gradient), job.port_of(gradient)
    expected = [(port, gradient.result(kept).packed())]
    if not left:
        raise job.bench.wrong(f"{what}: it gets no answer", expected, "drop")
    if [at for at, _ in left] != [port]:
        raise job.bench.wrong(f"{what}: the answer leaves by port {', '.join(str(at) for at, _ in left)}", expected)
    packet = left[0][1]
    right = total(gradients)
    compared = [n for n in range(VALUES) if kept[n] == right[n]] or range(VALUES)
    if any(packet.values[n] != kept[n] for n in compared):
        mixed = {f"round {gradient.round + 1} of worker {each.worker}": each.values for each in later} | {
            "its gradient": gradient.values
        }
        found = next((name for name, values in mixed.items() if summed([kept, values]) == packet.values), "")
        why = f", but {found} is added to it" if found else ""
        raise job.bench.wrong(f"{what}: the answer is not the sum that left before{why}", expected, "values.v0")
    if packet.kind != RESULT:
        raise job.bench.wrong(f"{what}: the answer has kind {packet.kind}, not {RESULT}", expected, "agg.kind")
    if packet != gradient.result(packet.values):
        raise job.bench.wrong(f"{what}: a field other than kind and values is not the gradient's", expected, "agg.slot")


# -- the answers

FILE = "answers.yml"
KIND = FileKind("file of answers", max_bytes=1 << 14, tells_lines=True)
NEAR = 0.02
"""The relative tolerance of a measured figure against the grader's own."""
FLAT = 0.999
"""The fraction of the throughput with all slots from which throughput counts as flat."""
MEASURING_S = 30
"""The processor time that a program has for all measurements."""

NUMBER = "a number greater than 0"
SLOTS_EXPECTED = f"a whole number of slots from 1 to {MOST_SLOTS}"
Number = float | int


class Measured(Record):
    """The figures measured on the network of the task."""

    one_slot_mbps: Number = Field(gt=0, allow_inf_nan=False, description=NUMBER)
    all_slots_mbps: Number = Field(gt=0, allow_inf_nan=False, description=NUMBER)
    flat_from_slots: int = Field(ge=1, le=MOST_SLOTS, description=SLOTS_EXPECTED)


class Explained(Record):
    """The figures that explain the bend of the curve."""

    round_trip_us: Number = Field(gt=0, allow_inf_nan=False, description=NUMBER)
    bandwidth_delay_product_bytes: Number = Field(gt=0, allow_inf_nan=False, description=NUMBER)


class Predicted(Record):
    """The numbers of slots from which throughput is flat on other networks."""

    flat_at_300_mbps: int = Field(ge=1, le=MOST_SLOTS, description=SLOTS_EXPECTED)
    flat_at_100_us: int = Field(ge=1, le=MOST_SLOTS, description=SLOTS_EXPECTED)
    flat_with_8_workers: int = Field(ge=1, le=MOST_SLOTS, description=SLOTS_EXPECTED)


class Answers(Record):
    """The file of answers. A person reads `why`."""

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
    return validate(parse_text(text, Path(FILE), KIND), Answers)


class ModelPool:
    """A model switch that sums gradients in slots of two versions, and answers workers that ask again."""

    def __init__(self) -> None:
        self.fresh()

    def fresh(self) -> None:
        """Start anew."""
        self.workers: dict[int, int] = {}
        self.sums: dict[tuple[int, int], dict[int, Values]] = {}

    def install(self, entries: SwitchEntries) -> None:
        """Set the workers' numbers by port."""
        self.workers = {int(str(entry.key[0])): entry.params[0] for entry in entries.tables}

    def inject(self, port: int, packet: bytes) -> Packets:
        """Process an admitted gradient; return the packets that leave."""
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


@dataclass(frozen=True)
class Curve:
    """The throughput of a program over its pool, in bit/s; each point is measured once."""

    switch: SentSwitch
    known: dict[tuple[Star, int], float] = field(default_factory=dict)

    def at(self, star: Star, slots: int) -> float:
        """The throughput with this many slots."""
        if (star, slots) not in self.known:
            try:
                self.known[star, slots] = throughput(self.switch, star, slots)
            except RunError as error:
                raise WrongError(f"in virtual time ({star}) {error}") from None
        return self.known[star, slots]

    def is_flat(self, star: Star, slots: int) -> bool:
        """Whether throughput is flat from this number of slots."""
        return self.at(star, slots) >= FLAT * self.at(star, MOST_SLOTS)

    @classmethod
    def of(cls, bench: Bench) -> Curve:
        """The curve of the student's program, or of `ModelPool` if the program fails."""
        if bench.loaded is None or PROGRAM in bench.failed:
            return cls(ModelPool())
        limits = replace(switch_limits(), cpu_s=MEASURING_S, wall_s=2.0 * MEASURING_S)
        own = SandboxedSwitch(bench.program, "pool", limits)
        bench.stack.callback(own.close)
        return cls(own)


def about_answers(check: Callable[[Answers, Curve], None]) -> Callable[[Bench], None]:
    """The check of an item about answers."""

    @wraps(check)
    def checked(bench: Bench) -> None:
        curve = bench.once(Curve.of)
        check(read_answers(bench.submission.text(FILE)), curve)

    return checked


@about_answers
def check_measured(answers: Answers, curve: Curve) -> None:
    """Throughput with one slot, with all of them, and the number of slots from which it is flat."""
    measured = answers.measured
    for name, slots in (("one_slot_mbps", 1), ("all_slots_mbps", MOST_SLOTS)):
        check_near(f"measured.{name}", getattr(measured, name), curve.at(TASK, slots) / 1e6, "Mbit/s")
    flat_from("measured.flat_from_slots", measured.flat_from_slots, curve, TASK)


@about_answers
def check_explained(answers: Answers, curve: Curve) -> None:
    """The round trip follows from a pool of one slot; the bandwidth-delay product is its product with the rate."""
    explained, round_trip_s = answers.explained, SIZE * 8 / curve.at(TASK, 1)
    product = round_trip_s * TASK.rate_bps / 8
    check_near("explained.round_trip_us", explained.round_trip_us, round_trip_s * 1e6, "us")
    name = "explained.bandwidth_delay_product_bytes"
    check_near(name, explained.bandwidth_delay_product_bytes, product, "bytes")


@about_answers
def check_predicted(answers: Answers, curve: Curve) -> None:
    """The number of slots from which throughput is flat on networks that differ in one parameter."""
    for name, star in OTHERS.items():
        flat_from(f"predicted.{name}", getattr(answers.predicted, name), curve, star)


def check_near(name: str, given: float, right: float, unit: str) -> None:
    """Raise `WrongError`, with a hint, unless a figure agrees with the grader's measurement."""
    if math.isclose(given, right, rel_tol=NEAR):
        return
    factor = given / right
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
    hint = f"it is {found}" if found else f"it is too {'great' if factor > 1 else 'small'}"
    raise WrongError(f"{FILE}: {name} is {given:.6g} {unit}, where {TASK} give something else: {hint}")


def flat_from(name: str, slots: int, curve: Curve, star: Star) -> None:
    """Raise `WrongError` unless `slots` is the least number of slots with flat throughput."""
    most = curve.at(star, MOST_SLOTS) / 1e6
    if not curve.is_flat(star, slots):
        got = curve.at(star, slots) / 1e6
        raise WrongError(
            f"{FILE}: {name} is {slots}, but with so many slots throughput is {got:.1f} Mbit/s, and with "
            f"{MOST_SLOTS} {most:.1f} ({star}): it still grows"
        )
    if slots > 1 and curve.is_flat(star, slots - 1):
        raise WrongError(f"{FILE}: {name} is {slots}, but {slots - 1} slots give the same {most:.1f} Mbit/s ({star})")


PROGRAM, ANSWERS = "program", "answers"
LAB = Lab(
    name="3-pool",
    title="A pool of slots, and its throughput",
    hours="6 to 8",
    files=("pool.p4", FILE),
    items=scored(
        "3-pool",
        Item("admission", "who may send what", "Step 1", check_admission, PROGRAM),
        Item("sum", "the sum of one slot", "Step 1", check_sum, PROGRAM),
        Item("pool", "all slots at once", "Step 2", partial(check_slots, slots=SLOTS, rounds_of_each=2), PROGRAM),
        Item("versions", "two versions, round after round", "Step 3", check_versions, PROGRAM),
        Item("again", "a gradient comes again before the sum is complete", "Step 4", check_again, PROGRAM),
        Item("shadow", "a gradient comes again when the sum is complete", "Step 5", check_shadow, PROGRAM),
        Item("measured", "throughput over the pool's size", "Step 6", check_measured, ANSWERS),
        Item("explained", "round trip and bandwidth-delay product", "Step 7", check_explained, ANSWERS),
        Item("predicted", "other networks", "Step 8", check_predicted, ANSWERS),
    ),
)
