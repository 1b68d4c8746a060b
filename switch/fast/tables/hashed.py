"""The entries of a hash table, and their copies in the array in front of it.

Every entry is in the hash table. While the array changes, it says of a place that what is sought is behind it, so that
packets find the entries of the hash table, where each change is one step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from inakit.switch.fast.layout.front_arrays import HEAD_BYTES
from inakit.switch.fast.layout.layout import ProgramLayout
from inakit.switch.fast.layout.table_layout import TableLayout
from inakit.switch.fast.tables.rows import Memory, Row, byte_rows, number_of

FILLED, BEHIND = 1, 1 << 32
"""The two halves of a place's head, which is written at once."""

Pairs = Sequence[tuple[bytes, bytes]]


class ReadableTables(Protocol):
    """The hash tables of a loaded program, by their symbol in C."""

    def items(self, symbol: str) -> Iterable[tuple[bytes, bytes]]:
        """All (key, entry) pairs, in any order."""
        ...


class Tables(ReadableTables, Protocol):
    """Hash tables that can be changed, one entry after the other, each in one step."""

    def put(self, symbol: str, entries: Pairs) -> None:
        """Add (key, entry) pairs, all of one size; an entry with the same key is replaced."""
        ...

    def remove(self, symbol: str, keys: Sequence[bytes]) -> None:
        """Remove the entries with these keys, which are there."""
        ...


class HashTable:
    """One hash table with the array in front of it; `count` has how many entries belong to each place."""

    def __init__(self, layout: ProgramLayout, symbol: str, memory: Memory, tables: Tables) -> None:
        self.symbol, self.tables = symbol, tables
        self.front = layout.fronts[symbol]
        places = layout.view(memory, self.front.record.name)
        raw = places.view(np.uint8).reshape(len(places), -1)
        self.keys = raw[:, : self.front.key_bytes]
        self.heads = raw[:, self.front.key_bytes :][:, :HEAD_BYTES].view(np.uint64).reshape(-1)
        self.entries = raw[:, self.front.key_bytes + HEAD_BYTES :]
        self.count = np.zeros(len(places), np.int64)

    def put(self, pairs: Pairs) -> None:
        """Add (key, entry) pairs, or replace entries with the same keys."""
        if not pairs:
            return
        keys, entries = (byte_rows(part) for part in zip(*pairs, strict=True))
        places = self.front.places(keys)
        there = self.in_front(places, keys)
        self.heads[places[there]] = BEHIND
        self.tables.put(self.symbol, pairs)
        self.fill(places, keys, entries)

    def add(self, pairs: Pairs) -> None:
        """Add (key, entry) pairs whose keys are not there yet."""
        if pairs:
            np.add.at(self.count, self.front.places(byte_rows([key for key, _ in pairs])), 1)
            self.put(pairs)

    def remove(self, keys: Sequence[bytes]) -> None:
        """Remove the entries with these keys, which are there."""
        if not keys:
            return
        rows = byte_rows(keys)
        places = self.front.places(rows)
        self.heads[places[self.in_front(places, rows)]] = BEHIND
        self.tables.remove(self.symbol, keys)
        np.add.at(self.count, places, -1)
        self.write_heads(places)

    def items(self) -> Iterable[tuple[bytes, bytes]]:
        """All (key, entry) pairs, in any order."""
        return self.tables.items(self.symbol)

    def in_front(self, places: NDArray[np.intp], keys: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """For each key, whether its entry is at its place of the array."""
        same: NDArray[np.bool_] = (self.keys[places] == keys).all(axis=1)
        found: NDArray[np.bool_] = same & (self.heads[places] & np.uint64(FILLED) != 0)
        return found

    def fill(self, places: NDArray[np.intp], keys: NDArray[np.uint8], entries: NDArray[np.uint8]) -> None:
        """Copy to places that are not filled the first entry given for each; then say what they have."""
        _, first = np.unique(places, return_index=True)
        free = first[self.heads[places[first]] & np.uint64(FILLED) == 0]
        self.keys[places[free]] = keys[free]
        self.entries[places[free]] = entries[free]
        self.heads[places[free]] |= np.uint64(FILLED)
        self.write_heads(places)

    def write_heads(self, places: NDArray[np.intp]) -> None:
        """Say of places whether more entries belong to them than they have."""
        filled = self.heads[places] & np.uint64(FILLED)
        more = self.count[places] > filled.astype(np.int64)
        self.heads[places] = filled | more.astype(np.uint64) * np.uint64(BEHIND)


class HashedEntries:
    """The entries of a table whose key matches exactly."""

    def __init__(self, layout: ProgramLayout, table: TableLayout, memory: Memory, tables: Tables) -> None:
        self.table, self.hash_table = table, HashTable(layout, table.symbol, memory, tables)

    def add(self, rows: Sequence[Row]) -> None:
        """Add entries that are not there yet."""
        self.hash_table.add(self.pairs(rows))

    def change(self, rows: Sequence[Row]) -> None:
        """Replace what entries with these keys do."""
        self.hash_table.put(self.pairs(rows))

    def remove(self, rows: Sequence[Row]) -> None:
        """Remove entries that are there."""
        self.hash_table.remove([self.table.pack_key(row.key) for row in rows])

    def rows(self) -> Iterator[Row]:
        """All entries."""
        for key, data in self.hash_table.items():
            yield Row(self.table.unpack_key(key), None, number_of(data), data)

    def pairs(self, rows: Sequence[Row]) -> list[tuple[bytes, bytes]]:
        """The keys and entries of rows, in bytes."""
        return [(self.table.pack_key(row.key), row.data) for row in rows]
