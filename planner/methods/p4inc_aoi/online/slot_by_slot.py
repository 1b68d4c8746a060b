"""Slot after slot: jobs arrive, a policy grants them INC and bandwidth, circuits follow, a slot passes (Algorithm 1).

A policy sees no job before it arrives. What a job was granted it keeps until it is done (line 3), so transfers do not
pause; a job that was given INC but no bandwidth gives it back at the end of the slot.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from planner.core.solving import SolverOutcome
from planner.methods.p4inc_aoi.problem.resources import Resources, Shape, circuits_of, settle
from planner.methods.p4inc_aoi.problem.schedule import Grant, Pair, Run, Schedule, Slot
from planner.methods.p4inc_aoi.problem.system import DataCenter, PlacedJob, Scheduling
from topo.errors import PlanError


@dataclass
class Active:
    """A job in the system: its shape, which is settled once it starts, its progress, and a worker's rate.

    `step_bps` is delta B, halved until one fits the job alone.
    """

    job: PlacedJob
    shape: Shape
    run: Run
    step_bps: float
    rate_bps: float = 0.0

    def serve(self, center: DataCenter, unit: str | None) -> None:
        """Begin anew, with INC in that unit."""
        self.shape, self.run = Shape(self.job, unit), Run(center, self.job, unit)

    @property
    def left_bits(self) -> float:
        return max(self.run.left)

    @property
    def update_s(self) -> float:
        return self.job.update_time(self.shape.inc)

    def time_left(self, rate_bps: float) -> float:
        """Until it is done at that rate, as far as circuits stay."""
        return self.left_bits * (1 / rate_bps + self.run.pause) + self.update_s


@dataclass
class Round:
    """What a policy decides on: the jobs in the order of their arrival, and what is left for them."""

    problem: Scheduling
    active: list[Active]
    resources: Resources

    def use_inc(self, one: Active, unit: str | None) -> None:
        one.serve(self.problem.center, unit)
        if unit is not None:
            self.resources.inc_jobs[unit] -= 1

    def grant(self, one: Active, more_bps: float) -> None:
        self.resources.add(one.shape, more_bps)
        one.rate_bps += more_bps

    def steps_to_finish(self, one: Active) -> float:
        """The steps of bandwidth after which a job is done within this slot, even if its circuits are new."""
        center = self.problem.center
        usable = center.slot_s - center.reconfiguration_s - one.left_bits * one.run.pause
        if usable <= 0:
            return float("inf")
        return max(0.0, one.left_bits / usable - one.rate_bps) / one.step_bps


Policy = Callable[[Round], None]


@dataclass
class Simulation:
    """The state between slots."""

    problem: Scheduling
    policy: Policy
    fixed: Mapping[Pair, int] | None = None
    active: list[Active] = field(default_factory=list)
    circuits: dict[Pair, int] = field(default_factory=dict)
    last_used: dict[Pair, int] = field(default_factory=dict)
    inc: dict[int, str] = field(default_factory=dict)
    stuck: bool = False

    def run(self, method: str) -> Schedule:
        """Until all jobs are done. Raises `PlanError` when a job can never start, or when T is over."""
        started = time.monotonic()
        slots = tuple(self.slots())
        return Schedule(method, self.inc, slots, SolverOutcome("heuristic", time.monotonic() - started))

    def slots(self) -> Iterator[Slot]:
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
        """Set the circuits; returns those that are new."""
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
        """Whether a job is done with its last transfer by the end of the slot."""
        if not one.rate_bps:
            one.serve(self.problem.center, None)
            return False
        if one.shape.inc is not None:
            self.inc[one.job.number] = one.shape.inc
        return one.run.advance(one.rate_bps, dark) is not None

    def check_horizon(self, number: int) -> None:
        horizon = self.problem.horizon
        if horizon is not None and number >= horizon:
            raise PlanError(
                f"constraint 'completion (10)': {len(self.active)} jobs are not done in T = {horizon} slots; "
                "make T longer, or a slot"
            )


def cannot_start(job: PlacedJob) -> PlanError:
    return PlanError(
        f"constraints 'ports (6)' and 'switch bandwidth (5)': job {job.number} cannot transfer, not even alone; "
        f"give {', '.join(dict.fromkeys((*job.workers, job.server)))} more optical ports, or more bandwidth"
    )
