"""The result of a method that also changes the problem: the new problem, and the plan for it.

A planner goes from a `Problem` to a `Plan`. ATRO also chooses the fabric, PARING chooses the hosts that work, and SPAR
chooses the switches that aggregate. Each of them returns another problem, which every planner can plan for and the
emulator can run.
"""

from __future__ import annotations

from dataclasses import dataclass

from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.topo.fabric.fabric import Fabric


@dataclass(frozen=True)
class Design:
    """A problem that a method has chosen, and the plan for it."""

    problem: Problem
    plan: Plan

    @property
    def fabric(self) -> Fabric:
        """The fabric of the chosen problem."""
        return self.problem.fabric

    @property
    def rate_bps(self) -> float:
        """The sending rate of each worker of the first job, over all its shards."""
        number = self.problem.jobs[0].number
        return sum(shard.rate_bps for shard in self.plan.shards if shard.job == number)
