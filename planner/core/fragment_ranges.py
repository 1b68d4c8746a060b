"""Which fragments of a job's gradient each tree carries."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem


def fragment_ranges(problem: Problem, plan: Plan) -> dict[tuple[int, int], range]:
    """By (job, tree number), the fragments of one iteration's gradient that the tree carries.

    A job's trees follow one another in the plan's order, each as long as its share in whole fragments.
    """
    ranges: dict[tuple[int, int], range] = {}
    for job in problem.jobs:
        own = [planned for planned in plan.trees if planned.job == job.number]
        parts = split(problem.fragment.count(job.gradient_bytes), [planned.share for planned in own])
        ranges |= {(job.number, planned.tree.number): part for planned, part in zip(own, parts, strict=True)}
    return ranges


def split(total: int, shares: Sequence[float]) -> list[range]:
    """The integers from 0 to `total` cut into consecutive ranges, whose lengths have these shares of it to within one.

    The shares sum to 1.
    """
    bounds = [0, *(round(total * end) for end in accumulate(shares))]
    return [range(low, high) for low, high in pairwise(bounds)]
