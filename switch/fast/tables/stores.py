"""Where the entries of each kind of table are."""

from __future__ import annotations

from switch.fast.layout.layout import ProgramLayout
from switch.fast.layout.table_layout import TableLayout
from switch.fast.tables.direct import DirectEntries
from switch.fast.tables.hashed import HashedEntries, Tables
from switch.fast.tables.listed import ListedEntries
from switch.fast.tables.prefixed import PrefixedEntries
from switch.fast.tables.rows import Memory, Store


def store_of(layout: ProgramLayout, table: TableLayout, memory: Memory, tables: Tables) -> Store:
    """The entries of a table that has a key."""
    if table.direct:
        return DirectEntries(layout, table, memory)
    if table.rule is not None:
        return ListedEntries(layout, table, memory)
    return (PrefixedEntries if table.prefixed else HashedEntries)(layout, table, memory, tables)
