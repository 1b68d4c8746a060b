"""What all handlers of the Thrift services have."""

from __future__ import annotations

from dataclasses import dataclass

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.program.program import Table
from inakit.switch.server.served_switch import ServedSwitch


@dataclass(frozen=True)
class SwitchIdentity:
    """What a switch says of itself: its number, its Thrift port, where its notifications can be subscribed to."""

    device_id: int
    thrift_port: int
    notifications: str


class Handler:
    """A part of a service. Its functions bear the names of the description, and take the arguments in its order.

    The dispatcher gives them no context, and 0 or nothing for what the client left out.
    """

    def __init__(self, switch: ServedSwitch, identity: SwitchIdentity) -> None:
        self.switch = switch
        self.identity = identity

    @property
    def control(self) -> ControlPlane:
        """What carries requests out: that of the program that was loaded last, also before it runs."""
        return self.switch.newest.control

    def table(self, name: str) -> Table:
        """The table of this name, or a refusal."""
        return self.control.table(name).table
