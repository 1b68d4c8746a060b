"""Schedulers of optical circuits: P4INC-AOI's heuristics, the kit's own planner, and the contract of all schedulers.

A scheduler decides which job uses in-network computing (INC), when it transfers and at what rate, and which circuits
are set in every time slot (P4INC-AOI, section III). The paper's heuristics do not know jobs before their arrival: first
come, first served (FCFS), and the time window (TW).

The kit's own, `pack`, knows all jobs from the start, like the MILP. It packs jobs into slots in turn; those that end
last come earlier in the next round. Where TW grants bandwidth in steps, a job here gets exactly the rate with which it
is done at the end of a slot. Of all starts and all units with INC it takes those that end the job first; among equal
ones, those with the fewest ports. Circuits are set afterwards; until then a reconfiguration is counted wherever a rate
rises.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heapreplace
from itertools import repeat
from math import ceil, inf

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.plan import SolverOptions, SolverOutcome
from inakit.planner.methods.p4inc_aoi.optical_system import DataCenter, PlacedJob, Scheduling
from inakit.planner.methods.p4inc_aoi.schedule import (
    DUST,
    Failure,
    Grant,
    JobProgress,
    Schedule,
    Slot,
    UnitPair,
    check,
    increases,
    transfer_ends,
)
from inakit.planner.methods.p4inc_aoi.slot_resources import (
    ROUNDING,
    JobShape,
    SlotResources,
    circuits_of,
    settle,
    uniform,
)
from inakit.topo.errors import PlanError

# -- Which jobs use INC, and where: weighted bipartite matching of units and jobs (Algorithm 2, lines 1 to 14).

FloatArray = NDArray[np.float64]

LOCAL = 1e-3
"""The weight of a bit that INC saves only at a switch; a bit saved on the interconnect has the weight 1."""


def assign_inc(jobs: Sequence[PlacedJob], capacity: Mapping[str, int]) -> dict[int, str]:
    """For each job, the unit whose INC it uses.

    In each round, units and jobs are matched for the greatest total saving. `capacity` gives the number of further jobs
    that can use INC in each unit (N_INC less the current ones).
    """
    found: dict[int, str] = {}
    left = {unit: count for unit, count in capacity.items() if count > 0}
    waiting = [job for job in jobs if any(unit in left for unit in job.workers)]
    for _ in range(max(left.values(), default=0)):
        wanted = {unit for job in waiting for unit in job.workers}
        rows = {unit: row for row, unit in enumerate(unit for unit, n in left.items() if n > 0 and unit in wanted)}
        weight = np.zeros((len(rows), len(waiting)))
        for column, job in enumerate(waiting):
            for unit in rows.keys() & job.workers.keys():
                weight[rows[unit], column] = saved_bits(job, unit)
        units, matched = list(rows), match(weight)
        for row, column in matched:
            found[waiting[column].number] = units[row]
            left[units[row]] -= 1
        waiting = [job for job in waiting if job.number not in found]
        if not matched:
            break
    return found


def saved_bits(job: PlacedJob, unit: str) -> float:
    """The bits that do not cross the interconnect when `unit` sums. Bits that are saved only at a switch have a small
    weight.
    """
    without, within = (sum(weight for _, weight in job.flows(inc)) for inc in (None, unit))
    return job.bits * (without - within + LOCAL * job.workers[unit])


def match(weight: FloatArray) -> list[tuple[int, int]]:
    """The matching of rows and columns with the greatest weight. Pairs without weight are omitted.

    The Hungarian method by shortest augmenting paths: for each row in turn, the cheapest path to a free column is
    found, and the columns on it are shifted. Prices stay dual feasible.
    """
    rows, columns = weight.shape
    cost = np.hstack([-weight, np.zeros((rows, rows))])  # one more column for each unmatched row
    row_price, column_price = np.zeros(rows), np.zeros(columns + rows)
    owner = np.full(columns + rows, -1)
    for row in range(rows):
        distance = np.full(columns + rows, np.inf)
        previous = np.full(columns + rows, -1)
        reached = np.zeros(columns + rows, dtype=bool)
        current, base, last = row, 0.0, -1
        while current >= 0:
            candidate = base + cost[current] - row_price[current] - column_price
            better = ~reached & (candidate < distance)
            distance[better], previous[better] = candidate[better], last
            last = int(np.where(reached, np.inf, distance).argmin())
            base = distance[last]
            reached[last] = True
            current = int(owner[last])
        inside = reached.copy()
        inside[last] = False
        row_price[row] += base
        row_price[owner[inside]] += base - distance[inside]
        column_price[reached] += distance[reached] - base
        while last >= 0:
            before = int(previous[last])
            owner[last] = owner[before] if before >= 0 else row
            last = before
    pairs = [(int(row), column) for column, row in enumerate(owner[:columns]) if row >= 0]
    return sorted((row, column) for row, column in pairs if weight[row, column] > 0)


# -- The minimum busy time of each virtual port: the ideal active windows of Algorithm 3, for all ports at once.
#
# A unit has two virtual ports, one to its servers and one to the interconnect. A job with a long update has to end its
# transfer earlier by this time, so the port is busy for longer than its data takes at full rate. The scan's line 9
# divides by t_0 - tau_j, which is constant throughout; the middle of the range is meant, as lines 8, 10 and 12
# indicate.

THRESHOLD_S = 1e-3
"""t_th, the width in s of the range at which the bisection ends."""

VirtualPort = tuple[str, str]
"""A unit, and the side of the port: SERVERS or OPTICS."""
SERVERS, OPTICS = "servers", "optics"


def ports_of(shape: JobShape) -> dict[VirtualPort, int]:
    """The virtual ports of a job, and the multiple of a worker's data that passes each."""
    found: dict[VirtualPort, int] = {(unit, SERVERS): load for unit, load in shape.loads}
    for units, weight in shape.flows:
        for unit in units:
            found[unit, OPTICS] = found.get((unit, OPTICS), 0) + weight
    return found


