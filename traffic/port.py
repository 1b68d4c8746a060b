"""Where the endpoints of a run send and receive: real sockets, or a network in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from traffic.packet import Frames

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
    """The ports of a running network's hosts (`topo.network.RunningHost`)."""
    return [HostPort(h.name, h.pid, h.interface, h.address.mac_text, h.address.ipv4_text) for h in running]


class Ports(Protocol):
    """One port per host, all driven at once; hosts are numbered in the order of the layout."""

    def send(self, frames: Frames, counts: IntArray) -> IntArray:
        """Send the first `counts[0]` frames from host 0, the next `counts[1]` from host 1, and so on.

        Returns how many each host accepted: a prefix of its frames. The rest was not sent.
        """

    def receive(self) -> tuple[Frames, IntArray]:
        """Everything that has arrived, and the host of each frame. Both are valid until the next call."""

    def now(self) -> float:
        """Seconds on a clock that never goes back."""

    def sleep(self, seconds: float) -> None:
        """Let that much time pass."""

    def problems(self) -> Mapping[str, int]:
        """What went wrong so far: a text that names the host, and how often."""
