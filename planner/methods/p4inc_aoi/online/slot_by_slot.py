"""Slot after slot: jobs arrive, a policy grants them INC and bandwidth, circuits follow, a slot passes (Algorithm 1).

A policy sees no job before it arrives. A job keeps what it was granted until it is done (line 3), so transfers do not
pause. A job that was given INC but no bandwidth gives it back at the end of the slot.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from inakit.planner.core.solving import SolverOutcome
from inakit.planner.methods.p4inc_aoi.problem.resources import Resources, Shape, circuits_of, settle
from inakit.planner.methods.p4inc_aoi.problem.schedule import Grant, Pair, Run, Schedule, Slot
from inakit.planner.methods.p4inc_aoi.problem.system import DataCenter, PlacedJob, Scheduling
from inakit.topo.errors import PlanError


@dataclass
class Active:
    """A job in the system: its shape, which is fixed once it starts, its progress, and a worker's rate.

    `step_bps` is delta B, halved until one step fits the job alone.
    """

    job: PlacedJob
    shape: Shape
    run: Run
    step_bps: float
    rate_bps: float = 0.0

    def serve(self, center: DataCenter, unit: str | None) -> None:
        """Begin anew, with INC in that unit, or without where it is None."""
        self.shape, self.run = Shape(self.job, unit), Run(center, self.job, unit)

    @property
    def left_bits(self) -> float:
        """The bits that each worker still has to send."""
        return max(self.run.left)

    @property
    def update_s(self) -> float:
        """The seconds of the update at the end."""
        return self.job.update_time(self.shape.inc)

    def time_left(self, rate_bps: float) -> float:
        """The seconds until the job is done at that rate, as long as circuits stay."""
        return self.left_bits * (1 / rate_bps + self.run.pause) + self.update_s


@dataclass
class Round:
    """What a policy decides on: the jobs in the order of their arrival, and the resources that are left."""

    problem: Scheduling
    active: list[Active]
    resources: Resources

    def use_inc(self, one: Active, unit: str | None) -> None:
        """Give a job INC in that unit, or none."""
        one.serve(self.problem.center, unit)
        if unit is not None:
            self.resources.inc_jobs[unit] -= 1

    def grant(self, one: Active, more_bps: float) -> None:
        """Raise the rate of each worker of a job."""
        self.resources.add(one.shape, more_bps)
        one.rate_bps += more_bps

    def steps_to_finish(self, one: Active) -> float:
        """The steps of bandwidth with which a job is done within this slot, even if its circuits are new."""
        center = self.problem.center
        usable = center.slot_s - center.reconfiguration_s - one.left_bits * one.run.pause
        if usable <= 0:
            return float("inf")
        return max(0.0, one.left_bits / usable - one.rate_bps) / one.step_bps


Policy = Callable[[Round], None]


@dataclass
class Simulation:
    """The state between slots: jobs, circuits, and the slot in which each was used last.

    `fixed` are circuits that never change. `stuck` is set after a slot without a transfer.
    """

    problem: Scheduling
    policy: Policy
    fixed: Mapping[Pair, int] | None = None
    active: list[Active] = field(default_factory=list)
    circuits: dict[Pair, int] = field(default_factory=dict)
    last_used: dict[Pair, int] = field(default_factory=dict)
    inc: dict[int, str] = field(default_factory=dict)
    stuck: bool = False

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
        step_bps, alone = self.problem.center.step_bps, Resources(self.problem.center, self.fixed)
        for shape in (Shape(job, unit) for unit in (None, *job.workers)):
            if alone.most_bps(shape, step_bps) > 0:
                while not alone.fits(shape, step_bps):
                    step_bps /= 2
                return Active(job, Shape(job, None), Run(self.problem.center, job, None), step_bps)
        raise cannot_start(job)

    def slot(self, number: int) -> Slot:
        """Plan a slot, and let it pass."""
        resources = Resources(self.problem.center, self.fixed)
        for one in self.active:
            if one.rate_bps:
                resources.add(one.shape, one.rate_bps)
                if one.shape.inc is not None:
                    resources.inc_jobs[one.shape.inc] -= 1
        self.policy(Round(self.problem, self.active, resources))
        self.check_horizon(number)
        dark = self.reconfigure(number, resources)
        grants = tuple(Grant(one.job.number, one.rate_bps) for one in self.active if one.rate_bps)
        self.stuck = not grants
        self.active = [one for one in self.active if not self.passes(one, dark)]
        return Slot(circuits_of(self.circuits), grants)

    def reconfigure(self, number: int, resources: Resources) -> dict[Pair, int]:
        """Set the circuits of a slot; returns the connections that are new."""
        needed = resources.needed()
        self.last_used.update(dict.fromkeys(needed, number))
        before = self.circuits
        settled = settle(self.problem.center, needed, before, self.last_used)
        self.circuits = dict(self.fixed) if self.fixed is not None else settled
        if number == 0:
            return {}
        more = {units: count - before.get(units, 0) for units, count in self.circuits.items()}
        return {units: count for units, count in more.items() if count > 0}

    def passes(self, one: Active, dark: Mapping[Pair, int]) -> bool:
        """Let a slot pass for a job; returns whether its last transfer is done by the end of the slot."""
        if not one.rate_bps:
            one.serve(self.problem.center, None)
            return False
        if one.shape.inc is not None:
            self.inc[one.job.number] = one.shape.inc
        return one.run.advance(one.rate_bps, dark) is not None

    def check_horizon(self, number: int) -> None:
        """Raise `PlanError` when T is over."""
        horizon = self.problem.horizon
        if horizon is not None and number >= horizon:
            raise PlanError(
                f"constraint 'completion (10)': {len(self.active)} jobs are not done in T = {horizon} slots; "
                "make T longer, or a slot"
            )


def cannot_start(job: PlacedJob) -> PlanError:
    """The error for a job that cannot transfer even alone."""
    return PlanError(
        f"constraints 'ports (6)' and 'switch bandwidth (5)': job {job.number} cannot transfer, not even alone; "
        f"give {', '.join(dict.fromkeys((*job.workers, job.server)))} more optical ports, or more bandwidth"
    )
