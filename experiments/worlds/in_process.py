"""The world inside this process: the endpoints of a run, real switches running `p4/ina.p4`, and a clock of its own.

A packet crosses a link in one round of `ROUND_S` seconds, whatever its length: rates and times mean nothing here, sums
and counts do. The switches' own fault tables lose, double and hold back packets, as in an emulated network. One seed
decides all of that, so that a run can be repeated. No root is needed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np

from experiments.worlds.in_memory import Inline, NetworkInMemory, WorldInMemory
from experiments.worlds.world import Endpoints, Wiring
from planner.install.program import EVENTS
from switch.entries import Entries
from topo.fabric.fabric import Fabric
from traffic.measure.kernel_counters import InterfaceCounters
from traffic.sockets.ports import HostPort, IntArray, Outgoing, Packets
from traffic.wire.frames import FRAME, head_of

ROUND_S = 0.0005
AT_ONCE = 512
"""How many packets at most one call takes through a switch, so that the packets that leave fit its buffer."""

End = tuple[str, int]
"""A node and one of its ports; a host's is 0."""


@dataclass(frozen=True)
class InProcessWorld(WorldInMemory):
    """Networks whose links take one round for every packet."""

    name: str = "process"

    @contextmanager
    def up(
        self, fabric: Fabric, installed: Entries, wiring: Wiring, progress: Callable[[float], None]
    ) -> Iterator[InProcessNetwork]:
        """The network. Its queues have no limit, and it ignores `wiring`."""
        _ = wiring
        network = InProcessNetwork(fabric, installed)
        progress(1.0)
        yield network


class InProcessNetwork(NetworkInMemory):
    """A network in memory. It is also its hosts' `Ports`; its clock counts rounds."""

    def __init__(self, fabric: Fabric, installed: Entries) -> None:
        super().__init__(fabric, installed)
        self.peer_of = {(node, port): peer for (node, peer), port in fabric.port_numbers.items()}
        self.round = 0
        self.flights: dict[int, list[tuple[End, bytes]]] = defaultdict(list)
        self.arrived: list[tuple[str, bytes]] = []
        self.down: set[tuple[str, str]] = set()
        self.sent: Counter[End] = Counter()
        self.received: Counter[End] = Counter()

    # -- as `LiveNetwork`

    def endpoints(self, hosts: Sequence[HostPort]) -> Endpoints:
        """The network itself as the hosts' ports, and an executor that does all work at once."""
        self.listening = hosts
        return nullcontext((self, Inline()))

    def set_link(self, a: str, b: str, *, up: bool) -> None:
        """Set a link up or down. A link that is down takes no packets, and packets that reach its end are lost."""
        change = self.down.difference_update if up else self.down.update
        change({(a, b), (b, a)})

    def interfaces(self) -> dict[str, InterfaceCounters]:
        """What every port has sent and received, in packets: bytes are not counted."""
        hosts = [(host.name, self.fabric.tor_of(host.name)) for host in self.hosts]
        found = {}
        for node, peer in [*self.fabric.port_numbers, *hosts]:
            end = node, self.fabric.port_numbers.get((node, peer), 0)
            found[self.interface_name(node, peer)] = InterfaceCounters(
                received_bytes=0,
                received_packets=self.received[end],
                receive_drops=0,
                sent_bytes=0,
                sent_packets=self.sent[end],
                send_drops=0,
            )
        return found

    def queue_drops(self) -> dict[str, int]:
        """Nothing: queues have no limit."""
        return dict.fromkeys(self.interfaces(), 0)

    # -- as `Ports`

    @property
    def moment(self) -> int:
        """The number of the round."""
        return self.round

    def moments(self, seconds: float) -> int:
        """How many rounds so many seconds are."""
        return round(seconds / ROUND_S)

    def now(self) -> float:
        """Seconds since the network came up."""
        return self.round * ROUND_S

    def sleep(self, seconds: float) -> None:
        """Let packets move for as many rounds as that is, for at least one."""
        for _ in range(max(1, self.moments(seconds))):
            self.advance()

    def send(self, batches: Sequence[Outgoing]) -> list[IntArray]:
        """Accept all packets, and put them on their hosts' links."""
        for batch in batches:
            sender = np.repeat(np.arange(len(batch.counts)), batch.counts)
            for host, row in zip(sender.tolist(), batch.rows.tolist(), strict=True):
                head = batch.heads[row].tobytes()
                self.leave(self.listening[host].name, head + batch.values[row].tobytes())
        return [batch.counts.copy() for batch in batches]

    def receive(self) -> Packets:
        """The packets that have come to the listening hosts since the last call."""
        numbers = {host.name: number for number, host in enumerate(self.listening)}
        arrived = [(numbers[host], packet) for host, packet in self.arrived if host in numbers]
        self.arrived.clear()
        whole = [packet.ljust(FRAME.itemsize, b"\0") for _, packet in arrived]
        frames = np.frombuffer(b"".join(whole), FRAME)
        hosts = np.array([host for host, _ in arrived], np.int64)
        return Packets.all_of(head_of(frames), frames["values"], hosts)

    # -- the network

    def leave(self, host: str, packet: bytes) -> None:
        """Put a packet on the link from a host to its ToR."""
        self.cross(host, self.fabric.tor_of(host), packet)

    def cross(self, node: str, peer: str, packet: bytes) -> None:
        """Put a packet on the link from `node` to `peer`; a link that is down drops it."""
        if (node, peer) in self.down:
            return
        ports = self.fabric.port_numbers
        self.sent[node, ports.get((node, peer), 0)] += 1
        self.flights[self.round + 1].append(((peer, ports.get((peer, node), 0)), packet))

    def advance(self) -> None:
        """Play one round: packets reach the ends of the links that they are on, and pass through the switches there."""
        self.round += 1
        self.end_due(self.round)
        by_switch: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
        for (node, port), packet in self.flights.pop(self.round, ()):
            if self.down and (self.peer_at(node, port), node) in self.down:
                continue
            self.received[node, port] += 1
            if node in self.switches:
                by_switch[node].append((port, packet))
            else:
                self.arrived.append((node, packet))
        for switch, packets in by_switch.items():
            for start in range(0, len(packets), AT_ONCE):
                for port, packet in self.switches[switch].inject_all(packets[start : start + AT_ONCE]):
                    self.cross(switch, self.peer_of[switch, port], packet)

    def peer_at(self, node: str, port: int) -> str:
        """The node at the other end of the link at a node's port."""
        return self.peer_of[node, port] if node in self.switches else self.fabric.tor_of(node)

    def events(self, switch: str) -> list[int]:
        """How often each event of the P4 program happened at a switch, by its number."""
        return [int(count) for count in self.switches[switch].read_counter(EVENTS)[0]]
