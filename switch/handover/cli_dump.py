"""What `simple_switch_CLI` prints for `table_dump` and `mc_dump`, as entries.

The output does not name the table of an entry. It is the one with this key and this action.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

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
from inakit.switch.program.program import Table
from inakit.switch.program.program import Program
from inakit.topo.errors import InputError

MARK = "TABLE ENTRIES"
"""What each dump of a table begins with."""
GROUPS_MARK = "MC ENTRIES"
ENTRY = re.compile(r"^Dumping entry 0x[0-9a-f]+$", re.MULTILINE)
KEY = re.compile(r"^\* (\S+)\s*: ([A-Z]+)\s+(.+)$", re.MULTILINE)
PRIORITY = re.compile(r"^Priority: (\d+)$", re.MULTILINE)
ACTION = re.compile(r"^Action entry: (\S+) - ?(.*)$", re.MULTILINE)
GROUP = re.compile(r"^mgrp\((\d+)\)$", re.MULTILINE)
COPIES = re.compile(r"rid=(\d+)\) -> \(ports=\[([0-9, ]*)\]")


def read_dump(program: Program, text: str, switch: str) -> SwitchEntries:
    """The entries and groups that the text shows. Raises `InputError` for an entry of no table of the program."""
    tables = tuple(entry_of(program, block) for block in ENTRY.split(text)[1:])
    return SwitchEntries(switch, tables, tuple(groups_of(text.partition(GROUPS_MARK)[2])))


def entry_of(program: Program, block: str) -> TableEntry:
    """The entry that a block of lines shows."""
    shown, action = KEY.findall(block), ACTION.search(block)
    if action is None:
        raise InputError(f"an entry without its action: {block.strip()!r:.80}; was the dump cut off?")
    table = table_of(program, [name for name, _, _ in shown], action[1])
    priority = PRIORITY.search(block)
    key = tuple(key_part(kind, value) for _, kind, value in shown)
    params = tuple(int(word, 16) for word in action[2].replace(",", " ").split())
    return TableEntry(table.name, key, action[1], params, int(priority[1]) if priority else None)


def table_of(program: Program, key: Sequence[str], action: str) -> Table:
    """The only table whose key has these fields and that has this action. Raises `InputError`."""
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


def key_part(kind: str, value: str) -> KeyPart:
    """A part of a key from how it matches and what is shown of it."""
    match kind:
        case "LPM":
            number, prefix = value.split("/")
            return Lpm(int(number, 16), int(prefix))
        case "TERNARY":
            return Ternary(*(int(each, 16) for each in value.split("&&&")))
        case "RANGE":
            return Range(*(int(each, 16) for each in value.split("->")))
    return int(value, 16)


def groups_of(text: str) -> Iterator[MulticastGroup]:
    """The groups that `mc_dump` shows."""
    _, *found = GROUP.split(text)
    for number, block in zip(found[::2], found[1::2], strict=True):
        copies = [(int(rid), int(port)) for rid, ports in COPIES.findall(block) for port in ports.split(",") if port]
        yield group_of_nodes(int(number), copies)
