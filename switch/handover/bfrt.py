"""Entries as the JSON of BF-Runtime, in which `bfrt_python` dumps and adds them, and back.

Each entry is an object with `table_name`, `action`, `key` and `data`. Multicast groups are entries of the fixed tables
`$pre.node` (the copies of one replica number) and `$pre.mgid` (the nodes of a group).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from inakit.switch.control.entry_check import by_priority
from inakit.switch.entries import (
    KeyPart,
    Lpm,
    MulticastGroup,
    Range,
    SwitchEntries,
    TableEntry,
    Ternary,
    group_of_nodes,
)
from inakit.switch.handover.parts import in_order
from inakit.switch.program.program import Table
from inakit.switch.program.program import Program
from inakit.topo.errors import InputError

PIPE = "pipe."
"""What the names of a program's tables begin with."""
NODE, GROUP = "$pre.node", "$pre.mgid"
PRIORITY = "$MATCH_PRIORITY"

Document = dict[str, Any]
"""An entry as BF-Runtime's JSON has it."""


def documents(program: Program, entries: SwitchEntries) -> list[Document]:
    """Entries in an order in which they can be added: nodes, their groups, and the program's tables.

    Raises `UnsupportedError` for what is not handed over.
    """
    parts = in_order(entries)
    groups = [part for part in parts if isinstance(part, MulticastGroup)]
    tables = [entry_document(program, part) for part in parts if isinstance(part, TableEntry)]
    return [*group_documents(groups), *tables]


def group_documents(groups: Sequence[MulticastGroup]) -> Iterator[Document]:
    """The nodes of all groups, numbered from 1, and then the groups."""
    nodes = [(group.group, *run) for group in groups for run in group.runs()]
    for number, (_, replica, ports) in enumerate(nodes, start=1):
        data = {"$MULTICAST_RID": replica, "$MULTICAST_LAG_ID": [], "$DEV_PORT": list(ports)}
        yield {"table_name": NODE, "action": None, "key": {"$MULTICAST_NODE_ID": number}, "data": data}
    for group in groups:
        own = [number for number, node in enumerate(nodes, start=1) if node[0] == group.group]
        data = {"$MULTICAST_NODE_ID": own}
        data |= {"$MULTICAST_NODE_L1_XID_VALID": [False] * len(own), "$MULTICAST_NODE_L1_XID": [0] * len(own)}
        yield {"table_name": GROUP, "action": None, "key": {"$MGID": group.group}, "data": data}


def entry_document(program: Program, entry: TableEntry) -> Document:
    """A table entry."""
    table = program.table(entry.table)
    key = {part.name: key_value(value) for part, value in zip(table.key, entry.key, strict=True)}
    if entry.priority is not None:
        key[PRIORITY] = entry.priority
    names = [parameter.name for parameter in table.action(entry.action).parameters]
    data = dict(zip(names, entry.params, strict=True))
    return {"table_name": f"{PIPE}{entry.table}", "action": entry.action, "key": key, "data": data}


def key_value(part: KeyPart) -> int | list[int]:
    """A part of a key: a number, or a list of a value and its prefix, its mask, or the other end of a range."""
    match part:
        case Lpm(value, second) | Ternary(value, second) | Range(value, second):
            return [value, second]
    return part


def entries_of(program: Program, listed: Sequence[Document], switch: str) -> SwitchEntries:
    """The entries of documents, in any order; those of tables that the program does not have are left out.

    Raises `InputError`.
    """
    known = {f"{PIPE}{name}": table for name, table in program.tables.items()}
    try:
        tables = [table_entry(known[each["table_name"]], each) for each in listed if each["table_name"] in known]
        return SwitchEntries(switch, tuple(tables), tuple(groups_of(listed)))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"BF-Runtime's JSON: {type(error).__name__} {error}; expected a list of entries with table_name, action, "
            "key and data, as `dump(json=True)` gives it"
        ) from error


def table_entry(table: Table, document: Document) -> TableEntry:
    """A table entry of its document."""
    key = tuple(key_part(part.match, document["key"][part.name]) for part in table.key)
    names = [parameter.name for parameter in table.action(document["action"]).parameters]
    params = tuple(number(document["data"][name]) for name in names)
    priority = number(document["key"][PRIORITY]) if by_priority(table) else None
    return TableEntry(table.name, key, document["action"], params, priority)


def key_part(match: str, value: Any) -> KeyPart:
    """A part of a key from what a document has for it."""
    kinds: Mapping[str, type[Lpm | Ternary | Range]] = {"lpm": Lpm, "ternary": Ternary, "range": Range}
    return kinds[match](*map(number, value)) if match in kinds else number(value)


def number(value: Any) -> int:
    """A number, which dumps have as such, or as a text such as 0x0A."""
    return int(value, 0) if isinstance(value, str) else int(value)


def groups_of(listed: Sequence[Document]) -> Iterator[MulticastGroup]:
    """The groups, with the copies of their nodes."""
    nodes = {number(each["key"]["$MULTICAST_NODE_ID"]): each["data"] for each in listed if each["table_name"] == NODE}
    for each in (each for each in listed if each["table_name"] == GROUP):
        own = [nodes[number(node)] for node in each["data"]["$MULTICAST_NODE_ID"]]
        copies = [(number(node["$MULTICAST_RID"]), number(port)) for node in own for port in node["$DEV_PORT"]]
        yield group_of_nodes(number(each["key"]["$MGID"]), copies)
