"""Where the endpoints of a run send and receive: real sockets, or a network in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from traffic.wire.packet_format import Frames

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class HostPort:
    """A host's one interface. `pid` is a process inside the host's network namespace."""

    name: str
    pid: int
    interface: str
    mac: str
    ipv4: str


def host_ports(running: Iterable[Any]) -> list[HostPort]:
    """The ports of a running network's hosts (`topo.live.network.RunningHost`)."""
    return [HostPort(h.name, h.pid, h.interface, h.address.mac_text, h.address.ipv4_text) for h in running]


@dataclass(frozen=True)
class Packets:
    """Packets that have arrived: their heads (`BARE_FRAME`), their values (packets, 64), where each arrived."""

    heads: Frames
    values: NDArray[np.int32]
    hosts: IntArray

    def __len__(self) -> int:
        return len(self.heads)

    def where(self, mask: BoolArray) -> Packets:
        """Those under a mask; nothing is copied where that is all of them."""
        return self if mask.all() else Packets(self.heads[mask], self.values[mask], self.hosts[mask])


@dataclass(frozen=True)
class Outgoing:
    """Packets to be sent: the first `counts[0]` from host 0, the next `counts[1]` from host 1, and so on.

    Packet i is `heads[rows[i]]` and behind it, unless it is a notice, the big-endian `values[rows[i]]`. The network
    makes `copies` of each.
    """

    heads: Frames
    values: NDArray[np.int32]
    rows: IntArray
    counts: IntArray
    copies: int = 1


class Ports(Protocol):
    """One port per host, all driven at once; hosts are numbered in the order of the layout."""

    def send(self, batches: Sequence[Outgoing]) -> list[IntArray]:
        """Send batches side by side. For each: how many each host accepted, a prefix of its packets.

        The rest was not sent.
        """

    def receive(self) -> Packets:
        """Everything that has arrived; valid until the next call."""

    def now(self) -> float:
        """Seconds on a clock that never goes back."""

    def sleep(self, seconds: float) -> None:
        """Let that much time pass."""

    def problems(self) -> Mapping[str, int]:
        """What went wrong so far: a text that names the host, and how often."""
