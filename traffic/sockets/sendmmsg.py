"""Batches of packets by `sendmmsg`, by which the kernel reads the frames of many packets from NumPy arrays.

Every batch of the kit leaves by `send_batch` or `send_all`. The kernel takes fewer packets than it is given whenever
a queue on their way is full: that is back pressure, and the rest goes later.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import socket
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inakit.topo.errors import RunError
from inakit.traffic.sockets.backlog import AT_ONCE, PAUSE_S
from inakit.traffic.sockets.ports import IntArray, Outgoing
from inakit.traffic.wire.frames import BARE_FRAME, FRAME
from inakit.traffic.wire.packet_format import Kind

VALUES_BYTES = FRAME.itemsize - BARE_FRAME.itemsize
BATCH = 8192
"""The most packets of a batch that one `send` takes, and about the most that one `receive` returns."""
STUCK_S = 10.0
"""A sender whose packets nobody has taken for so long gives up."""

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


class Messages:
    """`BATCH` message headers for `sendmmsg`; each message is made of `pieces` pieces of memory."""

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
        # The kernel gets addresses, so every row must be one piece of memory.
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
        """The address of the header of message `row`."""
        return self.address + row * MMSGHDR.itemsize


class Taken(NamedTuple):
    """How many packets of a batch the kernel took; `full`: a full queue refused the next one."""

    packets: int
    full: bool = False


def send_batch(descriptor: int, address: int, packets: int, host: str) -> Taken:
    """Give the kernel the packets whose headers are at `address`, as many as it takes now.

    A call that takes fewer does not tell why, so the rest is offered at once, until all are taken or none is. Raises
    `RunError`, which names the host, where the link is down or the socket fails.
    """
    sent = 0
    while sent < packets:
        count = libc.sendmmsg(descriptor, address + sent * MMSGHDR.itemsize, packets - sent, socket.MSG_DONTWAIT)
        if count < 0:
            code = ctypes.get_errno()
            if code not in (errno.ENOBUFS, errno.EAGAIN, errno.EINTR):
                raise RunError(f"host '{host}' cannot send: {os.strerror(code)}")
            return Taken(sent, code == errno.ENOBUFS)
        sent += count
    return Taken(sent)


def send_all(descriptor: int, address: int, packets: int, host: str, stuck_s: float = STUCK_S) -> None:
    """Give the kernel all packets whose headers are at `address`, and wait for room where it has none.

    Raises `RunError` as `send_batch` does, and where none has been taken for `stuck_s`.
    """
    room = select.poll()
    room.register(descriptor, select.POLLOUT)
    last_s, left = time.monotonic(), packets
    while left:
        taken = send_batch(descriptor, address + (packets - left) * MMSGHDR.itemsize, left, host)
        left -= taken.packets
        now_s = time.monotonic()
        if taken.packets:
            last_s = now_s
        elif now_s - last_s > stuck_s:
            raise RunError(f"host '{host}' cannot send: its link has taken no packet for {stuck_s:g} s")
        if taken.full:
            time.sleep(PAUSE_S)  # a socket can be written to, whatever the queue behind it
        elif left:
            room.poll(1e3 * stuck_s)


class Piece(NamedTuple):
    """Some packets of a batch, all from one host: `packets` of them, from row `row` of the batch on."""

    host: int
    row: int
    packets: int


def pieces(batch: Outgoing) -> Iterator[Piece]:
    """The first `BATCH` packets, host by host, in pieces that the processors' input queues have room for at once."""
    at_once = max(1, AT_ONCE // batch.copies)
    row = 0
    for host in np.flatnonzero(batch.counts).tolist():
        end = row + int(batch.counts[host])
        for start in range(row, min(end, BATCH), at_once):
            yield Piece(host, start, min(start + at_once, end, BATCH) - start)
        row = end


def in_turns(lists: Sequence[Sequence[Piece]]) -> Iterator[tuple[int, Piece]]:
    """The pieces of all lists, each with its list's number, in such an order that every list is spread evenly."""
    due = ((place / len(of), number, piece) for number, of in enumerate(lists) for place, piece in enumerate(of))
    for _, number, piece in sorted(due):
        yield number, piece
