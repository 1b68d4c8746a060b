"""ATP: gradients are summed at ToR switches only, and routed by ECMP.

Each worker's ToR sums in every ingress pipeline, and what leaves it takes a path drawn by hash among the
shortest ones, as does a worker under a ToR without INA. The PS's ToR is ATP's second level: it sums what the
racks send it. ARO's Figure 3a shows it, for with l0's sum the bottleneck there is s1-l0 and the rate 1/2.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from planner.methods.method import Options
from planner.plan import Plan
from planner.problem import Job, Problem
from planner.routes import plan_from_paths
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


def ecmp_paths(fabric: Fabric, job: Job, seed: int) -> Iterator[Path]:
    """One shortest path for each worker and PS, drawn by a hash of the seed and the pair."""
    for worker in job.workers:
        for server in job.servers:
            paths = up_down_paths(fabric, worker, server)
            if not paths:
                raise unreachable(worker, server)
            yield random.Random(f"{seed} {worker} {server}").choice(paths)


def aggregating_tors(problem: Problem, options: AtpOptions) -> set[str]:
    """The INA switches that hosts hang from."""
    fabric = problem.fabric
    tors = {fabric.tor_of(host) for job in problem.jobs for host in job.workers}
    server_tors = {fabric.tor_of(host) for job in problem.jobs for host in job.servers}
    chosen = tors | server_tors if options.second_level else tors - server_tors
    return {tor for tor in chosen if fabric.switch_by_name[tor].ina}
