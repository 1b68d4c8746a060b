"""A fabric as a network in virtual time: its links in the engine, and what runs its switches handed to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from topo.fabric.fabric import Fabric
from topo.virtual.engine import PS_PER_S, Engine


class CompiledSwitch(Protocol):
    """What takes a switch's packets: a C function, and what it is told."""

    @property
    def take_packet(self) -> int:
        """The address of the C function, `receive_fn` of engine.c."""
        ...

    @property
    def address(self) -> int:
        """The address that is the function's first argument."""
        ...


class VirtualNetwork:
    """Nodes and directed links by number, in an engine. Hosts come first, in the fabric's order.

    `link_of`: by node and neighbour, the number of the link from one to the other.
    """

    def __init__(
        self,
        fabric: Fabric,
        switches: Mapping[str, CompiledSwitch],
        frame: np.dtype[np.void],
        queue_packets: int,
    ) -> None:
        names = [*(host.name for host in fabric.hosts), *(switch.name for switch in fabric.switches)]
        self.number_of = {name: number for number, name in enumerate(names)}
        ports = [1 for _ in fabric.hosts] + [1 + max(switch.ports) for switch in fabric.switches]
        self.engine = Engine(2 * len(fabric.links), ports, frame)
        self.link_of: dict[tuple[str, str], int] = {}
        for link in fabric.links:
            a, b = (self.number_of[link.a], link.a_port), (self.number_of[link.b], link.b_port)
            for end, peer, names_of, rate in (
                (a, b, (link.a, link.b), link.capacity_ab_bps),
                (b, a, (link.b, link.a), link.capacity_ba_bps),
            ):
                number = self.link_of[names_of] = len(self.link_of)
                # A host's own queue has no end: it is asked for no more than it can send.
                limit = 0 if end[0] < len(fabric.hosts) else queue_packets
                delay_ps = round(link.delay_s * PS_PER_S)
                self.engine.connect(number, end, peer, rate_bps=rate, delay_ps=delay_ps, limit=limit)
        for name, switch in switches.items():
            self.engine.run_on(self.number_of[name], switch.take_packet, switch.address, switch)

    def uplink(self, host: str) -> int:
        """The number of the link by which a host sends."""
        return int(self.engine.link_at[self.engine.nodes["first_port"][self.number_of[host]]])

    def set_link(self, a: str, b: str, *, up: bool) -> None:
        """Take both directions of a link down or up. What is on its way over one that is down is lost."""
        for direction in ((a, b), (b, a)):
            self.engine.links["up"][self.link_of[direction]] = up
