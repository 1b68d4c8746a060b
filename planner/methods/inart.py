"""InArt: the gradient split over several PSs, each flow summed once at most, at any switch that helps.

LP-InArt (Eq. (5)) bounds the sending rate; its fractions are rounded at random several times (R-InArt), and
the best rounding is repaired for rates ever nearer to the bound: bisection on what `annealing` still reaches.
A plan has the rate that its loads allow, and its gap is to the bound of the linear relaxation.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

from planner.annealing import Layout, Search
from planner.loads import sending_rate_bps
from planner.methods.method import Options
from planner.once import Task, tasks_of, tree_of
from planner.plan import AggregationTree, Plan, Shard, SolverOutcome
from planner.problem import Problem
from planner.relaxation import Relaxed, relax
from planner.rounding import Routing, round_off
from planner.slots import assign_slots
from topo.fabric import Fabric


@dataclass(frozen=True)
class InartOptions(Options):
    """`roundings` are drawn, and the best repaired in `rounds` of `moves` per flow."""

    roundings: int = 10
    rounds: int = 6
    moves: int = 4000


def plan(problem: Problem, options: InartOptions) -> Plan:
    """R-InArt with the gradient split equally, InArt's first baseline (5.1.2)."""
    equal = {(job.number, server): 1 / len(job.servers) for job in problem.jobs for server in job.servers}
    started = time.monotonic()
    tasks = tasks_of(problem, equal)
    relaxed = relax(problem.fabric, tasks, options.for_solver)
    routing = route(problem.fabric, tasks, relaxed, options)
    trees = trees_of(problem.fabric, tasks, routing, options.window)
    rate = sending_rate_bps(problem.fabric, zip(trees, (task.share for task in tasks), strict=True))
    gap = max(0.0, relaxed.bound_bps / rate - 1)
    shards = tuple(
        Shard(task.job.number, task.number, task.share, rate * task.share, (tree,))
        for task, tree in zip(tasks, trees, strict=True)
    )
    outcome = SolverOutcome("feasible", time.monotonic() - started, gap, options.solver)
    return Plan("inart", problem.fabric.name, shards, outcome)


def route(fabric: Fabric, tasks: Sequence[Task], relaxed: Relaxed, options: InartOptions) -> Routing:
    """The routing with the highest rate that roundings and their repair find."""
    draw = random.Random(options.seed)
    layout = Layout(fabric, tasks)
    drawn = [round_off(fabric, tasks, relaxed, draw) for _ in range(options.roundings)]
    best = max((Search(layout, routing, relaxed.bound_bps) for routing in drawn), key=lambda search: search.rate_bps)
    low, high = best.rate_bps, relaxed.bound_bps
    for _ in range(options.rounds):
        target = (low + high) / 2
        search = Search(layout, best.routing(), target)
        search.anneal(draw, options.moves * len(layout.flows))
        if search.rate_bps > best.rate_bps:
            best = search
        low, high = (best.rate_bps, high) if best.rate_bps >= target else (low, target)
    return best.routing()


def trees_of(fabric: Fabric, tasks: Sequence[Task], routing: Routing, window: int) -> tuple[AggregationTree, ...]:
    trees = [tree_of(*chosen) for chosen in zip(tasks, routing.ways, routing.onward, strict=True)]
    return assign_slots(fabric, trees, window)
