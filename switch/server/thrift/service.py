"""The Thrift services of a running switch, all of them on one port, and its notifications."""

from __future__ import annotations

from switch.server.thrift.connections import ThriftServer
from switch.server.thrift.dispatch import Dispatcher
from switch.server.thrift.handlers.replication import SimplePre, SimplePreLag
from switch.server.thrift.handlers.simple_switch import SimpleSwitch
from switch.server.thrift.handlers.standard import Standard
from switch.server.thrift.notifications import Publisher
from switch.server.thrift.notifier import Notifier
from switch.server.thrift.served import ServedSwitch, SwitchIdentity


class ThriftService:
    """Answers Thrift clients of a switch, and publishes its notifications, until it is closed.

    `port` is the TCP port: that of `identity`, or one that is free if that is 0. `MachineError` if the port or the
    address of the notifications belongs to somebody else.
    """

    def __init__(self, switch: ServedSwitch, identity: SwitchIdentity) -> None:
        publisher = Publisher(identity.notifications)
        try:
            self._server = ThriftServer(dispatcher_of(switch, identity), identity.thrift_port)
        except BaseException:
            publisher.close()
            raise
        self._notifier = Notifier(switch, publisher, identity.device_id)
        self.port = self._server.port

    def close(self) -> None:
        """End all connections, and publish nothing any more."""
        self._server.close()
        self._notifier.close()

    def __enter__(self) -> ThriftService:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def dispatcher_of(switch: ServedSwitch, identity: SwitchIdentity) -> Dispatcher:
    """What calls the functions of all services."""
    services = {
        "standard": Standard,
        "simple_pre": SimplePre,
        "simple_pre_lag": SimplePreLag,
        "simple_switch": SimpleSwitch,
    }
    return Dispatcher({name: service(switch, identity) for name, service in services.items()})
