"""Table entries as JSON, for a switch in another process."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from inakit.switch.control.entry_files.program_names import ProgramNames
from inakit.switch.control.simple_switch_cli import whole_name
from inakit.switch.entries import (
    KeyPart,
    Lpm,
    MulticastGroup,
    Range,
    RegisterPreset,
    SwitchEntries,
    TableEntry,
    Ternary,
)
from inakit.switch.program.program import Program

MATCHES: dict[str, type[Lpm] | type[Ternary] | type[Range]] = {"lpm": Lpm, "ternary": Ternary, "range": Range}


def entries_to(entries: SwitchEntries) -> dict[str, Any]:
    """Entries of tables, multicast groups and register values as JSON."""
    return {
        "tables": [
            [e.table, [part_to(p) for p in e.key], e.action, list(e.params), e.priority] for e in entries.tables
        ],
        "groups": [[group.group, list(group.ports)] for group in entries.groups],
        "registers": [[each.register, each.index, each.value] for each in entries.registers],
    }


def part_to(part: KeyPart) -> Any:
    """A part of a key as JSON."""
    match part:
        case Lpm():
            return ["lpm", part.value, part.prefix]
        case Ternary():
            return ["ternary", part.value, part.mask]
        case Range():
            return ["range", part.low, part.high]
    return part


def entries_from(document: dict[str, Any]) -> SwitchEntries:
    """The entries that `entries_to` wrote."""
    tables = tuple(
        TableEntry(table, tuple(map(part_from, key)), action, tuple(params), priority)
        for table, key, action, params, priority in document["tables"]
    )
    groups = tuple(MulticastGroup(group, tuple(ports)) for group, ports in document["groups"])
    return SwitchEntries("switch", tables, groups, tuple(RegisterPreset(*each) for each in document["registers"]))


def with_whole_names(program: Program, entries: SwitchEntries) -> SwitchEntries:
    """The entries with tables and actions as the program calls them: names may be any ends of these that are unique."""
    names, tables = ProgramNames(program), []
    for entry in entries.tables:
        table = names.table(entry.table)
        actions = [action.name for action in table.actions]
        action = whole_name(f"action of table '{table.name}'", entry.action, actions)
        tables.append(replace(entry, table=table.name, action=action))
    return replace(entries, tables=tuple(tables))


def part_from(document: Any) -> KeyPart:
    """The part of a key that `part_to` wrote."""
    if isinstance(document, int):
        return document
    kind, one, two = document
    return MATCHES[kind](one, two)
