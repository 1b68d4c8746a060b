"""What no way of summing in hosts exceeds, whatever sends what to whom: by counting what has to leave hosts and racks.

Hosts that sum n gradients for n workers receive 2 (n - 1) of them in all: n - 1 to sum them, and n - 1 to give every
other worker the sum, even where switches multicast it (the argument of Patarasuk and Yuan, *Bandwidth optimal
all-reduce algorithms for clusters of workstations*, 2009). At least one gradient leaves every rack that has some of a
job's workers, but not all.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from inakit.planner.core.problem import Job, Problem
from inakit.topo.fabric.fabric import Fabric


def host_bound_bps(problem: Problem) -> float:
    """A rate in bit/s that no way of summing in hosts gives to all jobs.

    Jobs share racks, so that what they need of a rack's uplinks adds up. What its hosts receive bounds a job alone.
    """
    fabric = problem.fabric
    leaving: dict[str, float] = defaultdict(float)
    for job in problem.jobs:
        for rack in racks_left(fabric, job):
            leaving[rack] += 1
    by_racks = [uplinks_bps(fabric, rack) / gradients for rack, gradients in leaving.items()]
    return min([*by_racks, *(by_hosts_bps(fabric, job) for job in problem.jobs)])


def racks_left(fabric: Fabric, job: Job) -> list[str]:
    """The switches that have some of a job's workers, but not all."""
    racks = Counter(fabric.tor_of(worker) for worker in job.workers)
    return list(racks) if len(racks) > 1 else []


def by_hosts_bps(fabric: Fabric, job: Job) -> float:
    """The links to all workers and PSs together over what these hosts receive together."""
    links = [fabric.capacities_bps[fabric.tor_of(host), host] for host in (*job.workers, *job.servers)]
    return sum(links) / max(1, 2 * (len(job.workers) - 1))


def uplinks_bps(fabric: Fabric, switch: str) -> float:
    """The links from a switch to other switches, together."""
    peers = [peer for peer in fabric.neighbors[switch] if peer in fabric.switch_by_name]
    return sum(fabric.capacities_bps[switch, peer] for peer in peers)
