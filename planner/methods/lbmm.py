"""LBMM, load balance min-min: no aggregation; each flow takes the path that loads the network least.

The load of a link is its flows over its capacity, and a path's cost is the highest load on it, including the flow.
Min-min order: of all flows not yet routed, the one whose best path costs least goes first.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from heapq import heapify, heappop, heapreplace
from itertools import pairwise, product

from inakit.planner.core.loads import least_load
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.trees.from_paths import plan_from_paths
from inakit.planner.trees.unfolding import unreachable
from inakit.topo.fabric.fabric import DirectedLink, Path
from inakit.topo.fabric.up_down import up_down_paths


def plan(problem: Problem, options: Options) -> Plan:
    """LBMM's plan; a job with several PSs splits its gradient equally (InArt 5.1.2).

    Ties go to the first flow and its first path. Costs only grow. So a flow that is first by its old cost, and still
    has this cost, is the cheapest. Raises `InputError` for a worker that cannot reach a PS.
    """
    cheapest = partial(least_load, problem.fabric, load := Counter[DirectedLink]())
    flows = []
    for job in problem.jobs:
        for worker, server in product(job.workers, job.servers):
            flows.append((job.number, up_down_paths(problem.fabric, worker, server)))
            if not flows[-1][1]:
                raise unreachable(worker, server)
    waiting = [(cheapest(paths)[0], number) for number, (_, paths) in enumerate(flows)]
    heapify(waiting)
    chosen: dict[int, list[Path]] = {job.number: [] for job in problem.jobs}
    while waiting:
        known, number = waiting[0]
        owner, paths = flows[number]
        now, path = cheapest(paths)
        if now > known:
            heapreplace(waiting, (now, number))
            continue
        heappop(waiting)
        chosen[owner].append(path)
        load.update(pairwise(path))
    return plan_from_paths(problem, chosen, method="lbmm", window=options.window)
