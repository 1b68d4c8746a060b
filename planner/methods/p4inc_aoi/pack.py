"""A planner of our own: jobs are packed into slots in turn, and those that end last come earlier next time.

It knows all jobs from the start, as the MILP does. Where TW deals bandwidth in steps, a job here gets just the rate
with which it is done at the end of a slot. Of all starts and all units with INC it takes those that end it first, and
of several as good those that take the fewest ports. Circuits are set afterwards; until then a reconfiguration is
counted wherever a rate rises.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, inf

import numpy as np

from inakit.planner.core.plan import SolverOutcome
from inakit.planner.methods.p4inc_aoi.online import cannot_start
from inakit.planner.methods.p4inc_aoi.optical_system import DataCenter, PlacedJob, Scheduling
from inakit.planner.methods.p4inc_aoi.schedule import DUST, Grant, Schedule, Slot, UnitPair
from inakit.planner.methods.p4inc_aoi.slot_resources import ROUNDING, JobShape, SlotResources, circuits_of, settle

TRIES, MOST_ROUNDS = 12_000, 200
"""The most jobs packed in all rounds together, and the most rounds: few rounds for many jobs, many for few."""

PICKED = 2
"""How many jobs, on average, come earlier by chance."""

LEAST = 1e-3
"""A slot that has less left than this part of the rate which a job would have alone is full for that job."""


@dataclass(frozen=True)
class PackedJob:
    """Where a job goes: its first slot, a worker's rate in each slot, and the ports that it takes."""

    shape: JobShape
    start: int
    rates_bps: tuple[float, ...]
    ports: int
    end_s: float

    @property
    def rank(self) -> tuple[float, int, int]:
        """The key by which places are compared: end, ports, slots. The least is the best."""
        return self.end_s, self.ports, len(self.rates_bps)


class Packing:
    """Slots that are filled with the jobs in this order."""

    def __init__(self, problem: Scheduling, order: list[PlacedJob]) -> None:
        self.center, self.order = problem.center, order
        self.slots: list[SlotResources] = []
        self.empty = SlotResources(self.center)
        self.places: dict[int, PackedJob] = {}
        for job in order:
            self.add(job)

    def slot(self, number: int) -> SlotResources:
        """The resources of that slot."""
        while len(self.slots) <= number:
            self.slots.append(SlotResources(self.center))
        return self.slots[number]

    @property
    def score(self) -> tuple[float, int, int]:
        """When the last jobs end, how many these are, and the ports that all jobs take. The least score is the best."""
        ends = [place.end_s for place in self.places.values()]
        return max(ends), ends.count(max(ends)), sum(place.ports for place in self.places.values())

    def add(self, job: PlacedJob) -> None:
        """Put a job where it ends first. Raises `PlanError` where it cannot transfer."""
        best: PackedJob | None = None
        for shape in shapes(job):
            limit = inf if best is None else best.end_s
            for place in self.candidates(shape, limit):
                if best is None or place.rank < best.rank:
                    best = place
        if best is None:
            raise cannot_start(job)
        for number, rate in enumerate(best.rates_bps, start=best.start):
            resources = self.slot(number)
            resources.add(best.shape, rate)
            if best.shape.inc is not None:
                resources.inc_jobs[best.shape.inc] -= 1
        self.places[job.number] = best

    def candidates(self, shape: JobShape, limit_s: float) -> Iterator[PackedJob]:
        """The place that each start leads to, until no later start can end by the limit or as early as one found."""
        alone_bps = rate_in(self.empty, shape, inf)
        if alone_bps <= 0:
            return
        start, filled, least = shape.job.arrival, len(self.slots), slots_at(self.center, shape, alone_bps)
        while done_s(self.center, shape, start + least) <= limit_s:
            found = self.place(shape, start, alone_bps * LEAST)
            if found is not None:
                yield found
                limit_s = min(limit_s, found.end_s)
            elif start >= filled:
                return
            start += 1

    def place(self, shape: JobShape, start: int, least_bps: float) -> PackedJob | None:
        """The job as fast as possible from that slot on.

        None if a slot has no more than `least_bps` before the job is done.
        """
        job, slot_s = shape.job, self.center.slot_s
        pause = job.pause(shape.inc) / job.bits
        left, before, rates, ports, number = job.bits, 0.0, [], 0, start
        while left > DUST / 2 * job.bits:
            resources = self.slot(number)
            dark_s = self.center.reconfiguration_s if number and shape.flows else 0.0
            speed = max((left - before * dark_s) / (slot_s - dark_s), left / slot_s)
            wanted = speed / (1 - speed * pause) if speed * pause < 1 else inf
            rate = rate_in(resources, shape, wanted)
            if rate < wanted:
                if rate <= least_bps:
                    return None
                speed = rate / (1 + rate * pause)
                left += max(0.0, speed - before) * dark_s - speed * slot_s
            else:
                left = 0.0
            ports += sum(resources.more_ports(shape, rate).values())
            before, number = speed, number + 1
            rates.append(rate)
        return PackedJob(shape, start, tuple(rates), ports, done_s(self.center, shape, number))

    def schedule(self, method: str, seconds: float) -> Schedule:
        """The schedule of the packed slots, with circuits that change as little as they can."""
        inc = {number: place.shape.inc for number, place in self.places.items() if place.shape.inc is not None}
        grants: list[list[Grant]] = [[] for _ in range(max(p.start + len(p.rates_bps) for p in self.places.values()))]
        for number, place in sorted(self.places.items()):
            for slot, rate in enumerate(place.rates_bps, start=place.start):
                grants[slot].append(Grant(number, rate))
        slots = []
        ports: dict[UnitPair, int] = {}
        last_used: dict[UnitPair, int] = {}
        for number, (resources, own) in enumerate(zip(self.slots, grants, strict=False)):
            needed = resources.needed()
            last_used.update(dict.fromkeys(needed, number))
            ports = settle(self.center, needed, ports, last_used)
            slots.append(Slot(circuits_of(ports), tuple(own)))
        return Schedule(method, inc, tuple(slots), SolverOutcome("heuristic", seconds))


