"""Receive rings of many packet sockets, side by side in memory, so that one NumPy step empties them all.

The kernel writes packets that arrive into a socket's ring (packet(7), PACKET_RX_RING with TPACKET_V2) and marks their
slots; reading takes no system call. The rings are mapped one behind the other: slot `s` of socket `i` is row
`i * slots + s` of one array. A slot of a ring has nothing to do with the slots of switches.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import socket
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inakit.topo.errors import MachineError
from inakit.traffic.sockets.batches import ragged
from inakit.traffic.sockets.ports import IntArray
from inakit.traffic.wire.frames import BARE_FRAME, FRAGMENT, Frames

SOL_PACKET = 263
PACKET_RX_RING, PACKET_STATISTICS, PACKET_VERSION = 5, 6, 10
TPACKET_V2 = 1
OURS = 1  # TP_STATUS_USER: the kernel has filled the slot; 0 gives it back

FRAME_AT = 66
"""Where in its slot the kernel puts a packet: behind struct tpacket2_hdr and sockaddr_ll, rounded up as it does."""
SLOT = np.dtype(
    {
        "names": ["status", "head", "values"],
        "formats": [np.uint32, BARE_FRAME, (">i4", FRAGMENT.values)],
        "offsets": [0, FRAME_AT, FRAME_AT + BARE_FRAME.itemsize],
        "itemsize": 512,
    }
)
BLOCK_BYTES = 1 << 16
SLOTS_IN_ALL = 1 << 18
"""All rings together have about so many slots, 128 MB, unless `LEAST_SLOTS` in each are more."""
MOST_SLOTS, LEAST_SLOTS = 1 << 12, 1 << 9

MAP_FIXED = 0x10
FAILED = ctypes.c_void_p(-1).value
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def slots_per_ring(sockets: int) -> int:
    """How many slots each ring gets: a power of two, as the kernel wants it."""
    fair = SLOTS_IN_ALL // max(sockets, 1)
    return max(LEAST_SLOTS, min(MOST_SLOTS, 1 << max(fair, 1).bit_length() - 1))


class ReceiveRings:
    """The rings of bound packet sockets, until `close`, which comes before the sockets are closed.

    `position`: by socket, how many packets have been taken from its ring, (sockets,).
    """

    def __init__(self, sockets: Sequence[socket.socket]) -> None:
        self.slots = slots_per_ring(len(sockets))
        self.ring_bytes = self.slots * SLOT.itemsize
        self.total = self.ring_bytes * len(sockets)
        self.position = np.zeros(len(sockets), np.int64)
        # The whole range first, then each ring over its part of it.
        self.address = map_memory(None, self.total, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1)
        try:
            for number, opened in enumerate(sockets):
                self.map_ring(number, opened)
        except BaseException:
            self.close()
            raise
        octets: Any = (ctypes.c_char * self.total).from_address(self.address)
        memory: NDArray[np.void] = np.frombuffer(octets, SLOT)
        self.status: NDArray[np.uint32] = memory["status"]
        self.packets = memory.view(np.dtype((np.void, SLOT.itemsize)))

    def map_ring(self, number: int, opened: socket.socket) -> None:
        """Give a socket its ring, and map that over the socket's part of the memory."""
        opened.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
        request = struct.pack("@4I", BLOCK_BYTES, self.ring_bytes // BLOCK_BYTES, SLOT.itemsize, self.slots)
        opened.setsockopt(SOL_PACKET, PACKET_RX_RING, request)
        map_memory(
            self.address + number * self.ring_bytes, self.ring_bytes, mmap.MAP_SHARED | MAP_FIXED, opened.fileno()
        )

    def close(self) -> None:
        """Give the memory back. What `take` has returned stays valid, because it is a copy."""
        if self.total:
            libc.munmap(self.address, self.total)
            self.total = 0

    def take(self, most: int) -> tuple[Frames, NDArray[np.int32], IntArray]:
        """Take up to about `most` packets that have arrived, those of each socket in their order.

        Returns their heads, (packets,), their values, (packets, 64), and the numbers of their sockets, (packets,).
        """
        counts = self.arrived(min(self.slots, max(1, most // len(self.position))))
        owner, offset = ragged(self.position, counts)
        rows = owner * self.slots + offset % self.slots
        taken = self.packets[rows].view(SLOT)
        self.status[rows] = 0
        self.position += counts
        return taken["head"], taken["values"], owner

    def arrived(self, most: int) -> IntArray:
        """How many packets wait in each ring, (sockets,), counted up to `most`, which is at least 1."""
        counts = np.zeros(len(self.position), np.int64)
        filled = np.arange(len(self.position))
        ahead = 1
        while filled.size and ahead:
            slots = (self.position[filled] + counts[filled])[:, None] + np.arange(ahead)
            ours = (self.status[filled[:, None] * self.slots + slots % self.slots] & OURS) != 0
            found = np.where(ours.all(axis=1), ahead, np.argmin(ours, axis=1))
            counts[filled] += found
            filled = filled[found == ahead]
            ahead = min(4 * ahead, 64, most - int(counts.max(initial=0)))
        return counts


def map_memory(address: int | None, size: int, flags: int, descriptor: int) -> int:
    """Map memory as mmap(2) does, at a chosen address, which Python's `mmap` does not offer; returns the address.

    Raises `MachineError`.
    """
    mapped = libc.mmap(address, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, descriptor, 0)
    if mapped == FAILED:
        code = ctypes.get_errno()
        raise MachineError(f"cannot map {size >> 10} kB of receive rings: {os.strerror(code)}; end what takes memory")
    return int(mapped)
