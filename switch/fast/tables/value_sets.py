"""The values of a parser value set, which the parser looks up in a hash table."""

from __future__ import annotations

from inakit.switch.fast.layout.layout import VALUE_BYTES, ProgramLayout, ValueSetLayout
from inakit.switch.fast.tables.hashed import HashTable, Tables
from inakit.switch.fast.tables.rows import Memory
from inakit.topo.errors import UnsupportedError

PRESENT = (1).to_bytes(VALUE_BYTES, "little")


class ValueSetMembers:
    """The values of one set."""

    def __init__(self, layout: ProgramLayout, value_set: ValueSetLayout, memory: Memory, tables: Tables) -> None:
        self.layout = value_set
        self.hash_table = HashTable(layout, value_set.symbol, memory, tables)
        self.values: set[int] = set()

    def add(self, value: int) -> None:
        """Add a value, if it is not there; `UnsupportedError` if the set is full."""
        if value in self.values:
            return
        if len(self.values) >= self.layout.most:
            name, most = self.layout.value_set.name, self.layout.most
            raise UnsupportedError(f"value set '{name}' has {most} values: target 'fast' keeps no more")
        self.hash_table.add([(self.layout.key.pack((value,)), PRESENT)])
        self.values.add(value)

    def remove(self, value: int) -> None:
        """Remove a value; do nothing if it is not there."""
        if value in self.values:
            self.hash_table.remove([self.layout.key.pack((value,))])
            self.values.remove(value)

    def clear(self) -> None:
        """Remove all values."""
        self.hash_table.remove([self.layout.key.pack((value,)) for value in self.values])
        self.values.clear()
