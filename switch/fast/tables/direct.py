"""The entries of a table whose key is the index of an array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from inakit.switch.fast.layout.layout import ProgramLayout
from inakit.switch.fast.layout.table_layout import COPIES, TableLayout
from inakit.switch.fast.tables.rows import Memory, Row, number_of

HEAD = TableLayout.HEAD_BYTES


class DirectEntries:
    """Each place of the array has an entry, and room for another one, which packets read if the first is not there.

    A head is written at once: it says whether the entry is there, and which action it runs.
    """

    def __init__(self, layout: ProgramLayout, table: TableLayout, memory: Memory) -> None:
        places = layout.view(memory, table.table.name)
        self.entries = places.view(np.uint8).reshape(len(places), COPIES, table.entry_bytes)
        self.heads = self.entries[:, :, :HEAD].view(np.uint64).reshape(len(places), COPIES)

    def add(self, rows: Sequence[Row]) -> None:
        """Add entries that are not there yet."""
        for row in rows:
            self.write(index_of(row), 0, row.data)

    def change(self, rows: Sequence[Row]) -> None:
        """Replace what entries with these keys do: the other one is there while the first is written."""
        for row in rows:
            index = index_of(row)
            self.write(index, 1, row.data)
            self.heads[index, 0] = 0
            self.write(index, 0, row.data)
            self.heads[index, 1] = 0

    def remove(self, rows: Sequence[Row]) -> None:
        """Remove the entries with these keys."""
        for row in rows:
            self.heads[index_of(row), 0] = 0

    def rows(self) -> Iterator[Row]:
        """All entries."""
        for index in np.flatnonzero(self.heads[:, 0]):
            data = self.entries[index, 0].tobytes()
            yield Row((int(index),), None, number_of(data), data)

    def write(self, index: int, copy: int, data: bytes) -> None:
        """Write an entry that is not there: its parameters, and then the head."""
        self.entries[index, copy, HEAD:] = np.frombuffer(data, np.uint8, offset=HEAD)
        self.heads[index, copy] = int.from_bytes(data[:HEAD], "little")


def index_of(row: Row) -> int:
    """The index of an entry, which is its key."""
    (index,) = row.key
    assert isinstance(index, int)
    return index
