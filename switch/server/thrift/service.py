"""The Thrift services of a running switch, all of them on one port."""

from __future__ import annotations

from dataclasses import replace

from switch.server.thrift.connections import ThriftServer
from switch.server.thrift.dispatch import Dispatcher
from switch.server.thrift.handlers.replication import SimplePre, SimplePreLag
from switch.server.thrift.handlers.simple_switch import SimpleSwitch
from switch.server.thrift.handlers.standard import Standard
from switch.server.thrift.served import ServedSwitch, SwitchIdentity


def serve(switch: ServedSwitch, identity: SwitchIdentity) -> ThriftServer:
    """Answer Thrift clients of `switch` on its port (0: one that is free, see `port`) until the server is closed."""
    handlers: dict[str, object] = {}
    server = ThriftServer(Dispatcher(handlers), identity.thrift_port)
    known = replace(identity, thrift_port=server.port)
    handlers["standard"] = Standard(switch, known)
    handlers["simple_pre"] = SimplePre(switch, known)
    handlers["simple_pre_lag"] = SimplePreLag(switch, known)
    handlers["simple_switch"] = SimpleSwitch(switch, known)
    return server
