"""The entries of a table that is searched one by one: a list, in the order in which entries win."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from heapq import merge

import numpy as np

from inakit.switch.control.entry_check import rank, test_of
from inakit.switch.entries import KeyPart, Lpm, Range, Ternary
from inakit.switch.fast.layout.entry_arrays import first_array
from inakit.switch.fast.layout.layout import ProgramLayout
from inakit.switch.fast.layout.table_layout import TableLayout
from inakit.switch.fast.tables.rows import Memory, Row, byte_rows, number_of
from inakit.switch.program.program import MatchKey

Order = tuple[int, int]
"""The rank and the number of an entry: the lowest wins, as the lowest handle does in BMv2 where priorities tie."""


class ListedEntries:
    """There is room for the list twice: packets read the one at `first`; the other is written, then `first` changes.

    `order` has the entries as they are listed; behind the last one is a place without an entry.
    """

    def __init__(self, layout: ProgramLayout, table: TableLayout, memory: Memory) -> None:
        assert table.rule is not None
        self.table, self.rule = table, table.rule
        places = layout.view(memory, table.table.name)
        self.raw = places.view(np.uint8).reshape(len(places), -1)
        self.first = layout.view(memory, first_array(table.table.name))["place"]
        self.order: list[Order] = []

    def add(self, rows: Sequence[Row]) -> None:
        """Add entries where they win."""
        new = sorted(rows, key=self.order_of)
        at = [bisect_left(self.order, self.order_of(row)) for row in new]
        if new:
            self.publish(np.insert(self.listed, at, self.packed(new), axis=0))
            self.order = list(merge(self.order, map(self.order_of, new)))

    def change(self, rows: Sequence[Row]) -> None:
        """Replace what entries do."""
        if rows:
            listed = self.listed.copy()
            listed[self.places(rows)] = self.packed(rows)
            self.publish(listed)

    def remove(self, rows: Sequence[Row]) -> None:
        """Take entries out of the list."""
        at = self.places(rows)
        self.publish(np.delete(self.listed, at, axis=0))
        gone = set(at)
        self.order = [order for place, order in enumerate(self.order) if place not in gone]

    def rows(self) -> Iterator[Row]:
        """All entries, those that win first."""
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
        """Let packets read this list."""
        half = len(self.raw) // 2
        first = half - int(self.first[0])
        self.raw[first : first + len(listed)] = listed
        self.raw[first + len(listed)] = 0
        self.first[0] = first

    def order_of(self, row: Row) -> Order:
        """Where an entry stands in the list."""
        return rank(row.key, row.priority), row.number

    def places(self, rows: Sequence[Row]) -> list[int]:
        """Where in the list entries are."""
        return [bisect_left(self.order, self.order_of(row)) for row in rows]

    def packed(self, rows: Sequence[Row]) -> Memory:
        """Entries as the list has them, a row of bytes for each."""
        return byte_rows([self.rule_of(row) + row.data for row in rows])

    def rule_of(self, row: Row) -> bytes:
        """What a packet's key is compared with."""
        tests = (test_of(part, value) for part, value in zip(self.table.table.key, row.key, strict=True))
        return self.rule.pack([*(number for test in tests for number in test), row.priority or 0])

    def row(self, data: bytes) -> Row:
        """The entry at a place with these bytes."""
        *ends, priority = self.rule.unpack(data[: self.rule.size])
        key = tuple(key_part(p, *ends[3 * i : 3 * i + 3]) for i, p in enumerate(self.table.table.key))
        entry = data[self.rule.size :]
        return Row(key, priority, number_of(entry), entry)


def key_part(part: MatchKey, mask: int, least: int, most: int) -> KeyPart:
    """The part of a key for which `test_of` gave this mask, least and greatest value."""
    match part.match:
        case "lpm":
            return Lpm(least, mask.bit_count())
        case "ternary":
            return Ternary(least, mask)
        case "range":
            return Range(least, most)
    return least if mask else Ternary(0, 0)
