"""Two jobs whose trees share all switches and a PS, and two hosts that have a part in neither."""

from __future__ import annotations

from inakit.planner.core.plan import AggregationTree, Aggregator, Branch, Plan, PlannedTree, SolverOutcome
from inakit.planner.core.problem import Job, Problem
from inakit.planner.trees.headroom import with_policy
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch, contiguous_pipelines
from inakit.traffic.wire.packet_format import FRAGMENT

LEAVES = ("leaf1", "leaf2")
SPINE = "spine"
AT = {
    "leaf1": ("a1", "a2", "b1", "b2", "outsider"),
    "leaf2": ("a3", "a4", "b3"),
    "spine": ("ps1", "ps2", "ps3", "stranger"),
}
WORKERS = {1: ("a1", "a2", "a3", "a4"), 2: ("b1", "b2", "b3")}
SERVERS = {1: ("ps1", "ps2"), 2: ("ps2", "ps3")}
"""A tree of each job ends at each of its servers."""
CAPACITY_BPS = 20e6
SUMS = {"leaf1": 101, "leaf2": 102, "spine": 103}
"""The labels of the aggregators, in every tree."""
SLOTS = 16


def fabric_of() -> Fabric:
    """Hosts at ports 1 and up of their switch, the leaves at the spine's 11 and 12, the spine at the leaves' 10."""
    switches = tuple(
        Switch(name, tier, contiguous_pipelines(13, 1), aggregator_slots=SLOTS)
        for name, tier in (("leaf1", 1), ("leaf2", 1), ("spine", 2))
    )
    hosts = tuple(Host(host) for found in AT.values() for host in found)
    links = [
        Link(host, switch, 0, port, CAPACITY_BPS, CAPACITY_BPS)
        for switch, found in AT.items()
        for port, host in enumerate(found, start=1)
    ]
    links += [Link(leaf, SPINE, 10, 11 + place, CAPACITY_BPS, CAPACITY_BPS) for place, leaf in enumerate(LEAVES)]
    return Fabric("shared", hosts, switches, tuple(links))


def tree_of(job: int, number: int) -> AggregationTree:
    """Every switch sums. Its slots are not yet assigned."""
    labels = dict(enumerate(WORKERS[job], start=1))
    below = {leaf: tuple(label for label, worker in labels.items() if worker in AT[leaf]) for leaf in LEAVES}
    aggregators = [Aggregator(SUMS[leaf], leaf, 0, below[leaf], 0, 1) for leaf in LEAVES]
    aggregators.append(Aggregator(SUMS[SPINE], SPINE, 0, tuple(SUMS[leaf] for leaf in LEAVES), 0, 1))
    branches = [Branch(label, SUMS[leaf], (labels[label], leaf)) for leaf in LEAVES for label in below[leaf]]
    branches += [Branch(SUMS[leaf], SUMS[SPINE], (leaf, SPINE)) for leaf in LEAVES]
    server = SERVERS[job][number - 1]
    branches.append(Branch(SUMS[SPINE], 0, (SPINE, server)))
    return AggregationTree(number, server, labels, tuple(aggregators), tuple(branches), priority=job)


def two_jobs(policy: str, *, fragments: int = 40, iterations: int = 2, rate_bps: float = 2e6) -> tuple[Problem, Plan]:
    """A job of four workers and one of three, each with two trees over all three switches."""
    size = fragments * 4 * FRAGMENT.values
    jobs = tuple(Job(job, WORKERS[job], SERVERS[job], size, iterations=iterations) for job in WORKERS)
    trees = tuple(PlannedTree(job, 0.5, rate_bps / 2, tree_of(job, number)) for job in WORKERS for number in (1, 2))
    problem = Problem(fabric_of(), jobs, FRAGMENT)
    return problem, with_policy(problem, Plan("by hand", "shared", trees, SolverOutcome("heuristic", 0.0)), policy)
