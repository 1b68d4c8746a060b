"""What ATRO is given, a reconfigurable cluster, and what it finds: how to wire it, and the flows on the links.

Every device is connected to an optical switching device, so any two may be joined by one link, except two hosts:
workers and the parameter server (PS) have one port each, every switch and aggregator has `ports`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from inakit.topo.errors import InputError, PlanError

SERVER = "ps"
Link = tuple[str, str]


@dataclass(frozen=True)
class Cluster:
    """The devices: `aggregators` sum flows, `common` switches do not. `layers` is L, the most switches on a way."""

    aggregators: int
    common: int
    ports: int
    workers: int
    capacity_bps: float = 100e9
    layers: int = 5

    def __post_init__(self) -> None:
        for what, size, least in (
            ("aggregators", self.aggregators, 0),
            ("common switches", self.common, 0),
            ("switches", self.aggregators + self.common, 1),
            ("ports", self.ports, 1),
            ("workers", self.workers, 1),
            ("layers", self.layers, 1),
        ):
            if size < least:
                raise InputError(f"a cluster with {what} = {size}: at least {least} is expected")
        if not self.capacity_bps > 0:
            raise InputError(f"a capacity of {self.capacity_bps:g} bit/s: it must be greater than 0")

    @cached_property
    def aggregator_names(self) -> tuple[str, ...]:
        """The names of the aggregators: agg1, agg2 and so on."""
        return tuple(f"agg{i}" for i in range(1, self.aggregators + 1))

    @cached_property
    def common_names(self) -> tuple[str, ...]:
        """The names of the common switches: cs1, cs2 and so on."""
        return tuple(f"cs{i}" for i in range(1, self.common + 1))

    @property
    def switch_names(self) -> tuple[str, ...]:
        """The names of the aggregators, then of the common switches."""
        return self.aggregator_names + self.common_names

    @cached_property
    def worker_names(self) -> tuple[str, ...]:
        """The names of the workers: w1, w2 and so on."""
        return tuple(f"w{i}" for i in range(1, self.workers + 1))


@dataclass(frozen=True)
class Wiring:
    """How the cluster is wired: `flows[u, v]` on the link from u to v, at least 1 (the paper's y), and `layer[u]`, l_u.

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
        """For every node that sends, its peers and its flows to each of them."""
        hops: dict[str, dict[str, int]] = {}
        for (node, peer), count in self.flows.items():
            hops.setdefault(node, {})[peer] = count
        return hops

    def inflow(self, node: str) -> int:
        """The flows that come to a node."""
        return sum(count for (_, peer), count in self.flows.items() if peer == node)

    def outflow(self, node: str) -> int:
        """The flows that leave a node."""
        return sum(self.next_hops.get(node, {}).values())


def check_wiring(cluster: Cluster, wiring: Wiring) -> None:
    """Raise `PlanError` unless the wiring keeps the paper's constraints (6) to (10), (13) and (17) to (20)."""
    for node, rule in violations(cluster, wiring):
        raise PlanError(f"wiring of {cluster.workers} workers: '{node}' breaks the rule that {rule}")


def violations(cluster: Cluster, wiring: Wiring) -> Iterator[tuple[str, str]]:
    """Each broken rule with a node that breaks it."""
    ports = Counter(node for link in {frozenset(link) for link in wiring.flows} for node in link)
    for worker in cluster.worker_names:
        if (ports[worker], wiring.outflow(worker), wiring.inflow(worker)) != (1, 1, 0):
            yield worker, "a worker sends one flow over its one link (7, 8)"
    if ports[SERVER] != 1 or wiring.outflow(SERVER):
        yield SERVER, "the PS has one link, and sends no gradients (7, 8)"
    for node in cluster.switch_names:
        if ports[node] > cluster.ports:
            yield node, f"it has {cluster.ports} ports (7)"
        sums = node in cluster.aggregator_names
        if wiring.outflow(node) != (min(1, wiring.inflow(node)) if sums else wiring.inflow(node)):
            yield node, "an aggregator sends one flow if it gets any, a common switch what it gets (9, 10, 13)"
    yield from layer_violations(cluster, wiring)


def layer_violations(cluster: Cluster, wiring: Wiring) -> Iterator[tuple[str, str]]:
    """The broken rules (4) and (18) to (20), each with a node that breaks it."""
    switches = set(cluster.switch_names)
    for node, layer in wiring.layer.items():
        if not 1 <= layer <= cluster.layers:
            yield node, f"layers are 1 to {cluster.layers} (18)"
    for node, peer in wiring.flows:
        if node in switches and peer == SERVER and wiring.layer[node] != 1:
            yield node, "who sends to the PS is in layer 1 (19)"
        if node in switches and peer in switches and wiring.layer[node] <= wiring.layer[peer]:
            yield node, "a switch sends to a lower layer (20)"
        if node not in switches and peer not in switches:
            yield node, "no two hosts are linked (4)"
