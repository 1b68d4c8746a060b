"""The world of virtual time: real switches running `p4/ina.p4`, links that serialise, the endpoints of every run.

A clock of its own counts picoseconds, so that rates and times are those of the plan's links, however fast this machine
is. No root is needed, and every run is the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

import numpy as np

from experiments.worlds.in_memory import CountingMonitor, Inline, NetworkInMemory
from experiments.worlds.world import Endpoints, Feature, Wiring
from switch.entries import Entries
from switch.fast.load.in_process_switch import InProcessSwitch
from switch.program.read import read_program
from switch.program.source_hashes import check_sources
from switch.running_switch import PROGRAM
from topo.fabric.fabric import QUEUE_PACKETS, Fabric
from topo.virtual.engine import PS_PER_S
from topo.virtual.network import VirtualNetwork
from traffic.measure.kernel_counters import InterfaceCounters
from traffic.measure.monitor import Monitor
from traffic.measure.snapshots import Snapshot, Watched, switch_counters
from traffic.sockets.batches import head_of
from traffic.sockets.ports import HostPort, IntArray, Outgoing, Packets
from traffic.wire.frames import BARE_FRAME, FRAME
from traffic.wire.packet_format import UDP_PORT, Kind


@dataclass(frozen=True)
class VirtualWorld:
    """Networks in virtual time, whose switches run the compiled P4 program."""

    name: str = "virtual"
    features: frozenset[Feature] = frozenset()
    real_time: bool = False

    def check(self) -> None:
        """Raise `InputError` for a P4 program whose sources have changed since it was compiled."""
        check_sources(PROGRAM)

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
        super().__init__(fabric)
        program = read_program(PROGRAM)
        self.switches = {}
        for number, switch in enumerate(installed.switches):
            self.switches[switch.switch] = InProcessSwitch(program, switch.switch)
            self.switches[switch.switch].install(switch)
            progress(number / len(installed.switches))
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

    def monitor(self) -> Monitor:
        """A monitor of the counters of links and switches only."""
        return CountingMonitor(VirtuallyWatched.of(self))

    def set_link(self, a: str, b: str, *, up: bool) -> None:
        """Take a link down or up; what is on its way over a link that is down is lost."""
        self.network.set_link(a, b, up=up)

    def interface_name(self, node: str, peer: str) -> str:
        """The monitor's name for the port by which `node` sends to `peer`."""
        return f"{node}-{self.fabric.port_numbers.get((node, peer), 0)}"

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
            frames = np.zeros(len(batch.rows), FRAME)
            whole = frames.view((np.uint8, FRAME.itemsize))
            heads = batch.heads.view((np.uint8, BARE_FRAME.itemsize))
            whole[:, : BARE_FRAME.itemsize] = heads[batch.rows]
            frames["values"] = batch.values[batch.rows]
            notice = frames["ina"]["kind"] == Kind.NOTICE
            lengths = np.where(notice, BARE_FRAME.itemsize, FRAME.itemsize).astype(np.uint32)
            self.engine.send(np.repeat(self.uplinks, batch.counts), lengths, frames)
        return [batch.counts.copy() for batch in batches]

    def receive(self) -> Packets:
        """The INA packets that have come to the listening hosts since the last call."""
        arrived = self.engine.take()
        hosts = self.place[arrived["node"]]
        frames = arrived["frame"]
        mine = (hosts >= 0) & (frames["udp"]["dst_port"] == UDP_PORT)
        frames = np.ascontiguousarray(frames[mine])
        heads = head_of(frames) if len(frames) else np.zeros(0, BARE_FRAME)
        return Packets(heads, frames["values"].astype(np.int32), hosts[mine])


@dataclass(frozen=True)
class VirtuallyWatched(Watched):
    """The counters of a network in virtual time, named by node and port."""

    network: LiveVirtualNetwork = field(kw_only=True)

    @classmethod
    def of(cls, network: LiveVirtualNetwork) -> VirtuallyWatched:
        """The counters of all hosts and switches of a network."""
        ports: dict[str, dict[int, str]] = {name: {} for name in network.switches}
        peers: dict[str, dict[int, str]] = {name: {} for name in network.switches}
        for (node, peer), port in network.fabric.port_numbers.items():
            if node in ports:
                ports[node][port], peers[node][port] = network.interface_name(node, peer), peer
        return cls(network.hosts, network.switches, ports, peers, network=network)

    def links(self) -> dict[str, InterfaceCounters]:
        """The counters of every port."""
        network, links = self.network, self.network.engine.links
        found = {}
        for (node, peer), out in network.network.link_of.items():
            back = network.network.link_of[peer, node]
            found[network.interface_name(node, peer)] = InterfaceCounters(
                received_bytes=int(links["received_bytes"][back]),
                received_packets=int(links["received_packets"][back]),
                receive_drops=0,
                sent_bytes=int(links["sent_bytes"][out]),
                sent_packets=int(links["sent_packets"][out]),
                send_drops=0,
            )
        return found

    def queues(self) -> dict[str, int]:
        """What the queue of every port dropped."""
        network = self.network
        dropped = network.engine.links["dropped"]
        return {network.interface_name(*ends): int(dropped[link]) for ends, link in network.network.link_of.items()}

    def snapshot(self) -> Snapshot:
        """All counters of the network now, in its own time."""
        return Snapshot(
            at_s=self.network.now(),
            backlog=(),
            interfaces=self.links(),
            queues=self.queues(),
            switches={name: switch_counters(switch, self.ports[name]) for name, switch in self.switches.items()},
        )
