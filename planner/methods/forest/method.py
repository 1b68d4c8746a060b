"""Several aggregation trees for each task, each with a share of the gradient: beyond ARO's one tree.

Every task of every job may have several trees, with one PS or many: a job's gradient is split over all its trees in
proportion to their rates. Trees that sum in one pipeline divide its slots as those of several jobs do, so each has a
smaller window. With few slots, rates beyond window x fragment / round-trip time are planned but not reached.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields, replace
from math import inf
from time import monotonic

from inakit.planner.core.limits.slots import assign_slots
from inakit.planner.core.method import AFTERWARDS, Options
from inakit.planner.core.plan import Plan, Shard
from inakit.planner.core.problem import Problem
from inakit.planner.core.rates.closed_loop import in_closed_loop
from inakit.planner.core.solving import SolverOutcome
from inakit.planner.methods.forest.best_forest import best_forest
from inakit.planner.methods.forest.packing import Forest, Ground
from inakit.topo.errors import InputError


@dataclass(frozen=True)
class ForestOptions(Options):
    """`trees`: the most for each task; 0 for any number, 1 for ARO's tree. The gap is always to the best of any number.

    With any number of trees the search ends with a proof or at the time limit. Only ARO's part of it uses `solver`.
    """

    trees: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.trees < 0:
            raise InputError(f"trees {self.trees}: at least 1 is expected, or 0 for any number")


def plan(problem: Problem, options: ForestOptions) -> Plan:
    """The plan whose tasks' rates are worth most; a task's rate is the sum of its trees'.

    Where the best plan for gradients alone loses nothing to results, it is the best with them.
    """
    if not options.with_results:
        return packed(problem, options)
    alone = packed(problem, replace(options, headroom=AFTERWARDS, time_limit_s=options.time_limit_s / 2))
    lossless = in_closed_loop(problem, alone) is alone
    return alone if lossless else packed(problem, replace(options, time_limit_s=options.time_limit_s / 2))


def plan_any(problem: Problem, options: Options) -> Plan:
    """The plan of any number of trees for each task."""
    known = {field.name: getattr(options, field.name) for field in fields(Options)}
    return replace(plan(problem, ForestOptions(**known, trees=0)), method="forest-any")


def packed(problem: Problem, options: ForestOptions) -> Plan:
    """The plan of the best forest for gradients alone, or for gradients and results."""
    started = monotonic()
    best = best_forest(problem, options.trees or inf, options)
    return plan_of(best.ground, best.forest, best.outcome(started), options.window)


def plan_of(ground: Ground, forest: Forest, outcome: SolverOutcome, window: int) -> Plan:
    """The plan of a forest: a shard for each of its trees, which has that part of its job's rate as share.

    A job's trees are numbered in the forest's order; those in one pipeline divide its slots.
    """
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
