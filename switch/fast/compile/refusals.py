"""Refuses, by name and before anything runs, constructs that the generator would not run exactly as BMv2 does.

Some are refused only while C is written: a primitive or operator that is in no table, limits of arithmetic.
"""

from __future__ import annotations

from inakit.switch.fast.layout.field_usage import used_fields
from inakit.switch.fast.layout.table_layout import METER_RATES
from inakit.switch.program.program import Program, Unknown
from inakit.topo.errors import UnsupportedError

MAX_FIELD_BITS = 128
MAX_REGISTER_BITS = 64
MAX_LIST = 16384
"""The most entries of a table that is searched entry by entry."""


def check(program: Program) -> None:
    """Raise `UnsupportedError` for the first construct that target 'fast' does not run."""
    for extra in program.extras:
        raise refusal(program, f"{extra.kind} '{extra.name}'")
    for statement in program.deparser_statements:
        raise refusal(program, f"statement '{statement.source or statement.name}' in the deparser")
    for field in sorted(used_fields(program), key=str):
        if field.bits > MAX_FIELD_BITS:
            raise refusal(program, f"field '{field}' of {field.bits} bits (more than {MAX_FIELD_BITS})")
    check_state(program)
    for table in program.tables.values():
        for part in table.key:
            if isinstance(part.value, Unknown):
                raise refusal(program, f"{part.value.kind} '{part.name}' in table '{table.name}'")
        if table.match not in ("exact", "lpm") and table.size > MAX_LIST:
            raise refusal(program, f"{table.match} table '{table.name}' of {table.size} entries (more than {MAX_LIST})")


def refusal(program: Program, what: str) -> UnsupportedError:
    """The error that says what the program uses, and the ways out."""
    return UnsupportedError(
        f"program '{program.name}' uses {what}, which target 'fast' does not support: "
        "run it on BMv2 (SWITCH=bmv2), or take it out of the program"
    )


def check_state(program: Program) -> None:
    """Refuse registers, parameters and parser value sets that are too long, and meters of other rates."""
    for value_set in program.value_sets.values():
        if value_set.bits > MAX_FIELD_BITS:
            what = f"value set '{value_set.name}' of {value_set.bits} bits (more than {MAX_FIELD_BITS})"
            raise refusal(program, what)
    for register in program.registers.values():
        if register.bits > MAX_REGISTER_BITS:
            what = f"register '{register.name}' of {register.bits} bits (more than {MAX_REGISTER_BITS})"
            raise refusal(program, what)
    for meter in (program.meters | program.direct_meters).values():
        if meter.rates != METER_RATES:
            raise refusal(program, f"meter '{meter.name}' of {meter.rates} rates (not {METER_RATES})")
    for action in program.actions:
        for parameter in action.parameters:
            if parameter.bits > MAX_FIELD_BITS:
                name = f"{action.name}.{parameter.name}"
                raise refusal(program, f"parameter '{name}' of {parameter.bits} bits (more than {MAX_FIELD_BITS})")
