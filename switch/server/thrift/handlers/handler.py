"""What all handlers of the Thrift services have."""

from __future__ import annotations

from switch.control.control_plane import ControlPlane
from switch.program.pipelines import Table
from switch.server.thrift.served import ServedSwitch, SwitchIdentity


class Handler:
    """A part of a service. Its functions bear the names of the description, and take the arguments in its order.

    The dispatcher gives them no context, and 0 or nothing for what the client left out.
    """

    def __init__(self, switch: ServedSwitch, identity: SwitchIdentity) -> None:
        self.switch = switch
        self.identity = identity

    @property
    def control(self) -> ControlPlane:
        """What carries requests out."""
        return self.switch.control

    def table(self, name: str) -> Table:
        """The table of this name, or a refusal."""
        return self.control.table(name).table
