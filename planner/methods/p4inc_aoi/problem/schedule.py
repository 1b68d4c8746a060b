"""What a scheduler of P4INC-AOI decides, slot by slot, and what follows from it: completion times, reconfigurations.

The circuits of the first slot are set before it begins, since Eq. (7) starts at slot 1. Whatever is newly connected
between two units in a later slot is dark for the time of a reconfiguration, and rates that rise there lose what they
would have carried meanwhile (Eq. 10).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from inakit.planner.core.solving import SolverOutcome
from inakit.planner.methods.p4inc_aoi.problem.system import DataCenter, PlacedJob, Scheduling

Pair = tuple[str, str]
"""Two units, in the order of their names."""

DUST = 1e-9
"""A smaller part of a job's data that is left of a transfer is rounding."""


@dataclass(frozen=True)
class Circuit:
    """The connections between two units, `ports` of them (P of Eq. 6)."""

    a: str
    b: str
    ports: int


@dataclass(frozen=True)
class Grant:
    """What each worker of a job may send (B_j, bit/s)."""

    job: int
    rate_bps: float


@dataclass(frozen=True)
class Slot:
    """One slot: the circuits that are set, also those that idle, and the jobs that transfer."""

    circuits: tuple[Circuit, ...]
    grants: tuple[Grant, ...]

    @cached_property
    def ports(self) -> dict[Pair, int]:
        """The connections of each pair of units."""
        return {pair(circuit.a, circuit.b): circuit.ports for circuit in self.circuits}

    @cached_property
    def rates_bps(self) -> dict[int, float]:
        """The rate of each job's workers."""
        return {grant.job: grant.rate_bps for grant in self.grants}


@dataclass(frozen=True)
class Schedule:
    """Slots from 0 on; `inc[job]` is the unit whose switch sums for it (k = 1), for jobs that use INC."""

    method: str
    inc: dict[int, str]
    slots: tuple[Slot, ...]
    outcome: SolverOutcome

    @cached_property
    def spans(self) -> dict[int, tuple[int, int]]:
        """The first and the last slot in which each job transfers."""
        found: dict[int, tuple[int, int]] = {}
        for number, slot in enumerate(self.slots):
            for grant in slot.grants:
                found[grant.job] = found.get(grant.job, (number, number))[0], number
        return found


@dataclass(frozen=True)
class Figures:
    """What follows from a schedule. Times are in seconds, by job.

    `iteration_s` is t of Eq. (11), to the end of the last slot; `jct_s` goes from the job's arrival to its very end,
    waiting included. `reconfigured` counts the connections that each slot sets up anew.
    """

    iteration_s: dict[int, float]
    jct_s: dict[int, float]
    reconfigured: tuple[int, ...]

    @property
    def ct_bti_s(self) -> float:
        """Completion time of a batch training iteration, Eq. (1)."""
        return max(self.iteration_s.values())

    @property
    def connections(self) -> int:
        """The reconfigured connections of all slots."""
        return sum(self.reconfigured)

    @property
    def reconfigurations(self) -> int:
        """How many slots reconfigure anything."""
        return sum(map(bool, self.reconfigured))


def pair(a: str, b: str) -> Pair:
    """Two units in the order of their names."""
    return (a, b) if a < b else (b, a)


def traffic_bps(problem: Scheduling, schedule: Schedule, slot: Slot) -> dict[tuple[int, str, str], float]:
    """What each job sends from unit to unit in a slot: B[job, v, u] of Eq. (4) for v other than u, in bit/s."""
    return {
        (grant.job, unit, problem.job_of[grant.job].server): weight * grant.rate_bps
        for grant in slot.grants
        for unit, weight in problem.job_of[grant.job].flows(schedule.inc.get(grant.job))
    }


def increases(schedule: Schedule) -> Iterator[dict[Pair, int]]:
    """For each slot the pairs that get more connections (alpha = 1), and how many more (Eq. 7)."""
    if schedule.slots:
        yield {}
    for before, after in pairwise(schedule.slots):
        more = {units: ports - before.ports.get(units, 0) for units, ports in after.ports.items()}
        yield {units: count for units, count in more.items() if count > 0}


def figures(problem: Scheduling, schedule: Schedule) -> Figures:
    """The figures of a schedule that `inakit.planner.methods.p4inc_aoi.problem.check_schedule` has passed."""
    slot_s, spans = problem.center.slot_s, schedule.spans
    iterations, completions = {}, {}
    ends = transfer_ends(problem, schedule)
    for job in problem.jobs:
        update = job.update_time(schedule.inc.get(job.number))
        iterations[job.number] = (spans[job.number][1] + 1) * slot_s + update
        completions[job.number] = ends[job.number] + update - job.arrival * slot_s
    return Figures(iterations, completions, tuple(sum(more.values()) for more in increases(schedule)))


def transfer_ends(problem: Scheduling, schedule: Schedule) -> dict[int, float]:
    """When each job's last transfer ends, in seconds from slot 0. A job that is not done has no entry."""
    runs = {job.number: Run(problem.center, job, schedule.inc.get(job.number)) for job in problem.jobs}
    ends: dict[int, float] = {}
    for number, (slot, more) in enumerate(zip(schedule.slots, increases(schedule), strict=True)):
        for grant in slot.grants:
            used = runs[grant.job].advance(grant.rate_bps, more)
            if used is not None:
                ends.setdefault(grant.job, number * problem.center.slot_s + used)
    return ends


class Run:
    """A job in progress: what is left of each of its flows, as a worker's bits (D of Eqs. 8 and 10)."""

    def __init__(self, center: DataCenter, job: PlacedJob, inc: str | None) -> None:
        self.center, self.job = center, job
        self.pause = job.pause(inc) / job.bits
        self.pairs = [pair(unit, job.server) for unit, _ in job.flows(inc)] or [("", "")]
        self.left = [job.bits] * len(self.pairs)
        self.speed = 0.0

    def advance(self, rate_bps: float, dark: Mapping[Pair, int]) -> float | None:
        """Transfer for a slot; returns the seconds after which all was sent, or None if something is left."""
        speed = rate_bps / (1 + rate_bps * self.pause)
        lost = max(0.0, speed - self.speed) * self.center.reconfiguration_s
        owed = [left + (lost if units in dark else 0.0) for left, units in zip(self.left, self.pairs, strict=True)]
        self.speed = speed
        self.left = [max(0.0, bits - speed * self.center.slot_s) for bits in owed]
        if max(self.left) > DUST * self.job.bits:
            return None
        return min(max(owed) / speed, self.center.slot_s)
