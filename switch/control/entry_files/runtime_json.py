"""The file that fills a switch of p4lang's tutorials: `s1-runtime.json`, with what P4Runtime would write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field, StrictBool, StrictInt, StrictStr

from switch.control.commands.words import parse_number
from switch.control.entry_files.program_names import ProgramNames, anything
from switch.control.match_rules import by_priority
from switch.entries import (
    DefaultAction,
    KeyPart,
    Lpm,
    MirrorSession,
    MulticastGroup,
    Range,
    SwitchEntries,
    TableEntry,
    Ternary,
)
from switch.program.pipelines import MatchKey, Table
from switch.program.program import Program
from topo.files.reader import FileKind, ParsedFile, read_file
from topo.files.validation import Record, validate

RUNTIME = FileKind("file of table entries", max_bytes=64 << 20)
HIGHEST_PRIORITY = 1 << 24
"""In P4Runtime the highest priority wins, in BMv2 the lowest: what BMv2 gets is this number less P4Runtime's."""
CLONE_GROUPS = 1 << 15
"""A clone session with several replicas is multicast by the group of this number and its own."""


class Part(Record):
    """A part of the file; it may have further keys."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class EntryRecord(Part):
    """A table entry, or the action of a table on a miss."""

    table: StrictStr = Field(description="the name of a table")
    match: dict[str, Any] = Field({}, description="values of the key's fields: V, [V, PREFIX], [V, MASK], [LOW, HIGH]")
    action_name: StrictStr = Field(description="the name of an action")
    action_params: dict[str, Any] = Field({}, description="values of the action's parameters")
    default_action: StrictBool = Field(False, description="true or false")
    priority: StrictInt | None = Field(None, description="a whole number; the highest wins")


class ReplicaRecord(Part):
    """A copy of a packet."""

    egress_port: StrictInt = Field(description="a port number")
    instance: StrictInt = Field(1, description="a whole number")


class GroupRecord(Part):
    """A multicast group."""

    multicast_group_id: StrictInt = Field(description="a whole number, at least 1")
    replicas: list[ReplicaRecord] = Field(description="a list of replicas, each with an egress_port")


class CloneRecord(Part):
    """A clone session."""

    clone_session_id: StrictInt = Field(description="a whole number, at least 1")
    replicas: list[ReplicaRecord] = Field(description="a list of replicas, each with an egress_port")


class RuntimeRecord(Part):
    """All that the file says."""

    bmv2_json: StrictStr | None = Field(None, description="the name of a compiled program")
    table_entries: list[EntryRecord] = Field([], description="a list of table entries")
    multicast_group_entries: list[GroupRecord] = Field([], description="a list of multicast groups")
    clone_session_entries: list[CloneRecord] = Field([], description="a list of clone sessions")


def program_named_by(path: Path) -> str | None:
    """The compiled program that the file is for, as the file names it."""
    return validate(read_file(path, RUNTIME), RuntimeRecord).bmv2_json


def read_runtime(path: Path, program: Program) -> SwitchEntries:
    """The entries that the file installs in a switch that runs `program`; `InputError` names the entry."""
    file = read_file(path, RUNTIME)
    record, names = validate(file, RuntimeRecord), ProgramNames(program)
    groups = [group_of(each.multicast_group_id, each.replicas) for each in record.multicast_group_entries]
    clones = list(clones_of(record.clone_session_entries))
    return SwitchEntries(
        "switch",
        tuple(entry_of(file, n, names, each) for n, each in enumerate(record.table_entries) if not each.default_action),
        (*groups, *(group for _, group in clones if group is not None)),
        defaults=tuple(default_of(names, each) for each in record.table_entries if each.default_action),
        mirrors=tuple(session for session, _ in clones),
    )


def entry_of(file: ParsedFile, number: int, names: ProgramNames, record: EntryRecord) -> TableEntry:
    """A table entry."""
    table = names.table(record.table)
    given = {names.key(table, name).name: value for name, value in record.match.items()}
    try:
        key = tuple(key_part(part, given[part.name]) if part.name in given else anything(part) for part in table.key)
        action, params = call_of(names, table, record)
    except (ValueError, TypeError) as error:
        raise file.error(("table_entries", number), str(error)) from error
    priority = HIGHEST_PRIORITY - (record.priority or 0) if by_priority(table) else None
    return TableEntry(table.name, key, action, params, priority)


def default_of(names: ProgramNames, record: EntryRecord) -> DefaultAction:
    """The action of a table on a miss."""
    table = names.table(record.table)
    return DefaultAction(table.name, *call_of(names, table, record))


def call_of(names: ProgramNames, table: Table, record: EntryRecord) -> tuple[str, tuple[int, ...]]:
    """The name of an entry's action, and its parameters."""
    params = [(name, str(number_of(value))) for name, value in record.action_params.items()]
    action, values = names.call(table, record.action_name, params)
    return action.name, values


def key_part(part: MatchKey, value: Any) -> KeyPart:
    """A part of a key: a value, or a list of a value and its prefix, its mask, or the other end of a range."""
    if not isinstance(value, list):
        return whole_part(part, number_of(value))
    first, second = map(number_of, value)
    kinds: Mapping[str, KeyPart] = {
        "lpm": Lpm(first, second),
        "ternary": Ternary(first, second),
        "range": Range(first, second),
    }
    if part.match not in kinds:
        raise ValueError(f"'{part.name}' matches {part.match}: expected one value, not {value!r}")
    return kinds[part.match]


def whole_part(part: MatchKey, value: int) -> KeyPart:
    """A part of a key of which all bits are compared."""
    everything = (1 << part.bits) - 1
    kinds: Mapping[str, KeyPart] = {
        "lpm": Lpm(value, part.bits),
        "ternary": Ternary(value, everything),
        "range": Range(value, value),
    }
    return kinds.get(part.match, value)


def number_of(value: Any) -> int:
    """A number, or a number or address as text."""
    return value if isinstance(value, int) else parse_number(value)


def group_of(number: int, replicas: Sequence[ReplicaRecord]) -> MulticastGroup:
    """A multicast group whose copies leave in the order of the file."""
    return MulticastGroup(number, (), tuple((each.instance, each.egress_port) for each in replicas), ordered=True)


def clones_of(records: Sequence[CloneRecord]) -> Iterator[tuple[MirrorSession, MulticastGroup | None]]:
    """Clone sessions, each with the group that it needs if it has several replicas."""
    for record in records:
        if len(record.replicas) == 1:
            yield MirrorSession(record.clone_session_id, record.replicas[0].egress_port), None
        else:
            number = CLONE_GROUPS + record.clone_session_id
            yield MirrorSession(record.clone_session_id, group=number), group_of(number, record.replicas)
