"""The number of flows of a set of trees on each link, and the sending rate that this allows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from itertools import pairwise
from operator import itemgetter
from typing import TypeVar

from inakit.planner.core.plan import AggregationTree
from inakit.planner.core.slots import Inp, Resource, resource_bps
from inakit.topo.fabric.fabric import DirectedLink, Fabric, Path

Key = TypeVar("Key", bound=Hashable)


def sums_by_key(amounts: Iterable[tuple[Key, float]]) -> dict[Key, float]:
    sums: dict[Key, float] = defaultdict(float)
    for key, amount in amounts:
        sums[key] += amount
    return dict(sums)


def flow_counts(trees: Iterable[AggregationTree]) -> Counter[DirectedLink]:
    """Flows per directed link: one for every branch over it (ARO's y, summed over tasks)."""
    return Counter(link for tree in trees for branch in tree.branches for link in branch.links)


def aggregated_flows(trees: Iterable[AggregationTree]) -> Counter[str]:
    """By switch, the number of flows that its aggregators take in."""
    return Counter(a.switch for tree in trees for a in tree.aggregators for _ in a.children)


def summed_flows(trees: Iterable[AggregationTree]) -> Counter[Inp]:
    """By input pipeline, the number of flows that its aggregators take in."""
    return Counter(a.inp for tree in trees for a in tree.aggregators for _ in a.children)


def equal_rate_bps(fabric: Fabric, trees: Iterable[AggregationTree]) -> float:
    """The highest rate in bit/s that every worker can use in every tree, equal in all."""
    return sending_rate_bps(fabric, ((tree, 1.0) for tree in trees))


def sending_rate_bps(fabric: Fabric, trees: Iterable[tuple[AggregationTree, float]]) -> float:
    """The highest sending rate in bit/s if each tree's flows send the share of it that is given with the tree.

    This is ARO's constraint (10) with one rate r: the least capacity per share over all links, the aggregators of every
    switch with an `aggregation_rate_bps` (InArt's switch capacity constraint), and every pipeline whose chip
    recirculates the packets that it sums.
    """
    loads = resource_loads(trees).items()
    return min((resource_bps(fabric, resource) / load for resource, load in loads), default=0.0)


def resource_loads(trees: Iterable[tuple[AggregationTree, float]]) -> dict[Resource, float]:
    """The load of each link, switch and pipeline that trees use, if each tree's flows have the rate given with it."""
    loads: dict[Resource, float] = defaultdict(float)
    for tree, rate in trees:
        for counts in (flow_counts([tree]), aggregated_flows([tree]), summed_flows([tree])):
            for resource, count in counts.items():
                loads[resource] += rate * count
    return dict(loads)


def least_load(
    fabric: Fabric, flows: Mapping[DirectedLink, int], paths: Iterable[Path]
) -> tuple[tuple[float, float], Path]:
    """The first path of the least load for one more flow beside these, with its load.

    The load of a link is its flows over its capacity. That of a path is the highest of its links, then their sum.
    """
    capacities = fabric.capacities_bps

    def load(path: Path) -> tuple[float, float]:
        loads = [(flows.get(link, 0) + 1) / capacities[link] for link in pairwise(path)]
        return max(loads, default=0.0), sum(loads)

    return min(((load(path), path) for path in paths), key=itemgetter(0))
