"""Where a table's entries live, and how one entry and its key are packed into bytes that the generated C reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from inakit.switch.entries import Lpm, TableEntry
from inakit.switch.fast.layout.records import MemoryRecord, make_record
from inakit.switch.program.program import Action
from inakit.switch.program.program import MatchKey, Table

COPIES = 2
"""What changes while packets pass has room for so many copies: one that packets read, and one that is written."""

PREFIX = "prefix"

GROUP = (1 << 32) - 1
"""What stands in the place of an action's number in an entry that has a group of members: their places follow."""

GROUP_RECORD = make_record("group", [("first", 32), ("count", 32)])
MOST_MEMBERS = 16384
"""The most members that the groups of a table have together."""


@dataclass(frozen=True)
class TableLayout:
    """Where a table has its entries, and the action that it runs on a miss.

    Entries are in an array in memory whose index is the key (`direct`); or in a list, in the order in which they win,
    each behind what it is compared with (`rule`); or in a hash map. If prefixes are matched (`prefixed`), the key in
    the hash map has the prefix and its length. An entry has a head, and behind it the record `values[n]` of the
    parameters of action number n.
    """

    table: Table
    symbol: str
    key: MemoryRecord
    values: dict[int, MemoryRecord]
    entry_bytes: int
    direct: bool
    rule: MemoryRecord | None

    HEAD_BYTES = 8  # u32 present: 1 + the entry's number; u32 action

    @property
    def hashed(self) -> bool:
        """Whether the entries are in a hash map."""
        return bool(self.table.key) and not self.direct and self.rule is None

    @property
    def prefixed(self) -> bool:
        """Whether the longest prefix wins, so that a packet's key is sought once for each length."""
        return self.table.match == "lpm"

    @property
    def prefix_part(self) -> tuple[int, MatchKey]:
        """The part of the key whose prefixes are matched, with its place among the parts."""
        return next((place, part) for place, part in enumerate(self.table.key) if part.match == "lpm")

    def pack_key(self, key: tuple[object, ...]) -> bytes:
        """The bytes by which an entry is found in a hash map."""
        return self.key.pack(tuple(numbers_of_key(key)))

    def unpack_key(self, data: bytes) -> tuple[int | Lpm, ...]:
        """The key that `pack_key` packed into these bytes."""
        numbers = self.key.unpack(data)
        if not self.prefixed:
            return numbers
        parts, place = list[int | Lpm](numbers[:-1]), self.prefix_part[0]
        parts[place] = Lpm(numbers[place], numbers[-1])
        return tuple(parts)

    def pack_entry(self, action: Action, values: tuple[int, ...], number: int = 0) -> bytes:
        """The bytes of entry `number` of the table, which runs `action` with `values`."""
        head = (1 + number).to_bytes(4, "little") + action.number.to_bytes(4, "little")
        return (head + self.values[action.number].pack(values)).ljust(self.entry_bytes, b"\0")

    def pack_group(self, first: int, count: int, number: int = 0) -> bytes:
        """The bytes of entry `number`, which runs one of `count` members of a group from place `first` on."""
        head = (1 + number).to_bytes(4, "little") + GROUP.to_bytes(4, "little")
        return (head + GROUP_RECORD.pack((first, count))).ljust(self.entry_bytes, b"\0")

    def group_in(self, data: bytes) -> tuple[int, int] | None:
        """The first place and the number of the members of an entry that has a group; None for any other."""
        if int.from_bytes(data[4:8], "little") != GROUP:
            return None
        first, count = GROUP_RECORD.unpack(data[self.HEAD_BYTES :])
        return first, count

    @property
    def numbered(self) -> bool:
        """Whether something is kept for each entry, by its number."""
        return self.table.counted or self.table.idle_timeout or self.table.meter is not None

    @property
    def most_entries(self) -> int:
        """The most entries that the table can have."""
        return max(self.table.size, len(self.table.entries or ()))

    def unpack_entry(self, key: tuple[object, ...], data: bytes) -> TableEntry:
        """The entry whose bytes are `data`."""
        number = int.from_bytes(data[4:8], "little")
        action = next(action for action in self.table.actions if action.number == number)
        values = self.values[number].unpack(data[self.HEAD_BYTES :])
        return TableEntry(self.table.name, key, action.name, values)  # type: ignore[arg-type]


def numbers_of_key(key: tuple[object, ...]) -> Iterator[int]:
    """The numbers of a key in a hash map: those of its parts, and behind them the length of its prefix."""
    length: list[int] = []
    for part in key:
        if isinstance(part, Lpm):
            length.append(part.prefix)
        yield part.value if isinstance(part, Lpm) else part  # type: ignore[misc]
    yield from length


def key_record(name: str, table: Table) -> MemoryRecord:
    """The record of a key in a hash map."""
    parts = [(f"{part.name} {index}", part.bits) for index, part in enumerate(table.key)]
    return make_record(name, [*parts, *([(PREFIX, 16)] if table.match == "lpm" else [])])


def rule_record(name: str, table: Table) -> MemoryRecord:
    """The record that a packet's key is compared with: mask, least and greatest value of each part.

    Behind them is the priority.
    """
    ends = [(f"{end} {i}", part.bits) for i, part in enumerate(table.key) for end in ("mask", "least", "most")]
    return make_record(name, [*ends, ("priority", 32)])


def listed_record(layout: TableLayout) -> MemoryRecord:
    """One place of a list of entries: what it is compared with, and behind it room for the entry."""
    assert layout.rule is not None
    return MemoryRecord(f"listed_{layout.symbol}", layout.rule.order, layout.rule.size + layout.entry_bytes)


def entry_record(layout: TableLayout) -> MemoryRecord:
    """One entry: its head, and room for the parameters."""
    record = make_record(f"entry_{layout.symbol}", [("present", 32), ("action", 32)])
    return MemoryRecord(record.name, record.order, layout.entry_bytes)


def place_record(layout: TableLayout) -> MemoryRecord:
    """One place of a direct table: room for an entry, and for another one that is there while the first changes."""
    return MemoryRecord(f"place_{layout.symbol}", (), COPIES * layout.entry_bytes)
