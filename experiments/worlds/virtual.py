"""The world of virtual time: real switches running `p4/ina.p4`, links that serialise, the endpoints of every run.

A clock of its own counts picoseconds, so that rates and times are those of the plan's links, however fast this machine
is. No root is needed, and every run is the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np

from experiments.worlds.in_memory import Inline, NetworkInMemory, WorldInMemory, packets_of
from experiments.worlds.observation import Noted, Observation
from experiments.worlds.world import Endpoints, Feature, Wiring
from switch.entries import Entries
from topo.fabric.fabric import QUEUE_PACKETS, Fabric
from topo.virtual.engine import PS_PER_S
from topo.virtual.hops import Following, Hops
from topo.virtual.network import VirtualNetwork
from topo.virtual.series import Series
from traffic.measure.kernel_counters import InterfaceCounters
from traffic.sockets.batches import pick
from traffic.sockets.ports import HostPort, IntArray, Outgoing, Packets
from traffic.wire.frames import BARE_FRAME, FRAME, offset_of
from traffic.wire.packet_format import UDP_PORT, Kind


@dataclass(frozen=True)
class VirtualWorld(WorldInMemory):
    """Networks in virtual time."""

    name: str = "virtual"
    features: frozenset[Feature] = frozenset({Feature.OBSERVATION})

    @contextmanager
    def up(
        self, fabric: Fabric, installed: Entries, wiring: Wiring, progress: Callable[[float], None]
    ) -> Iterator[LiveVirtualNetwork]:
        """The network, until the block ends."""
        network = LiveVirtualNetwork(fabric, installed, wiring.queue_packets or QUEUE_PACKETS, progress)
        try:
            yield network
        finally:
            network.engine.close()


class LiveVirtualNetwork(NetworkInMemory):
    """A network in virtual time. It is also its hosts' `Ports`; its clock counts picoseconds.

    `uplinks`: by listening host, the number of the link by which it sends. `place`: by the number of a node, which of
    the listening hosts it is, or -1.
    """

    def __init__(
        self, fabric: Fabric, installed: Entries, queue_packets: int, progress: Callable[[float], None]
    ) -> None:
        super().__init__(fabric, installed, progress)
        self.network = VirtualNetwork(fabric, self.switches, FRAME, queue_packets)
        self.engine = self.network.engine
        self.uplinks = np.zeros(0, np.uint32)
        self.place = np.full(len(fabric.hosts) + len(fabric.switches), -1, np.int64)

    # -- as `LiveNetwork`

    def endpoints(self, hosts: Sequence[HostPort]) -> Endpoints:
        """The network itself as the hosts' ports, and an executor that does all work at once."""
        self.listening = hosts
        links = [self.network.link_of[host.name, self.fabric.tor_of(host.name)] for host in hosts]
        self.uplinks = np.array(links, np.uint32)
        self.place[:] = -1
        for place, host in enumerate(hosts):
            self.place[self.network.number_of[host.name]] = place
        return nullcontext((self, Inline()))

    def observing(self, asked: Observation | None) -> AbstractContextManager[Noted | None]:
        """Note what links do over time, and the hops of the followed fragments' packets."""
        if asked is None:
            return nullcontext()
        links, noted = self.engine.links, BARE_FRAME["ina"]
        series = Series(len(links), round(asked.interval_s * PS_PER_S), asked.points)
        hops = Hops(Following(noted, offset_of("ina"), offset_of("ina", "seq"), asked.every, asked.hops))
        self.engine.observe(series, hops)
        return nullcontext(Noted(tuple(self.network.link_of), links["rate_bps"].tolist(), series, hops))

    def set_link(self, a: str, b: str, *, up: bool) -> None:
        """Take a link down or up; what is on its way over a link that is down is lost."""
        self.network.set_link(a, b, up=up)

    def interfaces(self) -> dict[str, InterfaceCounters]:
        """The counters of every port."""
        links, found = self.engine.links, {}
        for (node, peer), out in self.network.link_of.items():
            back = self.network.link_of[peer, node]
            found[self.interface_name(node, peer)] = InterfaceCounters(
                received_bytes=int(links["received_bytes"][back]),
                received_packets=int(links["received_packets"][back]),
                receive_drops=0,
                sent_bytes=int(links["sent_bytes"][out]),
                sent_packets=int(links["sent_packets"][out]),
                send_drops=0,
            )
        return found

    def queue_drops(self) -> dict[str, int]:
        """What the queue of every port dropped."""
        dropped = self.engine.links["dropped"]
        return {self.interface_name(*ends): int(dropped[link]) for ends, link in self.network.link_of.items()}

    # -- as `Ports`

    @property
    def moment(self) -> int:
        """Picoseconds since the network came up."""
        return self.engine.now_ps

    def moments(self, seconds: float) -> int:
        """So many seconds in picoseconds."""
        return round(seconds * PS_PER_S)

    def now(self) -> float:
        """Seconds since the network came up."""
        return self.moment / PS_PER_S

    def sleep(self, seconds: float) -> None:
        """Let so much time pass; what is due to end meanwhile ends at its time."""
        until = self.moment + max(1, self.moments(seconds))
        while self.lasting and (soonest := min(each.until for each in self.lasting)) <= until:
            self.engine.run(int(soonest))
            self.end_due(soonest)
        self.engine.run(until)

    def send(self, batches: Sequence[Outgoing]) -> list[IntArray]:
        """Accept all packets, and put them on their hosts' links."""
        for batch in batches:
            frames, heads = np.empty(len(batch.rows), FRAME), pick(batch.heads, batch.rows)
            whole = frames.view((np.uint8, FRAME.itemsize))
            whole[:, : BARE_FRAME.itemsize] = heads.view((np.uint8, BARE_FRAME.itemsize))
            frames["values"] = batch.values[batch.rows]
            notice = heads["ina"]["kind"] == Kind.NOTICE
            lengths = np.where(notice, BARE_FRAME.itemsize, FRAME.itemsize).astype(np.uint32)
            self.engine.send(np.repeat(self.uplinks, batch.counts), lengths, frames)
        return [batch.counts.copy() for batch in batches]

    def receive(self) -> Packets:
        """The INA packets that have come to the listening hosts since the last call."""
        arrived = self.engine.take()
        hosts = self.place[arrived["node"]]
        frames = arrived["frame"]
        mine = (hosts >= 0) & (frames["udp"]["dst_port"] == UDP_PORT)
        return packets_of(np.ascontiguousarray(frames[mine]), hosts[mine])
