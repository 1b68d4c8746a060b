"""The entries of a table that is searched one by one: a linked list, those that win first."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush

import numpy as np

from switch.control.match_rules import rank, test_of
from switch.entries import KeyPart, Lpm, Range, Ternary
from switch.fast.layout.layout import ProgramLayout, first_array
from switch.fast.layout.table_layout import TableLayout
from switch.fast.tables.rows import Memory, Row, number_of
from switch.program.pipelines import MatchKey

Order = tuple[int, int]
"""The rank and the number of an entry: the lowest wins, as the lowest handle does in BMv2 where priorities tie."""


class ListedEntries:
    """Each place of the array has an entry and a link: 1 + the place of the next entry; 0: it is the last one.

    `order` has the entries as they are linked, `places` where they are; `free` are the places without an entry, one of
    which there is always.
    """

    def __init__(self, layout: ProgramLayout, table: TableLayout, memory: Memory) -> None:
        assert table.rule is not None
        self.table, self.rule = table, table.rule
        places = layout.view(memory, table.table.name)
        self.links = places["next"]
        self.raw = places.view(np.uint8).reshape(len(places), -1)
        self.first = layout.view(memory, first_array(table.table.name))["next"]
        self.order: list[Order] = []
        self.places: dict[Order, int] = {}
        self.free = list(range(len(places)))
        heapify(self.free)

    def add(self, rows: Sequence[Row]) -> None:
        """Add entries, each at a free place to which then the one before it is linked."""
        for row in sorted(rows, key=self.order_of):
            order = self.order_of(row)
            at = bisect_left(self.order, order)
            self.link(at, self.write(row, self.link_at(at)))
            insort(self.order, order)

    def change(self, rows: Sequence[Row]) -> None:
        """Write entries to free places, each of which takes the place of the one that was there in the list."""
        for row in rows:
            order = self.order_of(row)
            at, before = bisect_left(self.order, order), self.places[order]
            self.link(at, self.write(row, int(self.links[before])))
            heappush(self.free, before)

    def remove(self, rows: Sequence[Row]) -> None:
        """Take entries out of the list."""
        for row in rows:
            order = self.order_of(row)
            at, place = bisect_left(self.order, order), self.places.pop(order)
            self.link(at, int(self.links[place]))
            del self.order[at]
            heappush(self.free, place)

    def rows(self) -> Iterator[Row]:
        """All entries, those that win first."""
        link = int(self.first[0])
        while link:
            yield self.row(self.raw[link - 1].tobytes())
            link = int(self.links[link - 1])

    def order_of(self, row: Row) -> Order:
        """Where an entry stands in the list."""
        return rank(row.key, row.priority), row.number

    def link_at(self, at: int) -> int:
        """The link that leads to entry `at` of the list, or to its end."""
        return int(self.links[self.places[self.order[at - 1]]] if at else self.first[0])

    def link(self, at: int, link: int) -> None:
        """Let this link lead to entry `at` of the list."""
        if at:
            self.links[self.places[self.order[at - 1]]] = link
        else:
            self.first[0] = link

    def write(self, row: Row, following: int) -> int:
        """Write an entry to a free place, in front of the link `following`; returns the link that leads to it."""
        place = self.places[self.order_of(row)] = heappop(self.free)
        tests = (test_of(part, value) for part, value in zip(self.table.table.key, row.key, strict=True))
        numbers = [*(number for test in tests for number in test), row.priority or 0, following]
        self.raw[place] = np.frombuffer(self.rule.pack(numbers) + row.data, np.uint8)
        return place + 1

    def row(self, data: bytes) -> Row:
        """The entry at a place with these bytes."""
        *ends, priority, _ = self.rule.unpack(data[: self.rule.size])
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
