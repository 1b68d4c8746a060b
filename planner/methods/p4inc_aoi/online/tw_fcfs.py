"""The policies of the paper: the time window (TW) of Algorithms 2 and 3, and first come, first served (FCFS).

Each choice that the paper leaves open is a field, whose default is the reading for which
`experiments/papers/p4inc_aoi/NOTES.md` argues.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from math import inf

import numpy as np

from inakit.planner.methods.p4inc_aoi.online.matching import assign_inc, saved_bits
from inakit.planner.methods.p4inc_aoi.online.slot_by_slot import Active, Round
from inakit.planner.methods.p4inc_aoi.online.windows import VirtualPort, ports_of, windows
from inakit.planner.methods.p4inc_aoi.problem.resources import ROUNDING


@dataclass(frozen=True)
class TimeWindow:
    """Algorithm 2. `inc`: whether switches sum. `limit_bps`: the most that a worker can have.

    `fill`: bandwidth is dealt until none is left, also to jobs that are done within the slot with less.
    """

    inc: bool = True
    fill: bool = False
    limit_bps: float = inf

    def __call__(self, now: Round) -> None:
        """Deal INC by matching, then bandwidth port by port, the busiest first, each step to the job that is latest."""
        if self.inc:
            self.deal_inc(now)
        uses = [ports_of(one.shape) for one in now.active]
        done: set[int] = set()
        for port in in_order(now, uses):
            jobs = [number for number, use in enumerate(uses) if port in use and number not in done]
            self.deal_bandwidth(now, [now.active[number] for number in jobs])
            done.update(jobs)

    def deal_inc(self, now: Round) -> None:
        """Deal INC to the jobs that have not started, by matching."""
        waiting = {one.job.number: one for one in now.active if not one.rate_bps}
        found = assign_inc([one.job for one in waiting.values()], now.resources.inc_jobs)
        for number, unit in found.items():
            now.use_inc(waiting[number], unit)

    def deal_bandwidth(self, now: Round, jobs: list[Active]) -> None:
        """Give a step to the job that would still be the latest with it, until no step fits any job (lines 19 to 31).

        What is left only shrinks, so a job that a step does not fit needs no second look.
        """
        latest = [(-one.time_left(one.rate_bps + one.step_bps), place) for place, one in enumerate(jobs)]
        heapify(latest)
        while latest:
            place = latest[0][1]
            one = jobs[place]
            enough = self.enough(now, one)
            if enough or not now.resources.fits(one.shape, one.step_bps):
                heappop(latest)
                continue
            now.grant(one, one.step_bps)
            heapreplace(latest, (-one.time_left(one.rate_bps + one.step_bps), place))

    def enough(self, now: Round, one: Active) -> bool:
        """Whether another step would be of no use to a job, or more than it may have."""
        done = not self.fill and one.rate_bps > 0 and now.steps_to_finish(one) <= 0
        return done or one.rate_bps + one.step_bps > self.limit_bps * (1 + ROUNDING)


def in_order(now: Round, uses: list[dict[VirtualPort, int]]) -> list[VirtualPort]:
    """The virtual ports that are used, those whose window ends last first (line 16)."""
    if not uses:
        return []
    bits = np.array([one.left_bits for one in now.active])
    updates = np.array([one.update_s for one in now.active])
    ends = windows(now.problem.center, uses, bits, updates)
    return sorted((port for port in ends if ends[port] > 0), key=lambda port: (-ends[port], port))


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

    def __call__(self, now: Round) -> None:
        for one in now.active:
            if one.rate_bps:
                continue
            if self.inc:
                now.use_inc(one, best_unit(now, one))
            useful = inf if self.fill else max(1.0, np.ceil(now.steps_to_finish(one)))
            steps = now.resources.steps(one.shape, one.step_bps, min(useful, self.limit_bps / one.step_bps))
            if steps:
                now.grant(one, steps * one.step_bps)
            elif one.shape.inc is not None:
                now.resources.inc_jobs[one.shape.inc] += 1
            if self.strict and not steps:
                break


def best_unit(now: Round, one: Active) -> str | None:
    """The unit with INC left that takes most traffic off the interconnect; None where no unit has any left."""
    free = [unit for unit in one.job.workers if now.resources.inc_jobs[unit] > 0]
    return max(free, key=lambda unit: saved_bits(one.job, unit), default=None)
