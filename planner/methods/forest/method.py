"""Several aggregation trees for each task, each with a share of the gradient: beyond ARO's one tree.

Every task of every job may have several trees, with one PS or many: a job's gradient is split over all its trees in
proportion to their rates. Trees that sum in one pipeline divide its slots as those of several jobs do, so each has a
smaller window. With few slots, rates beyond window x fragment / round-trip time are planned but not reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from time import monotonic

from planner.core.method import Options
from planner.core.plan import Plan
from planner.core.problem import Problem
from planner.methods.forest.emit import plan_of
from planner.methods.forest.grow import grow
from topo.errors import InputError


@dataclass(frozen=True)
class ForestOptions(Options):
    """`trees`: the most for each task; 0 for any number, 1 for ARO's tree. The gap is always to the best of any number.

    With any number of trees the search ends with a proof or at the time limit. It uses HiGHS, except where it calls
    ARO.
    """

    trees: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.trees < 0:
            raise InputError(f"trees {self.trees}: at least 1 is expected, or 0 for any number")


def plan(problem: Problem, options: ForestOptions) -> Plan:
    """The plan whose tasks' rates are worth most; a task's rate is the sum of its trees'."""
    started = monotonic()
    grown = grow(problem, options.trees or inf, options)
    return plan_of(grown.ground, grown.forest, grown.outcome(started), options.window)
