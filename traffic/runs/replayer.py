"""Who replays pcaps: tcpreplay in the namespaces of real hosts, or whatever else has the members of `Replayer`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from inakit.topo.live.priority import ahead_of_others
from inakit.traffic.measure.counters import interfaces
from inakit.traffic.sockets.packet_sockets import SocketPorts
from inakit.traffic.sockets.ports import HostPort, Ports
from inakit.traffic.sockets.tcpreplay import Senders as TcpreplaySenders
from inakit.traffic.sockets.tcpreplay import check_tcpreplay

Recording = tuple[HostPort, Path, float]
"""A host, the pcap that it is to send once, and at how many frames a second."""


class Senders(Protocol):
    """Hosts that are about to send a pcap each."""

    @property
    def commands(self) -> Mapping[str, str]:
        """The command that sends a host's pcap, by the host's name; none where no program does."""

    def go(self) -> None:
        """Let all hosts begin to send."""

    def over(self) -> bool:
        """Whether all have sent everything. Raises `RunError` where one failed."""

    def end(self) -> None:
        """Send nothing more, whether everything was sent or not."""


class Replayer(Protocol):
    """Hosts that send pcaps, and the ports at which packets arrive."""

    @property
    def ports(self) -> Ports:
        """The ports of the hosts."""

    def prepare(self, recordings: Sequence[Recording]) -> Senders:
        """Let hosts wait for the moment at which they are to send."""

    def sent_bytes(self, host: HostPort) -> int:
        """How many bytes a host has sent so far."""


Replaying = Callable[[Sequence[HostPort]], AbstractContextManager[Replayer]]
"""Opens the ports of hosts for a replay."""


@dataclass(frozen=True)
class Tcpreplay:
    """The `Replayer` of real hosts: a tcpreplay for each pcap."""

    ports: Ports

    def prepare(self, recordings: Sequence[Recording]) -> Senders:
        """Start tcpreplay for each pcap; all wait at a barrier."""
        return TcpreplaySenders(recordings)

    def sent_bytes(self, host: HostPort) -> int:
        """What the host's interface has sent."""
        return interfaces(host.pid)[host.interface].sent_bytes


@contextmanager
def with_tcpreplay(hosts: Sequence[HostPort]) -> Iterator[Tcpreplay]:
    """Packet sockets and tcpreplay of hosts that run on this machine. Raises `MachineError` without tcpreplay."""
    check_tcpreplay()
    with ahead_of_others(), SocketPorts(hosts) as ports:
        yield Tcpreplay(ports)
