"""What the Thrift services need of the switch that they serve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from switch.control.control_plane import ControlPlane
from switch.control.requests.ageing import Expired
from switch.control.requests.learning import DigestBatch


class ServedPorts(Protocol):
    """The ports of a running switch."""

    def add(self, port: int, interface: str) -> None:
        """Let an interface of the machine be a port; an `InakitError` if that cannot be."""
        ...

    def remove(self, port: int) -> None:
        """Let a port have no interface any more; an `InakitError` if it has none."""
        ...

    def all(self) -> Mapping[int, str]:
        """The interfaces by their ports."""
        ...

    def is_up(self, port: int) -> bool:
        """Whether packets can come by a port."""
        ...


class ServedQueues(Protocol):
    """The egress queues of a running switch; None stands for every port, or every priority."""

    def set_rate(self, rate_pps: int, port: int | None = None, priority: int | None = None) -> None:
        """Let queues send at most so many packets a second; 0: as fast as they can."""
        ...

    def set_depth(self, packets: int, port: int | None = None, priority: int | None = None) -> None:
        """Let queues hold at most so many packets."""
        ...


class ServedSwitch(Protocol):
    """A running switch whose program can be exchanged."""

    @property
    def json(self) -> str:
        """The program that runs, as p4c made it; empty before the first."""
        ...

    @property
    def control(self) -> ControlPlane:
        """What carries requests for the program that runs out."""
        ...

    @property
    def ports(self) -> ServedPorts:
        """The switch's ports."""
        ...

    @property
    def queues(self) -> ServedQueues:
        """The switch's egress queues."""
        ...

    @property
    def digest_subscribers(self) -> list[Callable[[DigestBatch], None]]:
        """Who is called with each batch of digests."""
        ...

    @property
    def expiry_subscribers(self) -> list[Callable[[list[Expired]], None]]:
        """Who is called with entries that have expired."""
        ...

    def load(self, json: str) -> None:
        """Prepare another program. Refused while one is prepared, or if the switch was not told that it may."""
        ...

    def swap(self) -> None:
        """Run the program that was prepared. Refused if there is none."""
        ...


@dataclass(frozen=True)
class SwitchIdentity:
    """What a switch says of itself: its number, its Thrift port, where its notifications can be subscribed to."""

    device_id: int
    thrift_port: int
    notifications: str
