"""A fabric as its drawing on the page: positions of nodes, numbers of directed links, and circuits' fibres."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from inakit.experiments.report.document import FabricView, LinkView, NodeView
from inakit.topo.fabric.circuits import INTERCONNECT
from inakit.topo.fabric.fabric import Fabric, Link, Switch
from inakit.topo.picture.positions import NodePositions

DirectedLink = tuple[str, str]


@dataclass(frozen=True)
class DrawnFabric:
    """A fabric that is drawn. With `circuits`, its optical links are fibres to a circuit switch, drawn on top.

    Each unit's fibres are drawn as one link.
    """

    described: Fabric
    circuits: bool = False

    @cached_property
    def fabric(self) -> Fabric:
        """The fabric as it is drawn."""
        return with_circuit_switch(self.described) if self.circuits else self.described

    @cached_property
    def number_of(self) -> Mapping[str, int]:
        """The number of every node."""
        return {name: number for number, name in enumerate(self.fabric.tiers)}

    @cached_property
    def link_number(self) -> Mapping[DirectedLink, int]:
        """The number of every directed link that is drawn."""
        ends = ((link.a, link.b) for link in self.fabric.links)
        return {hop: 2 * n + back for n, pair in enumerate(ends) for back, hop in enumerate((pair, pair[::-1]))}

    @cached_property
    def optical(self) -> frozenset[DirectedLink]:
        """The directed optical links of the fabric as it is described."""
        pairs = [(link.a, link.b) for link in self.described.links if link.optical]
        return frozenset((*pairs, *(pair[::-1] for pair in pairs)))

    def numbers(self, hops: Iterable[DirectedLink]) -> list[int]:
        """The numbers of directed links of the described fabric; one that is a circuit is two links of the drawing."""
        return [self.link_number[drawn] for hop in hops for drawn in self.drawn(hop)]

    def drawn(self, hop: DirectedLink) -> Iterator[DirectedLink]:
        """The links of the drawing that a directed link of the described fabric is."""
        if self.circuits and hop in self.optical:
            yield from ((hop[0], INTERCONNECT), (INTERCONNECT, hop[1]))
        else:
            yield hop

    def counted(self, sender: str, receiver: str) -> int | None:
        """The number of the link at which something was counted; None for one that is not drawn.

        Fibres are counted where units send, each under the name of some optical link of its unit.
        """
        if self.circuits and (sender, receiver) in self.optical:
            receiver = INTERCONNECT
        return self.link_number.get((sender, receiver))

    @cached_property
    def view(self) -> FabricView:
        """The drawing."""
        layout = NodePositions(self.fabric)
        return FabricView(
            self.fabric.name,
            list(self.nodes(layout)),
            list(self.links(layout)),
            layout.width,
            layout.heights[-1] + max((layout.arc(link.a, link.b) for link in self.fabric.links), default=0.0),
        )

    def nodes(self, layout: NodePositions) -> Iterator[NodeView]:
        """Every node, in the order of their numbers."""
        for name, tier in self.fabric.tiers.items():
            x, y = layout.positions[name]
            switch = self.fabric.switch_by_name.get(name)
            if switch is None:
                yield NodeView(name, tier, x, y, 0.0)
                continue
            slots = switch.aggregator_slots if switch.ina else None
            yield NodeView(name, tier, x, y, layout.switch_width(name), switch.ina, len(switch.pipelines), slots)

    def links(self, layout: NodePositions) -> Iterator[LinkView]:
        """Every link, in the order of their numbers."""
        for link in self.fabric.links:
            yield LinkView(
                a=self.number_of[link.a],
                b=self.number_of[link.b],
                capacity_ab_bps=link.capacity_ab_bps,
                capacity_ba_bps=link.capacity_ba_bps,
                delay_s=link.delay_s,
                optical=link.optical,
                bend=layout.arc(link.a, link.b),
            )


def with_circuit_switch(fabric: Fabric) -> Fabric:
    """The fabric with a circuit switch on top, and one link from each unit to it instead of its optical links."""
    rates: dict[str, float] = {}
    ports: dict[str, int] = {}
    for link in fabric.links:
        for node, port, rate_bps in link.ends if link.optical else ():
            rates[node] = max(rates.get(node, 0.0), rate_bps)
            ports.setdefault(node, port)
    tier = 1 + max(fabric.tiers.values())
    panel = Switch(INTERCONNECT, tier, (tuple(range(1, len(ports) + 1)),), ina=False)
    fibres = [
        Link(unit, INTERCONNECT, port, number, rates[unit], rates[unit], optical=True)
        for number, (unit, port) in enumerate(ports.items(), start=1)
    ]
    electrical = tuple(link for link in fabric.links if not link.optical)
    return replace(fabric, switches=(*fabric.switches, panel), links=(*electrical, *fibres))
