"""Where the parameters of hash functions are that the control plane sets: for each calculation in two copies."""

from __future__ import annotations

from collections.abc import Iterator

from inakit.switch.fast.layout.records import MemoryRecord, make_record
from inakit.switch.fast.layout.table_layout import COPIES
from inakit.switch.program.expressions import CRC_CUSTOM
from inakit.switch.program.program import Program

CHOSEN = "chosen crc parameters"
"""For each such calculation, in one place: which copy is to be read (0: the parameters that BMv2 begins with)."""

PARAMETERS = make_record(
    "crc", [("polynomial", 32), ("first", 32), ("last", 32), ("flip_bytes", 8), ("flip_result", 8)]
)
"""For a remainder whose lowest bit comes first; `flip_bytes` and `flip_result` where that of BMv2 comes last."""


def crc_array(calculation: str) -> str:
    """The name of the array of a calculation's parameters."""
    return f"crc parameters of {calculation}"


def custom_calculations(program: Program) -> list[str]:
    """The calculations whose parameters the control plane sets."""
    return [name for name, each in program.calculations.items() if each.algorithm in CRC_CUSTOM]


def crc_arrays(program: Program) -> Iterator[tuple[str, MemoryRecord, int]]:
    """The arrays of a program's calculations, as (name, record, length); none of one without such calculations."""
    if found := custom_calculations(program):
        yield CHOSEN, make_record("chosen_crc", [(name, 8) for name in found]), 1
        yield from ((crc_array(name), PARAMETERS, COPIES) for name in found)