def windows(
    center: DataCenter, uses: Sequence[Mapping[VirtualPort, int]], bits: FloatArray, update_s: FloatArray
) -> dict[VirtualPort, float]:
    """The end of each port's window, in seconds from now. `uses`, `bits` (of a worker) and `update_s` are by job."""
    capacity = {(unit.name, SERVERS): unit.switch_bps for unit in center.units}
    capacity |= {(unit.name, OPTICS): unit.optical_ports * center.port_bps for unit in center.units}
    number = {port: place for place, port in enumerate(capacity)}
    entries = [(number[port], job, weight) for job, use in enumerate(uses) for port, weight in use.items()]
    port, job, weight = (np.array(column, dtype=int) for column in zip(*entries, strict=True))
    rate = np.array(list(capacity.values())).clip(1e-9)
    data, tau = weight * bits[job], update_s[job]
    low = np.bincount(port, data, len(rate)) / rate
    longest = np.zeros(len(rate))
    np.maximum.at(longest, port, tau)
    high = low + longest
    while (high - low).max() >= THRESHOLD_S:
        middle = (low + high) / 2
        spare = middle[port] - tau
        wanted = np.divide(data, spare, out=np.full(len(data), np.inf), where=spare > 0)
        enough = np.bincount(port, wanted, len(rate)) <= rate
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return {port: float(high[place]) for port, place in number.items()}


# -- Slot after slot: jobs arrive, a policy grants them INC and bandwidth, circuits follow, a slot passes (Algorithm 1).
#
# A policy does not know a job before its arrival. A job keeps its grants until it is done (line 3), so transfers do not
# pause. A job with INC but without bandwidth returns it at the end of the slot.


@dataclass
class Active:
    """A job in the system: its shape, which is fixed once it starts, its progress, and a worker's rate.

    `step_bps` is delta B, halved until one step fits the job alone.
    """

    job: PlacedJob
    shape: JobShape
    run: JobProgress
    step_bps: float
    rate_bps: float = 0.0

    @property
    def left_bits(self) -> float:
        return max(self.run.left)

    @property
    def update_s(self) -> float:
        return self.job.update_time(self.shape.inc)

    def time_left(self, rate_bps: float) -> float:
        """The seconds until the job is done at this rate if circuits stay the same."""
        return self.left_bits * (1 / rate_bps + self.run.pause) + self.update_s


GrantPolicy = Callable[["SlotSimulation"], None]
"""Grants INC and bandwidth to the active jobs of a slot, with the simulation's `use_inc` and `grant`."""


