"""The metadata fields that the switch itself reads and writes, in C."""

from __future__ import annotations

from inakit.switch.fast.compile.context import Context
from inakit.switch.fast.layout.field_usage import named_by
from inakit.switch.fast.layout.layout import EGRESS_TIME, STARTED
from inakit.switch.program.program import Action


def set_standard(context: Context, name: str, text: str) -> None:
    """Assign to a metadata field of the switch; do nothing where the program does not have it."""
    field = context.layout.intrinsic.get(name)
    if field is not None:
        context.out.line(f"{context.layout.field(field)} = ({text}) & {(1 << field.bits) - 1:#x}ull;")


def set_clock(context: Context, name: str) -> None:
    """Assign the microseconds since the switch started. No packet waits in a queue: its depths and times are 0."""
    if context.layout.timed(name):
        started = context.layout.arrays[STARTED]
        set_standard(context, name, f"(clock_ns() - own->{started.symbol}[0].ns) / 1000")


def set_egress_time(context: Context) -> None:
    """Note when egress begins. Reading the clock takes as long as a table: where actions do it, it is 0 until then."""
    if context.layout.late_clock is None:
        set_clock(context, EGRESS_TIME)
    else:
        set_standard(context, EGRESS_TIME, "0")


def set_late_clock(context: Context, action: Action) -> None:
    """In an action that needs to know when egress began, read the clock if no action before it has."""
    field = context.layout.late_clock
    if field is not None and field in named_by(action.primitives):
        with context.out.block(f"if (!{context.layout.field(field)})"):
            set_clock(context, field.name)


def standard(context: Context, name: str) -> str:
    """The C expression of a metadata field of the switch; "0" where the program does not have it."""
    field = context.layout.intrinsic.get(name)
    return "0" if field is None else context.layout.field(field)
