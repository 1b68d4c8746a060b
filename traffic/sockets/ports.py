"""The ports at which endpoints send and receive, through real sockets or in a network in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from inakit.traffic.wire.packet_format import Frames, pick

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class HostPort:
    """A host's only interface. `pid` is a process inside the host's network namespace."""

    name: str
    pid: int
    interface: str
    mac: str
    ipv4: str


def host_ports(running: Iterable[Any]) -> list[HostPort]:
    """The ports of a running network's hosts (`inakit.topo.live.network.RunningHost`)."""
    return [HostPort(h.name, h.pid, h.interface, h.address.mac_text, h.address.ipv4_text) for h in running]


@dataclass(frozen=True)
class Packets:
    """Packets that have arrived: their heads (`BARE_FRAME`), their values, and their receiving hosts.

    `heads` and `hosts` are (packets,). Values stay in the buffer of their arrival, `bodies` (arrived, values of a
    fragment) of any byte order, until `values` is read; `rows` (packets,) are the packets' rows in it.
    """

    heads: Frames
    bodies: NDArray[np.signedinteger]
    hosts: IntArray
    rows: IntArray

    @classmethod
    def all_of(cls, heads: Frames, bodies: NDArray[np.signedinteger], hosts: IntArray) -> Packets:
        """Make packets that each have the values of their row of `bodies`."""
        return cls(heads, bodies, hosts, np.arange(len(heads)))

    def __len__(self) -> int:
        return len(self.heads)

    @property
    def values(self) -> NDArray[np.int32]:
        """A copy of the values, (packets, values of a fragment), in this machine's byte order."""
        return self.bodies[self.rows].astype(np.int32, copy=False)

    def where(self, mask: BoolArray) -> Packets:
        """The packets under a mask, (packets,); nothing is copied if the mask is all true."""
        return self if mask.all() else self.at(np.flatnonzero(mask))

    def at(self, index: IntArray) -> Packets:
        """The packets with these numbers, in that order."""
        return Packets(pick(self.heads, index), self.bodies, self.hosts[index], self.rows[index])


@dataclass(frozen=True)
class Outgoing:
    """Packets to be sent: the first `counts[0]` from host 0, the next `counts[1]` from host 1, and so on.

    Packet i is `heads[rows[i]]` followed, unless it is a notice, by the big-endian `values[rows[i]]`. The network makes
    `copies` of each packet.
    """

    heads: Frames
    values: NDArray[np.int32]
    rows: IntArray
    counts: IntArray
    copies: int = 1


@dataclass(frozen=True)
class RepeatedFrames:
    """Frames that a host sends repeatedly, at `rate_fps` frames per second. `what` describes them.

    `sink`: the host that opens a sink at UDP's discard port, so that its kernel does not answer; None if the frames go
    to another port.
    """

    what: str
    source: HostPort
    frames: Sequence[bytes]
    rate_fps: float
    sink: HostPort | None = None


class Ports(Protocol):
    """One port per host, all driven at once; hosts are numbered in the order of the layout."""

    def send(self, batches: Sequence[Outgoing]) -> list[IntArray]:
        """Send batches in parallel. Returns for each batch the number of packets that each host accepted, (hosts,).

        The accepted ones are the first of the host's packets; the rest was not sent.
        """

    def receive(self) -> Packets:
        """Everything that has arrived since the last call; the arrays are valid until the next call."""

    def now(self) -> float:
        """The time in seconds of a monotonic clock."""

    def sleep(self, seconds: float) -> None:
        """Let that much time pass."""

    def is_quiet(self) -> bool:
        """Whether it is certain that nothing has arrived since the last call of `receive`."""

    def pass_ticks(self, tick_s: float, due: float) -> FloatArray:
        """Sleep tick by tick to the first tick that is not before `due`, or by which a packet has arrived.

        Returns the times of the ticks before it, in seconds, (ticks,); empty if `is_quiet` is never true.
        """

    def accepts_from(self) -> FloatArray:
        """The time from which each host's packets are accepted, if known; -inf: now; (hosts,)."""

    def problems(self) -> Mapping[str, int]:
        """The problems so far: texts that name the host, with their counts."""


# -- NumPy steps over whole batches of packets: runs of consecutive numbers, prefixes of groups.


def ragged(starts: IntArray, counts: IntArray) -> tuple[IntArray, IntArray]:
    """For each i, `counts[i]` consecutive integers from `starts[i]` on, all in one array.

    Returns the i that each belongs to, and the integers; both are (sum of counts,).
    """
    owner = np.repeat(np.arange(len(counts)), counts)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return owner, np.arange(total) + np.repeat(starts - ends + counts, counts)


def before(counts: IntArray) -> IntArray:
    """The total count of the groups before each group, which is the row of its first element in a flat array."""
    return np.cumsum(counts) - counts


def is_prefix(counts: IntArray, accepted: IntArray) -> BoolArray:
    """Whether each element of groups, `counts[i]` in group i, is among the group's first `accepted[i]`: (sum of
    counts,).
    """
    return np.arange(int(counts.sum())) - np.repeat(before(counts), counts) < np.repeat(accepted, counts)
