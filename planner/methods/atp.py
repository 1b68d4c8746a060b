"""ATP: gradients are summed at ToR switches only, and routed by ECMP, or as InArt says by the least loaded links.

Each worker's ToR sums in every ingress pipeline. Its sums take a path drawn by hash among the shortest ones, as does
the flow of a worker under a ToR without INA. The PS's ToR is ATP's second level: it sums the packets of the racks.
ARO's Figure 3a has this second level: with the sum of l0 the bottleneck there is s1-l0, and the rate 1/2.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import floor, inf

from inakit.planner.core.loads import equal_rate_bps, least_load
from inakit.planner.core.method import Options
from inakit.planner.core.plan import AggregationTree, Plan
from inakit.planner.core.problem import Problem
from inakit.planner.trees.from_paths import plan_from_paths, plan_of_trees
from inakit.planner.trees.summed_once import SplitTask, Way, entrance, split_equally, tree_of
from inakit.planner.trees.unfolding import unreachable
from inakit.topo.fabric.fabric import DirectedLink, Fabric, Path
from inakit.topo.fabric.up_down import up_down_paths


@dataclass(frozen=True)
class AtpOptions(Options):
    """`second_level`: whether a PS's ToR sums. Without it this ToR sums no packets at all."""

    second_level: bool = True


def plan(problem: Problem, options: AtpOptions) -> Plan:
    """ATP's plan. A job with several PSs splits its gradient equally. The same seed gives the same paths."""
    fabric = problem.fabric
    tors = {fabric.tor_of(host) for job in problem.jobs for host in job.workers}
    server_tors = {fabric.tor_of(host) for job in problem.jobs for host in job.servers}
    chosen = tors | server_tors if options.second_level else tors - server_tors
    paths = ecmp_paths(problem, options.seed)
    return plan_from_paths(problem, paths, chosen & fabric.ina_names, method="atp", window=options.window)


def plan_geryon(problem: Problem, options: Options) -> Plan:
    """Geryon as GOAT compares with it: ATP's routes without aggregation."""
    return plan_from_paths(problem, ecmp_paths(problem, options.seed), method="geryon", window=options.window)


def plan_tor(problem: Problem, options: Options) -> Plan:
    """ATP as InArt compares with it (2.1, 5.1.2): every worker's ToR sums its rack's gradients, no other switch sums
    them again, and sums go to the PSs by the least loaded links.

    If a ToR's aggregation rate is too low for all flows of its rack, the others continue unsummed. The numbers of
    summed flows are those with the highest equal rate.
    """
    tasks, fabric = split_equally(problem), problem.fabric
    flows = Counter(fabric.tor_of(worker) for task in tasks for worker in task.job.workers)
    limits = {rack: fabric.switch_by_name[rack].aggregation_rate_bps for rack in flows}
    # The rates of a flow (bit/s) at which a ToR can sum one flow fewer; the first is 0, at which every ToR sums all.
    rates = [0.0, *sorted({limit / n for rack, limit in limits.items() if limit for n in range(1, flows[rack] + 1)})]
    choices = (rack_trees(fabric, tasks, list(flows), rate) for rate in rates)
    best = max(choices, key=lambda trees: equal_rate_bps(fabric, trees))
    trees = [(task.job.number, task.share, tree) for task, tree in zip(tasks, best, strict=True)]
    return plan_of_trees("atp-tor", problem, trees, options.window)


def rack_trees(
    fabric: Fabric, tasks: Sequence[SplitTask], racks: Sequence[str], rate_bps: float
) -> list[AggregationTree]:
    """A tree for each task. A worker's ToR sums its flow as long as the ToR can sum one more at this rate.

    Sums, then unsummed flows, take one after another the path that is least loaded at that point.
    """
    summed: Counter[str] = Counter()
    ways: dict[tuple[int, int], Way] = {}
    unsummed: list[tuple[str, int, int]] = []
    for rack, row, column in in_turn(fabric, tasks, racks):
        switch = fabric.switch_by_name[rack]
        limit = switch.aggregation_rate_bps
        most = floor(limit / rate_bps * (1 + 1e-9)) if limit and rate_bps else inf
        if switch.ina and summed[rack] < most:
            summed[rack] += 1
            ways[column, row] = Way(entrance(fabric, tasks[column].job.workers[row]), (rack,))
        else:
            unsummed.append((rack, row, column))
    links: Counter[DirectedLink] = Counter()

    def least_loaded(rack: str, task: SplitTask) -> Path:
        _, path = least_load(fabric, links, task.unfolded.paths(rack))
        links.update(pairwise(path))
        return path

    sums = dict.fromkeys((column, way.inp) for (column, _), way in sorted(ways.items()) if way.inp)
    onward = {(column, inp): least_loaded(inp[0], tasks[column]) for column, inp in sums}
    for rack, row, column in unsummed:
        ways[column, row] = Way(None, least_loaded(rack, tasks[column]))
    trees = []
    for column, task in enumerate(tasks):
        chosen = [ways[column, row] for row in range(len(task.job.workers))]
        own = {inp: path for (number, inp), path in onward.items() if number == column}
        trees.append(tree_of(fabric, task, 1, chosen, own))
    return trees


def in_turn(fabric: Fabric, tasks: Sequence[SplitTask], racks: Iterable[str]) -> list[tuple[str, int, int]]:
    """The flows as (rack, position of the worker, position of the task), in the order in which ToRs sum them.

    A rack's workers take turns, and so do its PSs; each rack begins with another PS, so that all PSs get about equally
    many unsummed flows.
    """
    order = {rack: number for number, rack in enumerate(dict.fromkeys(racks))}
    flows = [
        (fabric.tor_of(worker), row, column)
        for column, task in enumerate(tasks)
        for row, worker in enumerate(task.job.workers)
    ]
    return sorted(flows, key=lambda flow: (flow[1], (flow[2] + order[flow[0]]) % len(tasks)))


def ecmp_paths(problem: Problem, seed: int) -> dict[int, list[Path]]:
    return {
        job.number: [
            ecmp_path(problem.fabric, worker, server, seed) for worker in job.workers for server in job.servers
        ]
        for job in problem.jobs
    }


def ecmp_path(fabric: Fabric, source: str, server: str, seed: int) -> Path:
    """A shortest path, drawn by a hash of the seed and the pair."""
    paths = up_down_paths(fabric, source, server)
    if not paths:
        raise unreachable(source, server)
    return random.Random(f"{seed} {source} {server}").choice(paths)
