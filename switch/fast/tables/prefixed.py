"""The entries of a table in which the longest prefix wins: a hash table, sought once for each length in use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from inakit.switch.entries import Lpm
from inakit.switch.fast.layout.entry_arrays import lengths_array
from inakit.switch.fast.layout.layout import ProgramLayout
from inakit.switch.fast.layout.table_layout import TableLayout
from inakit.switch.fast.tables.hashed import HashedEntries, Tables
from inakit.switch.fast.tables.rows import Memory, Row


class PrefixedEntries(HashedEntries):
    """Each length in use is linked to the next shorter one; the links begin at `head`. A link is a length plus 1."""

    def __init__(self, layout: ProgramLayout, table: TableLayout, memory: Memory, tables: Tables) -> None:
        super().__init__(layout, table, memory, tables)
        self.place, part = table.prefix_part
        self.head = part.bits + 1
        self.links = layout.view(memory, lengths_array(table.table.name))["next"]
        self.used: Counter[int] = Counter()

    def add(self, rows: Sequence[Row]) -> None:
        """Add entries; packets seek a length once the first entry with it is there."""
        super().add([self.masked(row) for row in rows])
        lengths = Counter(map(self.length, rows))
        for length in lengths.keys() - self.used.keys():
            before = self.before(length)
            self.links[length] = self.links[before]
            self.links[before] = length + 1
        self.used += lengths

    def change(self, rows: Sequence[Row]) -> None:
        """Replace what entries with these prefixes do."""
        super().change([self.masked(row) for row in rows])

    def remove(self, rows: Sequence[Row]) -> None:
        """Remove entries; packets no longer seek a length that no entry has."""
        super().remove([self.masked(row) for row in rows])
        lengths = Counter(map(self.length, rows))
        self.used -= lengths
        for length in lengths.keys() - self.used.keys():
            self.links[self.before(length)] = self.links[length]

    def before(self, length: int) -> int:
        """The next longer length in use, or the head."""
        at = self.head
        while self.links[at] and self.links[at] - 1 > length:
            at = int(self.links[at]) - 1
        return at

    def length(self, row: Row) -> int:
        """The length of an entry's prefix."""
        return self.prefix(row).prefix

    def prefix(self, row: Row) -> Lpm:
        """The prefix of an entry."""
        part = row.key[self.place]
        assert isinstance(part, Lpm)
        return part

    def masked(self, row: Row) -> Row:
        """The entry with only those bits of its prefix that count."""
        prefix, free = self.prefix(row), self.head - 1 - self.length(row)
        key = list(row.key)
        key[self.place] = replace(prefix, value=prefix.value >> free << free)
        return row._replace(key=tuple(key))
