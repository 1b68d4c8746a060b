"""The stores of table entries by kind of table: hashed, listed, by longest prefix, or by index."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import merge
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from inakit.switch.control.entry_check import rank, test_of
from inakit.switch.entries import KeyPart, Lpm, Range, Ternary
from inakit.switch.fast.layout.layout import ProgramLayout
from inakit.switch.fast.layout.table_layout import COPIES, HEAD_BYTES, TableLayout, first_array, lengths_array
from inakit.switch.program.program import MatchKey

Memory = NDArray[np.uint8]


class Row(NamedTuple):
    """One entry of a table: `number` is unique while the entry exists, `data` are the bytes that the C code reads."""

    key: tuple[KeyPart, ...]
    priority: int | None
    number: int
    data: bytes


class Store(Protocol):
    """The entries of one table. During a write, a packet finds only whole entries."""

    def add(self, rows: Sequence[Row]) -> None:
        """Add new entries."""

    def change(self, rows: Sequence[Row]) -> None:
        """Replace the actions of the entries with these keys and numbers."""

    def remove(self, rows: Sequence[Row]) -> None:
        """Remove existing entries."""

    def rows(self) -> Iterator[Row]:
        """All entries in memory, in any order."""


def number_of(data: bytes) -> int:
    return int.from_bytes(data[:4], "little") - 1


def byte_rows(parts: Sequence[bytes]) -> NDArray[np.uint8]:
    """An array with a row for each of these byte strings of equal length."""
    return np.frombuffer(b"".join(parts), np.uint8).reshape(len(parts), -1)


FILLED, BEHIND = 1, 1 << 32
"""The two halves of a place's head, which is written in one step."""

Pairs = Sequence[tuple[bytes, bytes]]


class ReadableTables(Protocol):
    """The hash tables of a loaded program, by their symbols in C."""

    def items(self, symbol: str) -> Iterable[tuple[bytes, bytes]]:
        """All (key, entry) pairs, in any order."""


class Tables(ReadableTables, Protocol):
    """Hash tables that can be changed, one entry after the other, each in one step."""

    def put(self, symbol: str, entries: Pairs) -> None:
        """Add (key, entry) pairs of equal size; an existing entry with the same key is replaced."""

    def remove(self, symbol: str, keys: Sequence[bytes]) -> None:
        """Remove the entries with these existing keys."""


class HashTable:
    """One hash table with the array in front of it; `count` holds the number of entries that belong to each place."""

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
        if not pairs:
            return
        keys, entries = (byte_rows(part) for part in zip(*pairs, strict=True))
        places = self.front.places(keys)
        there = self.in_front(places, keys)
        self.heads[places[there]] = BEHIND
        self.tables.put(self.symbol, pairs)
        self.fill(places, keys, entries)

    def add(self, pairs: Pairs) -> None:
        """Add (key, entry) pairs with new keys."""
        if pairs:
            np.add.at(self.count, self.front.places(byte_rows([key for key, _ in pairs])), 1)
            self.put(pairs)

    def remove(self, keys: Sequence[bytes]) -> None:
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
        """Fill each empty place with the first entry given for it; then write the heads of the places."""
        _, first = np.unique(places, return_index=True)
        free = first[self.heads[places[first]] & np.uint64(FILLED) == 0]
        self.keys[places[free]] = keys[free]
        self.entries[places[free]] = entries[free]
        self.heads[places[free]] |= np.uint64(FILLED)
        self.write_heads(places)

    def write_heads(self, places: NDArray[np.intp]) -> None:
        """Write into the heads of places whether more entries belong to them than they hold."""
        filled = self.heads[places] & np.uint64(FILLED)
        more = self.count[places] > filled.astype(np.int64)
        self.heads[places] = filled | more.astype(np.uint64) * np.uint64(BEHIND)


