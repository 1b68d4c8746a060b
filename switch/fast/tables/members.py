"""The members of the groups that entries of a table name: for each group a run of places of one array."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from inakit.switch.fast.layout.entry_arrays import members_array
from inakit.switch.fast.layout.layout import ProgramLayout
from inakit.switch.fast.tables.rows import Memory, byte_rows
from inakit.topo.errors import UnsupportedError

Group = tuple[bytes, ...]
"""The members of a group in bytes, in the order in which the selector counts them."""


class Members:
    """Groups of the same members share their places; `users` has how many entries name each."""

    def __init__(self, layout: ProgramLayout, table: str, memory: Memory) -> None:
        places = layout.view(memory, members_array(table))
        self.table = table
        self.raw = places.view(np.uint8).reshape(len(places), -1)
        self.taken = np.zeros(len(places), np.bool_)
        self.first: dict[Group, int] = {}
        self.users: dict[Group, int] = {}

    def take(self, group: Group) -> int:
        """The first place of a group, which is written if no entry names it yet; `UnsupportedError` without room."""
        if group not in self.first:
            first = self.room(len(group))
            self.raw[first : first + len(group)] = byte_rows(group)
            self.taken[first : first + len(group)] = True
            self.first[group], self.users[group] = first, 0
        self.users[group] += 1
        return self.first[group]

    def give_back(self, first: int, count: int) -> None:
        """Say that one entry fewer names the group at these places."""
        group = self.group(first, count)
        self.users[group] -= 1
        if not self.users[group]:
            del self.users[group], self.first[group]
            self.taken[first : first + count] = False

    def group(self, first: int, count: int) -> Group:
        """The members at these places."""
        return tuple(each.tobytes() for each in self.raw[first : first + count])

    def room(self, count: int) -> int:
        """The first of so many free places in a row."""
        if count <= len(self.taken):
            free = ~sliding_window_view(self.taken, count).any(axis=1)
            if free.any():
                return int(free.argmax())
        raise UnsupportedError(
            f"the groups of table '{self.table}' have no room for {count} more members: target 'fast' keeps "
            f"{len(self.taken)} for this table"
        )
