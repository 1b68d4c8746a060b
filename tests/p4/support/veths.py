"""A veth pair for each port of a tested switch: the switch on one end, a raw socket on the other."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from sequences import PORTS, Step, last_packets

from inakit.topo.live.ledger import Ledger
from inakit.topo.live.netlink import End, create_pair, index_of, inside, set_up, silence

PATIENCE_S = 20.0
RECEIVE_BUFFER_BYTES = 1 << 24
SO_RCVBUFFORCE = 33
ETH_P_ALL = 3


class Veths:
    """The pairs of `PORTS`; `interfaces` are the switch's ends."""

    def __init__(self, ledger: Ledger, sockets: dict[int, socket.socket]) -> None:
        self.ledger = ledger
        self.interfaces = {port: inner_name(ledger, port) for port in PORTS}
        self._sockets = sockets

    def send(self, step: Step) -> None:
        """Give the switch a packet; it waits there until the switch takes it."""
        self._sockets[step.port].send(step.packet)

    def sent(self) -> dict[int, list[bytes]]:
        """What the switch sent by each port, in order, up to its last packets."""
        return {port: list(self._until_last(port)) for port in PORTS}

    def clear(self) -> None:
        """Discard what a sequence that failed has left."""
        for end in self._sockets.values():
            end.setblocking(False)
            with suppress(BlockingIOError):
                while end.recv(65536):
                    pass
            end.settimeout(PATIENCE_S)

    def _until_last(self, port: int) -> Iterator[bytes]:
        last = last_packets()[port]
        while (packet := self._sockets[port].recv(65536)) != last:
            yield packet


@contextmanager
def veth_pairs() -> Iterator[Veths]:
    """A pair for each port, which leaves nothing behind."""
    with Ledger.open() as ledger, ExitStack() as stack:
        sockets = {port: stack.enter_context(port_socket(ledger, port)) for port in PORTS}
        yield Veths(ledger, sockets)


def inner_name(ledger: Ledger, port: int) -> str:
    """The name of the switch's end of a pair."""
    return f"{ledger.id}-s{port}"


def port_socket(ledger: Ledger, port: int) -> socket.socket:
    """A new veth pair, one end for the switch; returns a socket on the other end."""
    inner, outer = inner_name(ledger, port), f"{ledger.id}-t{port}"
    ledger.record("interface", inner)
    create_pair(End(inner, f"06:00:00:00:00:{port:02x}", None), End(outer, f"06:00:00:00:01:{port:02x}", None),
                random.randrange(1 << 16, 1 << 31))  # fmt: skip
    with inside(None) as netlink:
        for name in (inner, outer):
            silence(name)
            set_up(netlink, index_of(name))
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # hears nothing before it is bound
    end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
    end.settimeout(PATIENCE_S)
    end.bind((outer, ETH_P_ALL))
    return end