class HashedEntries:
    """The entries of a table whose key matches exactly."""

    def __init__(self, layout: ProgramLayout, table: TableLayout, memory: Memory, tables: Tables) -> None:
        self.table, self.hash_table = table, HashTable(layout, table.symbol, memory, tables)

    def add(self, rows: Sequence[Row]) -> None:
        self.hash_table.add(self.pairs(rows))

    def change(self, rows: Sequence[Row]) -> None:
        self.hash_table.put(self.pairs(rows))

    def remove(self, rows: Sequence[Row]) -> None:
        self.hash_table.remove([self.table.pack_key(row.key) for row in rows])

    def rows(self) -> Iterator[Row]:
        for key, data in self.hash_table.items():
            yield Row(self.table.unpack_key(key), None, number_of(data), data)

    def pairs(self, rows: Sequence[Row]) -> list[tuple[bytes, bytes]]:
        return [(self.table.pack_key(row.key), row.data) for row in rows]


Order = tuple[int, int]
"""The rank and the number of an entry: the lowest wins, as the lowest handle does in BMv2 for equal priorities."""


class ListedEntries:
    """The list is stored twice: packets read the one at `first`; the other is written, then `first` changes.

    `order` holds the entries in list order; a place without an entry follows the last one.
    """

    def __init__(self, layout: ProgramLayout, table: TableLayout, memory: Memory) -> None:
        assert table.rule is not None
        self.table, self.rule = table, table.rule
        places = layout.view(memory, table.table.name)
        self.raw = places.view(np.uint8).reshape(len(places), -1)
        self.first = layout.view(memory, first_array(table.table.name))["place"]
        self.order: list[Order] = []

    def add(self, rows: Sequence[Row]) -> None:
        new = sorted(rows, key=self.order_of)
        at = [bisect_left(self.order, self.order_of(row)) for row in new]
        if new:
            self.publish(np.insert(self.listed, at, self.packed(new), axis=0))
            self.order = list(merge(self.order, map(self.order_of, new)))

    def change(self, rows: Sequence[Row]) -> None:
        if rows:
            listed = self.listed.copy()
            listed[self.places(rows)] = self.packed(rows)
            self.publish(listed)

    def remove(self, rows: Sequence[Row]) -> None:
        at = self.places(rows)
        self.publish(np.delete(self.listed, at, axis=0))
        gone = set(at)
        self.order = [order for place, order in enumerate(self.order) if place not in gone]

    def rows(self) -> Iterator[Row]:
        """All entries, winners first."""
        for place in self.raw[int(self.first[0]) :]:
            data = place.tobytes()
            if number_of(data[self.rule.size :]) < 0:
                return
            yield self.row(data)

    @property
    def listed(self) -> Memory:
        """The list that packets read."""
        first = int(self.first[0])
        return self.raw[first : first + len(self.order)]

    def publish(self, listed: Memory) -> None:
        """Make packets read this list."""
        half = len(self.raw) // 2
        first = half - int(self.first[0])
        self.raw[first : first + len(listed)] = listed
        self.raw[first + len(listed)] = 0
        self.first[0] = first

    def order_of(self, row: Row) -> Order:
        return rank(row.key, row.priority), row.number

    def places(self, rows: Sequence[Row]) -> list[int]:
        return [bisect_left(self.order, self.order_of(row)) for row in rows]

    def packed(self, rows: Sequence[Row]) -> Memory:
        return byte_rows([self.rule_of(row) + row.data for row in rows])

    def rule_of(self, row: Row) -> bytes:
        """The rule to compare with a packet's key."""
        tests = (test_of(part, value) for part, value in zip(self.table.table.key, row.key, strict=True))
        return self.rule.pack([*(number for test in tests for number in test), row.priority or 0])

    def row(self, data: bytes) -> Row:
        *ends, priority = self.rule.unpack(data[: self.rule.size])
        key = tuple(key_part(p, *ends[3 * i : 3 * i + 3]) for i, p in enumerate(self.table.table.key))
        entry = data[self.rule.size :]
        return Row(key, priority, number_of(entry), entry)


def key_part(part: MatchKey, mask: int, least: int, most: int) -> KeyPart:
    """The part of a key for which `test_of` gives this mask, least and greatest value."""
    match part.match:
        case "lpm":
            return Lpm(least, mask.bit_count())
        case "ternary":
            return Ternary(least, mask)
        case "range":
            return Range(least, most)
    return least if mask else Ternary(0, 0)


