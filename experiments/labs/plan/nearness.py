"""How near a student's routes come to the best ones.

Points are measured against ARO's optimum: the best rate that one tree for each job can have, which is what students
plan, proven by a solver within a second on these networks. So 100 % can be reached. The leaderboard has networks that
are too large for such a proof, and measures against `forest`'s bound, a linear program that no plan exceeds.
"""

from __future__ import annotations

from inakit.experiments.labs.plan.tree_format import Drawn
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.plan import OPTIMAL
from inakit.planner.core.problem import Problem
from inakit.planner.methods.aro.reduced_network import network
from inakit.planner.methods.aro.tasks import tasks_of
from inakit.planner.methods.forest.packing import Ground, relax
from inakit.planner.registry import METHODS
from inakit.planner.trees.from_paths import plan_from_paths
from inakit.topo.errors import SolverError

NONE, FULL = 0.5, 0.9
"""The parts of the optimum from which on there are points, and all points; between them points grow evenly."""


def optimum_bps(problem: Problem) -> float:
    """The rate of the worst served job in ARO's plan. Raises `SolverError` if it is not proven."""
    plan = METHODS["aro"].plan(problem)
    if plan.outcome.status != OPTIMAL:
        raise SolverError(f"the optimum on {problem.fabric.name} is not proven: the solver says {plan.outcome.status}")
    return evaluate(problem, plan).sending_rate_bps


def routes_bps(drawn: Drawn) -> float:
    """The rate that every job can have by the routes of a plan, where every INA switch sums what it can."""
    paths = {shard.job: [shard.trees[0].way(label) for label in shard.trees[0].workers] for shard in drawn.plan.shards}
    plan = plan_from_paths(drawn.problem, paths, drawn.problem.fabric.ina_names)
    return min(shard.rate_bps for shard in plan.shards)


def bound_bps(problem: Problem) -> float:
    """A rate that no plan gives to every job, with any number of trees: the optimum of a linear program."""
    ground = Ground(problem.fabric, tasks_of(problem))
    worth = relax(ground, network(ground.fabric, ground.tasks))
    return worth / (1 + ground.worth.mu * len(ground.worth.jobs))
