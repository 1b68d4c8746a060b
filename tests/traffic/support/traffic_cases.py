"""Small problems and plans, written by hand, that the tests of traffic share."""

from __future__ import annotations

from collections.abc import Sequence

from inakit.planner.core.plan import AggregationTree, Aggregator, Branch, Plan, PlannedTree, SolverOutcome
from inakit.planner.core.problem import Job, Problem
from inakit.planner.core.slot_policies import DEFAULT_POLICY, by_timeouts
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch, contiguous_pipelines
from inakit.traffic.sockets.ports import HostPort
from inakit.traffic.wire.packet_format import FRAGMENT

RATE_BPS = 20e6
BY_TIMEOUTS = by_timeouts(DEFAULT_POLICY)
"""The networks in memory answer no questions."""


def two_level_fabric(workers: int, servers: int) -> Fabric:
    """Half the workers on each of two leaves, the PSs at the spine."""
    ports = workers + servers + 2
    switches = tuple(
        Switch(name, tier, contiguous_pipelines(ports, 1)) for name, tier in (("leaf1", 1), ("leaf2", 1), ("spine", 2))
    )
    hosts = tuple(Host(f"w{i}") for i in range(workers)) + tuple(Host(f"ps{i}") for i in range(servers))
    links = [Link(f"w{i}", leaf_of(i), 0, i + 1, RATE_BPS, RATE_BPS) for i in range(workers)]
    links += [Link(f"ps{i}", "spine", 0, i + 1, RATE_BPS, RATE_BPS) for i in range(servers)]
    links += [Link(f"leaf{i}", "spine", ports, servers + i, RATE_BPS, RATE_BPS) for i in (1, 2)]
    return Fabric("two-level", hosts, switches, tuple(links))


def leaf_of(worker: int) -> str:
    """The leaf of a worker."""
    return f"leaf{1 + worker % 2}"


def tree_of(
    number: int, workers: Sequence[str], root: str, levels: int, *, slots: int, first_slot: int = 0
) -> AggregationTree:
    """A tree with levels of aggregation: 0 none, 1 at the leaves, 2 also at the spine. Workers have labels from 1."""
    labels = {i + 1: name for i, name in enumerate(workers)}
    leaves = {
        leaf: [label for label, name in labels.items() if leaf_of(int(name[1:])) == leaf] for leaf in ("leaf1", "leaf2")
    }
    leaves = {leaf: children for leaf, children in leaves.items() if children}
    if levels == 0:
        branches = [Branch(label, 0, (name, leaf_of(int(name[1:])), "spine", root)) for label, name in labels.items()]
        return AggregationTree(number, root, labels, (), tuple(branches), policy=BY_TIMEOUTS)
    top = 101
    own = {leaf: 102 + i for i, leaf in enumerate(leaves)}
    aggregators = [
        Aggregator(own[leaf], leaf, 0, tuple(children), first_slot, slots) for leaf, children in leaves.items()
    ]
    branches = [Branch(c, own[leaf], (labels[c], leaf)) for leaf, children in leaves.items() for c in children]
    if levels == 1:
        branches += [Branch(own[leaf], 0, (leaf, "spine", root)) for leaf in leaves]
    else:
        aggregators.append(Aggregator(top, "spine", 0, tuple(own.values()), first_slot, slots))
        branches += [Branch(own[leaf], top, (leaf, "spine")) for leaf in leaves]
        branches.append(Branch(top, 0, ("spine", root)))
    return AggregationTree(number, root, labels, tuple(aggregators), tuple(branches), policy=BY_TIMEOUTS)


def plan_of(trees: Sequence[PlannedTree]) -> Plan:
    """A plan of these trees."""
    return Plan("by hand", "two-level", tuple(trees), SolverOutcome("heuristic", 0.0))


def one_job(
    *,
    workers: int = 4,
    servers: int = 1,
    levels: int = 2,
    slots: int = 16,
    fragments: int = 40,
    iterations: int = 1,
    rate_bps: float = RATE_BPS,
) -> tuple[Problem, Plan]:
    """A problem with one job and its plan, which has a tree for each PS; the last fragment is not full."""
    names = tuple(f"w{i}" for i in range(workers))
    roots = tuple(f"ps{i}" for i in range(servers))
    job = Job(1, names, roots, fragments * 4 * FRAGMENT.values - 8, iterations=iterations)
    problem = Problem(two_level_fabric(workers, servers), (job,), FRAGMENT)
    trees = [tree_of(i + 1, names, root, levels, slots=slots, first_slot=slots * i) for i, root in enumerate(roots)]
    return problem, plan_of([PlannedTree(1, 1 / servers, rate_bps / servers, tree) for tree in trees])


def ports_of(problem: Problem) -> list[HostPort]:
    """Ports that lead nowhere, for networks in memory."""
    return [
        HostPort(host.name, 0, "eth0", f"02:00:00:00:00:{i:02x}", f"10.0.0.{i}")
        for i, host in enumerate(problem.fabric.hosts, start=1)
    ]
