"""ATRO's input, a reconfigurable cluster, and its result: the wiring of the cluster and the flows on its links.

Every device is connected to an optical switching device, so one link can join any two devices except two hosts: workers
and the parameter server (PS) have one port each, every switch and aggregator has `ports`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.plan import MOST_BITS
from inakit.planner.trees.from_paths import sums_of
from inakit.topo.errors import InputError, PlanError

SERVER = "ps"
Link = tuple[str, str]


@dataclass(frozen=True)
class SwitchCluster:
    """The devices: `aggregators` sum flows, `common` switches do not. `layers` is L, the maximum number of switches on
    a way.

    An aggregator makes one flow of up to `children` flows, the bits of a slot's bitmap, so it sends n / `children`
    flows, rounded up, where n arrive. The paper has no such limit: it has one flow for any number.
    """

    aggregators: int
    common: int
    ports: int
    workers: int
    capacity_bps: float = 100e9
    layers: int = 5
    children: int = MOST_BITS

    def __post_init__(self) -> None:
        for what, size, least in (
            ("aggregators", self.aggregators, 0),
            ("common switches", self.common, 0),
            ("switches", self.aggregators + self.common, 1),
            ("ports", self.ports, 1),
            ("workers", self.workers, 1),
            ("layers", self.layers, 1),
            ("children of a slot", self.children, 2),
        ):
            if size < least:
                raise InputError(f"a cluster with {what} = {size}: at least {least} is expected")
        if not self.capacity_bps > 0:
            raise InputError(f"a capacity of {self.capacity_bps:g} bit/s: it must be greater than 0")

    @cached_property
    def aggregator_names(self) -> tuple[str, ...]:
        return tuple(f"agg{i}" for i in range(1, self.aggregators + 1))

    @cached_property
    def common_names(self) -> tuple[str, ...]:
        return tuple(f"cs{i}" for i in range(1, self.common + 1))

    @property
    def switch_names(self) -> tuple[str, ...]:
        return self.aggregator_names + self.common_names

    @cached_property
    def worker_names(self) -> tuple[str, ...]:
        return tuple(f"w{i}" for i in range(1, self.workers + 1))


@dataclass(frozen=True)
class ClusterWiring:
    """A wiring: `flows[u, v]` on the link from u to v, at least 1 (the paper's y), and `layer[u]`, l_u.

    Only links that carry flows exist. The PS is `ps`, and its layer counts as 0.
    """

    flows: dict[Link, int]
    layer: dict[str, int]

    @property
    def most_flows(self) -> int:
        """The flows on the busiest link. The rate is a link's capacity divided by them."""
        return max(self.flows.values())

    @cached_property
    def next_hops(self) -> dict[str, dict[str, int]]:
        """For every sending node, its peers and its flows to each of them."""
        hops: dict[str, dict[str, int]] = {}
        for (node, peer), count in self.flows.items():
            hops.setdefault(node, {})[peer] = count
        return hops

    def inflow(self, node: str) -> int:
        return sum(count for (_, peer), count in self.flows.items() if peer == node)

    def outflow(self, node: str) -> int:
        return sum(self.next_hops.get(node, {}).values())


def check_wiring(cluster: SwitchCluster, wiring: ClusterWiring) -> None:
    """Raise `PlanError` unless the wiring keeps the paper's constraints (4), (6) to (10), (13) and (17) to (20)."""

    def expect(holds: bool, node: str, rule: str) -> None:
        if not holds:
            raise PlanError(f"wiring of {cluster.workers} workers: '{node}' breaks the rule that {rule}")

    switches = set(cluster.switch_names)
    ports = Counter(node for link in {frozenset(link) for link in wiring.flows} for node in link)
    for worker in cluster.worker_names:
        one = (ports[worker], wiring.outflow(worker), wiring.inflow(worker)) == (1, 1, 0)
        expect(one, worker, "a worker sends one flow over its one link (7, 8)")
    silent = ports[SERVER] == 1 and not wiring.outflow(SERVER)
    expect(silent, SERVER, "the PS has one link, and sends no gradients (7, 8)")
    for node in cluster.switch_names:
        expect(ports[node] <= cluster.ports, node, f"it has {cluster.ports} ports (7)")
        received = wiring.inflow(node)
        sums = sums_of(received, cluster.children) if node in cluster.aggregator_names else received
        rule = f"an aggregator sends one flow for {cluster.children}, a common switch what it gets (9, 10, 13)"
        expect(wiring.outflow(node) == sums, node, rule)
    for node, layer in wiring.layer.items():
        expect(1 <= layer <= cluster.layers, node, f"layers are 1 to {cluster.layers} (18)")
    for node, peer in wiring.flows:
        expect(bool({node, peer} & switches), node, "no two hosts are linked (4)")
        if node in switches and peer == SERVER:
            expect(wiring.layer[node] == 1, node, "a switch that sends to the PS is in layer 1 (19)")
        if node in switches and peer in switches:
            expect(wiring.layer[node] > wiring.layer[peer], node, "a switch sends to a lower layer (20)")


# -- An upper bound, by counting, on the workers that a cluster can carry when links have at most t flows.
#
# Let u be an aggregator with eta ports. It sends one flow over one of them; K_u of the others lead to common switches
# and bring up to t flows each, the rest bring one flow each, because workers and aggregators send one. With p flows at
# the PS, n workers need n - p = sum of (in_u - 1): flows that are not summed arrive. So, with K links from common
# switches to aggregators, and F flows over them,
#
#     n <= p + A (eta - 2) + F - K.
#
# Common switches must receive those F flows, one per port. m of them that are joined by at least m - 1 links of their
# own have m eta - 2 (m - 1) other ports, for K links and F entries; F <= t K, and K <= A m, because two switches have
# at most one link. A PS at a common switch takes one more port, and p <= t of the entries; that switch is in layer 1
# and has no other destination, so K <= A (m - 1). A PS at an aggregator has p = 1. Dynamic programming finds the best
# division of the common switches into such groups, and of the aggregators' ports among them.
#
# An aggregator that gets more flows than a slot has children sends more than one. Each additional flow adds as much
# where it arrives as it takes where it leaves, so this bound stays true. A second one ignores the ports of common
# switches: with c children and l links to others an aggregator gets in_u <= t min(eta - l, c l) flows, and
#
#     n <= p + A max_l (in_u - in_u / c),
#
# rounded, with p <= t. In the order of layers, the first aggregator's flows all reach the PS, so there are at most t,
# as with l = 1; the next ones have links to those before them and to common switches.
#
# Layers are counted only in clusters of one or two layers, and cyclic flows are not excluded. So the bound can exceed
# the best wiring.

Gains = NDArray[np.int64]
"""`gains[K]`: the maximum of F - K plus the PS's flows with K links to aggregators."""

IMPOSSIBLE = -(1 << 40)
"""The gain of an impossible wiring, low enough to stay lowest in sums."""


def most_workers_bound(cluster: SwitchCluster, t: int) -> float:
    """An upper bound on the workers of any wiring with at most `t` flows on every link."""
    # Aggregators of one port lower the bound, so it is also computed without any.
    most = max(with_aggregators(cluster, t, number) for number in {0, cluster.aggregators})
    hosts = (cluster.aggregators + cluster.common) * cluster.ports - 1
    return max(0, min(most, hosts, few_layers(cluster, t), few_children(cluster, t)))


def few_children(cluster: SwitchCluster, t: int) -> int:
    """The maximum number of workers given the children of a slot, counting no ports of common switches."""

    def most(links: int) -> int:  # the flows that an aggregator with this number of links to others gains
        received = max(0, min(t * (cluster.ports - links), t * links * cluster.children))
        return received - sums_of(received, cluster.children)

    below = [1, *(before + cluster.common for before in range(1, cluster.aggregators))][: cluster.aggregators]
    return t + sum(max(map(most, range(1, max(1, others) + 1))) for others in below)


def few_layers(cluster: SwitchCluster, t: int) -> float:
    """The maximum number of workers of a cluster with one or two layers; infinite with more layers.

    Two layers are the PS's switch, and under it switches with nothing but workers. An aggregator under the PS's switch
    brings `full` workers for a flow per slot's children, a common switch at most as many as its link holds.
    """
    full, aggregated = cluster.ports - 1, t * cluster.children
    if cluster.layers == 1:
        return max(min(aggregated, full) if cluster.aggregators else 0, min(t, full) if cluster.common else 0)
    if cluster.layers > 2:
        return inf
    at_aggregator = two_layers(cluster, t, aggregated, cluster.aggregators - 1, cluster.common)
    at_common = two_layers(cluster, t, t, cluster.aggregators, cluster.common - 1)
    return max(at_aggregator if cluster.aggregators else 0, at_common if cluster.common else 0)


def two_layers(cluster: SwitchCluster, t: int, flows: int, aggregators: int, common: int) -> int:
    """The maximum number of workers whose PS is at a switch that takes `flows`, with these switches under it."""
    full = cluster.ports - 1
    brought = [min(cluster.children, full - first) for first in range(0, full, cluster.children)][:t]  # by each flow
    best = 0
    for sums in range(min(aggregators, full) + 1):
        feeders = under(full - sums, [min(t, full)] * common)
        by_flow = sorted(brought * sums, reverse=True)
        for summed in range(sums, min(flows, len(by_flow)) + 1):
            best = max(best, sum(by_flow[:summed]) + min(flows - summed, feeders))
    return best


def under(ports: int, brought: list[int]) -> int:
    """The maximum number of workers on `ports` ports: each has one worker, or a switch with `brought` of them."""
    best = sorted(brought, reverse=True)[: max(0, ports)]
    return sum(max(1, workers) for workers in best) + max(0, ports - len(best))


def with_aggregators(cluster: SwitchCluster, t: int, aggregators: int) -> int:
    """The bound with this number of aggregators in use."""
    width = aggregators * max(0, cluster.ports - 1) + 1
    free = [group(cluster, t, aggregators, m, width) for m in range(cluster.common + 1)]
    top = [group(cluster, t, aggregators, m, width, has_server=True) for m in range(cluster.common + 1)]
    best = divide(free)
    found = IMPOSSIBLE
    if aggregators:
        found = 1 + int(best[-1].max())
    for m in range(1, cluster.common + 1):
        found = max(found, int(combine(top[m], best[cluster.common - m]).max()))
    return found + aggregators * (cluster.ports - 2)


def group(cluster: SwitchCluster, t: int, aggregators: int, m: int, width: int, *, has_server: bool = False) -> Gains:
    """The gains of m joined common switches, with or without the PS at one of them."""
    links = np.arange(width, dtype=np.int64)
    feeders = m - has_server
    if feeders < 0:
        return np.full(width, IMPOSSIBLE, dtype=np.int64)
    entries = m * cluster.ports - 2 * max(0, m - 1) - has_server - links
    gains = np.minimum(t * (links + has_server), entries) - links
    impossible = (entries < 0) | (links > aggregators * feeders)
    return np.where(impossible, IMPOSSIBLE, gains)


def divide(free: list[Gains]) -> list[Gains]:
    """`best[m]`: the gains of m common switches in the best division into groups."""
    best = [free[0]]
    for m in range(1, len(free)):
        best.append(np.max([free[m], *(combine(free[size], best[m - size]) for size in range(1, m))], axis=0))
    return best


def combine(first: Gains, second: Gains) -> Gains:
    """The best gains of two groups that together have K links."""
    width = len(first)
    sums = np.full(width, IMPOSSIBLE, dtype=np.int64)
    for links, gain in enumerate(first):
        if gain > IMPOSSIBLE // 2:
            sums[links:] = np.maximum(sums[links:], second[: width - links] + gain)
    return np.maximum(sums, IMPOSSIBLE)
