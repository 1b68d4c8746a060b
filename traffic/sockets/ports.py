"""The ports at which endpoints send and receive, through real sockets or in a network in memory."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

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


class Driven(Protocol):
    """Endpoints as their driver sees them: `inakit.traffic.endpoints.endpoints.Endpoints`."""

    @property
    def address(self) -> int:
        """The address of their record."""

    @property
    def hosts(self) -> NDArray[np.void]:
        """The records of their hosts."""

    @property
    def trees(self) -> NDArray[np.void]:
        """The records of their trees."""

    @property
    def library(self) -> ctypes.CDLL:
        """Their functions."""

    @property
    def outbox(self) -> np.dtype[np.void]:
        """The type of a host's outbox."""

    @property
    def all(self) -> NDArray[np.void]:
        """Their record, (1,)."""


class Ports(Protocol):
    """One port per host; hosts are numbered in the order of the layout. They drive the endpoints of a run."""

    def attach(self, endpoints: Driven, *, mute: bool = False) -> None:
        """Give packets and time to these endpoints from now on. With `mute` they send nothing."""

    def run(self, until: float) -> None:
        """Let time pass, at most until `until`. It returns sooner when an iteration is over, and now and then."""

    def now(self) -> float:
        """The time in seconds of a monotonic clock."""

    def now_ps(self) -> int:
        """The time in picoseconds, as in the records of endpoints."""

    def seconds(self, at_ps: int) -> float:
        """A time of the records of endpoints in seconds of the ports' clock."""

    def problems(self) -> Mapping[str, int]:
        """The problems so far: texts that name the host, with their counts."""


# -- NumPy steps over whole arrays: runs of consecutive numbers.


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