@dataclass
class SlotSimulation:
    """The state between slots: jobs in the order of their arrival, circuits, and the slot in which each was last used.

    `fixed` are circuits that never change. `resources` are those remaining in the slot that is planned. `stuck` is set
    after a slot without a transfer. `last` is the last slot; a slot that is equal to it is the same object.
    """

    problem: Scheduling
    policy: GrantPolicy
    fixed: Mapping[UnitPair, int] | None = None
    active: list[Active] = field(default_factory=list)
    circuits: dict[UnitPair, int] = field(default_factory=dict)
    last_used: dict[UnitPair, int] = field(default_factory=dict)
    inc: dict[int, str] = field(default_factory=dict)
    stuck: bool = False
    last: Slot = field(default_factory=lambda: Slot((), ()))

    def __post_init__(self) -> None:
        self.center = self.problem.center
        self.resources = SlotResources(self.center, self.fixed)

    def run(self, method: str) -> Schedule:
        """The schedule until all jobs are done. Raises `PlanError` if a job can never start, or at the end of T."""
        started = time.monotonic()
        slots = tuple(self.slots())
        return Schedule(method, self.inc, slots, SolverOutcome("heuristic", time.monotonic() - started))

    def slots(self, number: int = 0) -> Iterator[Slot]:
        """One slot after another from `number` on, until no job is left; earlier jobs are `active`, or done."""
        waiting = sorted(self.problem.jobs, key=lambda job: (job.arrival, job.number), reverse=True)
        waiting = [job for job in waiting if job.arrival >= number]
        while waiting or self.active:
            while waiting and waiting[-1].arrival <= number:
                job = waiting.pop()
                self.active.append(self.arrive(job))
            if number and not self.active:  # idle: all circuits stay
                self.last = Slot(self.last.circuits, ())
                yield from repeat(self.last, waiting[-1].arrival - number)
                number = waiting[-1].arrival
                continue
            yield self.slot(number)
            number += 1
            if self.active and not waiting and self.stuck:
                raise cannot_start(self.active[0].job)

    def arrive(self, job: PlacedJob) -> Active:
        """A newly arrived job, with the largest step of bandwidth that fits it."""
        step_bps, alone = self.center.step_bps, SlotResources(self.center, self.fixed)
        for shape in reversed(shapes(self.center, job)):
            if rate_in(alone, shape, step_bps) > 0:
                while step_bps > shape.most_bps or not alone.fits(shape, step_bps):
                    step_bps /= 2
                unserved = JobShape(self.center, job, None)
                return Active(job, unserved, JobProgress(self.center, job, None), step_bps)
        raise cannot_start(job)

    def slot(self, number: int) -> Slot:
        """Plan a slot, then advance by it. Raises `PlanError` at the end of T."""
        self.resources = SlotResources(self.center, self.fixed)
        for one in self.active:
            if one.rate_bps:
                self.resources.occupy(one.shape, one.rate_bps)
        self.policy(self)
        horizon = self.problem.horizon
        if horizon is not None and number >= horizon:
            raise PlanError(
                f"constraint 'completion (10)': not all jobs are done in T = {horizon} slots; raise horizon or slot_s"
            )
        needed, before = self.resources.needed(), self.circuits
        self.last_used.update(dict.fromkeys(needed, number))
        if self.fixed is None:
            self.circuits = settle(self.center, needed, before, self.last_used)
        else:
            self.circuits = dict(self.fixed)
        more = {units: count - before.get(units, 0) for units, count in self.circuits.items()}
        dark = {units: count for units, count in more.items() if count > 0} if number else {}
        grants = tuple(Grant(one.job.number, one.rate_bps) for one in self.active if one.rate_bps)
        self.stuck = not grants
        self.active = [one for one in self.active if not self.passes(one, dark)]
        circuits = self.last.circuits if number and self.circuits == before else circuits_of(self.circuits)
        if circuits is not self.last.circuits or grants != self.last.grants:
            self.last = Slot(circuits, grants)
        return self.last

    def passes(self, one: Active, dark: Mapping[UnitPair, int]) -> bool:
        """Advance a job by a slot; return whether its last transfer is done by the end of the slot."""
        if not one.rate_bps:
            self.serve(one, None)
            return False
        if one.shape.inc is not None:
            self.inc[one.job.number] = one.shape.inc
        return one.run.advance(one.rate_bps, dark) is not None

    def serve(self, one: Active, unit: str | None) -> None:
        """Restart a job with INC in this unit, or without INC for None."""
        one.shape, one.run = JobShape(self.center, one.job, unit), JobProgress(self.center, one.job, unit)

    def use_inc(self, one: Active, unit: str | None) -> None:
        self.serve(one, unit)
        if unit is not None:
            self.resources.inc_jobs[unit] -= 1

    def queue(self) -> list[Active]:
        """The jobs that have not started and for whose workers GPUs are free, in the order of their arrival.

        A job that finds too few GPUs waits, and later ones pass it.
        """
        free, found = dict(self.resources.places), []
        for one in self.active:
            workers = one.job.workers
            if not one.rate_bps and all(free[unit] >= count for unit, count in workers.items()):
                found.append(one)
                for unit, count in workers.items():
                    free[unit] -= count
        return found

    def grant(self, one: Active, more_bps: float) -> None:
        """Raise the rate of a job's workers; a job that begins takes its servers."""
        if not one.rate_bps:
            self.resources.seat(one.shape)
        self.resources.add(one.shape, more_bps)
        one.rate_bps += more_bps

    def steps_to_finish(self, one: Active) -> float:
        """The steps of bandwidth with which a job is done within this slot, even on new circuits."""
        usable = self.center.slot_s - self.center.reconfiguration_s - one.left_bits * one.run.pause
        return max(0.0, one.left_bits / usable - one.rate_bps) / one.step_bps if usable > 0 else inf


