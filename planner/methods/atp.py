"""ATP: gradients are summed at ToR switches only, and routed by ECMP.

Each worker's ToR sums in every ingress pipeline. What leaves it takes a path drawn by hash among the shortest ones, as
does the flow of a worker under a ToR without INA. The PS's ToR is ATP's second level: it sums what the racks send it.
ARO's Figure 3a has this second level: with the sum of l0 the bottleneck there is s1-l0, and the rate 1/2.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor, inf

from inakit.planner.core.loads import equal_rate_bps
from inakit.planner.core.method import Options
from inakit.planner.core.plan import AggregationTree, Plan, PlannedTree, SolverOutcome
from inakit.planner.core.problem import Job, Problem
from inakit.planner.core.slots import assign_slots
from inakit.planner.trees.from_paths import plan_from_paths
from inakit.planner.trees.summed_once import SplitTask, Way, entrance, split_equally, tree_of
from inakit.planner.trees.unfolding import unreachable
from inakit.topo.fabric.fabric import Fabric, Path
from inakit.topo.fabric.up_down import up_down_paths


@dataclass(frozen=True)
class AtpOptions(Options):
    """`second_level`: whether a PS's ToR sums. Without it that ToR does not sum at all."""

    second_level: bool = True


def plan(problem: Problem, options: AtpOptions) -> Plan:
    """ATP's plan. A job with several PSs splits its gradient equally. The same seed gives the same paths."""
    paths = {job.number: list(ecmp_paths(problem.fabric, job, options.seed)) for job in problem.jobs}
    return plan_from_paths(problem, paths, aggregating_tors(problem, options), method="atp", window=options.window)


def plan_geryon(problem: Problem, options: Options) -> Plan:
    """Geryon as GOAT compares with it: ATP's routes, and nothing is summed."""
    paths = {job.number: list(ecmp_paths(problem.fabric, job, options.seed)) for job in problem.jobs}
    return plan_from_paths(problem, paths, set(), method="geryon", window=options.window)


def plan_tor(problem: Problem, options: Options) -> Plan:
    """ATP as InArt compares with it (2.1): every worker's ToR sums its rack's gradients, and nothing sums them again.

    Where a ToR's aggregation rate is too low for all flows of its rack, the others go on unsummed. Of all numbers of
    flows that ToRs may sum, those with the highest equal rate are taken.
    """
    tasks = split_equally(problem)
    racks = {problem.fabric.tor_of(worker): None for task in tasks for worker in task.job.workers}
    paths = {(r, t.server): ecmp_path(problem.fabric, r, t.server, options.seed) for r in racks for t in tasks}
    choices = (rack_trees(problem.fabric, tasks, paths, rate) for rate in critical_rates(problem.fabric, tasks))
    best = max(choices, key=lambda trees: equal_rate_bps(problem.fabric, trees))
    trees = assign_slots(problem.fabric, best, options.window)
    rate = equal_rate_bps(problem.fabric, trees)
    planned = [PlannedTree(task.job.number, task.share, rate, tree) for task, tree in zip(tasks, trees, strict=True)]
    return Plan("atp-tor", problem.fabric.name, tuple(planned), SolverOutcome("heuristic", 0.0))


def critical_rates(fabric: Fabric, tasks: Sequence[SplitTask]) -> list[float]:
    """The rates of a flow (bit/s) at which a ToR can sum one flow fewer; before them 0, at which every ToR sums all."""
    flows = Counter(fabric.tor_of(worker) for task in tasks for worker in task.job.workers)
    limits = {tor: fabric.switch_by_name[tor].aggregation_rate_bps for tor in flows}
    changes = {limit / n for tor, limit in limits.items() if limit for n in range(1, flows[tor] + 1)}
    return [0.0, *sorted(changes)]


def rack_trees(
    fabric: Fabric, tasks: Sequence[SplitTask], paths: Mapping[tuple[str, str], Path], rate_bps: float
) -> list[AggregationTree]:
    """A tree for each task. A worker's ToR sums its flow as long as the ToR can sum one more at this rate.

    A rack's flows to one PS share a path.
    """
    summed: Counter[str] = Counter()
    ways: dict[tuple[int, int], Way] = {}
    for rack, row, column in in_turn(fabric, tasks, [rack for rack, _ in paths]):
        task = tasks[column]
        path = paths[rack, task.server]
        if fabric.switch_by_name[rack].ina and summed[rack] < most_summed(fabric, rack, rate_bps):
            summed[rack] += 1
            ways[column, row] = Way(entrance(fabric, task.job.workers[row]), path[:1])
        else:
            ways[column, row] = Way(None, path)
    return [
        tree_of(
            fabric,
            task,
            task.job.servers.index(task.server) + 1,
            chosen := [ways[column, row] for row in range(len(task.job.workers))],
            {way.inp: paths[way.inp[0], task.server] for way in chosen if way.inp},
        )
        for column, task in enumerate(tasks)
    ]


def in_turn(fabric: Fabric, tasks: Sequence[SplitTask], racks: Iterable[str]) -> list[tuple[str, int, int]]:
    """The flows as (rack, position of the worker, position of the task), in the order in which ToRs sum them.

    A rack's workers are dealt in turn. So are its PSs, each rack beginning with another one, so that all PSs get about
    as many unsummed flows.
    """
    order = {rack: number for number, rack in enumerate(dict.fromkeys(racks))}
    flows = [
        (fabric.tor_of(worker), row, column)
        for column, task in enumerate(tasks)
        for row, worker in enumerate(task.job.workers)
    ]
    return sorted(flows, key=lambda flow: (flow[1], (flow[2] + order[flow[0]]) % len(tasks)))


def most_summed(fabric: Fabric, switch: str, rate_bps: float) -> float:
    """The most flows at this rate that a switch can sum; infinite for a switch without a limit, and for the rate 0."""
    limit = fabric.switch_by_name[switch].aggregation_rate_bps
    return floor(limit / rate_bps * (1 + 1e-9)) if limit and rate_bps else inf


def ecmp_paths(fabric: Fabric, job: Job, seed: int) -> Iterator[Path]:
    """One shortest path for each worker and PS, drawn by a hash of the seed and the pair."""
    for worker in job.workers:
        for server in job.servers:
            yield ecmp_path(fabric, worker, server, seed)


def ecmp_path(fabric: Fabric, source: str, server: str, seed: int) -> Path:
    """A shortest path, drawn by a hash of the seed and the pair."""
    paths = up_down_paths(fabric, source, server)
    if not paths:
        raise unreachable(source, server)
    return random.Random(f"{seed} {source} {server}").choice(paths)


def aggregating_tors(problem: Problem, options: AtpOptions) -> set[str]:
    """The INA switches among the ToRs of the workers and, with the second level, of the PSs."""
    fabric = problem.fabric
    tors = {fabric.tor_of(host) for job in problem.jobs for host in job.workers}
    server_tors = {fabric.tor_of(host) for job in problem.jobs for host in job.servers}
    chosen = tors | server_tors if options.second_level else tors - server_tors
    return {tor for tor in chosen if fabric.switch_by_name[tor].ina}
