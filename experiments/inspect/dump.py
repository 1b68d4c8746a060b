"""The contents of a switch in a running network: selected by name, read, and shown as text or as JSON."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inakit.planner.install.ina_program import EVENTS, LOST, RECEIVED, REPLICATED, SENT, SLOT_BITMAP
from inakit.switch.entries import MulticastGroup, TableEntry
from inakit.switch.handle import program_of
from inakit.switch.program.program import Program, Table
from inakit.switch.running_switch import SwitchView
from inakit.switch.targets import TARGETS
from inakit.topo.errors import MachineError, as_root, unknown_name
from inakit.topo.live.ledger import RunningNetwork, SwitchFacts
from inakit.traffic.wire.packet_format import Event

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
        """Select the parts with these names; all parts if all names are None. A name can omit its P4 control.

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
    """Return the full names that match `name`, none for None. Raises `InputError`."""
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
    """The parts of a switch that were read, by full P4 names. A counter has two arrays: packets and bytes."""

    program: Program
    tables: Mapping[str, Sequence[TableEntry]]
    groups: Sequence[MulticastGroup]
    registers: Mapping[str, Values]
    counters: Mapping[str, tuple[Values, Values]]


def attach(facts: SwitchFacts) -> tuple[SwitchView, Program]:
    """Return a view for reading a switch of a running network, and its program. Raises `InakitError`."""
    if os.geteuid() != 0:
        raise MachineError(f"looking into a running switch needs root: {as_root()}")
    program = program_of(facts.handle)
    return TARGETS[facts.handle["target"]].attach(facts.handle, program), program


def read(view: SwitchView, program: Program, selection: Selection) -> Contents:
    """Read the selected parts of a switch while it works."""
    return Contents(
        program,
        {name: view.read_table(name) for name in selection.tables},
        view.read_groups() if selection.groups else [],
        {name: view.read_register(name) for name in selection.registers},
        {name: view.read_counter(name) for name in selection.counters},
    )


