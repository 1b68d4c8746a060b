"""The metadata fields that the switch itself reads and writes, in C."""

from __future__ import annotations

from switch.fast.compile.context import Context
from switch.fast.layout.layout import STARTED


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


def standard(context: Context, name: str) -> str:
    """The C expression of a metadata field of the switch; "0" where the program does not have it."""
    field = context.layout.intrinsic.get(name)
    return "0" if field is None else context.layout.field(field)
