"""What a method that decides more than the plan gives: the problem that it chose, and the plan for it.

Planners go from a `Problem` to a `Plan`. ATRO also chooses the fabric, PARING the hosts that work, SPAR the switches
that aggregate: each returns another problem, on which every planner plans and which the emulator runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.core.plan import Plan
from planner.core.problem import Problem
from topo.fabric.fabric import Fabric


@dataclass(frozen=True)
class Design:
    """A problem, and a plan for it."""

    problem: Problem
    plan: Plan

    @property
    def fabric(self) -> Fabric:
        return self.problem.fabric

    @property
    def rate_bps(self) -> float:
        """What every worker of the first job sends at."""
        number = self.problem.jobs[0].number
        return sum(shard.rate_bps for shard in self.plan.shards if shard.job == number)