def cannot_start(job: PlacedJob) -> PlanError:
    """Build the error for a job that cannot transfer even alone."""
    return PlanError(
        f"constraints 'ports (6)', 'switch bandwidth (5)' and 'servers': job {job.number} cannot transfer, not even "
        f"alone; give {', '.join(dict.fromkeys((*job.workers, job.server)))} more optical ports, bandwidth, or servers"
    )


# -- The policies of the paper: the time window (TW) of Algorithms 2 and 3, and first come, first served (FCFS).
#
# Each choice that the paper leaves open is a field; its default is the reading that `experiments/papers/p4inc_aoi.md`
# justifies.


@dataclass(frozen=True)
class TimeWindow:
    """Algorithm 2. `inc`: whether switches sum."""

    inc: bool = True

    def __call__(self, now: SlotSimulation) -> None:
        """Grant INC by matching to jobs that have not started, then bandwidth port by port, the busiest first (16)."""
        queue = now.queue()
        if self.inc:
            waiting = {one.job.number: one for one in queue if now.center.inc_units(one.job)}
            found = assign_inc([one.job for one in waiting.values()], now.resources.inc_jobs)
            for number, unit in found.items():
                now.use_inc(waiting[number], unit)
        served = [one for one in now.active if one.rate_bps] + queue
        if not served:
            return
        uses = [ports_of(one.shape) for one in served]
        bits = np.array([one.left_bits for one in served])
        ends = windows(now.center, uses, bits, np.array([one.update_s for one in served]))
        done: set[int] = set()
        for port in sorted((port for port in ends if ends[port] > 0), key=lambda port: (-ends[port], port)):
            jobs = [number for number, use in enumerate(uses) if port in use and number not in done]
            self.deal_bandwidth(now, [served[number] for number in jobs])
            done.update(jobs)

    def deal_bandwidth(self, now: SlotSimulation, jobs: list[Active]) -> None:
        """Grant a step to the job that would still be the latest with it, until no step fits any job (lines 19 to 31).

        Remaining bandwidth only decreases, so a job that a step does not fit needs no second test.
        """
        latest = [(-one.time_left(one.rate_bps + one.step_bps), place) for place, one in enumerate(jobs)]
        heapify(latest)
        while latest:
            place = latest[0][1]
            one = jobs[place]
            enough = one.rate_bps > 0 and now.steps_to_finish(one) <= 0
            limit_bps = one.shape.most_bps if one.rate_bps or now.resources.has_places(one.shape) else 0
            enough = enough or one.rate_bps + one.step_bps > limit_bps * (1 + ROUNDING)
            if enough or not now.resources.fits(one.shape, one.step_bps):
                heappop(latest)
                continue
            now.grant(one, one.step_bps)
            heapreplace(latest, (-one.time_left(one.rate_bps + one.step_bps), place))


