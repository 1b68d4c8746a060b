"""A served switch whose ports are pairs of sockets of this process instead of interfaces: it needs no root."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from inakit.switch.program.program import Program
from inakit.switch.server.engines.engine import Engine
from inakit.switch.server.engines.interpreted_engine import InterpretedEngine
from inakit.switch.server.journal import Journal
from inakit.switch.server.options import Options
from inakit.switch.server.ports.packet_socket import BATCH, PacketSocket
from inakit.switch.server.served_switch import ServedSwitch

MOST_BYTES = 1 << 16
Ends = Mapping[str, socket.socket]


def pair() -> tuple[socket.socket, socket.socket]:
    """Two sockets: what is sent by one arrives at the other, packet by packet."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one.setblocking(False)
    return one, other


class MemorySocket(PacketSocket):
    """The switch's end of a pair. It outlasts the programs that are loaded one after the other."""

    def __init__(self, interface: str, end: socket.socket) -> None:
        self.interface, self.socket = interface, end
        self.unsent: deque[bytes] = deque()

    def receive(self) -> Iterator[tuple[bool, bytes]]:
        """Up to `BATCH` packets that have arrived."""
        for _ in range(BATCH):
            try:
                yield False, self.socket.recv(MOST_BYTES)
            except BlockingIOError:
                return

    def is_there(self) -> bool:
        """True, as long as the process runs."""
        return True

    def close(self) -> None:
        """Keep the pair for the next program."""


class MemoryEngine(InterpretedEngine):
    """Interprets a program on `ends`, by the names of its ports."""

    ends: Ends = MappingProxyType({})

    def opened(self, interface: str) -> PacketSocket:
        """The socket of a port."""
        return MemorySocket(interface, self.ends[interface])


class MemorySwitch(ServedSwitch):
    """A served switch on `ends`; its programs are interpreted."""

    def __init__(self, options: Options, journal: Journal, ends: Ends) -> None:
        self.ends = ends
        super().__init__(options, journal)

    def engine_for(self, program: Program) -> Engine:
        """An engine that interprets a program."""
        return self.interpreted(program)

    def interpreted(self, program: Program) -> InterpretedEngine:
        """An engine that interprets a program on this switch's ports."""
        options, to_cpu = self.options, self.ports.to_cpu
        engine = MemoryEngine(program, self.journal, self.clock, self.target, options.cpu_port, to_cpu, self.pcaps)
        engine.ends = self.ends
        return engine
