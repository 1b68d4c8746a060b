"""A fabric as a network in virtual time: its links in the engine, and what runs its switches handed to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from inakit.topo.fabric.circuits import INTERCONNECT, Interconnect
from inakit.topo.fabric.fabric import Fabric, Switch
from inakit.topo.fabric.optical_links import cables
from inakit.topo.virtual.engine import PS_PER_S, Engine
from inakit.topo.virtual.recirculation import Recirculation

End = tuple[str, int, float]
"""A node, its port, and the rate at which it sends there, in bit/s."""


def ps(time_s: float) -> int:
    """Seconds in picoseconds."""
    return round(time_s * PS_PER_S)


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

    `loops` are the packets that a pipeline takes in again, by switch and pipeline.
    With an interconnect optical ports are joined to one more switch, called `INTERCONNECT`, instead of to each other.
    `link_at`: by a node and its port, the number of the link by which it sends there; `link_of`: the same by a node and
    its neighbour in the fabric. The two directions of a link have the numbers 2n and 2n + 1.
    """

    def __init__(
        self,
        fabric: Fabric,
        switches: Mapping[str, CompiledSwitch],
        frame: np.dtype[np.void],
        queue_packets: int,
        interconnect: Interconnect | None = None,
        recirculations: Mapping[tuple[str, int], Recirculation] | None = None,
    ) -> None:
        """A host's own queue has no end: it is asked for no more than it can send. Those of switches are in packets."""
        self.fabric, self.queue_packets, self.cables = fabric, queue_packets, cables(fabric, interconnect)
        names = [*fabric.tiers, *([] if interconnect is None else [INTERCONNECT])]
        self.number_of = {name: number for number, name in enumerate(names)}
        ports = dict.fromkeys(names, 0)
        for node, port, _ in (end for link in self.cables for end in link.ends):
            ports[node] = max(ports[node], port + 1)
        self.loops = dict(recirculations or {})
        self.engine = Engine(2 * len(self.cables) + len(self.loops), list(ports.values()), frame)
        self.link_at: dict[tuple[str, int], int] = {}
        for link in self.cables:
            for one, other in (link.ends, link.ends[::-1]):
                self.connect(one, other, link.delay_s)
        for number, (switch, pipeline) in enumerate(self.loops, start=2 * len(self.cables)):
            self.add_loop(number, fabric.switch_by_name[switch], pipeline)
        ends_at = {(node, port): (node, peer) for (node, peer), port in fabric.port_numbers.items()}
        self.link_of = {ends_at[end]: number for end, number in self.link_at.items() if end in ends_at}
        for name, running in switches.items():
            self.engine.run_on(self.number_of[name], running.take_packet, running.address, running)

    @property
    def ends(self) -> Sequence[tuple[str, str]]:
        """The two ends of each link, by its number: nodes of the fabric, or the circuit switch and one of them.

        By the last links, which begin and end at the same switch, its pipelines take packets in again.
        """
        fabric_ends = {number: ends for ends, number in self.link_of.items()}
        cables = [
            fabric_ends.get(2 * number + back, (one[0], other[0]))
            for number, cable in enumerate(self.cables)
            for back, (one, other) in enumerate((cable.ends, cable.ends[::-1]))
        ]
        return [*cables, *((switch, switch) for switch, _ in self.loops)]

    def uplink(self, host: str) -> int:
        """The number of the link by which a host sends."""
        return int(self.engine.link_at[self.engine.nodes["first_port"][self.number_of[host]]])

    def connect(self, end: End, peer: End, delay_s: float) -> None:
        """Let the next link lead from `end` to `peer`. Light passes a circuit switch at once, without a queue."""
        node, port, rate_bps = end
        number = self.link_at[node, port] = len(self.link_at)
        near, far = ((self.number_of[name], at) for name, at, _ in (end, peer))
        if node not in self.fabric.tiers:
            rate_bps, delay_s = 0.0, 0.0
        switch = self.fabric.switch_by_name.get(node)
        limit, latency_s = (0, 0.0) if switch is None else (self.queue_packets, switch.latency_s)
        self.engine.connect(
            number, near, far, rate_bps=rate_bps, delay_ps=ps(delay_s), limit=limit, latency_ps=ps(latency_s)
        )

    def add_loop(self, number: int, switch: Switch, pipeline: int) -> None:
        """Let the packets of `loops` that come to a pipeline come in again, by the link of that number."""
        assert switch.chip is not None
        assert switch.chip.recirculation_bps is not None
        self.engine.recirculate(
            number,
            self.number_of[switch.name],
            switch.pipelines[pipeline],
            self.loops[switch.name, pipeline],
            rate_bps=switch.chip.recirculation_bps,
            limit=self.queue_packets,
        )

    def loop_drops(self) -> dict[tuple[str, int], int]:
        """By switch and pipeline, how many packets found no room before the recirculation port."""
        dropped = self.engine.links["dropped"][2 * len(self.cables) :]
        return {inp: int(count) for inp, count in zip(self.loops, dropped, strict=True)}

    def set_link(self, a: str, b: str, *, up: bool) -> None:
        """Take both directions of a link down or up. What is on its way over one that is down is lost."""
        for direction in ((a, b), (b, a)):
            self.engine.links["up"][self.link_of[direction]] = up
