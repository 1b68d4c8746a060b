"""Packet sockets in the network namespaces of many hosts, all owned by this one process.

Frames leave in batches, by `sendmmsg` from NumPy buffers that the kernel reads directly, and through the
host's own queueing discipline, as an application's would: its rate limit holds, and when it is full the
socket pushes back. They arrive in rings (`traffic.sockets.rings`).
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topo.errors import RunError
from topo.live.namespaces import network_namespace
from traffic.sockets.backlog import AT_ONCE, Backlog
from traffic.sockets.ports import HostPort, IntArray, Outgoing, Packets
from traffic.sockets.rings import PACKET_STATISTICS, SOL_PACKET, ReceiveRings
from traffic.wire.packet_format import BARE_FRAME, FRAME, UDP_PORT, Kind

ETH_P_IP = 0x0800
FRAGMENT_OFFSET = 0x1FFF
SO_ATTACH_FILTER, SO_SNDBUFFORCE = 26, 32

SEND_BUFFER_FRAMES = 384
"""A host's frames that may wait in its own queue. More would only age there; the rest waits here."""
FRAME_TRUESIZE = 1 << 10
"""What the kernel charges a socket for one frame: its bytes and its bookkeeping, rounded up."""
VALUES_BYTES = FRAME.itemsize - BARE_FRAME.itemsize
BATCH = 8192

# struct iovec and struct mmsghdr of a 64-bit kernel.
IOVEC = np.dtype([("base", np.uint64), ("length", np.uint64)])
MMSGHDR = np.dtype(
    {
        "names": ["iov", "iov_count", "length"],
        "formats": [np.uint64, np.uint64, np.uint32],
        "offsets": [16, 24, 56],
        "itemsize": 64,
    }
)

libc = ctypes.CDLL(None, use_errno=True)
libc.sendmmsg.restype = ctypes.c_int
libc.sendmmsg.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int]


# ---- opening -----------------------------------------------------------------------------------


def open_socket(host: HostPort) -> socket.socket:
    """A raw socket at a host's interface that hears INA frames only. The caller is in its namespace."""
    # Protocol 0 hears nothing until the filter is there; and one protocol, unlike all of them,
    # does not hear what the host itself sends.
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
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
    """A UDP socket that takes a port and drops all it hears.

    Without it the host's kernel would answer every gradient with "port unreachable".
    """
    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    attach_filter(sink, [(RETURN, 0, 0, 0)])
    sink.bind(("", port))
    return sink


# ---- the filter: classic BPF (code, jump if true, jump if false, operand) ----------------------

LOAD_BYTE, LOAD_HALF, LOAD_LENGTH = 0x30, 0x28, 0x80
JUMP_EQUAL, JUMP_ANY_BIT, RETURN = 0x15, 0x45, 0x06


def offset_of(*path: str) -> int:
    """Where a field of a frame begins, in bytes."""
    offset, dtype = 0, FRAME
    for name in path:
        dtype, start = dtype.fields[name][:2]  # type: ignore[index]
        offset += start
    return offset


def ina_filter() -> list[tuple[int, int, int, int]]:
    """Accept whole INA frames over UDP over IPv4 without options; a frame without values is a notice.

    It accepts nothing that the switches' parser takes for other IPv4: that crosses them without admission.
    """
    tests = [
        (LOAD_HALF, offset_of("ethernet", "ethertype"), JUMP_EQUAL, ETH_P_IP),
        (LOAD_BYTE, offset_of("ipv4", "version_ihl"), JUMP_EQUAL, 0x45),
        (LOAD_HALF, offset_of("ipv4", "ip_flags_fragment_offset"), JUMP_ANY_BIT, FRAGMENT_OFFSET),
        (LOAD_BYTE, offset_of("ipv4", "protocol"), JUMP_EQUAL, socket.IPPROTO_UDP),
        (LOAD_HALF, offset_of("udp", "dst_port"), JUMP_EQUAL, UDP_PORT),
    ]
    end = 2 * len(tests) + 6
    program = []
    for number, (load, offset, test, value) in enumerate(tests):
        out = end - (2 * number + 2)
        program += [(load, 0, 0, offset), (test, *((0, out) if test == JUMP_EQUAL else (out, 0)), value)]
    return [
        *program,
        (LOAD_LENGTH, 0, 0, 0),
        (JUMP_EQUAL, 3, 0, FRAME.itemsize),
        (JUMP_EQUAL, 0, 3, BARE_FRAME.itemsize),
        (LOAD_BYTE, 0, 0, offset_of("ina", "kind")),
        (JUMP_EQUAL, 0, 1, Kind.NOTICE),
        (RETURN, 0, 0, FRAME.itemsize),
        (RETURN, 0, 0, 0),
    ]


