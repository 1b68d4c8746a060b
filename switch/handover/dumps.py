"""Reads what a switch holds from a dump, whichever of four formats it has; its beginning tells which.

| format | written by |
|---|---|
| P4Runtime's `ReadResponse` (or a `WriteRequest`) in protobuf's text format | controllers of P4Runtime |
| what `table_dump` and `mc_dump` print | `simple_switch_CLI` |
| BF-Runtime's JSON, a list of entries | `dump(json=True)` of `bfrt_python` |
| JSON with `tables` and `groups` | `inakit dump SWITCH --json` |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inakit.switch.control.entry_check import check_entries
from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry
from inakit.switch.handover import bfrt
from inakit.switch.handover.cli_dump import GROUPS_MARK, MARK
from inakit.switch.handover.cli_dump import read_dump as read_cli_dump
from inakit.switch.program.program import Program
from inakit.switch.program.read import read_program
from inakit.topo.errors import InputError

FORMATS = (
    "P4Runtime's text, the output of simple_switch_CLI's table_dump, BF-Runtime's JSON, or `inakit dump SWITCH --json`"
)


def load_dump(path: Path, program: Path, switch: str) -> SwitchEntries:
    """What a dump of a switch that runs a compiled program holds. Raises `InputError` with the file's name."""
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
    """Whether a file has BF-Runtime's JSON: a list."""
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
    """The entries in BF-Runtime's JSON, or in that of `inakit dump`."""
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
