"""Which fragments of a job's gradient each tree carries."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem


def fragment_ranges(problem: Problem, plan: Plan) -> dict[tuple[int, int], range]:
    """By (job, tree number), the fragments of one iteration's gradient that the tree carries.

    Shards follow one another by their numbers, each as long as its share in whole fragments; a shard's trees divide it
    evenly.
    """
    ranges: dict[tuple[int, int], range] = {}
    for job in problem.jobs:
        shards = sorted((s for s in plan.shards if s.job == job.number), key=lambda shard: shard.number)
        parts = [(tree, shard.share / len(shard.trees)) for shard in shards for tree in shard.trees]
        total = problem.fragment.count(job.gradient_bytes)
        for (tree, _), part in zip(parts, split(total, [share for _, share in parts]), strict=True):
            ranges[job.number, tree.number] = part
    return ranges


def split(total: int, shares: Sequence[float]) -> list[range]:
    """The integers from 0 to `total` cut into consecutive ranges, whose lengths have these shares of it to within one.

    The shares sum to 1.
    """
    bounds = [0, *(round(total * end) for end in accumulate(shares))]
    return [range(low, high) for low, high in pairwise(bounds)]
