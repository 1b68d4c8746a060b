"""The best forest for a problem: ARO's trees first, then more, packed anew each time; and a bound of all forests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from time import monotonic

from inakit.planner.core.method import Options
from inakit.planner.core.problem import Problem
from inakit.planner.core.solving import FEASIBLE, OPTIMAL, SolverOutcome
from inakit.planner.methods.aro.several.reduced import Network, network
from inakit.planner.methods.aro.several.several_tasks import several
from inakit.planner.methods.aro.single.leafspine import LeafSpine
from inakit.planner.methods.aro.single.one_task import best_routing
from inakit.planner.methods.aro.single.recognise import leaf_spine
from inakit.planner.methods.aro.task import tasks_of
from inakit.planner.methods.forest.column_generation import TIGHT, Generated, generate, shape_of, trees_of, used
from inakit.planner.methods.forest.few_trees import rounded
from inakit.planner.methods.forest.packing import Column, Forest, Ground, pack
from inakit.planner.methods.forest.relaxed import relax
from inakit.planner.methods.forest.spread import MOST_TREES, rate_bound, spread

NEAR = 0.01
"""A packing of many trees with this relative gap is good enough to be rounded to a few."""


@dataclass(frozen=True)
class BestForest:
    """The best forest found so far, and a worth that no forest exceeds."""

    ground: Ground
    forest: Forest
    bound: float

    @property
    def gap(self) -> float:
        """The relative gap of the forest's worth to the bound."""
        return max(0.0, self.bound / self.forest.value - 1)

    def with_better(self, forest: Forest) -> BestForest:
        """The same with this forest, if it is worth more."""
        return replace(self, forest=forest) if forest.value > self.forest.value * (1 + TIGHT) else self

    def outcome(self, started: float) -> SolverOutcome:
        """How well the forest is proven, for a search that began at `started` on the monotonic clock."""
        proven = self.gap <= 2 * TIGHT
        return SolverOutcome(
            OPTIMAL if proven else FEASIBLE, monotonic() - started, 0.0 if proven else self.gap, "highs"
        )


def best_forest(problem: Problem, most: float, options: Options) -> BestForest:
    """The best forest with at most `most` trees for each task. Raises `SolverError` where not even one is found."""
    deadline = monotonic() + options.time_limit_s
    ground = Ground(problem.fabric, tasks_of(problem), options.with_results)
    columns = aro_trees(ground, problem, options)
    closed = [leaf_spine(ground.fabric, task) for task in ground.tasks]
    best = BestForest(ground, pack(ground, columns), counting_bound(closed))
    if most > 1 and None not in closed:
        spread_out = spread_trees(ground, closed, most)
        best = best.with_better(pack(ground, spread_out)) if spread_out else best
        columns += spread_out
    if best.gap <= max(options.gap, TIGHT):
        return best
    net = network(ground.fabric, ground.tasks, results=ground.results)
    best = replace(best, bound=min(best.bound, relax(ground, net)))
    if most == 1 or (most < inf and len(closed) == 1 and closed[0] is not None):
        return best  # one tree is ARO's; a few trees for one task are the closed form's
    return searched(best, net.fine, columns, most, options, deadline)


def least_bound(problem: Problem) -> float:
    """A rate in bit/s that no forest gives to all jobs, with results: what the worst served job has, by its weight."""
    ground = Ground(problem.fabric, tasks_of(problem), results=True)
    worth, jobs = ground.worth, len(ground.worth.jobs)
    return relax(ground, network(ground.fabric, ground.tasks, results=True)) / (1 + worth.mu * jobs)


def searched(
    best: BestForest, net: Network, columns: Sequence[Column], most: float, options: Options, deadline: float
) -> BestForest:
    """The best forest of the trees that column generation adds; with few trees allowed, one rounded from it."""
    ground, few = best.ground, most < inf
    enough = max(options.gap, NEAR if few else 0.0)
    stop = monotonic() + (deadline - monotonic()) / 2 if few else deadline
    start = Generated(tuple(shape_of(net, column) for column in columns), best.bound)
    generated = generate(ground, net, start, stop, enough)
    trees = [tree for shape in used(ground, net, generated) for tree in trees_of(ground, net, shape)]
    every = pack(ground, [*columns, *trees])
    best = replace(best, bound=generated.bound)
    if every.fits(most):
        return best.with_better(every)
    return best.with_better(rounded(best.forest, every, ground, most, deadline))


def aro_trees(ground: Ground, problem: Problem, options: Options) -> list[Column]:
    """The best single tree of each task."""
    if len(ground.tasks) == 1:
        return [ground.column(0, best_routing(ground.fabric, ground.tasks[0], options.for_solver).paths)]
    plan = several(problem, replace(options, time_limit_s=options.time_limit_s / 2))
    keys = [task.key for task in ground.tasks]
    return [ground.column_of(keys.index((shard.job, tree.root)), tree) for shard in plan.shards for tree in shard.trees]


def spread_trees(ground: Ground, closed: Sequence[LeafSpine | None], most: float) -> list[Column]:
    """A few trees for each task on a leaf-spine, in closed form."""
    few = int(min(most, MOST_TREES))
    return [
        ground.column(task, tree.paths)
        for task, shape in enumerate(closed)
        for tree in (spread(shape, few) if shape is not None else ())
    ]


def counting_bound(closed: Sequence[LeafSpine | None]) -> float:
    """A bound of the rate of a single task that has a closed form; infinite for all else."""
    return rate_bound(closed[0]) if len(closed) == 1 and closed[0] is not None else inf
