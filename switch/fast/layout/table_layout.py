"""The places of a table's entries, and the packing of an entry and its key into bytes for the generated C.

A hash table holds every entry of a hashed table. An array in front of it holds copies, so that most lookups touch one
place in memory and call no function. The place of a copy is a hash of its key, if no other entry took it before. A
place that could not take all of its entries says that the hash table has more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inakit.switch.entries import Lpm, TableEntry
from inakit.switch.fast.layout.records import Emitter, MemoryRecord, RecordMember, make_record
from inakit.switch.program.program import Action, MatchKey, Program, Table

COPIES = 2
"""The number of copies of data that change while packets pass: one is read by packets, the other written."""

PREFIX = "prefix"

GROUP = (1 << 32) - 1
"""The action number of an entry with a group of members; the places of the members follow."""

GROUP_RECORD = make_record("group", [("first", 32), ("count", 32)])
MOST_MEMBERS = 16384
"""The greatest number of members in all groups of a table together."""


@dataclass(frozen=True)
class TableLayout:
    """The places of a table's entries, and the action that it runs on a miss.

    Entries are in an array in memory whose index is the key (`direct`); or in a list, in the order in which they win,
    each after its `rule`; or in a hash map. If the table matches prefixes (`prefixed`), the key in the hash map is the
    prefix and its length. An entry is a head, followed by the record `values[n]` of the parameters of action number n.
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
        """Whether the longest prefix wins, so that a packet's key is looked up once for each length."""
        return self.table.match == "lpm"

    @property
    def prefix_part(self) -> tuple[int, MatchKey]:
        return next((place, part) for place, part in enumerate(self.table.key) if part.match == "lpm")

    def pack_key(self, key: tuple[object, ...]) -> bytes:
        """The bytes by which an entry is found in a hash map."""
        numbers: list[int] = [part.value if isinstance(part, Lpm) else part for part in key]  # type: ignore[misc]
        return self.key.pack([*numbers, *(part.prefix for part in key if isinstance(part, Lpm))])

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
        """The first place and the number of the members of an entry with a group; None for any other entry."""
        if int.from_bytes(data[4:8], "little") != GROUP:
            return None
        first, count = GROUP_RECORD.unpack(data[self.HEAD_BYTES :])
        return first, count

    @property
    def numbered(self) -> bool:
        """Whether the table keeps data for each entry, by its number."""
        return self.table.counted or self.table.idle_timeout or self.table.meter is not None

    @property
    def most_entries(self) -> int:
        return max(self.table.size, len(self.table.entries or ()))

    def unpack_entry(self, key: tuple[object, ...], data: bytes) -> TableEntry:
        number = int.from_bytes(data[4:8], "little")
        action = next(action for action in self.table.actions if action.number == number)
        values = self.values[number].unpack(data[self.HEAD_BYTES :])
        return TableEntry(self.table.name, key, action.name, values)  # type: ignore[arg-type]


def key_record(name: str, table: Table) -> MemoryRecord:
    """The record of a key in a hash map."""
    parts = [(f"{part.name} {index}", part.bits) for index, part in enumerate(table.key)]
    return make_record(name, [*parts, *([(PREFIX, 16)] if table.match == "lpm" else [])])


def rule_record(name: str, table: Table) -> MemoryRecord:
    """The record to compare with a packet's key: mask, least and greatest value of each part, then the priority."""
    ends = [(f"{end} {i}", part.bits) for i, part in enumerate(table.key) for end in ("mask", "least", "most")]
    return make_record(name, [*ends, ("priority", 32)])


def entry_record(layout: TableLayout) -> MemoryRecord:
    """The record of one entry: its head, and room for the parameters."""
    record = make_record(f"entry_{layout.symbol}", [("present", 32), ("action", 32)])
    return MemoryRecord(record.name, record.order, layout.entry_bytes)


COUNTER = make_record("counter", [("packets", 64), ("bytes", 64)])
BUCKET = MemoryRecord(
    "bucket",
    tuple(
        RecordMember(name, name, 8, 8 * index)
        for index, name in enumerate(("mantissa", "shift", "burst", "tokens", "counted"))
    ),
    40,
)
METER_RATES = 2
METER = MemoryRecord("meter", (RecordMember("which", "which", 8, 0),), 8 + COPIES * METER_RATES * BUCKET.size)
"""One cell of a meter, as meters.h declares it; meters of v1model have two rates."""

FIRST = make_record("first", [("place", 32)])
MATCHED = make_record("matched", [("ns", 64)])
LINK = make_record("link", [("next", 32)])
"""1 + the place of the next element; 0 means none."""


def table_arrays(layout: TableLayout) -> Iterator[tuple[str, MemoryRecord, int]]:
    """The arrays of one table's entries, as (name, record, length)."""
    name, key = layout.table.name, layout.table.key
    if layout.direct:
        # One place has room for an entry, and for a second one that is valid while the first changes
        place = MemoryRecord(f"place_{layout.symbol}", (), COPIES * layout.entry_bytes)
        yield name, place, 1 << key[0].bits
    if layout.rule is not None:
        record = MemoryRecord(f"listed_{layout.symbol}", layout.rule.order, layout.rule.size + layout.entry_bytes)
        yield name, record, COPIES * (layout.most_entries + 1)  # the additional place ends the list
        yield first_array(name), FIRST, 1
    if layout.prefixed:
        yield lengths_array(name), LINK, layout.prefix_part[1].bits + 2


def entry_arrays(program: Program, layout: TableLayout) -> Iterator[tuple[str, MemoryRecord, int]]:
    """The arrays of a table's entries, by number (counts, times), and of the members of its groups."""
    table = layout.table
    if table.counted:
        yield counts_array(table.name), COUNTER, layout.most_entries
    if table.idle_timeout:
        yield matched_array(table.name), MATCHED, layout.most_entries
    if table.profile is not None and program.profiles[table.profile].selector is not None:
        most = 2 * max(program.profiles[table.profile].size, table.size)
        yield members_array(table.name), entry_record(layout), min(most, MOST_MEMBERS)


counts_array = "counts of {}".format  # packets and bytes of a table's entries, by their numbers
matched_array = "matched of {}".format  # the times at which a table's entries last matched a packet, by their numbers
members_array = "members of {}".format  # the members of the groups that a table's entries have
meter_array = "cells of {}".format  # a meter's cells
first_array = "first of {}".format  # one place, with the start of the table's list that packets read
default_array = "default of {}".format  # copies of a table's default action that the control plane has set
lengths_array = "lengths of {}".format
"""The arrays of tables and meters, by their names. In the last one each prefix length in use is linked to the next
shorter one; the links begin behind the greatest possible length.
"""

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
        """The place of each row's key, where its entry may be, as `place_of` in runtime.h computes it."""
        found = np.zeros(len(keys), np.uint64)
        for word in keys.view(np.uint64).T:
            found = (found ^ word) * np.uint64(MULTIPLIER)
        return (found >> np.uint64(64 - self.bits)).astype(np.intp)

    def declare(self, out: Emitter) -> None:
        """Write the struct of one place, with an assertion of its size."""
        with out.block(f"struct front_{self.symbol}", ";"):
            out.line(f"struct key_{self.symbol} key;")
            out.line("u32 filled, behind;")
            out.line(f"struct entry_{self.symbol} entry;")
        size = f"sizeof(struct front_{self.symbol}) == {self.record.size}"
        out.line(f'_Static_assert({size}, "layout of front_{self.symbol}");')
