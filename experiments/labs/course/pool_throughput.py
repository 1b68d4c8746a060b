"""Lab 3's throughput over the size of the pool of slots: a job in virtual time, with workers around one switch.

The engine is the one of `inakit.topo.virtual`; the switch is asked packet by packet, and takes no time of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from inakit.experiments.labs.course.aggregation import job_entries
from inakit.experiments.labs.grading.graded_switch import SentSwitch
from inakit.experiments.labs.grading.packets import GRADIENT, RESULT, VALUES, Agg, Values, agg_in, summed
from inakit.experiments.labs.grading.submission import read_submission
from inakit.experiments.labs.sandbox.sandboxed_switch import SandboxedSwitch
from inakit.topo.errors import InputError, RunError
from inakit.topo.virtual.engine import PS_PER_S, Engine

FRAME = np.dtype([("bytes", np.uint8, 64)])
SIZE = len(Agg(GRADIENT, 0, 0, 0, (0,) * 8).packed())
"""The bytes of a gradient, and of a result."""
MOST_SLOTS = 64
MOST_WORKERS = 8
ROUNDS = 4


@dataclass(frozen=True)
class Star:
    """Workers, each with a link of this rate and delay, in each direction, to one switch."""

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
    """The rate in bit/s at which each worker sends with a pool of so many slots.

    It is that of a job of `ROUNDS` rounds from the end of the first on. Raises `RunError` if the job does not end, or a
    sum is wrong.
    """
    if not 1 <= slots <= MOST_SLOTS:
        raise InputError(f"{slots} slots: expected 1 to {MOST_SLOTS}")
    run = StarRun(switch, star, slots)
    with closing(run.engine):
        ends = run.go()
    return (ROUNDS - 1) * slots * SIZE * 8 * PS_PER_S / (ends[-1] - ends[0])


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
        self.ended = [[0] * star.workers for _ in range(ROUNDS)]

    def go(self) -> list[int]:
        """When the last worker had the last result of each round, in ps."""
        for worker in range(self.star.workers):
            for slot in range(self.slots):
                self.send(2 * worker, self.gradient(worker, slot).packed())
        while (at := self.engine.next_ps()) is not None:
            self.engine.run(at)
            came = [(int(e["node"]), e["frame"]["bytes"][: e["length"]].tobytes()) for e in self.engine.take()]
            for node, packet in came:
                self.arrive(node, packet)
        stuck = next((w for w, rounds in enumerate(self.rounds) if min(rounds) < ROUNDS), None)
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
        """Let a packet come to the switch by a worker's port, or to a worker."""
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
        """Let a worker take a result that it waits for, and send the slot's next gradient."""
        slot = packet.slot
        if packet.kind != RESULT or slot >= self.slots:
            return
        number = self.rounds[worker][slot]
        if packet.round != number or number == ROUNDS:
            return
        if packet.values != summed([values_of(each, slot, number) for each in range(self.star.workers)]):
            raise RunError(
                f"with {self.slots} slots, worker {worker} gets a wrong sum of round {number} of slot {slot}"
            )
        self.ended[number][worker] = self.engine.now_ps
        self.rounds[worker][slot] += 1
        if number + 1 < ROUNDS:
            self.send(2 * worker, self.gradient(worker, slot).packed())

    def gradient(self, worker: int, slot: int) -> Agg:
        """The gradient that a worker sends next for a slot."""
        number = self.rounds[worker][slot]
        return Agg(GRADIENT, worker, slot, number, values_of(worker, slot, number), version=number % 2)


def values_of(worker: int, slot: int, number: int) -> Values:
    """Different values for each gradient."""
    first = ((number * MOST_SLOTS + slot) * MOST_WORKERS + worker) * VALUES
    return tuple(range(first, first + VALUES))


BAR = 40
"""The characters of a bar that stands for the rate of a link."""


def curve_lines(path: Path, star: Star, slots: Sequence[int]) -> Iterator[str]:
    """Measure the program in a file with each of these sizes of the pool; a line for each."""
    texts = read_submission(path).texts
    if path.name not in texts or path.suffix != ".json":
        raise InputError(f"{path}: expected a compiled program, such as pool.json (`inakit p4c pool.p4` writes it)")
    with closing(SandboxedSwitch(texts[path.name], path.stem)) as switch:
        yield f"{star}\n{'slots':>5} {'Mbit/s':>10}"
        for each in slots:
            rate_bps = throughput(switch, star, each)
            yield f"{each:5} {rate_bps / 1e6:10.3f} {'#' * round(BAR * rate_bps / star.rate_bps)}"
