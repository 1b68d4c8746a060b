"""Counters of packets and bytes: cells that statements use (indirect), or table entries (direct)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inakit.switch.control.codecs import (
    ArrayCodec,
    ArraySchema,
    ById,
    Call,
    Command,
    Fields,
    Message,
    ReadArgument,
    invalid,
    signed,
    unsigned,
)
from inakit.switch.control.requests import Core, Entities, RefusalKind, Refused, array_of, locked
from inakit.switch.control.tables import HeldTable, Tables
from inakit.switch.program.program import Counter, Program


class Counters(Entities):
    """Requests for counters."""

    def __init__(self, core: Core, tables: Tables) -> None:
        super().__init__(core)
        self.tables = tables

    def counter(self, name: str, index: int = 0) -> Counter:
        """The indirect counter of this name; a refusal if it does not exist or has no cell at `index`."""
        kinds = RefusalKind.INVALID_COUNTER_NAME, RefusalKind.INVALID_COUNTER_INDEX
        return array_of("counter", self.program.counters, name, index, *kinds)

    @locked
    def read(self, counter: str, index: int) -> tuple[int, int]:
        """Packets and bytes of one cell."""
        packets, octets = self.data_plane.read_counter(self.counter(counter, index).name)
        return int(packets[index]), int(octets[index])

    @locked
    def read_all(self, counter: str) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Packets and bytes of all cells."""
        return self.data_plane.read_counter(self.counter(counter).name)

    @locked
    def write(self, counter: str, index: int | None, packets: int, octets: int) -> None:
        """Set packets and bytes of one cell, or of all (`index` None)."""
        self.data_plane.write_counter(self.counter(counter, index or 0).name, index, packets, octets)

    def counted(self, table: str) -> HeldTable:
        """The table of this name, which must have a direct counter."""
        found = self.tables.table(table)
        if not found.table.counted:
            raise Refused(RefusalKind.COUNTERS_DISABLED, f"table '{table}' has no direct counter")
        return found

    @locked
    def read_entry(self, table: str, handle: int) -> tuple[int, int]:
        """Packets and bytes of an entry."""
        return self.data_plane.entry_counts(self.counted(table).at_any_version(handle).entry)

    @locked
    def write_entry(self, table: str, handle: int, packets: int, octets: int) -> None:
        """Set packets and bytes of an entry."""
        self.data_plane.write_entry_counts(self.counted(table).at_any_version(handle).entry, packets, octets)

    @locked
    def reset_entries(self, table: str) -> None:
        """Set packets and bytes of all entries of a table to 0."""
        for held in self.counted(table).all():
            self.data_plane.write_entry_counts(held.entry, 0, 0)


# simple_switch_CLI: a command can also name a direct counter, whose cells have the handles of entries


def write_cell(counters: Counters, counter: str, index: int, packets: int, octets: int) -> None:
    direct = counters.program.direct_counters.get(counter)
    if direct is None:
        counters.write(counter, index, packets, octets)
    else:
        counters.write_entry(direct.table, index, packets, octets)


def reset_cells(counters: Counters, counter: str) -> None:
    direct = counters.program.direct_counters.get(counter)
    if direct is None:
        counters.write(counter, None, 0, 0)
    else:
        counters.reset_entries(direct.table)


COMMANDS = {
    "counter_write": Command("COUNTER INDEX PACKETS BYTES", write_cell),
    "counter_reset": Command("COUNTER", reset_cells),
}


# Thrift


def thrift_count(types: Any, count: tuple[int, int]) -> Any:
    return types.Count(packets=signed(count[0], 64), bytes=signed(count[1], 64))


CALLS = {
    "bm_counter_read": Call(Counters.read, answer=thrift_count),
    "bm_counter_reset_all": Call(Counters.write, {"index": None, "packets": 0, "octets": 0}),
    "bm_counter_write": Call(Counters.write),
    "bm_mt_read_counter": Call(Counters.read_entry, answer=thrift_count),
    "bm_mt_reset_counters": Call(Counters.reset_entries),
    "bm_mt_write_counter": Call(Counters.write_entry),
}

ARGUMENTS: dict[str, ReadArgument] = {
    "count": lambda count, *_: {"packets": unsigned(count.packets, 64), "octets": unsigned(count.bytes, 64)}
}


# P4Runtime


def counts_of(data: Message) -> tuple[int, int]:
    """Packets and bytes of a `CounterData`; a fault if one is negative."""
    if data.packet_count < 0 or data.byte_count < 0:
        raise invalid(f"a counter has {data.packet_count} packets and {data.byte_count} bytes: neither is negative")
    return data.packet_count, data.byte_count


def count_fields(packets: int, octets: int) -> Fields:
    """The `CounterData` of packets and bytes; a 64-bit count loses its highest bit."""
    most = (1 << 63) - 1
    return {"packet_count": packets & most, "byte_count": octets & most}


def read_counters(p4info: Message, program: Program) -> ById[ArraySchema]:
    """The indirect counters of a P4Info."""

    def read(each: Message, counter: Counter) -> ArraySchema:
        return ArraySchema(each.preamble.id, each.preamble.name, counter.size)

    return ById("counter", p4info.counters, program.counters, read)


class CounterCodec(ArrayCodec[ArraySchema]):
    """`CounterEntry`: a cell of an indirect counter."""

    member, id_field = "counter_entry", "counter_id"

    def __init__(self, arrays: ById[ArraySchema], counters: Counters) -> None:
        super().__init__(arrays)
        self.counters = counters

    def value(self, array: ArraySchema, message: Message) -> tuple[int, int] | None:  # noqa: ARG002
        return counts_of(message.data) if message.HasField("data") else None

    def put(self, array: ArraySchema, index: int | None, value: tuple[int, int] | None) -> None:
        """Write one cell, or all; do nothing without data."""
        if value is not None:
            self.counters.write(array.name, index, *value)

    def cells(self, array: ArraySchema, indices: Sequence[int]) -> Iterator[Fields]:
        packets, octets = self.counters.read_all(array.name)
        return ({"data": count_fields(int(packets[each]), int(octets[each]))} for each in indices)
