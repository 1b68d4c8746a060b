"""The networks on which exactness is tried: binary trees of switches, two workers at each leaf, a PS on top."""

from __future__ import annotations

from itertools import pairwise

from inakit.planner.core.plan import AggregationTree, Aggregator, Branch, Plan, Shard
from inakit.planner.core.problem import Job, Problem
from inakit.planner.core.solving import SolverOutcome
from inakit.planner.trees.under_policy import with_policy
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch
from inakit.traffic.wire.frames import FRAGMENT

FANOUT, SERVER = 2, "ps"
CAPACITY = 10
"""The capacity of every link, as a multiple of a worker's sending rate."""
UP, FIRST_CHILD = 1, 2
"""The port of every switch towards the PS, and the first of its ports towards the workers."""
PIPELINES = ((UP,), tuple(range(FIRST_CHILD, FIRST_CHILD + FANOUT)))
SUMS = 1
"""The pipelines of every switch, and the one that sums: not the first, which a program might take for any other."""


def fabric_of(levels: int, slots: int, capacity_bps: float) -> Fabric:
    """`levels` tiers of switches: s1 and the PS on top, FANOUT switches below each, FANOUT workers below the last."""
    names = switch_names(levels)
    switches = tuple(
        Switch(name, levels - level, PIPELINES, aggregator_slots=slots)
        for level, tier in enumerate(names)
        for name in tier
    )
    hosts = (Host(SERVER), *(Host(name) for name in worker_names(levels)))
    links = [Link(SERVER, "s1", 0, UP, capacity_bps, capacity_bps)]
    for upper, lower in zip(names, [*names[1:], worker_names(levels)], strict=True):
        for number, name in enumerate(lower):
            up = 0 if name.startswith("w") else UP
            links.append(
                Link(name, upper[number // FANOUT], up, FIRST_CHILD + number % FANOUT, capacity_bps, capacity_bps)
            )
    return Fabric(f"exactness-{levels}", hosts, switches, tuple(links))


def switch_names(levels: int) -> list[list[str]]:
    """The switches of each tier, from the top. Below position i of a tier are FANOUT positions, from FANOUT * i on."""
    return [[f"s{FANOUT**level + number}" for number in range(FANOUT**level)] for level in range(levels)]


def worker_names(levels: int) -> list[str]:
    """The workers w1, w2 and so on, `FANOUT` below each of the last switches."""
    return [f"w{number + 1}" for number in range(FANOUT**levels)]


def tree_of(levels: int, number: int, priority: int) -> AggregationTree:
    """The aggregation tree in which every switch is an aggregator. It has no slots assigned yet."""
    workers = worker_names(levels)
    labels = {name: label for label, name in enumerate(workers, start=1)}
    for tier in switch_names(levels):
        labels |= {name: 100 + int(name[1:]) for name in tier}
    tiers = [[SERVER], *switch_names(levels), workers]
    aggregators, branches = [], []
    for upper, lower in pairwise(tiers):
        for position, name in enumerate(lower):
            above = upper[position // FANOUT]
            branches.append(Branch(labels[name], labels.get(above, 0), (name, above)))
    for upper, lower in pairwise(tiers[1:]):
        for position, name in enumerate(upper):
            children = tuple(labels[child] for child in lower[FANOUT * position : FANOUT * (position + 1)])
            aggregators.append(Aggregator(labels[name], name, SUMS, children, 0, 1))
    by_label = {labels[name]: name for name in workers}
    return AggregationTree(number, SERVER, by_label, tuple(aggregators), tuple(branches), priority=priority)


def case(
    policy: str, levels: int, *, fragments: int, slots: int, rate_bps: float, trees: int = 2
) -> tuple[Problem, Plan]:
    """A job whose gradient of `fragments` fragments is shared by `trees` trees of different priorities, and its plan.

    Every link can carry what all workers send at `rate_bps` each, even if nothing is summed.
    """
    fabric = fabric_of(levels, slots, capacity_bps=CAPACITY * rate_bps)
    job = Job(1, tuple(worker_names(levels)), (SERVER,), fragments * 4 * FRAGMENT.values)
    shards = tuple(
        Shard(1, number, 1 / trees, rate_bps / trees, (tree_of(levels, number, number),))
        for number in range(1, trees + 1)
    )
    problem = Problem(fabric, (job,), FRAGMENT)
    return problem, with_policy(
        problem, Plan("exactness", fabric.name, shards, SolverOutcome("heuristic", 0.0)), policy
    )
