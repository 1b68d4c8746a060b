"""InArt: the gradient split over several PSs, each flow summed once at most, at any switch that helps.

LP-InArt (Eq. (5)) bounds the sending rate; its fractions are rounded at random several times (R-InArt), and
the best rounding is repaired for rates ever nearer to the bound (`annealing`).
A plan has the rate that its loads allow; its gap is to the bound of the relaxation.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from planner.annealing import Layout, Search
from planner.loads import sending_rate_bps
from planner.methods.method import Options
from planner.once import Task, tasks_of, tree_of
from planner.plan import AggregationTree, Plan, Shard, SolverOutcome
from planner.problem import Problem
from planner.relaxation import Relaxed, relax_whole
from planner.rounding import Routing, round_off
from planner.slots import assign_slots
from planner.solve import PROVEN_GAP
from topo.errors import InputError
from topo.fabric import Fabric


@dataclass(frozen=True)
class InartOptions(Options):
    """`roundings` are drawn, and the best is repaired, `rounds` times with at most so many `moves`.

    `trees` per PS divide its part of the gradient evenly, each with routes of its own. The paper has one. Several come
    nearer to what the relaxation splits at will, for a switch's rate holds a whole number of flows only.
    """

    trees: int = 1
    roundings: int = 10
    rounds: int = 3
    moves: int = 1_000_000

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("trees", "roundings", "rounds", "moves"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} = {getattr(self, name)}: at least 1 is expected")


def plan_equal(problem: Problem, options: InartOptions) -> Plan:
    """R-InArt with the gradient split equally, InArt's first baseline (5.1.2)."""
    started = time.monotonic()
    tasks = tasks_of(problem, options.trees)
    relaxed = relax_whole(problem.fabric, tasks, options.for_solver)
    routing = route(problem.fabric, tasks, relaxed, options)
    trees = trees_of(problem.fabric, tasks, routing, options.window)
    rate = sending_rate_bps(problem.fabric, weighted(tasks, trees))
    gap = max(0.0, relaxed.bound_bps / rate - 1)
    status = "optimal" if gap < PROVEN_GAP else "feasible"
    outcome = SolverOutcome(status, time.monotonic() - started, gap, options.solver)
    return Plan("inart", problem.fabric.name, shards_of(tasks, trees, rate), outcome)


def route(fabric: Fabric, tasks: Sequence[Task], relaxed: Relaxed, options: InartOptions) -> Routing:
    """The routing with the highest rate that roundings and their repair find."""
    draw = random.Random(options.seed)
    layout = Layout(fabric, tasks)
    drawn = [round_off(fabric, tasks, relaxed, draw) for _ in range(options.roundings)]
    best = max(drawn, key=lambda routing: Search(layout, routing, relaxed.bound_bps).rate_bps)
    for _ in range(options.rounds):
        search = Search(layout, best, relaxed.bound_bps)
        search.aim(search.rate_bps)
        best = search.anneal(draw, options.moves, relaxed.bound_bps) or best
    return best


def trees_of(fabric: Fabric, tasks: Sequence[Task], routing: Routing, window: int) -> tuple[AggregationTree, ...]:
    """The trees of all tasks; they are numbered within their job."""
    numbers = {task.job.number: count(1) for task in tasks}
    owners = (task for task in tasks for _ in range(task.trees))
    trees = [
        tree_of(task, next(numbers[task.job.number]), ways, onward)
        for task, ways, onward in zip(owners, routing.ways, routing.onward, strict=True)
    ]
    return assign_slots(fabric, trees, window)


def weighted(tasks: Sequence[Task], trees: Sequence[AggregationTree]) -> Iterator[tuple[AggregationTree, float]]:
    shares = (task.flow_share for task in tasks for _ in range(task.trees))
    return zip(trees, shares, strict=True)


def shards_of(tasks: Sequence[Task], trees: Sequence[AggregationTree], rate_bps: float) -> tuple[Shard, ...]:
    """A shard for each task, numbered within its job, in which every worker sends its share of the rate."""
    numbers = {task.job.number: count(1) for task in tasks}
    rest = iter(trees)
    return tuple(
        Shard(
            task.job.number,
            next(numbers[task.job.number]),
            task.share,
            task.share * rate_bps,
            tuple(next(rest) for _ in range(task.trees)),
        )
        for task in tasks
    )