def as_document(contents: Contents) -> dict[str, Any]:
    """The contents in JSON's types; registers and counters only with the elements that are not 0."""
    return {
        "tables": {
            name: [{"key": list(e.key), "action": e.action, "params": list(e.params)} for e in entries]
            for name, entries in contents.tables.items()
        },
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


ROWS = 20
"""The number of elements that are shown of several registers together."""
ADDRESSES = ("hdr.ipv4.src", "hdr.ipv4.dst")
LARGE = 1 << 32
"""Numbers from here on are shown in hexadecimal: they are bitmaps."""
SUM = "sum"
PORT_COUNTERS = (RECEIVED, SENT, REPLICATED, LOST)

Section = tuple[str, Sequence[Sequence[str]]]
"""A title, and rows of which the first has the headings."""


def dump(
    network: RunningNetwork, switch: str, asked: Mapping[str, str | None]
) -> tuple[dict[str, Any], Iterator[Section]]:
    """The parts of a switch that `asked` names (table, register, counter), or all, for JSON and as tables of text.

    Raises `InakitError`.
    """
    facts = network.switch(switch)
    view, program = attach(facts)
    contents = read(view, program, Selection.of(program, **asked))
    document = {"network": network.id, "switch": switch} | as_document(contents)
    return document, sections(contents, facts, shown=ROWS if asked["register"] is None else None)


def sections(contents: Contents, facts: SwitchFacts, shown: int | None) -> Iterator[Section]:
    """Yield a title and rows for every table, for all groups, for registers of equal length, for every counter."""
    for name, entries in contents.tables.items():
        what = "entry" if len(entries) == 1 else "entries"
        yield f"table {name}: {len(entries)} {what}", table_rows(contents.program, entries)
    if contents.groups:
        yield (
            "multicast groups",
            [("group", "sends to"), *((str(each.group), copies(each)) for each in contents.groups)],
        )
    by_length = sorted(contents.registers.items(), key=lambda item: len(item[1]))
    for length, registers in groupby(by_length, key=lambda item: len(item[1])):
        yield register_section(dict(registers), length, shown)
    for name, (packets, octets) in contents.counters.items():
        element = element_name(name, facts)
        rows = [[str(packets[n]), str(octets[n]), element(int(n))] for n in np.flatnonzero(packets)]
        yield f"counter {name}", [["packets", "bytes", "element"], *rows]


def copies(group: MulticastGroup) -> str:
    """The ports of a multicast group, and those that get more than one copy."""
    more = "".join(f", port {port} as replica {replica}" for replica, port in group.more)
    return f"ports {list(group.ports)}{more}"


def table_rows(program: Program, entries: Sequence[TableEntry]) -> list[list[str]]:
    """A row per entry: its key in columns, and the action as a call."""
    if not entries:
        return [[]]
    table = program.table(entries[0].table)
    heads = [*(short(part.name) for part in table.key), "action"]
    return [heads, *([*key_texts(table, entry), call(table, entry)] for entry in entries)]


def key_texts(table: Table, entry: TableEntry) -> Iterator[str]:
    """The parts of an entry's key, addresses in dotted form."""
    for part, value in zip(table.key, entry.key, strict=True):
        if isinstance(value, int):
            yield str(IPv4Address(value)) if part.name in ADDRESSES else number(value)
        else:
            yield str(value)


def call(table: Table, entry: TableEntry) -> str:
    """An entry's action as a call with named parameters."""
    names = [parameter.name for parameter in table.action(entry.action).parameters]
    given = ", ".join(f"{name}={number(value)}" for name, value in zip(names, entry.params, strict=True))
    return f"{short(entry.action)}({given})"


def number(value: int) -> str:
    """A number in decimal, or in hexadecimal where it is large."""
    return f"{value:#x}" if value >= LARGE else str(value)


def register_section(registers: Mapping[str, Values], length: int, shown: int | None) -> Section:
    """A line for each index at which a register is not 0, a column for each register or family with such values.

    If the registers are those of slots, the slots that hold a fragment come first.
    """
    used = np.flatnonzero(np.any([values != 0 for values in registers.values()], axis=0))
    heading = f"register {next(iter(registers))}" if len(registers) == 1 else f"{len(registers)} registers"
    title = f"{heading}: {len(used)} of {length} elements not 0"
    if SLOT_BITMAP in registers:
        waiting = registers[SLOT_BITMAP][used] != 0
        used = np.concatenate([used[waiting], used[~waiting]])
        title += f", {np.count_nonzero(waiting)} slots hold a fragment"
    if len(used) > len(used[:shown]):
        title += f"; here {shown}: --register NAME shows all of one register, --format json of all"
    columns = {name: values for name, values in families(registers).items() if values.any()}
    return title, element_rows(columns, used[:shown]) if used.size else [[]]


def families(registers: Mapping[str, Values]) -> dict[str, NDArray[Any]]:
    """Group registers whose names differ only in the number at the end, as arrays (registers, elements).

    Sums become signed numbers.
    """
    found: dict[str, NDArray[Any]] = {}
    for family, members in groupby(registers, key=lambda name: short(name).rstrip("0123456789")):
        names = list(members)
        values = np.stack([registers[name] for name in names])
        heads = [short(name) for name in names]
        title = heads[0] if len(heads) == 1 else f"{heads[0]}..{heads[-1].removeprefix(family)}"
        signed = family == SUM and values.max() < LARGE
        found[title] = values.astype(np.uint32).view(np.int32) if signed else values
    return found


def element_rows(columns: Mapping[str, NDArray[Any]], used: NDArray[np.int64]) -> list[list[str]]:
    """A row for each element at the indices `used`. A family of registers is shown by its first two numbers."""

    def first_values(values: NDArray[Any]) -> str:
        return " ".join(number(int(value)) for value in values[:2]) + (" ..." if len(values) > 2 else "")

    rows = [[str(index), *(first_values(values[:, index]) for values in columns.values())] for index in used]
    return [["index", *columns], *rows]


def element_name(counter: str, facts: SwitchFacts) -> Callable[[int], str]:
    """A function from the index of a counter's element to its name."""
    if counter == EVENTS:
        return lambda index: Event(index).name.lower()
    if counter in PORT_COUNTERS:
        peers = {port.number: f" ({port.peer})" for port in facts.ports}
        return lambda port: f"port {port}{peers.get(port, '')}"
    return str
