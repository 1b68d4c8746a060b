"""How many flows of a set of trees each link carries, and the sending rate that this allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import inf

from planner.plan import AggregationTree
from topo.fabric import Fabric


def flow_counts(trees: Iterable[AggregationTree]) -> Counter[tuple[str, str]]:
    """Flows per directed link: one for every branch over it (ARO's y, summed over tasks)."""
    return Counter(link for tree in trees for branch in tree.branches for link in branch.links)


def aggregated_flows(trees: Iterable[AggregationTree]) -> Counter[str]:
    """Flows that each switch's aggregators take in."""
    counts: Counter[str] = Counter()
    for tree in trees:
        for aggregator in tree.aggregators:
            counts[aggregator.switch] += len(aggregator.children)
    return counts


def equal_rate_bps(fabric: Fabric, trees: Iterable[AggregationTree]) -> float:
    """The highest rate in bit/s that every worker can send at in every tree, the same in all.

    ARO's constraint (10) with one r: the least capacity per flow, of links and, where a switch has an
    `aggregation_rate_bps`, of its aggregators (InArt's switch capacity constraint).
    """
    trees = tuple(trees)
    rates = [fabric.capacities_bps[link] / count for link, count in flow_counts(trees).items()]
    for switch, count in aggregated_flows(trees).items():
        rates.append((fabric.switch_by_name[switch].aggregation_rate_bps or inf) / count)
    return min(rates, default=0.0)
