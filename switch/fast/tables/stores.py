"""Where the entries of each kind of table are."""

from __future__ import annotations

from inakit.switch.fast.layout.layout import ProgramLayout
from inakit.switch.fast.layout.table_layout import TableLayout
from inakit.switch.fast.tables.direct import DirectEntries
from inakit.switch.fast.tables.hashed import HashedEntries, Tables
from inakit.switch.fast.tables.listed import ListedEntries
from inakit.switch.fast.tables.prefixed import PrefixedEntries
from inakit.switch.fast.tables.rows import Memory, Store


def store_of(layout: ProgramLayout, table: TableLayout, memory: Memory, tables: Tables) -> Store:
    """The entries of a table that has a key."""
    if table.direct:
        return DirectEntries(layout, table, memory)
    if table.rule is not None:
        return ListedEntries(layout, table, memory)
    return (PrefixedEntries if table.prefixed else HashedEntries)(layout, table, memory, tables)
