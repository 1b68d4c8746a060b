"""InArt: the gradient split over several PSs, each flow summed once at most, at any switch that helps.

LP-InArt (Eq. (5)) bounds the sending rate. Its fractions are rounded at random several times (R-InArt), and the best
rounding is repaired for rates ever nearer to the bound (`annealing`). A plan has the rate that its loads allow; its gap
is to the bound of the relaxation.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from inakit.planner.core.loads import sending_rate_bps
from inakit.planner.core.method import Options
from inakit.planner.core.plan import AggregationTree, Plan, PlannedTree, SolverOutcome
from inakit.planner.core.problem import Problem
from inakit.planner.core.slots import assign_slots
from inakit.planner.methods.inart.annealing import Choices, Search
from inakit.planner.methods.inart.relaxation import (
    BISECTIONS,
    Relaxed,
    Routing,
    relax_whole,
    round_apart,
    round_off,
    round_together,
    split_model,
    split_routes,
    with_shares,
)
from inakit.planner.solvers import PROVEN_GAP
from inakit.planner.trees.summed_once import SplitTask, split_equally, tree_of
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import Fabric

MOVES_PER_FLOW = 5000
"""The most moves of one repair, for each flow."""


@dataclass(frozen=True)
class InartOptions(Options):
    """`roundings` of each kind are drawn; the best is repaired `rounds` times, with at most `moves` (5000 per flow).

    `bisections` tighten the relaxation by what is known of whole flows (`relax_whole`); without any it is Eq. (5).
    """

    roundings: int = 10
    rounds: int = 3
    moves: int = 1_000_000
    bisections: int = BISECTIONS

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("roundings", "rounds", "moves"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} = {getattr(self, name)}: at least 1 is expected")
        if self.bisections < 0:
            raise InputError(f"bisections = {self.bisections}: at least 0 is expected")


@dataclass(frozen=True)
class Routed:
    """Tasks, a tree for each, and the sending rate that these trees allow."""

    tasks: list[SplitTask]
    trees: tuple[AggregationTree, ...]
    rate_bps: float


def plan(problem: Problem, options: InartOptions) -> Plan:
    """L-InArt, then R-InArt with its shares, then the shares once more for the routes that were found."""
    started = time.monotonic()
    tasks, bound = split_model(problem.fabric, split_equally(problem), options.for_solver)
    relaxed = relax_whole(problem.fabric, tasks, options.for_solver, options.bisections)
    routed = split_again(problem.fabric, route(problem.fabric, tasks, relaxed, options), options)
    return finished("inart", problem, routed, bound, started)


def plan_equal(problem: Problem, options: InartOptions) -> Plan:
    """R-InArt with the gradient split equally, InArt's first baseline (5.1.2)."""
    return plan_routes(problem, split_equally(problem), options, "inart-equal")


def plan_routes(problem: Problem, tasks: list[SplitTask], options: InartOptions, method: str) -> Plan:
    """R-InArt (Algorithm 2) for a split that is given."""
    started = time.monotonic()
    relaxed = relax_whole(problem.fabric, tasks, options.for_solver, options.bisections)
    routed = route(problem.fabric, tasks, relaxed, options)
    return finished(method, problem, routed, relaxed.bound_bps, started)


def finished(method: str, problem: Problem, routed: Routed, bound_bps: float, started: float) -> Plan:
    """The plan of these trees, with its gap to `bound_bps` and the time since `started`."""
    gap = max(0.0, bound_bps / routed.rate_bps - 1)
    status = "optimal" if gap < PROVEN_GAP else "feasible"
    outcome = SolverOutcome(status, time.monotonic() - started, gap)
    return Plan(method, problem.fabric.name, planned_trees(routed), outcome)


def route(fabric: Fabric, tasks: list[SplitTask], relaxed: Relaxed, options: InartOptions) -> Routed:
    """The trees with the highest rate that roundings and their repair find."""
    draw = random.Random(options.seed)
    choices = Choices(fabric, tasks)
    roundings = [round_apart, round_together] * options.roundings
    drawn = [round_off(fabric, tasks, relaxed, draw, rounding) for rounding in roundings]
    best = max(drawn, key=lambda routing: Search(choices, routing, relaxed.bound_bps).rate_bps)
    for _ in range(options.rounds):
        search = Search(choices, best, relaxed.bound_bps)
        search.aim(search.rate_bps)
        best = search.anneal(draw, min(options.moves, MOVES_PER_FLOW * len(choices.flows)), relaxed.bound_bps) or best
    trees = assign_slots(fabric, list(trees_of(fabric, tasks, best)), options.window)
    return Routed(tasks, trees, rate_of(fabric, tasks, trees))


def split_again(fabric: Fabric, routed: Routed, options: InartOptions) -> Routed:
    """The same trees with the shares that suit them best; a PS that gets nothing is left out."""
    shares = split_routes(fabric, routed.tasks, routed.trees, options.for_solver)
    tasks = with_shares(routed.tasks, shares)
    servers = {(task.job.number, task.server) for task in tasks}
    pairs = zip(routed.tasks, routed.trees, strict=True)
    trees = [tree for task, tree in pairs if (task.job.number, task.server) in servers]
    again = Routed(tasks, tuple(trees), rate_of(fabric, tasks, trees))
    return max(again, routed, key=lambda choice: choice.rate_bps)


def rate_of(fabric: Fabric, tasks: Sequence[SplitTask], trees: Sequence[AggregationTree]) -> float:
    """The highest sending rate of trees whose tasks have these shares of it."""
    return sending_rate_bps(fabric, zip(trees, (task.share for task in tasks), strict=True))


def trees_of(fabric: Fabric, tasks: Sequence[SplitTask], routing: Routing) -> Iterator[AggregationTree]:
    """The tree of each task, numbered within its job. Trees have no slots yet."""
    numbers = {task.job.number: count(1) for task in tasks}
    for task, ways, onward in zip(tasks, routing.ways, routing.onward, strict=True):
        yield tree_of(fabric, task, next(numbers[task.job.number]), ways, onward)


def planned_trees(routed: Routed) -> tuple[PlannedTree, ...]:
    """The tree of each task, in which every worker sends the task's share of the rate."""
    return tuple(
        PlannedTree(task.job.number, task.share, task.share * routed.rate_bps, tree)
        for task, tree in zip(routed.tasks, routed.trees, strict=True)
    )
