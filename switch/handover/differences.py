"""Entries for hardware, and differences between planned entries and those in a switch."""

from __future__ import annotations

from dataclasses import dataclass, fields

from inakit.switch.control.entry_check import identity_of
from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry
from inakit.switch.program.program import Program
from inakit.topo.errors import UnsupportedError

HANDED_OVER = ("switch", "tables", "groups")

Part = MulticastGroup | TableEntry


def in_order(entries: SwitchEntries) -> list[Part]:
    """Groups and entries in an order in which a switch can take them: groups before the entries that name them.

    Raises `UnsupportedError` for entries of any other kind, such as the registers of faults.
    """
    for field in fields(entries):
        if field.name not in HANDED_OVER and getattr(entries, field.name):
            raise UnsupportedError(
                f"switch '{entries.switch}': {field.name} cannot be handed over, only tables and groups: use a "
                "plan without faults"
            )
    return [*entries.groups, *entries.tables]


@dataclass(frozen=True)
class Difference:
    """An entry or a group that is missing (nothing is held), extra (nothing is planned), or wrong (both are given)."""

    planned: Part | None
    held: Part | None

    @property
    def kind(self) -> str:
        """`missing`, `extra` or `wrong`."""
        if self.held is None:
            return "missing"
        return "extra" if self.planned is None else "wrong"


def differences(program: Program, planned: SwitchEntries, held: SwitchEntries) -> list[Difference]:
    """The groups and table entries that are missing, extra or wrong; their order is irrelevant."""
    found: list[Difference] = []
    for kind in ("groups", "tables"):
        wanted, present = ({identity(program, part): part for part in getattr(each, kind)} for each in (planned, held))
        for key, part in wanted.items():
            if key not in present or content(part) != content(present[key]):
                found.append(Difference(part, present.get(key)))
        found += [Difference(None, part) for key, part in present.items() if key not in wanted]
    return found


def identity(program: Program, part: Part) -> object:
    """The number of a group; or the table of an entry with its key's tests and its priority."""
    if isinstance(part, MulticastGroup):
        return part.group
    return part.table, identity_of(program.table(part.table), part.key, part.priority)


def content(part: Part) -> object:
    """The copies of a group; or the action of an entry with its parameters."""
    return sorted(part.replicas) if isinstance(part, MulticastGroup) else (part.action, part.params)
