"""The contents of a switch in a running network: selected by name, read, and turned into JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inakit.switch.entries import MulticastGroup, TableEntry
from inakit.switch.handle import program_of
from inakit.switch.program.program import Program
from inakit.switch.running_switch import SwitchView
from inakit.switch.targets import TARGETS
from inakit.topo.errors import MachineError, as_root, unknown_name
from inakit.topo.live.running import SwitchFacts

Values = NDArray[np.uint64]


@dataclass(frozen=True)
class Selection:
    """The parts of a switch to show, by their full names in the P4 program."""

    tables: tuple[str, ...]
    registers: tuple[str, ...]
    counters: tuple[str, ...]
    groups: bool

    @classmethod
    def of(cls, program: Program, table: str | None, register: str | None, counter: str | None) -> Selection:
        """The parts with these names; everything if all are None. A name may be without that of its P4 control.

        Raises `InputError` for a name that the program does not have.
        """
        every = cls(
            tuple(name for name, found in program.tables.items() if found.key),
            tuple(program.registers),
            tuple(program.counters),
            groups=True,
        )
        if table is register is counter is None:
            return every
        return cls(
            chosen("table", table, every.tables),
            chosen("register", register, every.registers),
            chosen("counter", counter, every.counters),
            groups=False,
        )


def chosen(what: str, name: str | None, known: Sequence[str]) -> tuple[str, ...]:
    """The full names that `name` stands for, none for None. Raises `InputError`."""
    if name is None:
        return ()
    found = [full for full in known if name in (full, short(full))]
    if not found:
        raise unknown_name(what, name, {short(full) if "." not in name else full for full in known})
    return tuple(found)


def short(name: str) -> str:
    """The last part of a P4 name, such as `events` of `InaIngress.events`."""
    return name.rpartition(".")[2]


@dataclass(frozen=True)
class Contents:
    """What was read of a switch, by full P4 names. A counter has two arrays: packets and bytes."""

    program: Program
    tables: Mapping[str, Sequence[TableEntry]]
    groups: Sequence[MulticastGroup]
    registers: Mapping[str, Values]
    counters: Mapping[str, tuple[Values, Values]]


def attach(facts: SwitchFacts) -> tuple[SwitchView, Program]:
    """A view for reading a switch of a running network, and the program that it runs. Raises `InakitError`."""
    if os.geteuid() != 0:
        raise MachineError(f"looking into a running switch needs root: {as_root()}")
    program = program_of(facts.handle)
    return TARGETS[facts.handle["target"]].attach(facts.handle, program), program


def read(view: SwitchView, program: Program, selection: Selection) -> Contents:
    """Read the selected parts of a switch, which goes on working meanwhile."""
    return Contents(
        program,
        {name: view.read_table(name) for name in selection.tables},
        view.read_groups() if selection.groups else [],
        {name: view.read_register(name) for name in selection.registers},
        {name: view.read_counter(name) for name in selection.counters},
    )


def as_document(contents: Contents) -> dict[str, Any]:
    """Everything that was read, ready for JSON; of registers and counters only the elements that are not 0."""
    return {
        "tables": {name: [entry_document(e) for e in entries] for name, entries in contents.tables.items()},
        "groups": {group.group: list(group.ports) for group in contents.groups},
        "more_replicas": {group.group: [list(each) for each in group.more] for group in contents.groups if group.more},
        "registers": {
            name: {int(i): int(values[i]) for i in np.flatnonzero(values)}
            for name, values in contents.registers.items()
        },
        "counters": {
            name: {int(i): {"packets": int(packets[i]), "bytes": int(octets[i])} for i in np.flatnonzero(packets)}
            for name, (packets, octets) in contents.counters.items()
        },
    }


def entry_document(entry: TableEntry) -> dict[str, Any]:
    """A table entry, ready for JSON."""
    return {"key": list(entry.key), "action": entry.action, "params": list(entry.params)}
