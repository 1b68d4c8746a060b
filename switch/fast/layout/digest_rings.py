"""Where digests wait for the control plane: a ring for each list of fields, and how many were ever put into each."""

from __future__ import annotations

from inakit.switch.fast.layout.records import MemoryRecord, make_record
from inakit.switch.program.expressions import FieldList
from inakit.switch.program.expressions import Field
from inakit.switch.program.program import Program

COUNTS = "counts of digests"
RING = 4096
"""The places for digests of one list; the oldest one is overwritten. A power of two."""


def ring_name(number: int) -> str:
    """The name of the array that is the ring of list `number`."""
    return f"digests {number}"


def ring_record(fields: FieldList) -> MemoryRecord:
    """One place of a ring: the digest's number among all of the switch, and its values."""
    values = [each for each in fields.fields if isinstance(each, Field)]
    members = [(str(index), field.bits) for index, field in enumerate(values)]
    return make_record(f"digest_{fields.number}", [("number", 64), *members])


def count_record(program: Program) -> MemoryRecord:
    """How many digests there were in all, and of each list."""
    return make_record("digest_counts", [("total", 64), *((str(number), 64) for number in program.digests)])


def ring_arrays(program: Program) -> list[tuple[str, MemoryRecord, int]]:
    """The arrays of a program that reports digests, as (name, record, length)."""
    rings = [(ring_name(number), ring_record(fields), RING) for number, fields in program.digests.items()]
    return [(COUNTS, count_record(program), 1), *rings]
