"""The Thrift door of a running switch: its services, all of them on one port, and its notifications."""

from __future__ import annotations

from contextlib import ExitStack

from inakit.switch.server.served_switch import ServedSwitch
from inakit.switch.server.thrift.dispatch import Dispatcher
from inakit.switch.server.thrift.handlers.handler import SwitchIdentity
from inakit.switch.server.thrift.handlers.replication import SimplePre, SimplePreLag
from inakit.switch.server.thrift.handlers.simple_switch import SimpleSwitch
from inakit.switch.server.thrift.handlers.standard import Standard
from inakit.switch.server.thrift.listener import Listener
from inakit.switch.server.thrift.notifications import Publisher
from inakit.switch.server.thrift.notifier import Notifier

HANDLERS = {
    "standard": Standard,
    "simple_pre": SimplePre,
    "simple_pre_lag": SimplePreLag,
    "simple_switch": SimpleSwitch,
}
"""What answers the clients of each service."""


class ThriftServer:
    """Answers Thrift clients of a switch on a TCP `port` (0: one that is free), and publishes its notifications."""

    def __init__(self, served: ServedSwitch, port: int, device_id: int, notifications: str) -> None:
        self._served, self.port = served, port
        self._device_id, self._notifications = device_id, notifications
        self._open = ExitStack()

    def start(self) -> None:
        """Listen, and publish; `MachineError` if the port or the address belongs to somebody else."""
        with ExitStack() as opened:
            publisher = Publisher(self._notifications)
            opened.callback(publisher.close)
            listener = Listener(self.port)
            opened.callback(listener.close)
            self.port = listener.port
            opened.callback(Notifier(self._served, publisher, self._device_id).close)
            listener.start(self.dispatcher())
            self._open = opened.pop_all()

    def close(self) -> None:
        """End all connections, and publish nothing any more."""
        self._open.close()

    def dispatcher(self) -> Dispatcher:
        """What calls the functions of all services."""
        identity = SwitchIdentity(self._device_id, self.port, self._notifications)
        return Dispatcher({name: handler(self._served, identity) for name, handler in HANDLERS.items()})
