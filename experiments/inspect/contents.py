"""What a switch of a running network holds: which parts of it, how they are read, and as JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from switch.entries import MulticastGroup, TableEntry
from switch.handle import program_of
from switch.program.program import Program
from switch.running_switch import SwitchView
from switch.targets import TARGETS
from topo.errors import MachineError, unknown_name
from topo.live.running import SwitchFacts

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
        """What was asked for; everything if nothing was. The name may leave out that of the control.

        Raises `InputError` for a name that the program has not.
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
    """The full name of `name`; none for None."""
    if name is None:
        return ()
    found = [full for full in known if name in (full, short(full))]
    if not found:
        raise unknown_name(what, name, {short(full) if "." not in name else full for full in known})
    return tuple(found)


def short(name: str) -> str:
    """A P4 name without what it stands in."""
    return name.rpartition(".")[2]


@dataclass(frozen=True)
class Contents:
    """What was read of a switch, by full name."""

    program: Program
    tables: Mapping[str, Sequence[TableEntry]]
    groups: Sequence[MulticastGroup]
    registers: Mapping[str, Values]
    counters: Mapping[str, tuple[Values, Values]]


def attach(facts: SwitchFacts) -> tuple[SwitchView, Program]:
    """A switch of a running network, for reading, and what it runs. Raises `InakitError`."""
    if os.geteuid() != 0:
        raise MachineError("looking into a running switch needs root: run the same command with sudo")
    program = program_of(facts.handle)
    return TARGETS[facts.handle["target"]].attach(facts.handle, program), program


def read(view: SwitchView, program: Program, selection: Selection) -> Contents:
    """What `selection` says, of a switch that goes on working meanwhile."""
    return Contents(
        program,
        {name: view.read_table(name) for name in selection.tables},
        view.read_groups() if selection.groups else [],
        {name: view.read_register(name) for name in selection.registers},
        {name: view.read_counter(name) for name in selection.counters},
    )


def as_document(contents: Contents) -> dict[str, Any]:
    """Everything that was read; of registers and counters, the elements that are not 0."""
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
    """A table entry as JSON has it."""
    return {"key": list(entry.key), "action": entry.action, "params": list(entry.params)}
