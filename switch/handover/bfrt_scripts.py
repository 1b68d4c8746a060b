"""Scripts for `bfrt_python`, the Python of BF-Runtime's switches: they add a switch's entries, remove and dump them.

Each has its data inside, so that `bfshell -b FILE` needs nothing else. A script has no functions, because some
releases run it where functions do not see its names.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence

from inakit.switch.handover.bfrt import GROUP, NODE, PIPE, Document
from inakit.switch.program.program import Program

FIND = """\
    node = bfrt if name.startswith("$") else getattr(bfrt, PROGRAM)
    for part in name.replace("$", "").split("."):
        node = getattr(node, part)
"""
"""Finds the node of a table by its full name, such as `pipe.InaIngress.forward` or `$pre.mgid`."""

ENDINGS = {"lpm": ("", "_p_length"), "ternary": ("", "_mask"), "range": ("_start", "_end")}
"""What the names of the two arguments end in that a part of a key has which does not match exactly."""
MOST_PARTS = 20
"""The most parts of a name that `bfrt_python` takes to tell two arguments apart."""

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
    """The script that removes entries of a program, which is called `name`, the last first."""
    keys = ([each["table_name"], arguments(program, each)] for each in reversed(listed))
    return REMOVE.format(program=name, switch=switch, find=FIND, entries=lines(keys))


def dump_script(name: str, program: Program, without: Collection[str] = ()) -> str:
    """The script that dumps all tables of a program but for some, and the multicast groups."""
    own = [table.name for table in program.tables.values() if table.key and table.name not in without]
    tables = [NODE, GROUP, *(f"{PIPE}{table}" for table in own)]
    return DUMP.format(program=name, find=FIND, entries=lines(tables))


def lines(listed: Iterable[object]) -> str:
    """A JSON list with a line for each element."""
    return "[\n" + ",\n".join(json.dumps(each) for each in listed) + "\n]"


def arguments(program: Program, document: Document) -> dict[str, int]:
    """An entry's key as the arguments of `delete`, which have the last part of each name, or more if those tie."""
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
    """The last `depth` parts of a name as `bfrt_python` spells them."""
    plain = name.replace("$", "").replace("[", "_").replace("]", "_").replace("__", "_")
    return "_".join(plain.split(".")[-depth:])
