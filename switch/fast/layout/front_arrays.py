"""An array in front of each hash table, so that most lookups touch one place in memory and call no function.

Every entry is in its hash table. A copy is in the array, at the place that a hash of its key gives, if no other entry
was there before it. A place that could not take all of its entries says that more are behind it, in the hash table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inakit.switch.fast.layout.emitter import Emitter
from inakit.switch.fast.layout.records import MemoryRecord, RecordMember

MULTIPLIER = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio, as in runtime.h
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

    def places(self, keys: NDArray[np.uint8]) -> NDArray[np.intp]:
        """For each row, which is a key, the place where its entry may be, as `place_of` in runtime.h computes it."""
        found = np.zeros(len(keys), np.uint64)
        for word in keys.view(np.uint64).T:
            found = (found ^ word) * np.uint64(MULTIPLIER)
        return (found >> np.uint64(64 - self.bits)).astype(np.intp)

    def declare(self, out: Emitter) -> None:
        """Write the struct of one place, with its size asserted."""
        with out.block(f"struct front_{self.symbol}", ";"):
            out.line(f"struct key_{self.symbol} key;")
            out.line("u32 filled, behind;")
            out.line(f"struct entry_{self.symbol} entry;")
        size = f"sizeof(struct front_{self.symbol}) == {self.record.size}"
        out.line(f'_Static_assert({size}, "layout of front_{self.symbol}");')
