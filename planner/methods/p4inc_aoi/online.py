"""The paper's schedulers, which see no job before it arrives: first come, first served, and the time window (TW)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from math import inf

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.plan import SolverOutcome
from inakit.planner.methods.p4inc_aoi.optical_system import DataCenter, PlacedJob, Scheduling
from inakit.planner.methods.p4inc_aoi.schedule import Grant, JobProgress, Schedule, Slot, UnitPair
from inakit.planner.methods.p4inc_aoi.slot_resources import ROUNDING, JobShape, SlotResources, circuits_of, settle
from inakit.topo.errors import PlanError

# -- Which jobs use INC, and where: weighted bipartite matching of units and jobs (Algorithm 2, lines 1 to 14).

FloatArray = NDArray[np.float64]

LOCAL = 1e-3
"""The weight of a bit that INC takes off a switch only, where one that it takes off the interconnect has the weight 1.
"""


def assign_inc(jobs: Sequence[PlacedJob], capacity: Mapping[str, int]) -> dict[int, str]:
    """By job, the unit whose INC it uses.

    In each round a unit gets the job, and a job the unit, that together save most. `capacity` says how many more jobs
    can use INC in each unit (N_INC less those that do).
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
    """The bits that do not cross the interconnect when `unit` sums. Those that only a switch is spared count little."""
    without, within = (sum(weight for _, weight in job.flows(inc)) for inc in (None, unit))
    return job.bits * (without - within + LOCAL * job.workers[unit])


def match(weight: FloatArray) -> list[tuple[int, int]]:
    """The matching of rows and columns with the greatest weight. Pairs without weight are left out.

    The Hungarian method by shortest augmenting paths: for one row after another, the cheapest path to a free column is
    found, and the columns on it are shifted. Prices stay dual feasible.
    """
    rows, columns = weight.shape
    cost = np.hstack([-weight, np.zeros((rows, rows))])  # one more column for each row that stays alone
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


# -- How long each virtual port will be busy at best: the ideal active windows of Algorithm 3, for all ports at once.
#
# A unit has two virtual ports, one to its servers and one to the interconnect. Where a job's update takes a while,
# its transfer has to end that much earlier, and the port is busy for longer than its data takes at full rate. The
# scan's line 9 divides by t_0 - tau_j, which is constant throughout; the middle of the range is meant, as lines 8, 10
# and 12 say.

THRESHOLD_S = 1e-3
"""t_th, the width in s of the range at which the bisection ends."""

VirtualPort = tuple[str, str]
"""A unit, and where the port leads: SERVERS or OPTICS."""
SERVERS, OPTICS = "servers", "optics"


def ports_of(shape: JobShape) -> dict[VirtualPort, int]:
    """The virtual ports that a job uses, and how many times a worker's data goes through each."""
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


# -- Slot after slot: jobs arrive, a policy grants them INC and bandwidth, circuits follow, a slot passes (Algorithm
# 1).
#
# A policy sees no job before it arrives. A job keeps what it was granted until it is done (line 3), so transfers do
# not pause. A job that was given INC but no bandwidth gives it back at the end of the slot.


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
        """The seconds until the job is done at that rate, as long as circuits stay."""
        return self.left_bits * (1 / rate_bps + self.run.pause) + self.update_s


GrantPolicy = Callable[["SlotSimulation"], None]
"""Grants INC and bandwidth to the active jobs of a slot, with the simulation's `use_inc` and `grant`."""