@dataclass(frozen=True)
class FirstCome:
    """Jobs in the order of their arrival, each with every grant that shortens its own time.

    A job takes all available bandwidth. `strict`: a job that cannot start delays those behind it.
    """

    inc: bool = True
    strict: bool = True

    def __call__(self, now: SlotSimulation) -> None:
        """Grant each waiting job INC in the unit where it saves most interconnect traffic, and bandwidth."""
        for one in now.active:
            if one.rate_bps:
                continue
            if self.inc:
                free = [unit for unit in now.center.inc_units(one.job) if now.resources.inc_jobs[unit] > 0]
                now.use_inc(one, max(free, key=lambda unit: saved_bits(one.job, unit), default=None))
            steps = now.resources.steps(one.shape, one.step_bps)
            if steps and now.resources.has_places(one.shape):
                now.grant(one, steps * one.step_bps)
            elif one.shape.inc is not None:
                now.resources.inc_jobs[one.shape.inc] += 1
            if self.strict and not one.rate_bps:
                break


TRIES, MOST_ROUNDS = 12_000, 200
"""The maximum number of jobs packed in all rounds, and of rounds: few rounds for many jobs, many for few."""

PICKED = 2
"""The mean number of random jobs that move to the front."""

LEAST = 1e-3
"""A slot with a smaller part of the rate that a job would have alone counts as full for this job."""


@dataclass(frozen=True)
class PackedJob:
    """The place of a job: its first slot, a worker's rate in each slot, and its ports."""

    shape: JobShape
    start: int
    rates_bps: tuple[float, ...]
    ports: int
    end_s: float

    @property
    def rank(self) -> tuple[float, int, int]:
        """The sort key of places: end, ports, slots. The least is the best."""
        return self.end_s, self.ports, len(self.rates_bps)


class Packing:
    """Slots filled with the jobs in this order."""

    def __init__(self, problem: Scheduling, order: list[PlacedJob]) -> None:
        self.center, self.order = problem.center, order
        self.slots: list[SlotResources] = []
        self.empty = SlotResources(self.center)
        self.places: dict[int, PackedJob] = {}
        for job in order:
            self.add(job)

    def slot(self, number: int) -> SlotResources:
        """The resources of this slot."""
        while len(self.slots) <= number:
            self.slots.append(SlotResources(self.center))
        return self.slots[number]

    @property
    def score(self) -> tuple[float, int, int]:
        """The end of the last jobs, their number, and the ports of all jobs. The least score is the best."""
        ends = [place.end_s for place in self.places.values()]
        return max(ends), ends.count(max(ends)), sum(place.ports for place in self.places.values())

    def add(self, job: PlacedJob) -> None:
        """Put a job where it ends first. Raises `PlanError` if it cannot transfer."""
        best: PackedJob | None = None
        for shape in shapes(self.center, job):
            limit = inf if best is None else best.end_s
            for place in self.candidates(shape, limit):
                if best is None or place.rank < best.rank:
                    best = place
        if best is None:
            raise cannot_start(job)
        for number, rate in enumerate(best.rates_bps, start=best.start):
            self.slot(number).occupy(best.shape, rate)
        self.places[job.number] = best

    def candidates(self, shape: JobShape, limit_s: float) -> Iterator[PackedJob]:
        """The place for each start, until no later start can end by the limit or as early as one found."""
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
        """The place where the job is done as fast as possible from this slot on.

        None if a slot has at most `least_bps` before the job is done.
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
        """The schedule of the packed slots, with as few changes of circuits as possible."""
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
    """The rate in bit/s that a worker of a job that is not in the slot yet can have there, at most `wanted_bps`."""
    if (shape.inc is not None and not resources.inc_jobs[shape.inc]) or not resources.has_places(shape):
        return 0.0
    return resources.most_bps(shape, wanted_bps)


def shapes(center: DataCenter, job: PlacedJob) -> list[JobShape]:
    """The ways to serve a job: with INC in any unit that may sum for it, and without."""
    return [JobShape(center, job, unit) for unit in (*center.inc_units(job), None)]


def done_s(center: DataCenter, shape: JobShape, slots: int) -> float:
    """The end in s, update included, of a job whose last transfer is in the last of the given number of slots."""
    return slots * center.slot_s + shape.job.update_time(shape.inc)


def pack(problem: Scheduling, method: str = "pack", tries: int = TRIES, seed: int = 0) -> Schedule:
    """Pack repeatedly, and keep the best: the shortest batch iteration, then the fewest connections.

    After a round the jobs that ended last move to the front, as do a few random ones. The search ends once the last job
    ends as early as it would alone.
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
    """A lower bound in s on the batch iteration: the end of the last job if each had all units to itself."""
    center = problem.center

    def alone_s(shape: JobShape) -> float:
        rate = rate_in(SlotResources(center), shape, inf)
        return done_s(center, shape, shape.job.arrival + slots_at(center, shape, rate)) if rate > 0 else inf

    return max(min(map(alone_s, shapes(center, job))) for job in problem.jobs)


