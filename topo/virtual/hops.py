"""The way of packets through a network in virtual time: one record for each link that a packet was given to.

Packets are followed by what they hold: a number at a place in their bytes decides which ones, and some of their bytes
are noted. What those mean is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

HOP = np.dtype(
    [
        ("given", np.int64), ("starts", np.int64), ("left", np.int64), ("arrives", np.int64),
        ("cause", np.uint32), ("link", np.uint32),
    ],
    align=True,
)  # fmt: skip
"""`struct hop` of hops.h without the noted bytes."""

HOPS = np.dtype(
    [
        ("records", np.uint64), ("room", np.uint32), ("used", np.uint32), ("missed", np.uint32), ("stride", np.uint32),
        ("noted_at", np.uint32), ("noted_bytes", np.uint32), ("number_at", np.uint32), ("every", np.uint32),
    ],
    align=True,
)  # fmt: skip
"""`struct hops` of hops.h."""

NO_HOP = 0xFFFFFFFF
LOST_PS = -1


@dataclass(frozen=True)
class Following:
    """Which packets are followed, and what is noted of them.

    The bytes of type `noted` from `noted_at` on are noted. `number_at` is the place of a big-endian number of 32 bits:
    packets whose number `every` divides are followed. At most `room` hops are kept.
    """

    noted: np.dtype[np.void]
    noted_at: int
    number_at: int
    every: int
    room: int


class Hops:
    """The hops of followed packets, which an engine adds to, in the order in which links were given the packets.

    Of a record, `given` is when the link got the packet, `starts` and `left` when its first and its last bit left, and
    `arrives` when its last bit is at the other end; `LOST_PS` if it never was. All are picoseconds. `cause` is the
    number of the hop whose arrival made the node send the packet; `NO_HOP` for a packet that a host sent.
    """

    def __init__(self, following: Following) -> None:
        self.following = following
        self.dtype = np.dtype(
            [*HOP.descr, ("noted", following.noted), ("pad", np.uint8, -following.noted.itemsize % 8)]
        )
        self.records = np.zeros(following.room, self.dtype)
        self.record = np.zeros(1, HOPS)
        self.record[0] = (
            *(self.records.ctypes.data, following.room, 0, 0, self.dtype.itemsize),
            *(following.noted_at, following.noted.itemsize, following.number_at, following.every),
        )

    @property
    def found(self) -> NDArray[np.void]:
        """The records so far."""
        return self.records[: int(self.record["used"][0])]

    @property
    def missed(self) -> int:
        """How many hops were not noted, because there was no room for them."""
        return int(self.record["missed"][0])
