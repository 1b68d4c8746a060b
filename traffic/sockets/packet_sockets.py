"""Packet sockets in the network namespaces of many hosts, all owned by this one process.

Frames leave in batches: `sendmmsg` lets the kernel read NumPy arrays directly. They pass the host's own queueing
discipline, as an application's would, so that its rate limit holds and a full queue refuses more. They arrive in rings
(`inakit.traffic.sockets.rings`).
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType

import numpy as np

from inakit.topo.errors import MachineError, RunError
from inakit.topo.live.namespaces import network_namespace
from inakit.traffic.sockets.backlog import Backlog
from inakit.traffic.sockets.ports import FloatArray, HostPort, IntArray, Outgoing, Packets
from inakit.traffic.sockets.rings import PACKET_STATISTICS, SOL_PACKET, ReceiveRings
from inakit.traffic.sockets.sendmmsg import BATCH, Messages, Piece, in_turns, pieces, send_batch
from inakit.traffic.sockets.socket_filter import ETH_P_IP, INA_FILTER, RETURN, attach_filter
from inakit.traffic.wire.packet_format import UDP_PORT

SO_SNDBUFFORCE = 32

SEND_BUFFER_FRAMES = 384
"""How many of a host's frames may wait in its own queue. More would only age there; the rest waits here."""
FRAME_TRUESIZE = 1 << 10
"""What the kernel charges a socket for one frame: its bytes and its bookkeeping, rounded up."""


def open_socket(host: HostPort) -> socket.socket:
    """A raw socket at a host's interface that hears INA frames only. The caller is in its namespace."""
    # Protocol 0 hears nothing until the filter is there; and one protocol, unlike all of them,
    # does not hear what the host itself sends.
    try:
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    except OSError as error:
        way = "run as root (CAP_NET_RAW), on a kernel with CONFIG_PACKET, or in virtual time (--switch virtual)"
        raise MachineError(f"host '{host.name}': cannot listen: {error.strerror}: {way}") from error
    try:
        opened.setblocking(False)
        # The kernel doubles what it is given.
        opened.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, SEND_BUFFER_FRAMES * FRAME_TRUESIZE // 2)
        attach_filter(opened, INA_FILTER)
        opened.bind((host.interface, ETH_P_IP))
    except OSError as error:
        opened.close()
        raise RunError(f"host '{host.name}': cannot listen at '{host.interface}': {error.strerror}") from error
    return opened


def open_sink(port: int = UDP_PORT) -> socket.socket:
    """A UDP socket that is bound to a port and drops all that comes to it.

    Without it the host's kernel would answer every gradient with "port unreachable".
    """
    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    attach_filter(sink, [(RETURN, 0, 0, 0)])
    sink.bind(("", port))
    return sink


class SocketPorts:
    """The `Ports` of real hosts. A context manager: leaving it closes every socket."""

    def __init__(self, hosts: Sequence[HostPort]) -> None:
        self.hosts = tuple(hosts)
        self.outboxes = (Messages(pieces=2), Messages(pieces=2))
        self.full = np.zeros(len(hosts), np.int64)
        self.lost = np.zeros(len(hosts), np.int64)
        with ExitStack() as stack:
            self.backlog = stack.enter_context(Backlog())
            self.sockets = [self.open(host, stack) for host in hosts]
            self.descriptors = [opened.fileno() for opened in self.sockets]
            self.rings = ReceiveRings(self.sockets)
            stack.callback(self.rings.close)
            self.resources = stack.pop_all()

    def open(self, host: HostPort, stack: ExitStack) -> socket.socket:
        """A socket at a host's interface, which the stack closes."""
        with network_namespace(host.pid):
            stack.enter_context(open_sink())
            return stack.enter_context(open_socket(host))

    def __enter__(self) -> SocketPorts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.resources.close()

    # -- as `Ports`

    def send(self, batches: Sequence[Outgoing]) -> list[IntArray]:
        """At most `BATCH` packets of each batch; what is beyond is not accepted.

        The batches' pieces take turns, so that the network copies results while gradients are sent.
        """
        accepted = [np.zeros(len(self.hosts), np.int64) for _ in batches]
        refusing = set()
        for turn, outbox in zip(batches, self.outboxes, strict=False):
            outbox.hold(turn)
        for number, piece in in_turns([list(pieces(batch)) for batch in batches]):
            if (number, piece.host) not in refusing:
                self.backlog.admit(piece.packets, batches[number].copies)
                taken = self.send_piece(self.outboxes[number], piece)
                accepted[number][piece.host] += taken
                if taken < piece.packets:
                    refusing.add((number, piece.host))
        return accepted

    def send_piece(self, outbox: Messages, piece: Piece) -> int:
        """Send a piece, and return how many of its packets the host's queue took. Raises `RunError` on other errors."""
        host = piece.host
        address = outbox.from_row(piece.row)
        taken = send_batch(self.descriptors[host], address, piece.packets, self.hosts[host].name)
        self.full[host] += taken.full
        return taken.packets

    def receive(self) -> Packets:
        """What has arrived: at most about `BATCH` packets, and at most an equal share of these from each host."""
        return Packets.all_of(*self.rings.take(BATCH))

    def now(self) -> float:
        """Seconds of the monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Let the thread sleep."""
        time.sleep(seconds)

    def is_quiet(self) -> bool:
        """Never: packets may come at any time."""
        return False

    def pass_ticks(self, tick_s: float, due: float) -> FloatArray:
        """Let no time pass, as packets may come at any time."""
        _ = tick_s, due
        return np.zeros(0)

    def accepts_from(self) -> FloatArray:
        """Now."""
        return np.full(len(self.hosts), -np.inf)

    def problems(self) -> Mapping[str, int]:
        """Frames lost at a socket for want of buffer, and sends that a full queue refused."""
        for host, opened in enumerate(self.sockets):
            statistics = opened.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)  # reading sets them to 0
            self.lost[host] += struct.unpack("=II", statistics)[1]
        return self.named("socket dropped received frames", self.lost) | self.named("queue refused frames", self.full)

    def named(self, what: str, counts: IntArray) -> dict[str, int]:
        """The counts that are not 0, each under a text that names the host."""
        return {f"host '{host.name}': its {what}": int(n) for host, n in zip(self.hosts, counts, strict=True) if n}
