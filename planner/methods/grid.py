"""GRID as ARO compares with it (ARO, section IV-A): an aggregator for every worker by a linear program, then routes.

A gradient is summed at most once. The program contains aggregators but not the network between them, so it uses all of
them, and the PS's link gets a flow from each INP of each. The paper has 1.75 Gbit/s at its default setting; `grid` has
3.6. With the PS's link in the program it would be 5.0 when workers draw by the fractions that the program gives them,
and 13 when each takes its largest.

`grid-capped` has 1.6 there. It counts each gradient at the rate of its worker's link, and treats the processing rate of
a switch as a hard limit of 32 gradients: gradients beyond the limit go to the PS unsummed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class GridOptions(Options):
    """The processing rate of a switch, as a multiple of a worker's link: ARO sets 3200 Gbit/s for links of 100."""

    links_processed: float = 32.0


Candidates = Mapping[str, Mapping[str, Sequence[Way]]]
"""Each worker's ways, by the switch that sums; the key "" has those to the PS."""

Choose = Callable[[Candidates, GridOptions, random.Random], Mapping[str, str]]
"""The switch that sums each worker's gradient, or "" for none."""


def plan(problem: Problem, options: GridOptions) -> Plan:
    """GRID's plan, each task separately, all flows at one rate. Raises `InputError` for a worker that cannot reach its
    PS.
    """
    return routed(problem, options, "grid", by_fractions)


def plan_capped(problem: Problem, options: GridOptions) -> Plan:
    """GRID's plan where a switch sums only as many gradients as it can process at the rate of their links."""
    return routed(problem, options, "grid-capped", within_capacity)


def routed(problem: Problem, options: GridOptions, method: str, choose: Choose) -> Plan:
    """The plan with one tree for each task, whose aggregators `choose` selects, at the best equal rate of all flows."""
    trees = [
        (task.job.number, task.share, grid_tree(problem.fabric, task, options, choose))
        for task in split_equally(problem)
    ]
    return plan_of_trees(method, problem, trees, options.window)


def grid_tree(fabric: Fabric, task: SplitTask, options: GridOptions, choose: Choose) -> AggregationTree:
    """The task's tree: each worker takes the least loaded way to its chosen aggregator, and each sum the least loaded
    onward.

    The load of a way is the number of flows on its busiest link.
    """
    loads: Counter[DirectedLink] = Counter()

    def take(paths: Iterable[Path]) -> Path:
        path = min(paths, key=lambda path: max((loads[link] for link in pairwise(path)), default=0))
        loads.update(pairwise(path))
        return path

    candidates = {worker: by_switch(fabric, task, worker) for worker in task.job.workers}
    draw = random.Random(f"{options.seed} {task.job.number} {task.server}")
    switches = choose(candidates, options, draw)
    chosen = []
    for worker, possible in candidates.items():
        ways_of = {(worker, *way.path): way for way in possible[switches[worker]]}
        chosen.append(ways_of[take(ways_of)])
    onward = {way.inp: take(list(task.unfolded.paths(way.inp[0]))) for way in chosen if way.inp}
    return tree_of(fabric, task, 1, chosen, onward)


def by_switch(fabric: Fabric, task: SplitTask, worker: str) -> dict[str, list[Way]]:
    """The worker's ways by the switch that sums; the key "" has those to the PS."""
    found: dict[str, list[Way]] = {}
    for way in ways(fabric, task, worker):
        found.setdefault(way.inp[0] if way.inp else "", []).append(way)
    return found


def summing(possible: Mapping[str, Sequence[Way]]) -> list[str]:
    """The switches that can sum; "" for the PS only if there are none."""
    return [name for name in possible if name] or [""]


def by_fractions(candidates: Candidates, options: GridOptions, draw: random.Random) -> dict[str, str]:
    """Each worker's switch by randomised rounding: drawn by the fractions that the program gives the worker."""
    names = {worker: summing(possible) for worker, possible in candidates.items()}
    fractions = assign(names, options)
    return {worker: draw.choices(own, [fractions[worker, name] for name in own])[0] for worker, own in names.items()}


def within_capacity(candidates: Candidates, options: GridOptions, draw: random.Random) -> dict[str, str]:
    """Each worker's switch, drawn with equal chances; "" for the PS if this switch has reached its processing rate."""
    drawn: Counter[str] = Counter()
    chosen = {}
    for worker, possible in candidates.items():
        name = draw.choice(summing(possible))
        drawn[name] += 1
        chosen[worker] = name if drawn[name] <= options.links_processed else ""
    return chosen


def assign(candidates: Mapping[str, Sequence[str]], options: GridOptions) -> dict[tuple[str, str], float]:
    """GRID's relaxed model. By (worker, switch), the fraction of the worker's gradient that the switch sums.

    Rates are in units of the slowest worker's link.
    """
    model = pulp.LpProblem("grid", pulp.LpMaximize)

    # Variables
    r = model.add_variable("r", 0, 1)
    f: dict[tuple[str, str], Any] = {
        (worker, name): model.add_variable(f"f_{worker}_{name}", 0)
        for worker, names in candidates.items()
        for name in names
    }

    # Objective
    model += r, "sending_rate"

    # Constraints
    for worker, names in candidates.items():
        model += pulp.lpSum(f[worker, name] for name in names) == r, f"sends_{worker}"
    for name in dict.fromkeys(name for _, name in f):
        entering = pulp.lpSum(f[key] for key in f if key[1] == name)
        model += entering <= (options.links_processed if name else 1), f"processes_{name}"
    solve(model, SolverOptions(options.solver, options.time_limit_s, seed=options.seed))
    return {key: max(variable.varValue, 0.0) for key, variable in f.items()}
