"""A forest as a plan: a shard with one tree for every tree of the forest, with its part of the rate as share."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from planner.core.plan import Plan, Shard
from planner.core.slots import assign_slots
from planner.core.solving import SolverOutcome
from planner.methods.forest.packing import Forest, Ground


def plan_of(ground: Ground, forest: Forest, outcome: SolverOutcome, window: int) -> Plan:
    """The plan of a forest. A job's trees are numbered in its order; those in one pipeline divide its slots."""
    jobs = [ground.tasks[column.task].job.number for column in forest.columns]
    totals: Counter[int] = Counter()
    numbers: Counter[int] = Counter()
    for job, rate in zip(jobs, forest.rates_bps, strict=True):
        totals[job] += rate  # type: ignore[assignment]
    trees = []
    for job, column in zip(jobs, forest.columns, strict=True):
        numbers[job] += 1
        trees.append(replace(column.tree, number=numbers[job]))
    shards = tuple(
        Shard(job, tree.number, rate / totals[job], rate, (tree,))
        for job, rate, tree in zip(jobs, forest.rates_bps, assign_slots(ground.fabric, trees, window), strict=True)
    )
    return Plan("forest", ground.fabric.name, shards, outcome)
