"""Entries in BF-Runtime's JSON held to the schema that the chip's compiler writes beside a program (`bf-rt.json`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inakit.switch.handover.bfrt import PIPE, Document
from inakit.topo.errors import InputError, unknown_name

BITS = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64, "bool": 1}
"""The bits of the schema's types that do not give a width."""
MATCHES = {"LPM": 2, "Ternary": 2, "Range": 2, "ATCAM": 2}
"""How many numbers a part of a key has, where that is not 1, by how it matches."""


@dataclass(frozen=True)
class FieldSchema:
    """A field of a key or of an action's data: its bits, and how many numbers it has."""

    bits: int
    numbers: int


Fields = Mapping[str, FieldSchema]


@dataclass(frozen=True)
class TableSchema:
    """A table: the fields of its key, those of each action's data, and how many entries it takes."""

    key: Fields
    actions: Mapping[str, Fields]
    size: int


def load_schema(path: Path) -> dict[str, TableSchema]:
    """The tables of a program in `bf-rt.json`, by their full names. Raises `InputError`."""
    try:
        listed = json.loads(path.read_text())["tables"]
        return {each["name"]: table_schema(each) for each in listed if each["name"].startswith(PIPE)}
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; the chip's compiler writes bf-rt.json") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: {type(error).__name__} {error}; expected a bf-rt.json of the compiler") from error


def table_schema(table: Mapping[str, Any]) -> TableSchema:
    """A table of its description."""
    key = {each["name"]: field_schema(each, MATCHES.get(each["match_type"], 1)) for each in table["key"]}
    actions = {
        each["name"]: {field["name"]: field_schema(field, 1) for field in each["data"]}
        for each in table.get("action_specs", ())
    }
    return TableSchema(key, actions, int(table.get("size", 0)))


def field_schema(field: Mapping[str, Any], numbers: int) -> FieldSchema:
    """A field of its description."""
    kind = field["type"]
    return FieldSchema(int(kind.get("width") or BITS.get(kind["type"], 64)), numbers)


def check_documents(schema: Mapping[str, TableSchema], listed: Iterable[Document]) -> None:
    """Raise `InputError` for the first entry that the program cannot take; fixed tables are the same on all chips."""
    counts: dict[str, int] = {}
    for each in (each for each in listed if each["table_name"].startswith(PIPE)):
        name, action = each["table_name"], each["action"]
        if name not in schema:
            raise unknown_name("table of bf-rt.json", name, schema)
        if action not in schema[name].actions:
            raise unknown_name(f"action of table '{name}' of bf-rt.json", action, schema[name].actions)
        check_fields(f"table '{name}', key", schema[name].key, each["key"])
        check_fields(f"table '{name}', action '{action}'", schema[name].actions[action], each["data"])
        counts[name] = counts.get(name, 0) + 1
        if 0 < schema[name].size < counts[name]:
            raise InputError(f"table '{name}' takes {schema[name].size} entries, the plan has more")


def check_fields(where: str, fields: Fields, given: Mapping[str, Any]) -> None:
    """Raise `InputError` unless `given` has just these fields, each of as many numbers that fit its bits."""
    if set(fields) != set(given):
        raise InputError(
            f"{where}: {', '.join(given) or 'nothing'} is given, {', '.join(fields) or 'nothing'} expected"
        )
    for name, value in given.items():
        numbers = value if isinstance(value, list) else [value]
        if len(numbers) != fields[name].numbers:
            raise InputError(f"{where}: '{name}' has {len(numbers)} numbers, {fields[name].numbers} expected")
        for each in numbers:
            if not 0 <= each < 1 << fields[name].bits:
                raise InputError(f"{where}: {each} does not fit '{name}', which has {fields[name].bits} bits")
