"""The part of a trace that shows what went wrong: up to the statement that decided it."""

from __future__ import annotations

import re
from collections.abc import Sequence

MOST_LINES = 16
MARK, PLAIN = "> ", "  "
LEFT_OUT = re.compile(r"Bytes parsed|Parser state|Pipeline|Replicating|Action tbl_|Action [\w.]+\d+\(\)$")
HIDDEN_TABLE = re.compile(r"(Applying table 'tbl_|Table 'tbl_)")
STATEMENT = re.compile(r"Primitive (?P<file>[^ ]+):(?P<line>\d+) (?P<text>.*)")
CONSTANT = re.compile(r"[^=(;]+;.*?: (?P<change>[\w.$]+ = 0x[0-9a-f]+)")
"""A field that is set to a constant: p4c names the line of the constant, from its value on, and not the statement's."""
TEMPORARY = re.compile(r": scalars\.tmp(_\d+)? = ")

DECIDES = ("egress_spec", "mcast_grp", "mark_to_drop", "Dropping packet")
DROPS = ("mark_to_drop", "Dropping packet")


def excerpt(lines: Sequence[str], field: str) -> tuple[str, ...]:
    """The last lines up to the one that last wrote `field`, which is marked.

    `field` is a header's, as `values.v3`, or `port` for what decided where the packet goes, or `drop`.
    """
    kept = [line for line in lines if worth_showing(line)]
    found = (deciding(kept, each) for each in (field, "port"))
    at = next((number for number in found if number is not None), len(kept) - 1)
    before = (PLAIN + shown(line) for line in kept[max(0, at + 1 - MOST_LINES) : at])
    return (*before, *(MARK + shown(line) for line in kept[at : at + 1]))


def worth_showing(line: str) -> bool:
    """Whether a line is about something that the student wrote."""
    return not (LEFT_OUT.match(line) or HIDDEN_TABLE.match(line) or TEMPORARY.search(line))


def shown(line: str) -> str:
    """A line as the report has it: a statement begins with its file and line."""
    statement = STATEMENT.match(line)
    if statement is None:
        return line
    file, text = statement["file"].rpartition("/")[2], statement["text"].replace("scalars.", "")
    constant = CONSTANT.fullmatch(text)
    if constant is not None:
        return f"{file}: {constant['change']} (the constant of line {statement['line']})"
    return f"{file}:{statement['line']}: {text}"


def deciding(lines: Sequence[str], field: str) -> int | None:
    """The number of the last line that decided a field, if any did."""
    words = {"port": DECIDES, "drop": DROPS}.get(field, (f"{field} = ",))
    found = [number for number, line in enumerate(lines) if any(word in line for word in words)]
    statements = [number for number in found if lines[number].startswith("Primitive")]
    chosen = statements or found
    return chosen[-1] if chosen else None