INA_FILTER = ina_filter()


def attach_filter(opened: socket.socket, program: Sequence[tuple[int, int, int, int]]) -> None:
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in program))
    opened.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("@HP", len(program), ctypes.addressof(code)))


# ---- batches -----------------------------------------------------------------------------------


class Messages:
    """`BATCH` message headers, each of so many pieces of memory, for `sendmmsg` and `recvmmsg`."""

    def __init__(self, pieces: int = 1) -> None:
        self.vectors = np.zeros((BATCH, pieces), IOVEC)
        self.headers = np.zeros(BATCH, MMSGHDR)
        self.headers["iov"] = self.vectors.ctypes.data + np.arange(BATCH, dtype=np.uint64) * self.vectors.strides[0]
        self.headers["iov_count"] = pieces
        self.address = self.headers.ctypes.data

    def point_at(
        self,
        array: NDArray[np.generic],
        lengths: NDArray[np.integer] | int,
        *,
        piece: int = 0,
        rows: IntArray | None = None,
    ) -> None:
        """Piece `piece` of header i is the first `lengths[i]` bytes of row i of `array`, or of row `rows[i]`."""
        rows = np.arange(len(array)) if rows is None else rows
        # The kernel is told addresses: every row must be one piece of memory.
        assert array[:1].flags.c_contiguous
        self.vectors["base"][: len(rows), piece] = array.ctypes.data + rows * array.strides[0]
        self.vectors["length"][: len(rows), piece] = lengths

    def hold(self, batch: Outgoing) -> None:
        """Point at the heads and values of a batch, in its order."""
        rows = batch.rows[:BATCH]
        bare = batch.heads["ina"]["kind"][rows] == Kind.NOTICE
        self.point_at(batch.heads, BARE_FRAME.itemsize, rows=rows)
        self.point_at(batch.values, np.where(bare, 0, VALUES_BYTES), piece=1, rows=rows)

    def from_row(self, row: int) -> int:
        return self.address + row * MMSGHDR.itemsize


class Piece(NamedTuple):
    """So many packets of a batch from one host, from row `row` of the batch on."""

    host: int
    row: int
    packets: int


def pieces(batch: Outgoing) -> Iterator[Piece]:
    """The first `BATCH` packets, host by host, in pieces that the processors' input queues have room for."""
    at_once = max(1, AT_ONCE // batch.copies)
    row = 0
    for host in np.flatnonzero(batch.counts).tolist():
        end = row + int(batch.counts[host])
        for start in range(row, min(end, BATCH), at_once):
            yield Piece(host, start, min(start + at_once, end, BATCH) - start)
        row = end


def in_turns(lists: Sequence[Sequence[Piece]]) -> Iterator[tuple[int, Piece]]:
    """The pieces of all lists, each with its list's number; every list is spread over the whole time."""
    due = ((place / len(of), number, piece) for number, of in enumerate(lists) for place, piece in enumerate(of))
    for _, number, piece in sorted(due):
        yield number, piece


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
        host = piece.host
        address = outbox.from_row(piece.row)
        sent: int = libc.sendmmsg(self.descriptors[host], address, piece.packets, socket.MSG_DONTWAIT)
        if sent >= 0:
            return sent
        code = ctypes.get_errno()
        if code == errno.ENOBUFS:
            self.full[host] += 1
        elif code not in (errno.EAGAIN, errno.EINTR):
            raise RunError(f"host '{self.hosts[host].name}' cannot send: {os.strerror(code)}")
        return 0

    def receive(self) -> Packets:
        """About `BATCH` packets at most, from each host its share."""
        return Packets(*self.rings.take(BATCH))

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def problems(self) -> Mapping[str, int]:
        """Frames lost at a socket for want of buffer, and sends that a full queue refused."""
        for host, opened in enumerate(self.sockets):
            statistics = opened.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)  # reading sets them to 0
            self.lost[host] += struct.unpack("=II", statistics)[1]
        return self.named("socket dropped received frames", self.lost) | self.named("queue refused frames", self.full)

    def named(self, what: str, counts: IntArray) -> dict[str, int]:
        return {f"host '{host.name}': its {what}": int(n) for host, n in zip(self.hosts, counts, strict=True) if n}