class PrefixedEntries(HashedEntries):
    """Each length in use links to the next shorter one; the links begin at `head`. A link is a length plus 1."""

    def __init__(self, layout: ProgramLayout, table: TableLayout, memory: Memory, tables: Tables) -> None:
        super().__init__(layout, table, memory, tables)
        self.place, part = table.prefix_part
        self.head = part.bits + 1
        self.links = layout.view(memory, lengths_array(table.table.name))["next"]
        self.used: Counter[int] = Counter()

    def add(self, rows: Sequence[Row]) -> None:
        """Add entries; packets look up a length once its first entry exists."""
        super().add([self.masked(row) for row in rows])
        lengths = Counter(map(self.length, rows))
        for length in lengths.keys() - self.used.keys():
            before = self.before(length)
            self.links[length] = self.links[before]
            self.links[before] = length + 1
        self.used += lengths

    def change(self, rows: Sequence[Row]) -> None:
        super().change([self.masked(row) for row in rows])

    def remove(self, rows: Sequence[Row]) -> None:
        """Remove entries; packets no longer look up a length without entries."""
        super().remove([self.masked(row) for row in rows])
        lengths = Counter(map(self.length, rows))
        self.used -= lengths
        for length in lengths.keys() - self.used.keys():
            self.links[self.before(length)] = self.links[length]

    def before(self, length: int) -> int:
        """The next longer length in use, or the head."""
        at = self.head
        while self.links[at] and self.links[at] - 1 > length:
            at = int(self.links[at]) - 1
        return at

    def length(self, row: Row) -> int:
        return self.prefix(row).prefix

    def prefix(self, row: Row) -> Lpm:
        part = row.key[self.place]
        assert isinstance(part, Lpm)
        return part

    def masked(self, row: Row) -> Row:
        """The entry with only the relevant bits of its prefix."""
        prefix, free = self.prefix(row), self.head - 1 - self.length(row)
        key = list(row.key)
        key[self.place] = replace(prefix, value=prefix.value >> free << free)
        return row._replace(key=tuple(key))


HEAD = TableLayout.HEAD_BYTES


class DirectEntries:
    """Each place of the array has an entry, and room for a second one, which packets read if the first is absent.

    A head is written in one step: it says whether the entry exists, and which action it runs.
    """

    def __init__(self, layout: ProgramLayout, table: TableLayout, memory: Memory) -> None:
        places = layout.view(memory, table.table.name)
        self.entries = places.view(np.uint8).reshape(len(places), COPIES, table.entry_bytes)
        self.heads = self.entries[:, :, :HEAD].view(np.uint64).reshape(len(places), COPIES)

    def add(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self.write(index_of(row), 0, row.data)

    def change(self, rows: Sequence[Row]) -> None:
        """Replace the actions of entries: the second copy is valid while the first is written."""
        for row in rows:
            index = index_of(row)
            self.write(index, 1, row.data)
            self.heads[index, 0] = 0
            self.write(index, 0, row.data)
            self.heads[index, 1] = 0

    def remove(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self.heads[index_of(row), 0] = 0

    def rows(self) -> Iterator[Row]:
        for index in np.flatnonzero(self.heads[:, 0]):
            data = self.entries[index, 0].tobytes()
            yield Row((int(index),), None, number_of(data), data)

    def write(self, index: int, copy: int, data: bytes) -> None:
        """Write an absent entry: first its parameters, then the head."""
        self.entries[index, copy, HEAD:] = np.frombuffer(data, np.uint8, offset=HEAD)
        self.heads[index, copy] = int.from_bytes(data[:HEAD], "little")


def index_of(row: Row) -> int:
    (index,) = row.key
    assert isinstance(index, int)
    return index


def store_of(layout: ProgramLayout, table: TableLayout, memory: Memory, tables: Tables) -> Store:
    """The entries of a table that has a key."""
    if table.direct:
        return DirectEntries(layout, table, memory)
    if table.rule is not None:
        return ListedEntries(layout, table, memory)
    return (PrefixedEntries if table.prefixed else HashedEntries)(layout, table, memory, tables)
