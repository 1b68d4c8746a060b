"""The pace of a run compared with its plan: a run that is clearly too slow or overloaded is ended early."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from inakit.planner.core.evaluate import Prediction
from inakit.planner.core.problem import Job, Problem
from inakit.topo.errors import InakitError
from inakit.traffic.closed_loop import Progress

WINDOW_S = 6.0
"""The time for which a run must be too slow, in seconds: short bursts of other work on the machine are over sooner."""
CLEAR = 0.75
"""A run is clearly too slow if it does less than this share of the work planned for a window.

A run within 5 % of the planned rates, the limit of a VALID run, stays above it. A run planned at 1.5 times the rate
that the machine carries reaches 0.67."""
PAUSES = 5
"""The minimum number of iterations in a window if jobs compute, so that a single pause has little effect."""


class TooSlowError(InakitError):
    """The run was ended because it fell behind its plan, or because it was overloaded.

    `share`: the part of the last window's planned work that was done, 1 if unknown. `causes`: the monitor's reasons
    for an overload, in words.
    """

    def __init__(self, message: str, share: float, causes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.share, self.causes = share, causes


@dataclass(frozen=True)
class PlannedProgress:
    """The planned progress of one job: uniform over `duration_s` from `arrival_s`.

    `weight` is the job's part of all results of the run, 0 to 1. `cycle_s` is the time of an iteration with its
    computing, and 0 for a job that does not compute between iterations.
    """

    arrival_s: float
    duration_s: float
    weight: float
    cycle_s: float = 0.0

    def done(self, after_s: float) -> float:
        """The fraction of the job that should be done `after_s` seconds after the start of the run."""
        return min(1.0, max(0.0, (after_s - self.arrival_s) / self.duration_s))


def planned_progress(problem: Problem, prediction: Prediction) -> tuple[PlannedProgress, ...]:
    """The planned progress of every job by the evaluator's prediction."""
    results = {job.number: len(job.workers) * job.gradient_bytes * job.iterations for job in problem.jobs}
    total = sum(results.values())
    return tuple(of_job(job, prediction, results[job.number] / total) for job in problem.jobs)


def of_job(job: Job, prediction: Prediction, weight: float) -> PlannedProgress:
    """The planned progress of one job, with the communication of its iterations and the computing between them."""
    iteration_s = prediction.jobs[job.number].communication_time_s + job.compute_s
    return PlannedProgress(job.arrival_s, iteration_s * job.iterations, weight, iteration_s if job.compute_s else 0.0)


class Watching(Protocol):
    """A monitor that can detect an overload during a run, such as `inakit.traffic.measure.monitor.Monitor`."""

    def overloaded_so_far(self) -> tuple[str, ...]:
        """The reasons why the run is clearly overloaded; empty if it is not."""
        ...


class Pace:
    """Takes the fraction done of a run, as `Progress` does, and raises `TooSlowError` if the run is clearly too slow.

    If `monitor` is set, a clearly overloaded run also raises `TooSlowError`.
    """

    def __init__(
        self, planned: tuple[PlannedProgress, ...], told: Progress, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Pass every fraction on to `told`. `clock` returns seconds.

        `planned` is empty for a run that causes other than an overload can slow down, such as injected faults.
        """
        self.planned, self.told, self.clock = planned, told, clock
        self.monitor: Watching | None = None
        self.window_s = max(WINDOW_S, PAUSES * max((each.cycle_s for each in planned), default=0.0))
        self.began_s: float | None = None
        self.seen: deque[tuple[float, float]] = deque()

    def __call__(self, fraction: float) -> None:
        self.told(fraction)
        now = self.clock()
        self.began_s = now if self.began_s is None else self.began_s
        self.seen.append((now - self.began_s, fraction))
        if fraction < 1:
            self.check()

    def check(self) -> None:
        """Raise `TooSlowError` if the run is clearly too slow, or clearly overloaded."""
        share = self.share()
        slow = share is not None and share < CLEAR
        causes = self.monitor.overloaded_so_far() if self.monitor else ()
        if slow or causes:
            done = 1.0 if share is None else share
            after = f"ended after {self.seen[-1][0]:.0f} s"
            said = f"{after}: it did {done:.0%} of what is planned" if slow else f"{after}: it is overloaded already"
            raise TooSlowError(said, min(1.0, done), causes)

    def share(self) -> float | None:
        """The share of the last window's planned work that was done; None before its end or without planned work."""
        while len(self.seen) > 1 and self.seen[-1][0] - self.seen[1][0] >= self.window_s:
            self.seen.popleft()
        (earlier_s, before), (later_s, after) = self.seen[0], self.seen[-1]
        planned = self.expected(later_s) - self.expected(earlier_s)
        if later_s - earlier_s < self.window_s or planned <= 0:
            return None
        return (after - before) / planned

    def expected(self, after_s: float) -> float:
        """The fraction of the whole run that should be done after `after_s` seconds."""
        return sum(each.weight * each.done(after_s) for each in self.planned)
