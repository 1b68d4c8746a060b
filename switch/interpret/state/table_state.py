"""The entries of tables, and how the one that matches a packet is found."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from switch.control.match_rules import Test, matches, rank, test_of
from switch.entries import KeyPart
from switch.program.actions import ActionCall
from switch.program.pipelines import Table
from topo.errors import InputError

REMEMBERED = 4096
"""The results of at most so many lookups are remembered."""

Key = tuple[int, ...]

Identity = tuple[tuple[Test, ...], int | None]
"""What no two entries of a table share: least, greatest and mask of each part of the key, and the priority."""


@dataclass(eq=False)
class Installed:
    """One entry of a running table; `calls` has several actions if the table's selector chooses one of them.

    `number` counts a table's entries in the order in which they were added: it is the cell of a direct meter.
    """

    key: tuple[KeyPart, ...]
    priority: int | None
    calls: tuple[ActionCall, ...]
    number: int = 0
    packets: int = 0
    bytes: int = 0


class TableState:
    """The entries of one table. `find` gives the one that matches a packet's key, or None.

    Keys that match exactly are looked up in `exact`; other entries are in `ordered`, those that win first.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.default = table.default
        self.entries: dict[Identity, Installed] = {}
        self.exact: dict[Key, Installed] = {}
        self.ordered: list[tuple[list[Test], Installed]] = []
        self.found: dict[Key, Installed | None] = {}
        self.find: Callable[[Key], Installed | None] = self.exact.get if table.match == "exact" else self.search

    def search(self, key: Key) -> Installed | None:
        """The first entry that matches, in the order in which entries win."""
        if key not in self.found:
            if len(self.found) >= REMEMBERED:
                self.found.clear()
            self.found[key] = next((entry for tests, entry in self.ordered if matches(tests, key)), None)
        return self.found[key]

    def add(self, entry: Installed) -> None:
        """Add an entry that was checked; it replaces one with the same key and priority."""
        entry.number = len(self.entries)
        self.entries[self.identity(entry.key, entry.priority)] = entry
        tests = self.tests(entry.key)
        if self.table.match == "exact":
            self.exact[tuple(least for _, least, _ in tests)] = entry
            return
        insort(self.ordered, (tests, entry), key=lambda each: rank(each[1].key, each[1].priority))
        self.found.clear()

    def at(self, key: Sequence[KeyPart], priority: int | None) -> Installed:
        """The entry with this key, to be changed; `InputError` if there is none, or it is const."""
        found = self.entries.get(self.identity(key, priority))
        if self.table.entries is not None:
            raise InputError(f"the entries of table '{self.table.name}' are const in the program")
        if found is None:
            raise InputError(f"table '{self.table.name}' has no entry for the key {key}: install it first")
        return found

    def tests(self, key: Sequence[KeyPart]) -> list[Test]:
        """The tests of all parts of an entry's key."""
        return [test_of(part, value) for part, value in zip(self.table.key, key, strict=True)]

    def identity(self, key: Sequence[KeyPart], priority: int | None) -> Identity:
        """What no other entry of this table has."""
        return tuple((least, most, mask) for mask, least, most in self.tests(key)), priority

    def check_new(self, keys: Sequence[tuple[tuple[KeyPart, ...], int | None]]) -> None:
        """Raise `InputError` unless these (key, priority) are new, find room, and the table takes entries."""
        name, seen = self.table.name, set(self.entries)
        if keys and not self.table.key:
            raise InputError(f"table '{name}' has no key: it takes no entries")
        if keys and self.table.entries is not None:
            raise InputError(f"the entries of table '{name}' are const in the program: it takes no others")
        for key, priority in keys:
            identity = self.identity(key, priority)
            if identity in seen:
                raise InputError(f"table '{name}' already has an entry for the key {key}")
            seen.add(identity)
        if len(seen) > self.table.size and keys:
            raise InputError(
                f"table '{name}' is full: the program gives it {self.table.size} entries; raise its size there"
            )
