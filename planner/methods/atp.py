"""ATP: gradients are summed at ToR switches only, and routed by ECMP.

Each worker's ToR sums in every ingress pipeline, and what leaves it takes a path drawn by hash among the
shortest ones, as does a worker under a ToR without INA. The PS's ToR is ATP's second level: it sums what the
racks send it. ARO's Figure 3a shows it, for with l0's sum the bottleneck there is s1-l0 and the rate 1/2.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from planner.loads import equal_rate_bps
from planner.methods.method import Options
from planner.once import Task, Way, entrance, tasks_of, tree_of
from planner.plan import AggregationTree, Plan, Shard, SolverOutcome
from planner.problem import Job, Problem
from planner.routes import plan_from_paths
from planner.slots import assign_slots
from planner.unfold import Path, unreachable
from topo.fabric import Fabric
from topo.routing import up_down_paths


@dataclass(frozen=True)
class AtpOptions(Options):
    """`second_level`: whether a PS's ToR sums. Without it that ToR does not sum at all."""

    second_level: bool = True


def plan(problem: Problem, options: AtpOptions) -> Plan:
    """ATP's plan; a job with several PSs splits its gradient equally. Same seed, same paths."""
    paths = {job.number: list(ecmp_paths(problem.fabric, job, options.seed)) for job in problem.jobs}
    return plan_from_paths(problem, paths, aggregating_tors(problem, options), method="atp", window=options.window)


def plan_tor(problem: Problem, options: Options) -> Plan:
    """ATP as InArt compares with it (2.1): every worker's ToR sums its rack's gradients, and nothing sums them again.

    With its 18 racks, 4 PSs and 20 Mbit/s links that is 4 x 20 / 18 = 4.44 Mbit/s, the paper's figure.
    """
    tasks = tasks_of(problem)
    numbered = [(task.job.servers.index(task.server) + 1, task) for task in tasks]
    trees = assign_slots(
        problem.fabric,
        [rack_tree(problem.fabric, number, task, options.seed) for number, task in numbered],
        options.window,
    )
    rate = equal_rate_bps(problem.fabric, trees)
    shards = [
        Shard(task.job.number, n, task.share, rate, (tree,)) for (n, task), tree in zip(numbered, trees, strict=True)
    ]
    return Plan("atp-tor", problem.fabric.name, tuple(shards), SolverOutcome("heuristic", 0.0))


def rack_tree(fabric: Fabric, number: int, task: Task, seed: int) -> AggregationTree:
    """The tree whose workers are summed at their ToRs, if these are INA switches; a rack's flows share an ECMP path."""
    chosen, onward = [], {}
    for worker in task.job.workers:
        inp = entrance(fabric, worker)
        path = ecmp_path(fabric, inp[0], task.server, seed)
        if fabric.switch_by_name[inp[0]].ina:
            chosen.append(Way(inp, path[:1]))
            onward[inp] = path
        else:
            chosen.append(Way(None, path))
    return tree_of(task, number, chosen, onward)


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
    """The INA switches that hosts hang from."""
    fabric = problem.fabric
    tors = {fabric.tor_of(host) for job in problem.jobs for host in job.workers}
    server_tors = {fabric.tor_of(host) for job in problem.jobs for host in job.servers}
    chosen = tors | server_tors if options.second_level else tors - server_tors
    return {tor for tor in chosen if fabric.switch_by_name[tor].ina}
