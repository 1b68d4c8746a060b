"""GRID as ARO compares with it (ARO, section IV-A): an aggregator for every worker by a linear program, then routes.

The program knows aggregators' processing capacity and nothing of the network between, so that all of them are
used and the PS's link gets a flow from each INP of each. A gradient is summed at most once. The paper has 1.75 Gbit/s
at its default setting; this reading, the lowest that was found, has 3.6. With the PS's link in the program it is 5.0
when workers draw by the fractions that the program gives them, and 13 when each takes its largest.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pulp

from planner.loads import equal_rate_bps
from planner.methods.method import Options
from planner.once import Task, Way, tasks_of, tree_of, ways
from planner.plan import AggregationTree, Plan, Shard, SolverOutcome
from planner.problem import Problem
from planner.routes import Inp
from planner.slots import assign_slots
from planner.solve import SolverOptions, solve
from planner.unfold import DirectedLink, Path
from topo.fabric import Fabric


@dataclass(frozen=True)
class GridOptions(Options):
    """What a switch processes, as a multiple of a worker's link: ARO sets 3200 Gbit/s where links have 100."""

    links_processed: float = 32.0


def plan(problem: Problem, options: GridOptions) -> Plan:
    """Every task by itself; all flows have one rate. Raises `InputError` when a worker cannot reach its PS."""
    tasks = tasks_of(problem)
    trees = [grid_tree(problem.fabric, task, task.job.servers.index(task.server) + 1, options) for task in tasks]
    trees = list(assign_slots(problem.fabric, trees, options.window))
    rate = equal_rate_bps(problem.fabric, trees)
    shards = (
        Shard(task.job.number, tree.number, task.share, rate, (tree,)) for task, tree in zip(tasks, trees, strict=True)
    )
    return Plan("grid", problem.fabric.name, tuple(shards), SolverOutcome("heuristic", 0.0))


def grid_tree(fabric: Fabric, task: Task, number: int, options: GridOptions) -> AggregationTree:
    """The task's tree: each worker at an aggregator that it draws, by the least loaded way to it."""
    draw = random.Random(f"{options.seed} {task.job.number} {task.server}")
    options_of = {worker: by_switch(fabric, task, worker) for worker in task.job.workers}
    fractions = assign(options_of, options)
    loads: Counter[DirectedLink] = Counter()
    chosen = []
    for worker, possible in options_of.items():
        names = list(possible)
        name = draw.choices(names, [fractions[worker, name] for name in names])[0]
        chosen.append(least_loaded(loads, worker, possible[name]))
    onward = {way.inp: onward_path(task, way.inp, loads) for way in chosen if way.inp}
    return tree_of(task, number, chosen, onward)


def by_switch(fabric: Fabric, task: Task, worker: str) -> dict[str, list[Way]]:
    """The worker's ways by the switch that sums; those to the PS only where no switch on them does."""
    found: dict[str, list[Way]] = {}
    for way in ways(fabric, task, worker):
        found.setdefault(way.inp[0] if way.inp else "", []).append(way)
    direct = found.pop("")
    return found or {"": direct}


def assign(options_of: Mapping[str, Mapping[str, Sequence[Way]]], options: GridOptions) -> dict[tuple[str, str], float]:
    """GRID's relaxed model: `[worker, switch]`, the part of the worker's gradient that the switch sums.

    Rates are in units of the least of the workers' links.
    """
    model = pulp.LpProblem("grid", pulp.LpMaximize)

    # Variables
    r = model.add_variable("r", 0, 1)
    f: dict[tuple[str, str], Any] = {
        (worker, name): model.add_variable(f"f_{worker}_{name}", 0)
        for worker, possible in options_of.items()
        for name in possible
    }

    # Objective
    model += r, "sending_rate"

    # Constraints
    for worker, possible in options_of.items():
        model += pulp.lpSum(f[worker, name] for name in possible) == r, f"sends_{worker}"
    for name in dict.fromkeys(name for _, name in f):
        entering = pulp.lpSum(f[key] for key in f if key[1] == name)
        model += entering <= (options.links_processed if name else 1), f"processes_{name}"
    solve(model, SolverOptions(options.solver, options.time_limit_s, seed=options.seed))
    return {key: max(variable.varValue, 0.0) for key, variable in f.items()}


def least_loaded(loads: Counter[DirectedLink], worker: str, possible: Sequence[Way]) -> Way:
    """The way whose busiest link is least so; its flow is added to `loads`."""
    way = min(possible, key=lambda way: max((loads[link] for link in pairwise((worker, *way.path))), default=0))
    loads.update(pairwise((worker, *way.path)))
    return way


def onward_path(task: Task, inp: Inp, loads: Counter[DirectedLink]) -> Path:
    """The least loaded way of an INP's sum to the PS."""
    paths = list(task.unfolded.paths(inp[0]))
    path = min(paths, key=lambda path: max(loads[link] for link in pairwise(path)))
    loads.update(pairwise(path))
    return path
