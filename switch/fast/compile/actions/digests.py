"""Digests to C: an action asks for one, and the values are put into a ring at the end of ingress."""

from __future__ import annotations

from inakit.switch.fast.compile.actions.copies import LISTS
from inakit.switch.fast.compile.context import Context
from inakit.switch.fast.layout.digest_rings import COUNTS, RING, ring_name
from inakit.switch.program.expressions import Expression
from inakit.switch.program.expressions import Field


# {"op": "generate_digest", "parameters": [{"type": "hexstr", "value": "0x1"}, {"type": "hexstr", "value": "0x1"}]}
def digest(context: Context, _receiver: Expression, fields: Expression) -> None:
    """Ask that a list of fields is reported; of several requests the last one counts."""
    context.out.line(f"state.digest = ({context.value(fields).text}) & {LISTS:#x};")


def emit_learning(context: Context) -> None:
    """Write, for the end of ingress, what puts the values of the list that was asked for into its ring."""
    if not context.layout.digesting:
        return
    with context.out.block("switch (state.digest)"):
        for number in context.program.digests:
            with context.out.block(f"case {number}:"):
                emit_report(context, number)
                context.out.line("break;")


def emit_report(context: Context, number: int) -> None:
    """Write the values of one list to the next place of its ring, and count it then."""
    layout, out = context.layout, context.out
    ring, counts = layout.arrays[ring_name(number)], layout.arrays[COUNTS]
    total, count = (f"own->{counts.symbol}[0].{counts.record.symbols[name]}" for name in ("total", str(number)))
    out.line(f"struct {ring.record.name} *one = &own->{ring.symbol}[{count} % {RING}];")
    out.line(f"one->{ring.record.symbols['number']} = {total};")
    values = [each for each in context.program.digests[number].fields if isinstance(each, Field)]
    for index, field in enumerate(values):
        out.line(f"one->{ring.record.symbols[str(index)]} = {layout.field(field)};")
    out.line(f"{total} += 1, {count} += 1;")
