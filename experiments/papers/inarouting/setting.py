"""INARouting's two published instances: 8 jobs of 7 workers and a PS on 64 servers, drawn with seed 42.

The public code draws each job's servers by `random.Random(42)`: 8 of those left, then a shuffle whose first is the PS.
In the leaf-spine it draws from the names in alphabetical order, in the fat-tree in the order of their numbers. Drawn in
this way the jobs are those of its files. Every link has 200 Gbit/s, and every switch sums 200 Gbit/s.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from inakit.planner.core.problem import Job, Problem
from inakit.topo.errors import unknown_name
from inakit.topo.fabric.clos import fat_tree, leaf_spine
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.variations import with_aggregators
from inakit.traffic.wire.frames import FRAGMENT

RATE_BPS = 200e9
JOBS, SERVERS_PER_JOB, SEED = 8, 8, 42
GRADIENT_BYTES = 548_000
"""Routes do not depend on it; the published instances have none."""

INSTANCES = ("leaf-spine", "fat-tree")
PUBLISHED_GBPS = {
    "leaf-spine": {"INARouting-Relax": 866.67, "INARouting-Opt": 900.0},
    "fat-tree": {"INARouting-Relax": 475.0, "INARouting-Opt": 533.33},
}
"""The totals that the public code's evaluation (water-filling) gives of the routes in its results. The fat-tree's
second is that of routes on which two jobs' gradients go round in cycles between an aggregation and a core switch."""


def instance(name: str) -> Problem:
    """One of the published instances. Raises `InputError` for an unknown name."""
    if name not in INSTANCES:
        raise unknown_name("INARouting's instance", name, INSTANCES)
    fabric = with_aggregators(fabric_of(name), rate_bps=RATE_BPS)
    hosts = [host.name for host in fabric.hosts]
    return Problem(fabric, drawn_jobs(sorted(hosts) if name == "leaf-spine" else hosts), FRAGMENT)


def fabric_of(name: str) -> Fabric:
    """The fabric of an instance: 8 spines, 8 leaves and 64 servers, or a fat-tree with k = 4 and 8 servers per edge."""
    if name == "leaf-spine":
        return leaf_spine(8, 8, 8, capacity_bps=RATE_BPS)
    return fat_tree(4, hosts_per_edge=8, capacity_bps=RATE_BPS)


def drawn_jobs(hosts: Sequence[str]) -> tuple[Job, ...]:
    """The jobs, drawn from the hosts in this order."""
    draw, left, jobs = random.Random(SEED), list(hosts), []
    for number in range(1, JOBS + 1):
        drawn = draw.sample(left, SERVERS_PER_JOB)
        left = [host for host in left if host not in drawn]
        server, *workers = shuffled(draw, drawn)
        jobs.append(Job(number, tuple(workers), (server,), GRADIENT_BYTES))
    return tuple(jobs)


def shuffled(draw: random.Random, items: Sequence[str]) -> list[str]:
    """The items in an order that is drawn."""
    found = list(items)
    draw.shuffle(found)
    return found
