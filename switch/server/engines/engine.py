"""What runs the program of a served switch, and has its ports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from inakit.switch.control.data_plane import DataPlane

ToCpu = Callable[[bytes], None]
"""Takes a packet that leaves by the CPU port."""


class Engine(Protocol):
    """A running program. `what` says in a few words what runs it."""

    what: str

    @property
    def data_plane(self) -> DataPlane:
        """The state of the program while it runs."""
        ...

    def attach(self, port: int, interface: str) -> None:
        """Make an interface the port of this number; `MachineError` if that cannot be."""
        ...

    def detach(self, port: int) -> None:
        """Give a port's interface back to the host; do nothing if it is gone."""
        ...

    def is_up(self, port: int) -> bool:
        """Whether packets can come by a port."""
        ...

    def inject(self, port: int, packet: bytes) -> None:
        """Let a packet arrive at a port."""
        ...

    def set_rate(self, packets_per_s: int, port: int | None, priority: int | None) -> None:
        """Give queues a rate, 0: none; all of them, those of a port, or one. `UnsupportedError` if there are none."""
        ...

    def set_depth(self, packets: int, port: int | None, priority: int | None) -> None:
        """Let queues hold so many packets."""
        ...

    def close(self) -> None:
        """Give all interfaces back, and forget the program."""
        ...
