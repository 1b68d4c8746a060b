"""The arrays in memory that belong to tables: their entries, what is kept for each entry, cells of meters."""

from __future__ import annotations

from collections.abc import Iterator

from inakit.switch.fast.layout.records import MemoryRecord, RecordMember, make_record
from inakit.switch.fast.layout.table_layout import (
    COPIES,
    MOST_MEMBERS,
    TableLayout,
    entry_record,
    listed_record,
    place_record,
)
from inakit.switch.program.program import Program

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
"""1 + the place of what follows; 0: nothing does."""


def table_arrays(layout: TableLayout) -> Iterator[tuple[str, MemoryRecord, int]]:
    """The arrays of one table's entries, as (name, record, length)."""
    name, key = layout.table.name, layout.table.key
    if layout.direct:
        yield name, place_record(layout), 1 << key[0].bits
    if layout.rule is not None:
        yield name, listed_record(layout), COPIES * (layout.most_entries + 1)  # one more, which ends the list
        yield first_array(name), FIRST, 1
    if layout.prefixed:
        yield lengths_array(name), LINK, layout.prefix_part[1].bits + 2


def entry_arrays(program: Program, layout: TableLayout) -> Iterator[tuple[str, MemoryRecord, int]]:
    """The arrays of what is kept for each entry of a table, and of the members of its groups."""
    table = layout.table
    if table.counted:
        yield counts_array(table.name), COUNTER, layout.most_entries
    if table.idle_timeout:
        yield matched_array(table.name), MATCHED, layout.most_entries
    if table.profile is not None and program.profiles[table.profile].selector is not None:
        most = 2 * max(program.profiles[table.profile].size, table.size)
        yield members_array(table.name), entry_record(layout), min(most, MOST_MEMBERS)


def counts_array(table: str) -> str:
    """The name of the array of packets and bytes of a table's entries, by their numbers."""
    return f"counts of {table}"


def matched_array(table: str) -> str:
    """The name of the array of times at which a table's entries last matched a packet, by their numbers."""
    return f"matched of {table}"


def members_array(table: str) -> str:
    """The name of the array of members of the groups that a table's entries have."""
    return f"members of {table}"


def meter_array(meter: str) -> str:
    """The name of the array of a meter's cells."""
    return f"cells of {meter}"


def first_array(table: str) -> str:
    """The name of the array of one place that says where the list begins that packets read."""
    return f"first of {table}"


def lengths_array(table: str) -> str:
    """The name of the array of a table's prefix lengths: each that is in use is linked to the next shorter one.

    The links begin behind the longest length that there can be.
    """
    return f"lengths of {table}"


def default_array(table: str) -> str:
    """The name of the array of copies of the default action that the control plane has set."""
    return f"default of {table}"