def rate_in(resources: SlotResources, shape: JobShape, wanted_bps: float) -> float:
    """The rate in bit/s that a worker can have in a slot, at most `wanted_bps`."""
    if shape.inc is not None and not resources.inc_jobs[shape.inc]:
        return 0.0
    return resources.most_bps(shape, wanted_bps)


def shapes(job: PlacedJob) -> list[JobShape]:
    """The ways to serve a job: with INC in any of its units, and without."""
    return [JobShape(job, unit) for unit in (*job.workers, None)]


def done_s(center: DataCenter, shape: JobShape, slots: int) -> float:
    """When a job that transfers in the last of so many slots ends, in s, its update included."""
    return slots * center.slot_s + shape.job.update_time(shape.inc)


def pack(problem: Scheduling, method: str = "pack", tries: int = TRIES, seed: int = 0) -> Schedule:
    """Pack again and again, and keep the best: the shortest batch iteration, then the fewest connections.

    After a round the jobs that ended last go to the front, as do a few that chance picks. No round is needed once the
    last job ends as early as it would alone.
    """
    started, draws = time.monotonic(), np.random.default_rng(seed)
    order = sorted(problem.jobs, key=lambda job: (-hardness(problem, job), job.number))
    earliest = earliest_s(problem)
    best = Packing(problem, order)
    for _ in range(min(MOST_ROUNDS, tries // len(order))):
        if best.score[0] <= earliest:
            break
        found = Packing(problem, moved(order, best, draws))
        if found.score <= best.score:
            best, order = found, found.order
    return best.schedule(method, time.monotonic() - started)


def earliest_s(problem: Scheduling) -> float:
    """A time in s before which no batch iteration ends: that of the last job, if each had all units to itself."""
    center = problem.center

    def alone_s(shape: JobShape) -> float:
        rate = rate_in(SlotResources(center), shape, inf)
        return done_s(center, shape, shape.job.arrival + slots_at(center, shape, rate)) if rate > 0 else inf

    return max(min(map(alone_s, shapes(job))) for job in problem.jobs)


def slots_at(center: DataCenter, shape: JobShape, rate_bps: float) -> int:
    """The slots in which a job is done at a rate, if no circuit is new. Rounding does not begin another slot."""
    sending_s = shape.job.bits / rate_bps + shape.job.pause(shape.inc)
    return max(1, ceil(sending_s / center.slot_s * (1 - 3 * ROUNDING)))


def hardness(problem: Scheduling, job: PlacedJob) -> float:
    """For how long, in s, a job keeps a unit's optical ports busy if it has all of them, its update included."""
    center = problem.center
    most_bps = max(unit.optical_ports for unit in center.units) * center.port_bps
    sent = sum(weight for _, weight in job.flows(None)) * job.bits
    return sent / max(most_bps, 1.0) + job.update_s


def moved(order: Sequence[PlacedJob], packing: Packing, draws: np.random.Generator) -> list[PlacedJob]:
    """The order with the jobs that ended last, and some that chance picks, in front."""
    drawn = draws.random(len(order)) < PICKED / len(order)
    last = packing.score[0]
    ahead = [picked or packing.places[job.number].end_s == last for job, picked in zip(order, drawn, strict=True)]
    moves = list(zip(order, ahead, strict=True))
    return [job for job, first in moves if first] + [job for job, first in moves if not first]
