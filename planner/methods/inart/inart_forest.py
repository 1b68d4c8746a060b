"""InArt with several trees for each PS, so that a plan comes near LP-InArt's rate, which one tree cannot.

LP-InArt splits flows freely, and the rate that the paper reports is its f. Here whole flows nearly reach this f: trees
are drawn from its fractions (`round_together`), and a linear program gives each its rate, so that all together fit the
network. The gradient is split over the trees in proportion to their rates. Few of the drawn trees are kept. Results,
which return while other gradients are still sent, fit too, at almost no cost in rate.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import ClassVar

from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan, PlannedTree, split
from inakit.planner.core.problem import Problem, require_equal_weights
from inakit.planner.core.slots import Resource, assign_slots
from inakit.planner.methods.inart.relaxation import first_splits, relax, round_together
from inakit.planner.methods.tree_packing import NEGLIGIBLE, Ground, TreeColumn, distinct_loads
from inakit.planner.solvers import LinearProgram, proven
from inakit.planner.trees.from_paths import HEURISTIC, numbered
from inakit.planner.trees.summed_once import SplitTask, tree_of
from inakit.topo.errors import SolverError

DROPPED = 0.05
"""The fraction of the trees that is removed at once while there are too many."""


@dataclass(frozen=True)
class InartForestOptions(Options):
    """`trees`: the maximum for a PS, on average over all; `roundings` are drawn for each PS as candidates."""

    trees: int = 8
    roundings: int = 100
    LEAST: ClassVar[Mapping[str, int]] = {"trees": 1, "roundings": 1}


PackedTrees = list[tuple[TreeColumn, float]]
"""Trees, and the fraction of the sending rate that each has. The fractions of a job sum to 1."""


def plan(problem: Problem, options: InartForestOptions) -> Plan:
    """Plan several trees for each of `first_splits`; the plan of the highest rate. Its gap refers to a free split."""
    started = time.monotonic()
    splits, bound = first_splits(problem, options)
    plans = [plan_trees(problem, tasks, options, "inart-forest") for tasks in splits]
    best = max(plans, key=rate_bps)
    return replace(best, outcome=proven(max(0.0, bound / rate_bps(best) - 1), started))


def plan_trees(problem: Problem, tasks: Sequence[SplitTask], options: InartForestOptions, method: str) -> Plan:
    """Several trees for a given split. While there are too many, the smallest are dropped."""
    require_equal_weights(problem, method)
    started, fabric = time.monotonic(), problem.fabric
    ground = Ground(fabric, (), results=True)
    relaxed = relax(fabric, tasks, options.for_solver)
    draw = random.Random(options.seed)
    columns = [
        ground.column_of(number, tree_of(fabric, task, 1, *round_together(fabric, task, part, draw)))
        for number, (task, part) in enumerate(zip(tasks, relaxed.tasks, strict=True))
        for _ in range(options.roundings)
    ]
    packed = pack(ground, tasks, columns)
    while (excess := len(packed) - options.trees * len(tasks)) > 0:
        given_up = min(excess, ceil(DROPPED * len(packed)))
        packed = pack(ground, tasks, largest(packed, len(packed) - given_up))
    planned = planned_trees(problem, ground, tasks, packed, options.window)
    made = Plan(method, fabric.name, planned, HEURISTIC)
    gap = max(0.0, relaxed.bound_bps / rate_bps(made) - 1)
    return replace(made, outcome=proven(gap, started))


def rate_bps(plan: Plan) -> float:
    """The sending rate of a worker of the first job. InArt gives all jobs the same rate."""
    return plan.job_rate_bps(plan.trees[0].job)


def pack(ground: Ground, tasks: Sequence[SplitTask], columns: Sequence[TreeColumn]) -> PackedTrees:
    """The best rates of these trees, where every task has its share of one sending rate f.

    Raises `SolverError` where there are none.
    """
    program = LinearProgram()
    f = program.variable(0, inf)
    r = [program.variable(0, inf) for _ in columns]
    for loads in distinct_loads(ground, columns):
        program.at_most([(load, r[k]) for k, load in loads], 1)
    for number, task in enumerate(tasks):
        own = [(1.0, r[k]) for k, column in enumerate(columns) if column.task == number]
        program.equal([(-task.share, f), *own], 0)
    program.maximise([(1, f)])
    solution = program.solve()
    if not solution.found:
        raise SolverError(f"{len(columns)} trees have no best rates: the solver reports {solution.status}")
    parts = [(column, solution.values[k] / solution.objective) for column, k in zip(columns, r, strict=True)]
    return [(column, part) for column, part in parts if part > NEGLIGIBLE]


def largest(packed: PackedTrees, number: int) -> list[TreeColumn]:
    """The given number of trees with the largest parts, among them the largest of each task."""
    order = sorted(range(len(packed)), key=lambda k: -packed[k][1])
    first = {packed[k][0].task: k for k in reversed(order)}
    kept = [*first.values(), *(k for k in order if k not in first.values())][:number]
    return [packed[k][0] for k in sorted(kept)]


def planned_trees(
    problem: Problem, ground: Ground, tasks: Sequence[SplitTask], packed: PackedTrees, window: int
) -> tuple[PlannedTree, ...]:
    """Every tree with at least one fragment. Shares are whole fragments, and the rate is the highest that fits them."""
    shares: list[float] = []
    for job in problem.jobs:  # whose trees follow one another
        total = problem.fragment.count(job.gradient_bytes)
        parts = [part for column, part in packed if tasks[column.task].job is job]
        shares += [len(fragments) / total for fragments in split(total, parts)]
    carrying = [(column, share) for (column, _), share in zip(packed, shares, strict=True) if share]
    loads: dict[Resource, float] = defaultdict(float)
    for column, share in carrying:
        for resource, flows in column.flows.items():
            loads[resource] += share * flows
    rate_bps = min(ground.capacity_bps(resource) / load for resource, load in loads.items())
    jobs = [tasks[column.task].job.number for column, _ in carrying]
    trees = numbered((job, column.tree) for job, (column, _) in zip(jobs, carrying, strict=True))
    placed = assign_slots(problem.fabric, trees, window)
    return tuple(
        PlannedTree(job, share, share * rate_bps, tree)
        for job, (_, share), tree in zip(jobs, carrying, placed, strict=True)
    )
