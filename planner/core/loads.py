"""How many flows of a set of trees each link carries, and the sending rate that this allows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from math import inf

from inakit.planner.core.plan import AggregationTree
from inakit.planner.core.slots import Inp
from inakit.topo.fabric.fabric import DirectedLink, Fabric


def flow_counts(trees: Iterable[AggregationTree]) -> Counter[DirectedLink]:
    """Flows per directed link: one for every branch over it (ARO's y, summed over tasks)."""
    return Counter(link for tree in trees for branch in tree.branches for link in branch.links)


def aggregated_flows(trees: Iterable[AggregationTree]) -> Counter[str]:
    """By switch, the number of flows that its aggregators take in."""
    counts: Counter[str] = Counter()
    for tree in trees:
        for aggregator in tree.aggregators:
            counts[aggregator.switch] += len(aggregator.children)
    return counts


def summed_flows(trees: Iterable[AggregationTree]) -> Counter[Inp]:
    """By input pipeline, the number of flows that its aggregators take in."""
    return Counter((a.switch, a.pipeline) for tree in trees for a in tree.aggregators for _ in a.children)


def equal_rate_bps(fabric: Fabric, trees: Iterable[AggregationTree]) -> float:
    """The highest rate in bit/s that every worker can send at in every tree, the same in all."""
    return sending_rate_bps(fabric, ((tree, 1.0) for tree in trees))


def sending_rate_bps(fabric: Fabric, trees: Iterable[tuple[AggregationTree, float]]) -> float:
    """The highest sending rate in bit/s, where each tree's flows have the share of it that stands beside the tree.

    This is ARO's constraint (10) with one rate r: the least capacity per share, of all links, of the aggregators of
    every switch that has an `aggregation_rate_bps` (InArt's switch capacity constraint), and of every pipeline whose
    chip recirculates what it sums.
    """
    links: dict[DirectedLink, float] = defaultdict(float)
    switches: dict[str, float] = defaultdict(float)
    pipelines: dict[Inp, float] = defaultdict(float)
    for tree, share in trees:
        for link, count in flow_counts([tree]).items():
            links[link] += share * count
        for switch, count in aggregated_flows([tree]).items():
            switches[switch] += share * count
        for inp, count in summed_flows([tree]).items():
            pipelines[inp] += share * count
    rates = [fabric.capacities_bps[link] / load for link, load in links.items()]
    rates += [(fabric.switch_by_name[switch].aggregation_rate_bps or inf) / load for switch, load in switches.items()]
    rates += [fabric.switch_by_name[inp[0]].pipeline_summing_bps / load for inp, load in pipelines.items()]
    return min(rates, default=0.0)
