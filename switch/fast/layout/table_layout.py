"""Where a table's entries live, and how one entry and its key are packed into bytes that the generated C reads."""

from __future__ import annotations

from dataclasses import dataclass

from switch.entries import TableEntry
from switch.fast.layout.records import MemoryRecord, make_record
from switch.program.actions import Action
from switch.program.pipelines import Table


@dataclass(frozen=True)
class TableLayout:
    """Where a table with a key has its entries.

    They are in an array in memory whose index is the key (`direct`); or in a list, in the order in which entries win,
    each behind what it is compared with (`rule`); or in a hash map. An entry has a head, and behind it the record
    `values[n]` of the parameters of action number n.
    """

    table: Table
    symbol: str
    key: MemoryRecord
    values: dict[int, MemoryRecord]
    entry_bytes: int
    direct: bool
    rule: MemoryRecord | None

    HEAD_BYTES = 8  # u32 present, u32 action

    @property
    def hashed(self) -> bool:
        """Whether the entries are in a hash map."""
        return not self.direct and self.rule is None

    def pack_entry(self, action: Action, values: tuple[int, ...]) -> bytes:
        """The bytes of an entry that runs `action` with `values`."""
        head = (1).to_bytes(4, "little") + action.number.to_bytes(4, "little")
        return (head + self.values[action.number].pack(values)).ljust(self.entry_bytes, b"\0")

    def unpack_entry(self, key: tuple[int, ...], data: bytes) -> TableEntry:
        """The entry whose bytes are `data`."""
        number = int.from_bytes(data[4:8], "little")
        action = next(action for action in self.table.actions if action.number == number)
        return TableEntry(self.table.name, key, action.name, self.values[number].unpack(data[self.HEAD_BYTES :]))


def rule_record(name: str, table: Table) -> MemoryRecord:
    """The record that a packet's key is compared with: mask, least and greatest value of each part; the priority."""
    ends = [(f"{end} {i}", part.bits) for i, part in enumerate(table.key) for end in ("mask", "least", "most")]
    return make_record(name, [*ends, ("priority", 32)])


def listed_record(layout: TableLayout) -> MemoryRecord:
    """One place of a list of entries: what it is compared with, and behind it room for the entry."""
    assert layout.rule is not None
    return MemoryRecord(f"listed_{layout.symbol}", layout.rule.order, layout.rule.size + layout.entry_bytes)


def entry_record(layout: TableLayout) -> MemoryRecord:
    """One entry of a direct table: its head, and room for the parameters."""
    record = make_record(f"entry_{layout.symbol}", [("present", 32), ("action", 32)])
    return MemoryRecord(record.name, record.order, layout.entry_bytes)
