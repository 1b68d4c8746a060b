"""The state of a switch whose generated C runs here or in the kernel, as its memory and its hash tables have it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from switch.control.match_rules import by_priority, rank
from switch.entries import MulticastGroup, TableEntry, group_of_nodes
from switch.fast.layout.layout import GROUPS, LOST, ProgramLayout
from switch.fast.tables.hashed import Tables
from switch.fast.tables.rows import Memory, Row
from switch.fast.tables.stores import store_of


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
        table = self.layout.tables[name]
        by: Callable[[Row], tuple[int, ...]] = order if table.rule or table.prefixed else exact_order
        rows = sorted(self.stores[name].rows(), key=by)
        return [self.entry(name, row) for row in rows]

    def entry(self, table: str, row: Row) -> TableEntry:
        """An entry of a table, from its row."""
        layout = self.layout.tables[table]
        found = layout.unpack_entry(row.key, row.data)
        return replace(found, priority=row.priority if by_priority(layout.table) else None)

    def read_groups(self) -> list[MulticastGroup]:
        """The multicast groups, ordered by number."""
        found = (unpack_group(key, data) for key, data in self.readable.items(GROUPS))
        return sorted(found, key=lambda group: group.group)

    def read_lost(self) -> int:
        """How many packets the kernel could not make as their headers say."""
        return int(self.layout.view(self.memory, LOST)["packets"][0]) if self.layout.rebuilt else 0

    def column(self, register: str) -> NDArray[np.uint64]:
        """The elements of a register, in the shared memory itself and in the register's own integer type."""
        array = self.program.register(register)
        view: NDArray[np.uint64] = self.layout.view(self.memory, f"rows_{array.size}")[register]
        return view

    def read_register(self, name: str) -> NDArray[np.uint64]:
        """A copy of all elements of the register `name`."""
        return self.column(name).astype(np.uint64)

    def read_counter(self, name: str, count: int | None = None) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Copies of the packets and bytes of the first `count` elements of the counter `name`, by default of all."""
        view = self.layout.view(self.memory, self.program.counter(name).name)
        return view["packets"][:count].copy(), view["bytes"][:count].copy()


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
