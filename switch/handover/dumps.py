"""Reads the entries of a switch from a dump in one of four formats, recognised by its beginning.

| format | written by |
|---|---|
| P4Runtime's `ReadResponse` (or a `WriteRequest`) in protobuf's text format | controllers of P4Runtime |
| what `table_dump` and `mc_dump` print | `simple_switch_CLI` |
| BF-Runtime's JSON, a list of entries | `dump(json=True)` of `bfrt_python` |
| JSON with `tables` and `groups` | `inakit dump SWITCH --json` |
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from inakit.switch.control.entry_check import check_entries
from inakit.switch.control.match_keys import shown_part
from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry, group_of_nodes
from inakit.switch.handover import bfrt
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.program.program import Program, Table
from inakit.topo.errors import InputError

MARK = "TABLE ENTRIES"
"""The beginning of each dump of a table."""
GROUPS_MARK = "MC ENTRIES"
ENTRY = re.compile(r"^Dumping entry 0x[0-9a-f]+$", re.MULTILINE)
KEY = re.compile(r"^\* (\S+)\s*: ([A-Z]+)\s+(.+)$", re.MULTILINE)
PRIORITY = re.compile(r"^Priority: (\d+)$", re.MULTILINE)
ACTION = re.compile(r"^Action entry: (\S+) - ?(.*)$", re.MULTILINE)
GROUP = re.compile(r"^mgrp\((\d+)\)$", re.MULTILINE)
COPIES = re.compile(r"rid=(\d+)\) -> \(ports=\[([0-9, ]*)\]")


def read_cli_dump(program: Program, text: str, switch: str) -> SwitchEntries:
    """The entries and groups in the text. Raises `InputError` for an entry that fits no table of the program."""
    tables = tuple(entry_of(program, block) for block in ENTRY.split(text)[1:])
    return SwitchEntries(switch, tables, tuple(groups_of(text.partition(GROUPS_MARK)[2])))


def entry_of(program: Program, block: str) -> TableEntry:
    """The entry in a block of lines."""
    shown, action = KEY.findall(block), ACTION.search(block)
    if action is None:
        raise InputError(f"an entry without its action: {block.strip()!r:.80}; was the dump cut off?")
    table = table_of(program, [name for name, _, _ in shown], action[1])
    priority = PRIORITY.search(block)
    key = tuple(shown_part(kind.lower(), value, lambda word: int(word, 16)) for _, kind, value in shown)
    params = tuple(int(word, 16) for word in action[2].replace(",", " ").split())
    return TableEntry(table.name, key, action[1], params, int(priority[1]) if priority else None)


def table_of(program: Program, key: Sequence[str], action: str) -> Table:
    """The only table with these key fields and this action. Raises `InputError`."""
    found = [
        table
        for table in program.tables.values()
        if [str(part.value) for part in table.key] == list(key) and action in {each.name for each in table.actions}
    ]
    if len(found) != 1:
        which = " and ".join(table.name for table in found) or "no table"
        raise InputError(
            f"an entry with the key ({', '.join(key)}) and the action {action} fits {which} of the program"
        )
    return found[0]


def groups_of(text: str) -> Iterator[MulticastGroup]:
    """The groups in the output of `mc_dump`."""
    _, *found = GROUP.split(text)
    for number, block in zip(found[::2], found[1::2], strict=True):
        copies = [(int(rid), int(port)) for rid, ports in COPIES.findall(block) for port in ports.split(",") if port]
        yield group_of_nodes(int(number), copies)


FORMATS = (
    "P4Runtime's text, the output of simple_switch_CLI's table_dump, BF-Runtime's JSON, or `inakit dump SWITCH --json`"
)


def load_dump(path: Path, program: Path, switch: str) -> SwitchEntries:
    """The entries in a dump of a switch that runs a compiled program. Raises `InputError` with the file's name."""
    try:
        found = read_dump(path.read_text(encoding="utf-8"), program, switch)
        check_entries(read_program(program), found)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected a dump of switch '{switch}'") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not text in UTF-8; expected {FORMATS}") from error
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    return found


def is_of_bfrt(path: Path) -> bool:
    """Whether a file has BF-Runtime's JSON, which is a list."""
    with path.open("rb") as file:
        return file.read(64).lstrip()[:1] == b"["


def read_dump(text: str, program: Path, switch: str) -> SwitchEntries:
    """The entries and groups in the text of a dump. Raises `InputError`."""
    if not text.strip():
        raise InputError(f"empty; expected {FORMATS}")
    if MARK in text or GROUPS_MARK in text:
        return read_cli_dump(read_program(program), text, switch)
    if text.lstrip()[0] in "[{":
        return of_json(text, read_program(program), switch)
    from inakit.switch.handover.p4runtime_text import load_schema, read_text  # noqa: PLC0415, needs protobuf

    return read_text(load_schema(program), text, switch)


def of_json(text: str, program: Program, switch: str) -> SwitchEntries:
    """The entries in BF-Runtime's JSON or in that of `inakit dump`."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InputError(f"not JSON: {error}; expected {FORMATS}") from error
    if isinstance(document, list):
        return bfrt.entries_of(program, document, switch)
    try:
        return of_kit(document, switch)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{type(error).__name__} {error}; expected {FORMATS}") from error


def of_kit(document: Mapping[str, Any], switch: str) -> SwitchEntries:
    """The entries in the JSON of `inakit dump`."""
    tables = tuple(
        TableEntry(table, tuple(each["key"]), each["action"], tuple(each["params"]))
        for table, entries in document["tables"].items()
        for each in entries
    )
    more = document.get("more_replicas", {})
    groups = tuple(
        MulticastGroup(int(number), tuple(ports), tuple((rid, port) for rid, port in more.get(number, ())))
        for number, ports in document["groups"].items()
    )
    return SwitchEntries(switch, tables, groups)
