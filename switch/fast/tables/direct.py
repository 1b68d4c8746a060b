"""The entries of a table whose key is the index of an array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from switch.fast.layout.layout import ProgramLayout
from switch.fast.layout.table_layout import COPIES, WHICH_BYTES, TableLayout
from switch.fast.tables.rows import Memory, Row, number_of
from switch.fast.tables.two_copies import read_copy, write_other


class DirectEntries:
    """Each place of the array has an entry in two copies: see `place_record`."""

    def __init__(self, layout: ProgramLayout, table: TableLayout, memory: Memory) -> None:
        places = layout.view(memory, table.table.name)
        raw = places.view(np.uint8).reshape(len(places), -1)
        self.which = places["which"]
        self.copies = raw[:, WHICH_BYTES:].reshape(len(places), COPIES, table.entry_bytes)

    def add(self, rows: Sequence[Row]) -> None:
        """Add entries, or replace those with the same keys."""
        for row in rows:
            index = int(row.key[0])  # type: ignore[arg-type]
            write_other(self.copies[index], self.which, index, row.data)

    change = add

    def remove(self, rows: Sequence[Row]) -> None:
        """Remove the entries with these keys."""
        for row in rows:
            self.which[int(row.key[0])] = 0  # type: ignore[arg-type]

    def rows(self) -> Iterator[Row]:
        """All entries."""
        for index in np.flatnonzero(self.which):
            data = read_copy(self.copies[index], int(self.which[index]))
            if data is not None:
                yield Row((int(index),), None, number_of(data), data)