def slots_at(center: DataCenter, shape: JobShape, rate_bps: float) -> int:
    """The number of slots for a job at a rate without new circuits. Rounding does not begin another slot."""
    sending_s = shape.job.bits / rate_bps + shape.job.pause(shape.inc)
    return max(1, ceil(sending_s / center.slot_s * (1 - 3 * ROUNDING)))


def hardness(problem: Scheduling, job: PlacedJob) -> float:
    """The time in s for which a job keeps a unit's optical ports busy if it has all of them, its update included."""
    center = problem.center
    most_bps = max(unit.optical_ports for unit in center.units) * center.port_bps
    sent = sum(weight for _, weight in job.flows(None)) * job.bits
    return sent / max(most_bps, 1.0) + job.update_s


def moved(order: Sequence[PlacedJob], packing: Packing, draws: np.random.Generator) -> list[PlacedJob]:
    """The order with the jobs that ended last, and some random ones, in front."""
    drawn = draws.random(len(order)) < PICKED / len(order)
    last = packing.score[0]
    ahead = [picked or packing.places[job.number].end_s == last for job, picked in zip(order, drawn, strict=True)]
    moves = list(zip(order, ahead, strict=True))
    return [job for job, first in moves if first] + [job for job, first in moves if not first]


# -- A schedule anew, after a connection has failed for good (ours).


@dataclass(frozen=True)
class GoingOn:
    """The policy after a failure: jobs keep the unit that sums for them, and get at most the rates that they had.

    A job starts when all that `behind` has for it are done: those whose hosts or aggregators it is to get in a run.
    """

    schedule: Schedule
    most_bps: Mapping[int, float]
    behind: Mapping[int, Collection[int]]

    def __call__(self, now: SlotSimulation) -> None:
        """Grant all that fits, to jobs in the order of their former starts."""
        here = {one.job.number: one for one in now.active}
        for number in sorted(here, key=lambda number: (self.schedule.spans[number][0], number)):
            one, wanted_bps, inc = here[number], self.most_bps[number], self.schedule.inc.get(number)
            if not one.rate_bps:
                if any(other in here for other in self.behind.get(number, ())):
                    continue
                if inc is not None and not now.resources.inc_jobs[inc]:
                    continue
                now.use_inc(one, inc)
            fits = one.rate_bps or now.resources.has_places(one.shape)
            more_bps = now.resources.most_bps(one.shape, wanted_bps - one.rate_bps) if fits else 0.0
            if more_bps > LEAST * wanted_bps:
                now.grant(one, more_bps)
            elif not one.rate_bps and inc is not None:
                now.resources.inc_jobs[inc] += 1


