"""A plan of trees that are chosen, one for each shard: slots, and one rate for all flows."""

from __future__ import annotations

from collections.abc import Sequence

from inakit.planner.core.limits.slots import DEFAULT_WINDOW, assign_slots
from inakit.planner.core.plan import AggregationTree, Plan, Shard
from inakit.planner.core.problem import Problem
from inakit.planner.core.rates.loads import equal_rate_bps
from inakit.planner.core.solving import SolverOutcome

HEURISTIC = SolverOutcome("heuristic", 0.0)


def plan_at_equal_rate(
    method: str,
    problem: Problem,
    trees: Sequence[tuple[int, float, AggregationTree]],
    window: int = DEFAULT_WINDOW,
    outcome: SolverOutcome = HEURISTIC,
) -> Plan:
    """The plan of trees, each given with its job's number and its share of the job's gradient.

    All flows have the highest rate that they can have together.
    """
    placed = assign_slots(problem.fabric, [tree for _, _, tree in trees], window)
    rate = equal_rate_bps(problem.fabric, placed)
    shards = tuple(
        Shard(job, tree.number, share, rate, (tree,)) for (job, share, _), tree in zip(trees, placed, strict=True)
    )
    return Plan(method, problem.fabric.name, shards, outcome)
