"""Statements that ask for copies of a packet, or for another pass of it, to C.

An action only notes in `asked` what is to be done; architecture.py does it at the end of the pipeline, as BMv2 does.
"""

from __future__ import annotations

from inakit.switch.fast.compile.actions.externs import unsigned_number
from inakit.switch.fast.compile.context import Context
from inakit.switch.program.expressions import Expression

SESSIONS, LISTS = 0x7FFF, 0xFFFF
"""The bits that BMv2 keeps of the number of a mirror session, and of a list of fields."""


def masked(context: Context, expression: Expression, bits: int) -> str:
    """The C text of a number's low bits."""
    return f"(({context.value(expression).text}) & {bits:#x})"


# {"op": "clone_ingress_pkt_to_egress", "parameters": [{"type": "hexstr", "value": "0x5"}, {"type": "hexstr", ...}]}
def clone(context: Context, session: Expression, fields: Expression) -> None:
    """Ask for a clone to a mirror session, which keeps a list of fields."""
    context.out.line(f"asked.session = {masked(context, session, SESSIONS)} + 1;")
    context.out.line(f"asked.list = {masked(context, fields, LISTS)};")


# {"op": "resubmit", "parameters": [{"type": "hexstr", "value": "0x1"}]}
def resubmit(context: Context, fields: Expression) -> None:
    """Ask that the packet as it came in is parsed again, and keeps a list of fields."""
    context.out.line(f"asked.resubmit = {masked(context, fields, LISTS)};")


# {"op": "recirculate", "parameters": [{"type": "hexstr", "value": "0x1"}]}
def recirculate(context: Context, fields: Expression) -> None:
    """Ask that the packet as it leaves is parsed again, and keeps a list of fields."""
    context.out.line(f"asked.recirculate = {masked(context, fields, LISTS)};")


# {"op": "truncate", "parameters": [{"type": "hexstr", "value": "0x00000040"}]}
def truncate(context: Context, length: Expression) -> None:
    """Let at most so many bytes of the packet leave; of several limits the lowest counts."""
    most = unsigned_number(context, length, "a length")
    with context.out.block(""):
        context.out.line(f"u64 most = {most.text};")
        context.out.line("if (most < asked.most) asked.most = most;")
