"""Entries for hardware, and differences between planned entries and those of a switch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TypeVar

from inakit.switch.control.entry_check import identity_of
from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry
from inakit.switch.program.program import Program
from inakit.topo.errors import UnsupportedError

HANDED_OVER = ("switch", "tables", "groups")

Part = MulticastGroup | TableEntry


def in_order(entries: SwitchEntries) -> list[Part]:
    """Groups and entries in an order in which a switch can take them: groups before the entries that name them.

    Raises `UnsupportedError` for entries with anything else, such as the registers of faults.
    """
    for field in fields(entries):
        if field.name not in HANDED_OVER and getattr(entries, field.name):
            raise UnsupportedError(
                f"switch '{entries.switch}': {field.name} are not handed over, only tables and groups: hand over a "
                "plan without faults"
            )
    return [*entries.groups, *entries.tables]


Key = TypeVar("Key")
Held = TypeVar("Held", TableEntry, MulticastGroup)


@dataclass(frozen=True)
class Difference:
    """An entry or a group that is missing (nothing is held), extra (none is planned), or wrong (both are given)."""

    planned: Part | None
    held: Part | None

    @property
    def kind(self) -> str:
        """`missing`, `extra` or `wrong`."""
        if self.held is None:
            return "missing"
        return "extra" if self.planned is None else "wrong"


def differences(program: Program, planned: SwitchEntries, held: SwitchEntries) -> list[Difference]:
    """The groups and table entries that are missing, extra or wrong; their order does not matter."""
    return [
        *compared(groups_of(planned), groups_of(held)),
        *compared(entries_of(program, planned), entries_of(program, held)),
    ]


def compared(planned: Mapping[Key, Held], held: Mapping[Key, Held]) -> Iterator[Difference]:
    """The differences of two mappings, by what identifies their values."""
    for key, part in planned.items():
        if key not in held or not same(part, held[key]):
            yield Difference(part, held.get(key))
    yield from (Difference(None, part) for key, part in held.items() if key not in planned)


def same(one: Part, other: Part) -> bool:
    """Whether two entries run the same action, or two groups make the same copies."""
    if isinstance(one, MulticastGroup) and isinstance(other, MulticastGroup):
        return sorted(one.replicas) == sorted(other.replicas)
    return isinstance(one, TableEntry) and isinstance(other, TableEntry) and call_of(one) == call_of(other)


def call_of(entry: TableEntry) -> tuple[str, tuple[int, ...]]:
    """The action that an entry runs, with its parameters."""
    return entry.action, entry.params


def groups_of(entries: SwitchEntries) -> dict[int, MulticastGroup]:
    return {group.group: group for group in entries.groups}


def entries_of(program: Program, entries: SwitchEntries) -> dict[object, TableEntry]:
    """Table entries by what no two of them share: the table, and what the key and the priority match."""
    return {
        (entry.table, identity_of(program.table(entry.table), entry.key, entry.priority)): entry
        for entry in entries.tables
    }
