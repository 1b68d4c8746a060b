"""LBMM, load balance min-min: no aggregation; each flow takes the path that loads the network least.

The load of a link is its flows over its capacity, and a path's cost is the highest load on it with the flow added.
Min-min order: of all flows not yet routed, the one whose best path costs least goes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heapreplace
from itertools import pairwise

from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.trees.from_paths import plan_from_paths
from inakit.planner.trees.unfolding import unreachable
from inakit.topo.fabric.fabric import DirectedLink, Fabric, Path
from inakit.topo.fabric.up_down import up_down_paths

Flow = tuple[int, str, str]
"""A job's number, a worker, a PS."""


def plan(problem: Problem, options: Options) -> Plan:
    """LBMM's plan; a job with several PSs splits its gradient equally (InArt 5.1.2)."""
    chosen = min_min(problem.fabric, candidates(problem))
    paths = {job.number: [path for flow, path in chosen.items() if flow[0] == job.number] for job in problem.jobs}
    return plan_from_paths(problem, paths, method="lbmm", window=options.window)


def candidates(problem: Problem) -> dict[Flow, list[Path]]:
    """The shortest up-down paths of every flow. Raises `InputError` when a flow has none."""
    found: dict[Flow, list[Path]] = {}
    for job in problem.jobs:
        for worker in job.workers:
            for server in job.servers:
                found[job.number, worker, server] = up_down_paths(problem.fabric, worker, server)
                if not found[job.number, worker, server]:
                    raise unreachable(worker, server)
    return found


def min_min(fabric: Fabric, flows: Mapping[Flow, list[Path]]) -> dict[Flow, Path]:
    """A path for each flow, the cheapest flow first. Ties go to the first flow and its first path.

    Costs only grow. So a flow that is first by what it once cost, and still costs as much, is the cheapest.
    """
    load: Counter[DirectedLink] = Counter()
    names = list(flows)
    waiting = [(cheapest(fabric, load, paths)[0], number) for number, paths in enumerate(flows.values())]
    heapify(waiting)
    chosen: dict[Flow, Path] = {}
    while waiting:
        known, number = waiting[0]
        now, path = cheapest(fabric, load, flows[names[number]])
        if now > known:
            heapreplace(waiting, (now, number))
            continue
        heappop(waiting)
        chosen[names[number]] = path
        load.update(pairwise(path))
    return chosen


def cheapest(fabric: Fabric, load: Counter[DirectedLink], paths: Iterable[Path]) -> tuple[tuple[float, float], Path]:
    """The first of the paths that cost least, with its cost."""
    return min(((cost(fabric, load, path), path) for path in paths), key=lambda option: option[0])


def cost(fabric: Fabric, load: Counter[DirectedLink], path: Path) -> tuple[float, float]:
    """The path's highest load with one more flow (flows per bit/s); then the sum of its loads, which decides ties."""
    loads = [(load[link] + 1) / fabric.capacities_bps[link] for link in pairwise(path)]
    return max(loads), sum(loads)
