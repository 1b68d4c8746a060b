"""Files of entries for one switch, in the formats that courses use.

A file whose name ends in .json is a `s1-runtime.json` of p4lang's tutorials; other files have commands of
simple_switch_CLI.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, StrictStr

from inakit.switch.control.entry_check import by_priority
from inakit.switch.control.match_keys import anything, only_one, parse_number, part_of_list
from inakit.switch.control.recorded_entries import install
from inakit.switch.control.simple_switch_cli import CommandedSwitch, ending_with, one_of, read_commands, run_commands
from inakit.switch.entries import DefaultAction, MirrorSession, MulticastGroup, SwitchEntries, TableEntry
from inakit.switch.program.program import Action, MatchKey, Program, Table
from inakit.topo.errors import InputError
from inakit.topo.files.reader import FileKind, ParsedFile, Record, nearest_name, read_file, validate

FLAGS = {"true": True, "false": False}


def whole_number(value: Any) -> Any:
    """Convert a text such as "1" or "0x1f" to its number; return anything else unchanged."""
    return parse_number(value) if isinstance(value, str) else value


def flag(value: Any) -> Any:
    """Convert a text such as "True" to its truth value; return anything else unchanged."""
    return FLAGS.get(value.lower(), value) if isinstance(value, str) else value


Flag = Annotated[bool, BeforeValidator(flag)]
Number = Annotated[int, BeforeValidator(whole_number)]
"""A whole number or its text: some files write ports as text."""


class Part(Record):
    """A part of a file; it can have further keys."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)


def unread(part: Any, place: str = "") -> Iterator[str]:
    """The paths of keys that have no effect; `*` stands for any name in a path.

    A key that resembles a known one is listed with a suggestion.
    """
    if isinstance(part, Part):
        known = {name: getattr(part, name) for name in type(part).model_fields}
        for key in part.model_extra or {}:
            near = nearest_name(key, known)
            yield f"{place}{key}" + (f" (did you mean '{near}'?)" if near else "")
        for name, value in known.items():
            yield from unread(value, f"{place}{name}.")
    elif isinstance(part, Mapping):
        for value in part.values():
            yield from unread(value, f"{place}*.")
    elif isinstance(part, list | tuple):
        for value in part:
            yield from unread(value, place)


def told(path: object, keys: Iterable[str]) -> tuple[str, ...]:
    """A line that lists the keys without effect; empty if there are none."""
    different = list(dict.fromkeys(keys))
    return (f"{path}: these keys have no effect here: {', '.join(different)}",) if different else ()


@dataclass(frozen=True)
class ProgramNames:
    """The names of a program's tables, keys and actions.

    `stack$0` stands for `stack[0]`, `h.valid` and `h.$valid$` for validity.
    """

    program: Program

    def table(self, name: str) -> Table:
        """The table whose name ends with `name`; `InputError` if none or more than one does."""
        return self.program.tables[only("table", name, self.program.tables)]

    def key(self, table: Table, name: str) -> MatchKey:
        """The part of the key of `table` that is called `name`."""
        plain = re.sub(r"\$([0-9]+)", r"[\1]", name)
        parts = {part.name: part for part in table.key}
        spellings = [plain, f"{plain}$", f"{plain}.$valid$", re.sub(r"\bvalid$", "$valid$", plain)]
        for spelling in spellings:
            if spelling in parts:
                return parts[spelling]
        fitting = [known for known in parts if any(known.endswith(f".{spelling}") for spelling in spellings)]
        return parts[one_of(f"key of table '{table.name}'", name, fitting, parts)]

    def action(self, table: Table, name: str) -> Action:
        """The action of `table` that is called `name`."""
        actions = {action.name: action for action in table.actions}
        return actions[only(f"action of table '{table.name}'", name, actions)]

    def call(self, table: Table, name: str, given: Iterable[tuple[str, str]]) -> tuple[Action, tuple[int, ...]]:
        """The action of `table` that is called `name`, and its parameters in order."""
        action = self.action(table, name)
        values = dict(given)
        names = [parameter.name for parameter in action.parameters]
        if set(values) != set(names):
            raise InputError(f"action '{action.name}' takes ({', '.join(names)}), not ({', '.join(values)})")
        return action, tuple(value_of(values[name]) for name in names)


def only(what: str, name: str, known: Iterable[str]) -> str:
    """`name` if it is known, else the only name that ends with it: first after a dot, then anywhere."""
    choices = list(known)
    if name in choices:
        return name
    fitting = ending_with(name, choices) or [each for each in choices if each.endswith(name)]
    return one_of(what, name, fitting, choices)


def value_of(text: str) -> int:
    """The number in a text. Raises `InputError` for anything else."""
    try:
        return parse_number(text)
    except ValueError as error:
        raise InputError(f"'{text}' is not a number: expected decimal, 0x, 0o, 0b, or an address") from error


RUNTIME = FileKind("file of table entries", max_bytes=64 << 20)
HIGHEST_PRIORITY = 1 << 24
"""In P4Runtime the highest priority wins, in BMv2 the lowest: BMv2 gets this number minus P4Runtime's priority."""
CLONE_GROUPS = 1 << 15
"""A clone session with several replicas uses the multicast group with this number plus the session's."""


class EntryRecord(Part):
    """A table entry, or the action of a table on a miss."""

    table: StrictStr = Field(description="the name of a table")
    match: dict[str, Any] | None = Field(
        None, description="values of the key's fields: V, [V], [V, PREFIX], [V, MASK], [LOW, HIGH]"
    )
    action_name: StrictStr = Field(description="the name of an action")
    action_params: dict[str, Any] | None = Field(None, description="values of the action's parameters")
    default_action: Flag | None = Field(None, description="true or false")
    priority: Number | None = Field(None, description="a whole number; the highest wins")


