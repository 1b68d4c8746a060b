"""Clients of the Thrift services, made of the same interface description as the server."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from thriftpy2.protocol import TCyBinaryProtocol, TMultiplexedProtocol
from thriftpy2.thrift import TClient
from thriftpy2.transport import TCyBufferedTransport, TSocket

from inakit.switch.server.thrift.services import description

TIMEOUT_S = 10


class Clients:
    """The four services over one connection, as BMv2's own clients have them."""

    def __init__(self, transport: Any) -> None:
        types = description()
        self.standard = client(types.Standard, "standard", transport)
        self.simple_pre = client(types.SimplePre, "simple_pre", transport)
        self.simple_pre_lag = client(types.SimplePreLAG, "simple_pre_lag", transport)
        self.simple_switch = client(types.SimpleSwitch, "simple_switch", transport)


def client(service: Any, name: str, transport: Any) -> Any:
    """A client of one service."""
    return TClient(service, TMultiplexedProtocol(TCyBinaryProtocol(transport), name))


@contextmanager
def connected(port: int) -> Iterator[Clients]:
    """Clients of the switch whose Thrift port this is."""
    transport = TCyBufferedTransport(TSocket(sock=socket.create_connection(("localhost", port), TIMEOUT_S)))
    try:
        yield Clients(transport)
    finally:
        transport.close()


def exact(*numbers: tuple[int, int]) -> list[Any]:
    """A key of parts that match exactly, as (number, bytes)."""
    types = description()
    return [types.KeyPart(0, exact=types.ExactPart(number.to_bytes(size, "big"))) for number, size in numbers]
