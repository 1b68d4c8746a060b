"""The state of a switch whose generated C runs here or in the kernel, as its memory and its hash tables have it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inakit.switch.control.entry_check import by_priority, rank
from inakit.switch.entries import MulticastGroup, TableEntry, group_of_nodes
from inakit.switch.fast.layout.entry_arrays import counts_array, members_array
from inakit.switch.fast.layout.layout import FAILED, GROUPS, LOST, ProgramLayout
from inakit.switch.fast.layout.table_layout import TableLayout
from inakit.switch.fast.tables.hashed import Tables
from inakit.switch.fast.tables.rows import Memory, Row
from inakit.switch.fast.tables.stores import store_of


class StateReader:
    """Reads memory and hash tables as target-neutral entries, registers and counters."""

    def __init__(self, layout: ProgramLayout, memory: Memory, tables: Tables) -> None:
        self.layout = layout
        self.program = layout.program
        self.memory = memory
        self.readable = tables
        self.stores = {name: store_of(layout, table, memory, tables) for name, table in layout.tables.items()}

    def read_table(self, name: str) -> list[TableEntry]:
        """The entries of the table `name`, ordered by key; where keys overlap, in the order in which they win."""
        if not self.program.table(name).key:
            return []
        return [self.entry(name, row) for row in self.ordered_rows(name)]

    def ordered_rows(self, name: str) -> list[Row]:
        """The entries of a table that has a key, as `read_table` gives them."""
        table = self.layout.tables[name]
        by: Callable[[Row], tuple[int, ...]] = order if table.rule or table.prefixed else exact_order
        return sorted(self.stores[name].rows(), key=by)

    def entry(self, table: str, row: Row) -> TableEntry:
        """An entry of a table, from its row."""
        layout = self.layout.tables[table]
        found = layout.unpack_entry(row.key, self.first_member(layout, row.data))
        return replace(found, priority=row.priority if by_priority(layout.table) else None)

    def first_member(self, layout: TableLayout, data: bytes) -> bytes:
        """The bytes of the first member of the group that an entry has; those of the entry if it has none."""
        group = layout.group_in(data)
        if group is None or not group[1]:
            return data
        member: bytes = self.layout.view(self.memory, members_array(layout.table.name))[group[0]].tobytes()
        return member

    def read_groups(self) -> list[MulticastGroup]:
        """The multicast groups, ordered by number."""
        found = (unpack_group(key, data) for key, data in self.readable.items(GROUPS))
        return sorted(found, key=lambda group: group.group)

    def read_lost(self) -> int:
        """How many packets the kernel could not make as their headers say."""
        return int(self.layout.view(self.memory, LOST)["packets"][0]) if self.layout.losing else 0

    def read_failed(self) -> int:
        """How many assertions of the program did not hold."""
        return int(self.layout.view(self.memory, FAILED)["claims"][0]) if self.layout.claims else 0

    def column(self, register: str) -> NDArray[np.uint64]:
        """The elements of a register, in the shared memory itself and in the register's own integer type."""
        array = self.program.register(register)
        view: NDArray[np.uint64] = self.layout.view(self.memory, f"rows_{array.size}")[register]
        return view

    def read_register(self, name: str) -> NDArray[np.uint64]:
        """A copy of all elements of the register `name`."""
        return self.column(name).astype(np.uint64)

    def read_counter(self, name: str, count: int | None = None) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Copies of the packets and bytes of the first `count` elements of the counter `name`, by default of all.

        Those of a direct counter are of every entry, in the order of `read_table`.
        """
        view = self.counter_cells(name)
        return view["packets"][:count].copy(), view["bytes"][:count].copy()

    def counter_cells(self, name: str) -> NDArray[np.void]:
        """The cells of a counter; those of a direct counter for each entry."""
        direct = self.program.direct_counters.get(name)
        if direct is None:
            return self.layout.view(self.memory, self.program.counter(name).name)
        numbers = [row.number for row in self.ordered_rows(direct.table)]
        cells: NDArray[np.void] = self.layout.view(self.memory, counts_array(direct.table))[numbers]
        return cells


def exact_order(row: Row) -> tuple[int, ...]:
    """By what entries are ordered whose keys are numbers."""
    return tuple(part for part in row.key if isinstance(part, int))


def order(row: Row) -> tuple[int, int]:
    """By what entries are ordered whose keys overlap: those that win first."""
    return rank(row.key, row.priority), row.number


def unpack_group(key: bytes, data: bytes) -> MulticastGroup:
    """The group that `pack_group` packed into these bytes."""
    number, pairs = int.from_bytes(key, "little"), tuple(replicas_in(data))
    group = group_of_nodes(number, pairs)
    return group if group.replicas == pairs else MulticastGroup(number, (), pairs, ordered=True)


def replicas_in(data: bytes) -> Iterator[tuple[int, int]]:
    """The (egress_rid, port) pairs of a packed group, in the order in which copies leave."""
    count = int.from_bytes(data[:4], "little")
    for port, replica in np.frombuffer(data, np.uint16, 2 * count, offset=4).reshape(-1, 2).tolist():
        yield replica, port
