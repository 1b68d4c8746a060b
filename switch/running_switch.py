"""The interface of every running switch, in every target: entries in; tables, registers and counters out.

`HeldEntries` keeps the entries of one table by their identities; every target uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from inakit.switch.control.entry_check import Identity, identity_of
from inakit.switch.entries import Entries, KeyPart, MulticastGroup, SwitchEntries, TableEntry
from inakit.switch.program.program import Table
from inakit.topo.errors import InputError

PROGRAM = Path(__file__).resolve().parents[1] / "p4" / "build" / "ina.json"
"""The default P4 program of switches."""


class SwitchView(Protocol):
    """The readable state of a switch, for any process."""

    def read_table(self, name: str) -> list[TableEntry]:
        """The entries of a table, by its full name in the P4 program, ordered by key."""

    def read_groups(self) -> list[MulticastGroup]:
        """The multicast groups, ordered by number."""

    def read_register(self, name: str) -> NDArray[np.uint64]:
        """All elements of a register array, by its full name in the P4 program."""

    def read_counter(self, name: str, count: int | None = None) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Packets and bytes of the first `count` elements of an indirect counter, by default of all."""


class Installable(SwitchView, Protocol):
    """A switch, or its state, that the process running it can fill and change."""

    def install(self, entries: SwitchEntries) -> None:
        """Add table entries, multicast groups and register presets; `InputError` if the program lacks their objects."""

    def change(self, entries: Sequence[TableEntry]) -> None:
        """Replace actions and parameters of existing entries, found by table and key, while packets pass."""

    def wipe(self) -> None:
        """Set all registers to 0, as a restart does. No packet may pass meanwhile: it would see a partial change."""


class RunningSwitch(Installable, Protocol):
    """A switch that processes packets: in the kernel, in BMv2, or inside this process."""

    name: str

    def check(self) -> None:
        """Raise `RunError` if the switch has stopped processing packets."""


def restart(switch: RunningSwitch, installed: Entries) -> None:
    """Set the registers of a switch as `installed` at its start. No packet may pass meanwhile."""
    switch.wipe()
    switch.install(SwitchEntries(switch.name, registers=installed.of(switch.name).registers))


State = TypeVar("State", bound=Installable)


class StatefulSwitch(Generic[State]):
    """A switch whose `state` does everything that an `Installable` does."""

    name: str
    state: State

    def install(self, entries: SwitchEntries) -> None:
        self.state.install(entries)

    def change(self, entries: Sequence[TableEntry]) -> None:
        self.state.change(entries)

    def wipe(self) -> None:
        self.state.wipe()

    def read_table(self, name: str) -> list[TableEntry]:
        return self.state.read_table(name)

    def read_groups(self) -> list[MulticastGroup]:
        return self.state.read_groups()

    def read_register(self, name: str) -> NDArray[np.uint64]:
        return self.state.read_register(name)

    def read_counter(self, name: str, count: int | None = None) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        return self.state.read_counter(name, count)


Kept = TypeVar("Kept")


class Keyed(Protocol):
    """An entry, or a switch's record of one."""

    @property
    def key(self) -> tuple[KeyPart, ...]:
        """The parts of the key."""

    @property
    def priority(self) -> int | None:
        """The priority, if the table's keys can overlap."""


class HeldEntries(Generic[Kept]):
    """`held` holds the record of each entry; a new entry gets the lowest free number, as BMv2's handles do."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.forget_all()

    def forget_all(self) -> None:
        """Forget all entries."""
        self.held: dict[Identity, Kept] = {}
        self.freed: list[int] = []
        self.numbers = 0

    def take_number(self) -> int:
        """The lowest free number; it is then taken."""
        if self.freed:
            return heappop(self.freed)
        self.numbers += 1
        return self.numbers - 1

    def give_back(self, number: int) -> None:
        """Release this number for a new entry."""
        heappush(self.freed, number)

    def identity(self, entry: Keyed) -> Identity:
        """The identity of an entry, unique in its table."""
        return identity_of(self.table, entry.key, entry.priority)

    def at(self, entry: Keyed) -> Kept:
        """The record of the entry with this key and priority; `InputError` if there is none."""
        found = self.held.get(self.identity(entry))
        if found is None:
            raise InputError(f"table '{self.table.name}' has no entry for the key {entry.key}: install it first")
        return found

    def check_not_const(self) -> None:
        """Raise `InputError` if the table's entries are const in the program."""
        if self.table.entries is not None:
            name = self.table.name
            raise InputError(f"the entries of table '{name}' are const in the program: it takes no others")

    def check_new(self, entries: Sequence[Keyed]) -> None:
        """Raise `InputError` unless the keys are new, the entries fit, and the table takes entries."""
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
