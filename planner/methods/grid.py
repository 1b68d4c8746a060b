"""GRID (Transactions on Networking 2023) as ARO compares with it (section IV-A): two programs, one after the other.

The first chooses for every worker the switch that sums its gradient, or the PS; a gradient is summed at most once. It
contains no network but the PS's link. It is relaxed, and rounded at random. The second, an integer program of ARO's,
finds the routes of the highest rate as if no switch had pipelines. The plan has the sums that pipelines then allow.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pulp

from inakit.planner.core.method import Options
from inakit.planner.core.plan import AggregationTree, Plan, SolverOptions
from inakit.planner.core.problem import Problem
from inakit.planner.solvers import solve
from inakit.planner.trees.from_paths import plan_of_trees
from inakit.planner.trees.summed_once import SplitTask, Way, split_equally, tree_of, ways
from inakit.topo.fabric.fabric import DirectedLink, Fabric, Path

PS = ""
"""The PS among the places where a gradient can be summed; the others are switches."""


@dataclass(frozen=True)
class GridOptions(Options):
    """Capacities in the first program, as multiples of a worker's link. ARO sets 3200 Gbit/s for links of 100."""

    links_processed: float = 32.0
    links_of_servers: float = 1.0


def plan(problem: Problem, options: GridOptions) -> Plan:
    """GRID's plan, each task separately, all flows at one rate. Raises `InputError` for an unreachable PS."""
    trees = [(task.job.number, task.share, grid_tree(problem.fabric, task, options)) for task in split_equally(problem)]
    return plan_of_trees("grid", problem, trees, options.window)


def plan_of_aro(problem: Problem, options: GridOptions) -> Plan:
    """GRID's plan where the first program lets 100 gradients into a PS, which is nearer to ARO's figures.

    GRID's program has rates of at most 1. If the PS's link is entered as ARO's 100 Gbit/s, it carries 100 gradients.
    """
    return replace(plan(problem, replace(options, links_of_servers=100.0)), method="grid-aro")


def grid_tree(fabric: Fabric, task: SplitTask, options: GridOptions) -> AggregationTree:
    """The task's tree: each worker's place drawn by the first program's fractions, then the second program's routes."""
    known = {worker: list(ways(fabric, task, worker)) for worker in task.job.workers}
    places = {worker: list(dict.fromkeys(map(place, own))) for worker, own in known.items()}
    fractions = choose_places(places, options)
    draw = random.Random(f"{options.seed} {task.job.number} {task.server}")
    possible = {}
    for worker, own in places.items():
        (drawn,) = draw.choices(own, [fractions[worker, name] for name in own])
        possible[worker] = [way for way in known[worker] if place(way) == drawn]
    chosen, onward = choose_routes(fabric, task, possible, options)
    return tree_of(fabric, task, 1, chosen, {way.inp: onward[way.inp[0]] for way in chosen if way.inp})


def place(way: Way) -> str:
    return way.inp[0] if way.inp else PS


def choose_places(places: Mapping[str, Sequence[str]], options: GridOptions) -> dict[tuple[str, str], float]:
    """GRID's first program, relaxed. By (worker, place), the rate of the worker's gradient that is summed there.

    Rates are in units of a worker's link. A sum has the highest rate of its gradients.
    """
    model = pulp.LpProblem("grid-places", pulp.LpMaximize)

    # Variables
    r = model.add_variable("r", 0, 1)
    f: dict[tuple[str, str], Any] = {
        (worker, name): model.add_variable(f"f_{worker}_{name}", 0) for worker, own in places.items() for name in own
    }
    switches = [name for name in dict.fromkeys(name for _, name in f) if name != PS]
    y = {name: model.add_variable(f"y_{name}", 0) for name in switches}

    # Objective
    model += r, "sending_rate"

    # Constraints
    for worker, own in places.items():
        model += pulp.lpSum(f[worker, name] for name in own) == r, f"sends_{worker}"
    for (worker, name), rate in f.items():
        if name != PS:
            model += rate <= y[name], f"sum_{worker}_{name}"
    for name in switches:
        entering = pulp.lpSum(rate for (_, at), rate in f.items() if at == name)
        model += entering <= options.links_processed, f"processes_{name}"
    unsummed = pulp.lpSum(rate for (_, at), rate in f.items() if at == PS)
    model += unsummed + pulp.lpSum(y.values()) <= options.links_of_servers, "enters_ps"
    solve(model, SolverOptions(options.solver, options.time_limit_s, seed=options.seed))
    return {key: max(variable.varValue, 0.0) for key, variable in f.items()}


def choose_routes(
    fabric: Fabric, task: SplitTask, possible: Mapping[str, Sequence[Way]], options: GridOptions
) -> tuple[list[Way], dict[str, Path]]:
    """The second program: the routes with the least load on the busiest link, where a switch makes one sum of all.

    `possible` has each worker's ways to its place. Returns a way for each worker, in their order, and by switch the
    path of its sums to the PS.
    """
    model = pulp.LpProblem("grid-routes", pulp.LpMinimize)
    alike: dict[tuple[Path, ...], list[str]] = defaultdict(list)
    for worker, own in possible.items():
        alike[tuple(way.path for way in own)].append(worker)
    summing = dict.fromkeys(place(own[0]) for own in possible.values() if own[0].inp)
    onward = {switch: list(task.unfolded.paths(switch)) for switch in summing}

    # Variables
    load = model.add_variable("load", 0)
    x = [
        [model.add_variable(f"x_{group}_{path}", 0, len(workers), pulp.LpInteger) for path in range(len(paths))]
        for group, (paths, workers) in enumerate(alike.items())
    ]
    z = {
        switch: [model.add_variable(f"z_{switch}_{path}", cat=pulp.LpBinary) for path in range(len(paths))]
        for switch, paths in onward.items()
    }

    # Objective
    model += load, "load_of_the_busiest_link"

    # Constraints
    for group, workers in enumerate(alike.values()):
        model += pulp.lpSum(x[group]) == len(workers), f"sends_{group}"
    for switch, taken in z.items():
        model += pulp.lpSum(taken) == 1, f"forwards_{switch}"
    flows = flows_of(zip([*alike, *onward.values()], [*x, *z.values()], strict=True))
    widest = max(fabric.capacities_bps.values())
    for number, (link, own) in enumerate(flows.items()):
        model += pulp.lpSum(own) <= load * (fabric.capacities_bps[link] / widest), f"carries_{number}"
    solve(model, SolverOptions(options.solver, options.time_limit_s, options.gap, options.seed))

    taken_by: dict[str, int] = {}
    for workers, counts in zip(alike.values(), x, strict=True):
        numbers = [path for path, count in enumerate(counts) for _ in range(round(count.varValue))]
        taken_by |= dict(zip(workers, numbers, strict=True))
    return (
        [own[taken_by[worker]] for worker, own in possible.items()],
        {s: max(zip(z[s], paths, strict=True), key=lambda each: each[0].varValue)[1] for s, paths in onward.items()},
    )


def flows_of(routed: Iterable[tuple[Sequence[Path], Sequence[Any]]]) -> dict[DirectedLink, list[Any]]:
    """By link, the variables that count flows over it, given paths and the variable of each."""
    flows: dict[DirectedLink, list[Any]] = defaultdict(list)
    for paths, variables in routed:
        for path, variable in zip(paths, variables, strict=True):
            for link in pairwise(path):
                flows[link].append(variable)
    return flows
