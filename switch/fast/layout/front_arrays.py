"""An array in front of each hash table, so that most lookups touch one place in memory and call no function.

Every entry is in its hash table. A copy is in the array, at the place that a hash of its key gives, if no other entry
was there before it. A place that could not take all of its entries says that more are behind it, in the hash table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from switch.fast.layout.emitter import Emitter
from switch.fast.layout.records import MemoryRecord, RecordMember

MULTIPLIER = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio, as in runtime.h
WORD = 8
HEAD_BYTES = 8  # u32 filled, u32 behind


@dataclass(frozen=True)
class Front:
    """The array in front of the table `symbol`: 2**`bits` places. Keys are whole 64-bit words."""

    symbol: str
    key_bytes: int
    entry_bytes: int
    bits: int

    @property
    def record(self) -> MemoryRecord:
        """One place: a key, whether it is filled and whether more is behind it, and the entry."""
        names = (("filled", 4, self.key_bytes), ("behind", 4, self.key_bytes + 4))
        members = tuple(RecordMember(name, name, size, offset) for name, size, offset in names)
        return MemoryRecord(f"front_{self.symbol}", members, self.key_bytes + HEAD_BYTES + self.entry_bytes)

    def place(self, key: bytes) -> int:
        """The place where an entry with this key may be, as `place_of` in runtime.h computes it."""
        place = 0
        for start in range(0, len(key), WORD):
            place = (place ^ int.from_bytes(key[start : start + WORD], "little")) * MULTIPLIER & (1 << 64) - 1
        return place >> 64 - self.bits

    def add(self, places: NDArray[np.void], entries: Sequence[tuple[bytes, bytes]]) -> None:
        """Copy entries of the hash table. A packet that comes meanwhile finds all of a new entry, or none of it."""
        raw = places.view(np.uint8).reshape(len(places), -1)
        for key, entry in entries:
            place = self.place(key)
            if places[place]["filled"] and raw[place, : self.key_bytes].tobytes() != key:
                places[place]["behind"] = 1
            else:
                raw[place, : self.key_bytes] = np.frombuffer(key, np.uint8)
                raw[place, self.key_bytes + HEAD_BYTES :] = np.frombuffer(entry, np.uint8)
                places[place]["filled"] = 1

    def declare(self, out: Emitter) -> None:
        """Write the struct of one place, with its size asserted."""
        with out.block(f"struct front_{self.symbol}", ";"):
            out.line(f"struct key_{self.symbol} key;")
            out.line("u32 filled, behind;")
            out.line(f"struct entry_{self.symbol} entry;")
        size = f"sizeof(struct front_{self.symbol}) == {self.record.size}"
        out.line(f'_Static_assert({size}, "layout of front_{self.symbol}");')