class ReplicaRecord(Part):
    """A copy of a packet."""

    egress_port: Number = Field(description="a port number")
    instance: Number = Field(1, description="a whole number")


class GroupRecord(Part):
    """A multicast group."""

    multicast_group_id: Number = Field(description="a whole number, at least 1")
    replicas: list[ReplicaRecord] = Field(description="a list of replicas, each with an egress_port")


class CloneRecord(Part):
    """A clone session."""

    clone_session_id: Number = Field(description="a whole number, at least 1")
    replicas: list[ReplicaRecord] = Field(description="a list of replicas, each with an egress_port")
    packet_length_bytes: Number = Field(0, description="the greatest size of a clone in bytes; 0: no limit")


class RuntimeRecord(Part):
    """A whole file."""

    target: StrictStr | None = Field(None, description="bmv2")
    p4info: StrictStr | None = Field(None, description="the name of a compiled program's P4Info")
    bmv2_json: StrictStr | None = Field(None, description="the name of a compiled program")
    table_entries: list[EntryRecord] = Field([], description="a list of table entries")
    multicast_group_entries: list[GroupRecord] = Field([], description="a list of multicast groups")
    clone_session_entries: list[CloneRecord] = Field([], description="a list of clone sessions")


def program_named_by(path: Path) -> str | None:
    """The compiled program that the file names for itself."""
    return validate(read_file(path, RUNTIME), RuntimeRecord).bmv2_json


def read_runtime(path: Path, program: Program, skipped: Callable[[str], None] = lambda _: None) -> SwitchEntries:
    """The entries in the file for a switch that runs `program`. Raises `InputError`, which names the entry.

    `skipped` is called with a line about keys without effect.
    """
    file = read_file(path, RUNTIME)
    record, names = validate(file, RuntimeRecord), ProgramNames(program)
    for line in told(path, unread(record)):
        skipped(line)
    groups = [group_of(each.multicast_group_id, each.replicas) for each in record.multicast_group_entries]
    clones = list(clones_of(record.clone_session_entries))
    given = [entry_of(file, number, names, each) for number, each in enumerate(record.table_entries)]
    return SwitchEntries(
        "switch",
        tuple(each for each in given if isinstance(each, TableEntry)),
        (*groups, *(group for _, group in clones if group is not None)),
        defaults=tuple(each for each in given if isinstance(each, DefaultAction)),
        mirrors=tuple(session for session, _ in clones),
    )


def entry_of(file: ParsedFile, number: int, names: ProgramNames, record: EntryRecord) -> TableEntry | DefaultAction:
    """A table entry, or the action of a table on a miss."""
    try:
        table = names.table(record.table)
        action, params = call_of(names, table, record)
        if record.default_action:
            return DefaultAction(table.name, action, params)
        given = {names.key(table, name).name: value for name, value in (record.match or {}).items()}
        key = tuple(
            part_of_list(part, given[part.name], lambda value, bits=part.bits: number_of(value, bits))  # type: ignore[misc]
            if part.name in given
            else anything(part.match, part.bits)
            for part in table.key
        )
    except (InputError, ValueError, TypeError) as error:
        raise file.error(("table_entries", number), str(error)) from error
    priority = HIGHEST_PRIORITY - (record.priority or 0) if by_priority(table) else None
    return TableEntry(table.name, key, action, params, priority)


def call_of(names: ProgramNames, table: Table, record: EntryRecord) -> tuple[str, tuple[int, ...]]:
    """The name of an entry's action, and its parameters."""
    action = names.action(table, record.action_name)
    bits = {each.name: each.bits for each in action.parameters}
    given = (record.action_params or {}).items()
    params = [(name, str(number_of(only_one(value), bits.get(name, 0)))) for name, value in given]
    _, values = names.call(table, action.name, params)
    return action.name, values


def number_of(value: Any, bits: int) -> int:
    """The number in a number, a text or an address; a negative number stands for its two's complement."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"{value!r}: expected a number or an address")
    number = value if isinstance(value, int) else parse_number(value)
    return number + (1 << bits) if -(1 << bits - 1) <= number < 0 else number


def group_of(number: int, replicas: Sequence[ReplicaRecord]) -> MulticastGroup:
    """A multicast group whose copies leave in the file's order."""
    return MulticastGroup(number, (), tuple((each.instance, each.egress_port) for each in replicas), ordered=True)


def clones_of(records: Sequence[CloneRecord]) -> Iterator[tuple[MirrorSession, MulticastGroup | None]]:
    """Clone sessions, each with the multicast group that several replicas require."""
    for record in records:
        if len(record.replicas) == 1:
            port, size = record.replicas[0].egress_port, record.packet_length_bytes
            yield MirrorSession(record.clone_session_id, port, size_bytes=size), None
        else:
            number = CLONE_GROUPS + record.clone_session_id
            session = MirrorSession(record.clone_session_id, group=number, size_bytes=record.packet_length_bytes)
            yield session, group_of(number, record.replicas)


RUNTIME_JSON = ".json"


def read_entries(path: Path, program: Program, skipped: Callable[[str], None] = lambda _: None) -> SwitchEntries:
    """The entries in a file for `program`; each part without effect calls `skipped` with a line."""
    if path.suffix == RUNTIME_JSON:
        return read_runtime(path, program, skipped)
    return read_commands(path, program, skipped)


def fill_switch(path: Path, switch: CommandedSwitch, skipped: Callable[[str], None] = lambda _: None) -> None:
    """Install the entries of a file in a running switch; each skipped command calls `skipped` with a line."""
    if path.suffix == RUNTIME_JSON:
        install(switch.control, read_runtime(path, switch.control.program, skipped))
    else:
        run_commands(path, switch, skipped)
