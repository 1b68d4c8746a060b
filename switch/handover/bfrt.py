"""Entries as the JSON of BF-Runtime, in which `bfrt_python` dumps and adds them, and back.

Entries are checked against the schema that the chip's compiler writes next to a program (`bf-rt.json`), and put into
scripts for `bfrt_python`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inakit.switch.control.replication import BFRT_GROUP, BFRT_NODE, group_documents, groups_of_documents
from inakit.switch.control.tables import PIPE, Document, entry_document, entry_of_document
from inakit.switch.entries import MulticastGroup, SwitchEntries, TableEntry
from inakit.switch.handover.differences import in_order
from inakit.switch.program.program import Program
from inakit.topo.errors import InputError, unknown_name


def documents(program: Program, entries: SwitchEntries) -> list[Document]:
    """Entries in an order in which they can be added: nodes, their groups, then the program's tables.

    Raises `UnsupportedError` for entries that hardware does not take.
    """
    parts = in_order(entries)
    groups = [part for part in parts if isinstance(part, MulticastGroup)]
    return [
        *group_documents(groups),
        *(entry_document(program, part) for part in parts if isinstance(part, TableEntry)),
    ]


def entries_of(program: Program, listed: Sequence[Document], switch: str) -> SwitchEntries:
    """The entries of documents, in any order; those of tables that the program lacks are omitted.

    Raises `InputError`.
    """
    known = {f"{PIPE}{name}": table for name, table in program.tables.items()}
    try:
        tables = [entry_of_document(known[each["table_name"]], each) for each in listed if each["table_name"] in known]
        return SwitchEntries(switch, tuple(tables), tuple(groups_of_documents(listed)))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"BF-Runtime's JSON: {type(error).__name__} {error}; expected a list of entries with table_name, action, "
            "key and data, as `dump(json=True)` gives it"
        ) from error


BITS = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64, "bool": 1}
"""The bits of the schema's types that do not state a width."""
MATCHES = {"LPM": 2, "Ternary": 2, "Range": 2, "ATCAM": 2}
"""The number of values in a part of a key, by kind of match, if it is not 1."""


@dataclass(frozen=True)
class FieldSchema:
    """A field of a key or of an action's data: its bits, and its number of values."""

    bits: int
    numbers: int


Fields = Mapping[str, FieldSchema]


@dataclass(frozen=True)
class TableSchema:
    """A table: the fields of its key, those of each action's data, and its greatest number of entries."""

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
    """The table that a description declares."""
    key = {each["name"]: field_schema(each, MATCHES.get(each["match_type"], 1)) for each in table["key"]}
    actions = {
        each["name"]: {field["name"]: field_schema(field, 1) for field in each["data"]}
        for each in table.get("action_specs", ())
    }
    return TableSchema(key, actions, int(table.get("size", 0)))


def field_schema(field: Mapping[str, Any], numbers: int) -> FieldSchema:
    """The field that a description declares."""
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
    """Raise `InputError` unless `given` has exactly these fields, each with as many values that fit its bits."""
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


FIND = """\
    node = bfrt if name.startswith("$") else getattr(bfrt, PROGRAM)
    for part in name.replace("$", "").split("."):
        node = getattr(node, part)
"""
"""Finds the node of a table by its full name, such as `pipe.InaIngress.forward` or `$pre.mgid`."""

ENDINGS = {"lpm": ("", "_p_length"), "ternary": ("", "_mask"), "range": ("_start", "_end")}
"""The suffixes of the two arguments for a part of a key that is not an exact match."""
MOST_PARTS = 20
"""The greatest number of parts of a name that `bfrt_python` uses to distinguish two arguments."""

ADD = '''\
"""Adds the plan's entries of switch {switch}: bfshell -b THIS_FILE. Ports are device ports."""

import json

PROGRAM = "{program}"
ENTRIES = json.loads("""{entries}""")

tables = {{}}
for entry in ENTRIES:
    tables.setdefault(entry["table_name"], []).append(entry)
for name, entries in tables.items():
{find}\
    node.add_from_json(json.dumps(entries))
bfrt.complete_operations()
for name, entries in tables.items():
{find}\
    held = len(node.dump(return_ents=True) or [])
    if held < len(entries):
        raise RuntimeError("%s holds %d entries of the plan's %d: see the messages above" % (name, held, len(entries)))
print("{switch}: all %d entries are there" % len(ENTRIES))
'''

REMOVE = '''\
"""Removes the plan's entries of switch {switch}, the last first: bfshell -b THIS_FILE."""

import json

PROGRAM = "{program}"
KEYS = json.loads("""{entries}""")

for name, key in KEYS:
{find}\
    node.delete(**key)
bfrt.complete_operations()
print("{switch}: %d entries are removed" % len(KEYS))
'''

DUMP = '''\
"""Writes what a switch holds to OUTPUT, for `inakit hardware diff`: bfshell -b THIS_FILE."""

import json

PROGRAM = "{program}"
OUTPUT = "dump.json"
TABLES = json.loads("""{entries}""")

held = []
for name in TABLES:
{find}\
    held += json.loads(node.dump(json=True) or "[]")
with open(OUTPUT, "w") as file:
    json.dump(held, file, indent=1)
'''


def add_script(program: str, switch: str, listed: Sequence[Document]) -> str:
    """The script that adds entries in their order, and fails if a table then has fewer."""
    return ADD.format(program=program, switch=switch, find=FIND, entries=lines(listed))


def remove_script(name: str, switch: str, program: Program, listed: Sequence[Document]) -> str:
    """The script that removes the entries of a program, which is called `name`, the last first."""
    keys = ([each["table_name"], arguments(program, each)] for each in reversed(listed))
    return REMOVE.format(program=name, switch=switch, find=FIND, entries=lines(keys))


def dump_script(name: str, program: Program, without: Collection[str] = ()) -> str:
    own = [table.name for table in program.tables.values() if table.key and table.name not in without]
    tables = [BFRT_NODE, BFRT_GROUP, *(f"{PIPE}{table}" for table in own)]
    return DUMP.format(program=name, find=FIND, entries=lines(tables))


def lines(listed: Iterable[object]) -> str:
    return "[\n" + ",\n".join(json.dumps(each) for each in listed) + "\n]"


def arguments(program: Program, document: Document) -> dict[str, int]:
    """An entry's key as the arguments of `delete`, named by the last part of each name, or by more if those tie."""
    table = program.tables.get(document["table_name"].removeprefix(PIPE))
    matches = {part.name: part.match for part in table.key} if table is not None else {}
    key: dict[str, int | list[int]] = document["key"]
    depth = next(depth for depth in range(1, MOST_PARTS) if len({ending(name, depth) for name in key}) == len(key))
    found: dict[str, int] = {}
    for name, value in key.items():
        endings = ENDINGS.get(matches.get(name, "exact"), ("",))
        values = value if isinstance(value, list) else [value]
        found |= {f"{ending(name, depth)}{end}": each for end, each in zip(endings, values, strict=True)}
    return found


def ending(name: str, depth: int) -> str:
    """The last `depth` parts of a name in the spelling of `bfrt_python`."""
    plain = name.replace("$", "").replace("[", "_").replace("]", "_").replace("__", "_")
    return "_".join(plain.split(".")[-depth:])