@dataclass
class SlotSimulation:
    """The state between slots: jobs in the order of their arrival, circuits, and the slot in which each was last used.

    `fixed` are circuits that never change. `resources` are what is left in the slot that is planned. `stuck` is set
    after a slot without a transfer.
    """

    problem: Scheduling
    policy: GrantPolicy
    fixed: Mapping[UnitPair, int] | None = None
    active: list[Active] = field(default_factory=list)
    circuits: dict[UnitPair, int] = field(default_factory=dict)
    last_used: dict[UnitPair, int] = field(default_factory=dict)
    inc: dict[int, str] = field(default_factory=dict)
    stuck: bool = False

    def __post_init__(self) -> None:
        self.center = self.problem.center
        self.resources = SlotResources(self.center, self.fixed)

    def run(self, method: str) -> Schedule:
        """The schedule until all jobs are done. Raises `PlanError` when a job can never start, or when T is over."""
        started = time.monotonic()
        slots = tuple(self.slots())
        return Schedule(method, self.inc, slots, SolverOutcome("heuristic", time.monotonic() - started))

    def slots(self) -> Iterator[Slot]:
        """One slot after another, until no job is left."""
        waiting = sorted(self.problem.jobs, key=lambda job: (job.arrival, job.number), reverse=True)
        number = 0
        while waiting or self.active:
            while waiting and waiting[-1].arrival <= number:
                job = waiting.pop()
                self.active.append(self.arrive(job))
            yield self.slot(number)
            number += 1
            if self.active and not waiting and self.stuck:
                raise cannot_start(self.active[0].job)

    def arrive(self, job: PlacedJob) -> Active:
        """A job that has just arrived, with the largest step of bandwidth that fits it."""
        step_bps, alone = self.center.step_bps, SlotResources(self.center, self.fixed)
        for shape in (JobShape(job, unit) for unit in (None, *job.workers)):
            if alone.most_bps(shape, step_bps) > 0:
                while not alone.fits(shape, step_bps):
                    step_bps /= 2
                return Active(job, JobShape(job, None), JobProgress(self.center, job, None), step_bps)
        raise cannot_start(job)

    def slot(self, number: int) -> Slot:
        """Plan a slot, and let it pass. Raises `PlanError` when T is over."""
        self.resources = SlotResources(self.center, self.fixed)
        for one in self.active:
            if one.rate_bps:
                self.resources.add(one.shape, one.rate_bps)
                if one.shape.inc is not None:
                    self.resources.inc_jobs[one.shape.inc] -= 1
        self.policy(self)
        horizon = self.problem.horizon
        if horizon is not None and number >= horizon:
            raise PlanError(
                f"constraint 'completion (10)': {len(self.active)} jobs are not done in T = {horizon} slots; "
                "make T longer, or a slot"
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
        return Slot(circuits_of(self.circuits), grants)

    def passes(self, one: Active, dark: Mapping[UnitPair, int]) -> bool:
        """Let a slot pass for a job; returns whether its last transfer is done by the end of the slot."""
        if not one.rate_bps:
            self.serve(one, None)
            return False
        if one.shape.inc is not None:
            self.inc[one.job.number] = one.shape.inc
        return one.run.advance(one.rate_bps, dark) is not None

    def serve(self, one: Active, unit: str | None) -> None:
        """Let a job begin anew, with INC in that unit, or without where it is None."""
        one.shape, one.run = JobShape(one.job, unit), JobProgress(self.center, one.job, unit)

    def use_inc(self, one: Active, unit: str | None) -> None:
        self.serve(one, unit)
        if unit is not None:
            self.resources.inc_jobs[unit] -= 1

    def grant(self, one: Active, more_bps: float) -> None:
        self.resources.add(one.shape, more_bps)
        one.rate_bps += more_bps

    def steps_to_finish(self, one: Active) -> float:
        """The steps of bandwidth with which a job is done within this slot, even if its circuits are new."""
        usable = self.center.slot_s - self.center.reconfiguration_s - one.left_bits * one.run.pause
        return max(0.0, one.left_bits / usable - one.rate_bps) / one.step_bps if usable > 0 else inf


def cannot_start(job: PlacedJob) -> PlanError:
    """The error for a job that cannot transfer even alone."""
    return PlanError(
        f"constraints 'ports (6)' and 'switch bandwidth (5)': job {job.number} cannot transfer, not even alone; "
        f"give {', '.join(dict.fromkeys((*job.workers, job.server)))} more optical ports, or more bandwidth"
    )


# -- The policies of the paper: the time window (TW) of Algorithms 2 and 3, and first come, first served (FCFS).
#
# Each choice that the paper leaves open is a field, whose default is the reading for which
# `experiments/papers/p4inc_aoi/NOTES.md` argues.


@dataclass(frozen=True)
class TimeWindow:
    """Algorithm 2. `inc`: whether switches sum. `limit_bps`: the most that a worker can have.

    `fill`: bandwidth is dealt until none is left, also to jobs that are done within the slot with less.
    """

    inc: bool = True
    fill: bool = False
    limit_bps: float = inf

    def __call__(self, now: SlotSimulation) -> None:
        """Deal INC by matching to jobs that have not started, then bandwidth port by port, the busiest first (16)."""
        if self.inc:
            waiting = {one.job.number: one for one in now.active if not one.rate_bps}
            found = assign_inc([one.job for one in waiting.values()], now.resources.inc_jobs)
            for number, unit in found.items():
                now.use_inc(waiting[number], unit)
        if not now.active:
            return
        uses = [ports_of(one.shape) for one in now.active]
        bits = np.array([one.left_bits for one in now.active])
        ends = windows(now.center, uses, bits, np.array([one.update_s for one in now.active]))
        done: set[int] = set()
        for port in sorted((port for port in ends if ends[port] > 0), key=lambda port: (-ends[port], port)):
            jobs = [number for number, use in enumerate(uses) if port in use and number not in done]
            self.deal_bandwidth(now, [now.active[number] for number in jobs])
            done.update(jobs)

    def deal_bandwidth(self, now: SlotSimulation, jobs: list[Active]) -> None:
        """Give a step to the job that would still be the latest with it, until no step fits any job (lines 19 to 31).

        What is left only shrinks, so a job that a step does not fit needs no second look.
        """
        latest = [(-one.time_left(one.rate_bps + one.step_bps), place) for place, one in enumerate(jobs)]
        heapify(latest)
        while latest:
            place = latest[0][1]
            one = jobs[place]
            enough = not self.fill and one.rate_bps > 0 and now.steps_to_finish(one) <= 0
            enough = enough or one.rate_bps + one.step_bps > self.limit_bps * (1 + ROUNDING)
            if enough or not now.resources.fits(one.shape, one.step_bps):
                heappop(latest)
                continue
            now.grant(one, one.step_bps)
            heapreplace(latest, (-one.time_left(one.rate_bps + one.step_bps), place))


@dataclass(frozen=True)
class FirstCome:
    """Jobs in the order of their arrival, each with all that shortens its own time.

    `fill`: a job takes all bandwidth there is, not just what it needs to be done within the slot. `strict`: a job
    that cannot start holds up those behind it. `limit_bps`: the most that a worker can have.
    """

    inc: bool = True
    fill: bool = True
    strict: bool = True
    limit_bps: float = inf

    def __call__(self, now: SlotSimulation) -> None:
        """Grant each waiting job INC where it takes most traffic off the interconnect, and bandwidth."""
        for one in now.active:
            if one.rate_bps:
                continue
            if self.inc:
                free = [unit for unit in one.job.workers if now.resources.inc_jobs[unit] > 0]
                now.use_inc(one, max(free, key=lambda unit: saved_bits(one.job, unit), default=None))
            useful = inf if self.fill else max(1.0, np.ceil(now.steps_to_finish(one)))
            steps = now.resources.steps(one.shape, one.step_bps, min(useful, self.limit_bps / one.step_bps))
            if steps:
                now.grant(one, steps * one.step_bps)
            elif one.shape.inc is not None:
                now.resources.inc_jobs[one.shape.inc] += 1
            if self.strict and not steps:
                break
