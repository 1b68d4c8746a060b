"""The entries of one table of a running switch, by their identities, for every target."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Generic, Protocol, TypeVar

from inakit.switch.control.entry_check import Identity, identity_of
from inakit.switch.entries import KeyPart
from inakit.switch.program.program import Table
from inakit.topo.errors import InputError

Kept = TypeVar("Kept")


class Keyed(Protocol):
    """An entry, or a switch's record of one."""

    @property
    def key(self) -> tuple[KeyPart, ...]:
        """The parts of the key."""

    @property
    def priority(self) -> int | None:
        """The priority, in a table whose keys can overlap."""


class HeldEntries(Generic[Kept]):
    """`held` has the record of each entry; each new entry gets the lowest free number, as BMv2's handles."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.forget_all()

    def forget_all(self) -> None:
        """Hold no entries."""
        self.held: dict[Identity, Kept] = {}
        self.freed: list[int] = []
        self.numbers = 0

    def take_number(self) -> int:
        """The lowest number that no entry has."""
        if self.freed:
            return heappop(self.freed)
        self.numbers += 1
        return self.numbers - 1

    def give_back(self, number: int) -> None:
        """Let a new entry have this number."""
        heappush(self.freed, number)

    def identity(self, entry: Keyed) -> Identity:
        """The identity of an entry, which no other entry of the table has."""
        return identity_of(self.table, entry.key, entry.priority)

    def at(self, entry: Keyed) -> Kept:
        """The record of the entry with this key and priority; `InputError` if there is none."""
        found = self.held.get(self.identity(entry))
        if found is None:
            raise InputError(f"table '{self.table.name}' has no entry for the key {entry.key}: install it first")
        return found

    def check_not_const(self) -> None:
        """Raise `InputError` if the program gives the table's entries."""
        if self.table.entries is not None:
            name = self.table.name
            raise InputError(f"the entries of table '{name}' are const in the program: it takes no others")

    def check_new(self, entries: Sequence[Keyed]) -> None:
        """Raise `InputError` unless the keys are new and find room, and the table takes entries."""
        name, seen = self.table.name, set(self.held)
        if not self.table.key:
            raise InputError(f"table '{name}' has no key: it takes no entries")
        self.check_not_const()
        for entry in entries:
            identity = self.identity(entry)
            if identity in seen:
                raise InputError(f"table '{name}' already has an entry for the key {entry.key}")
            seen.add(identity)
        if len(seen) > self.table.size:
            raise InputError(
                f"table '{name}' is full: the program gives it {self.table.size} entries; raise its size there"
            )