def replan(
    problem: Scheduling, schedule: Schedule, failure: Failure, behind: Mapping[int, Collection[int]] | None = None
) -> Schedule:
    """The schedule anew from the slot after a failure on; before, it stays. Jobs that are running go on.

    Raises `PlanError`, which names the job, if one can no longer transfer with the remaining ports.
    """
    if not 0 <= failure.slot < len(schedule.slots) or not schedule.slots[failure.slot].ports.get(failure.units, 0):
        raise PlanError(f"slot {failure.slot} has no connection between {' and '.join(failure.units)} that could fail")
    most_bps: dict[int, float] = {}
    for slot in schedule.slots:
        for number, rate_bps in slot.rates_bps.items():
            most_bps[number] = max(rate_bps, most_bps.get(number, 0.0))
    kept, center = schedule.slots[: failure.slot + 1], failure.after(problem.center)
    now = SlotSimulation(replace(problem, center=center), GoingOn(schedule, most_bps, behind or {}))
    now.circuits = {**kept[-1].ports, failure.units: kept[-1].ports[failure.units] - 1}
    now.last, now.inc = Slot(circuits_of(now.circuits), kept[-1].grants), dict(schedule.inc)
    ends = transfer_ends(problem, replace(schedule, slots=kept), failure)
    for job in problem.jobs:
        if job.arrival <= failure.slot and job.number not in ends:
            now.active.append(now.arrive(job))
    running = [one for one in now.active if schedule.spans[one.job.number][0] <= failure.slot]
    for one in running:
        now.serve(one, schedule.inc.get(one.job.number))
    for number, (slot, more) in enumerate(zip(kept, increases(replace(schedule, slots=kept)), strict=True)):
        for one in running:
            sends = one.job.number in slot.rates_bps
            if sends and not failure.stops(number, one.job, one.shape.inc):
                one.run.advance(slot.rates_bps[one.job.number], more)
    part = 1.0
    while (crowded := go_on(center, running, kept[-1].rates_bps, part)) is not None and part > LEAST:
        part /= 2
    if crowded is not None:
        raise PlanError(
            f"a connection between {' and '.join(failure.units)} is dark from slot {failure.slot} on, and job "
            f"{crowded} cannot go on: constraint 'ports (6)': its units have no other port left; give them more "
            "optical ports"
        )
    return replace(schedule, slots=(*kept, *now.slots(failure.slot + 1)))


def go_on(center: DataCenter, running: Sequence[Active], rates_bps: Mapping[int, float], part: float) -> int | None:
    """Give running jobs a part of their rates; the number of the first job that has no room for it, if there is one."""
    resources = SlotResources(center)
    for one in running:
        one.rate_bps = part * rates_bps[one.job.number]
        if not resources.fits(one.shape, one.rate_bps):
            return one.job.number
        resources.occupy(one.shape, one.rate_bps)
    return None


# -- The schedulers of the registry.

Function = Callable[[Scheduling, SolverOptions], Schedule]


@dataclass(frozen=True)
class Scheduler:
    """A scheduling method: its summary, and its function from a problem to a schedule.

    Heuristics ignore all options but the seed.
    """

    summary: str
    function: Function

    def schedule(self, problem: Scheduling, options: SolverOptions | None = None) -> Schedule:
        """The scheduler's schedule, checked. Raises `PlanError` or `SolverError` where there is none."""
        found = self.function(problem, options or SolverOptions())
        check(problem, found)
        return found


def slot_by_slot(name: str, policy: GrantPolicy) -> Function:
    """The scheduler that decides slot after slot by this policy; schedules carry `name` as their origin."""
    return lambda problem, _options: SlotSimulation(problem, policy).run(name)


no_inc_first_come = slot_by_slot("noINC-FCFS", FirstCome(inc=False))
inc_first_come = slot_by_slot("INC-FCFS", FirstCome())
no_inc_passing = slot_by_slot("noINC-FCFS-passing", FirstCome(inc=False, strict=False))
inc_passing = slot_by_slot("INC-FCFS-passing", FirstCome(strict=False))
no_inc_time_window = slot_by_slot("noINC-TW", TimeWindow(inc=False))
inc_time_window = slot_by_slot("INC-TW", TimeWindow())


def without_reconfiguration(problem: Scheduling, _options: SolverOptions) -> Schedule:
    """INC-TW on the same circuits between any two units, which never change."""
    return SlotSimulation(problem, TimeWindow(), uniform(problem.center)).run("INC-TW-NoRecon")


def packed(problem: Scheduling, options: SolverOptions) -> Schedule:
    """The schedule of the kit's own planner, which packs jobs into slots."""
    return pack(problem, "pack", seed=options.seed)
