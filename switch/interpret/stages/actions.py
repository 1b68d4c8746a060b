"""Actions as functions of a packet: a handler for each primitive that works on the packet alone."""

from __future__ import annotations

from collections.abc import Callable

from switch.interpret.stages.expressions import header_of, value_of
from switch.interpret.stages.externs import EXTERNS
from switch.interpret.stages.fields import byte_size, cut_to, store
from switch.interpret.stages.headers import STACKS, header_copy
from switch.interpret.state.context import Context
from switch.interpret.state.packet import Packet, Run
from switch.program.actions import Action, Argument, Primitive
from switch.program.expressions import Constant, Expression, HeaderReference
from switch.program.externs import Extern
from switch.program.headers import Field
from switch.program.v1model import DROP_PORT
from topo.errors import RunError

Handler = Callable[..., Run]
LOW_16 = (1 << 16) - 1
SESSIONS = (1 << 15) - 1


def action_of(context: Context, action: Action) -> Run:
    """The function that runs an action whose parameters stand in their places."""
    steps = [statement(context, primitive) for primitive in action.primitives]
    if len(steps) == 1:
        return steps[0]

    def run(packet: Packet) -> None:
        for step in steps:
            step(packet)

    return run


def statement(context: Context, primitive: Primitive) -> Run:
    """The function of one statement; a primitive that is in no table is refused by name."""
    with context.located(primitive.source):
        handler = HANDLERS.get(primitive.name)
        if handler is None or any(isinstance(each, Extern) for each in primitive.arguments):
            raise context.refusal(f"primitive '{primitive.name}'")
        return context.trace.statement(primitive, handler(context, *primitive.arguments))


# {"op": "assign", "parameters": [{"type": "field", "value": ["ina", "kind"]}, {"type": "hexstr", "value": "0x02"}]}
def assign(context: Context, target: Argument, source: Expression) -> Run:
    if isinstance(target, Field):
        return assign_field(context, target, source)
    write, value = store(context, target), value_of(context, source)
    return lambda packet: write(packet, value(packet))


def assign_field(context: Context, field: Field, source: Expression) -> Run:
    place, ones, cut = context.places.field(field), (1 << field.bits) - 1, cut_to(field)
    value = value_of(context, source)
    fixed = cut(source.value) if isinstance(source, Constant) else 0

    def run_fixed(packet: Packet) -> None:
        packet[place] = fixed

    def run(packet: Packet) -> None:
        packet[place] = value(packet) & ones

    def run_signed(packet: Packet) -> None:
        packet[place] = cut(value(packet))

    if isinstance(source, Constant):
        return run_fixed
    return run_signed if field.signed else run


# {"op": "assign_VL", "parameters": [{"type": "field", ...}, {"type": "field", ...}]}
def assign_variable(context: Context, target: Field, source: Field) -> Run:
    """A field of variable length takes over the other's length, too."""
    to, to_length = context.places.field(target), context.places.length(target.header)
    of, of_length = context.places.field(source), context.places.length(source.header)
    if to_length is None or of_length is None:
        raise context.refusal(f"assignment between '{target}' and '{source}'")

    def run(packet: Packet) -> None:
        packet[to], packet[to_length] = packet[of], packet[of_length]

    return run


# {"op": "assign_header", "parameters": [{"type": "header", "value": "outer"}, {"type": "header", "value": "inner"}]}
def assign_header(context: Context, target: Expression, source: Expression) -> Run:
    to, of, copy = (
        value_of(context, target),
        value_of(context, source),
        header_copy(context, header_of(context, target)),
    )
    return lambda packet: copy(packet, to(packet), of(packet))


# {"op": "add_header", "parameters": [{"type": "header", "value": "vlan"}]}
def add_header(context: Context, target: Expression) -> Run:
    """The header is there, all 0, unless it was there before."""
    place, header = value_of(context, target), header_of(context, target)
    zeros, size, siblings = [0] * len(header.fields), byte_size(header), context.places.siblings

    def run(packet: Packet) -> None:
        base = place(packet)
        if packet[base]:
            return
        packet[base] = 1
        packet[base + 1 : base + 1 + len(zeros)] = zeros
        packet.length += size(packet, base)
        for other in siblings.get(base, ()):
            packet[other] = 0

    return run


# {"op": "remove_header", "parameters": [{"type": "header", "value": "vlan"}]}
def remove_header(context: Context, target: Expression) -> Run:
    place, size = value_of(context, target), byte_size(header_of(context, target))

    def run(packet: Packet) -> None:
        base = place(packet)
        if packet[base]:
            packet[base] = 0
            packet.length -= size(packet, base)

    return run


# {"op": "mark_to_drop", "parameters": [{"type": "header", "value": "standard_metadata"}]}
def mark_to_drop(context: Context, standard: HeaderReference) -> Run:
    """The metadata that is named may be a copy, which only counts once it is copied back."""
    spec = context.places.field(context.program.field(standard.header, "egress_spec"))
    group = context.places.field(context.program.field(standard.header, "mcast_grp"))

    def run(packet: Packet) -> None:
        packet[spec], packet[group] = DROP_PORT, 0

    return run


# {"op": "exit", "parameters": []}
def leave(_context: Context) -> Run:
    def run(packet: Packet) -> None:
        packet.exited = True

    return run


# {"op": "assert", "parameters": [{"type": "expression", ...}]}
def claim(context: Context, condition: Expression) -> Run:
    """A claim that does not hold ends the switch, as it ends BMv2."""
    holds, source = value_of(context, condition), context.source

    def run(packet: Packet) -> None:
        if not holds(packet):
            raise RunError(f"an assertion of '{context.program.name}' does not hold ({source}): BMv2 ends here")

    return run


# {"op": "truncate", "parameters": [{"type": "hexstr", "value": "0x00000040"}]}
def truncate(context: Context, length: Expression) -> Run:
    most = value_of(context, length)

    def run(packet: Packet) -> None:
        limit = most(packet)
        packet.truncated = limit if packet.truncated is None else min(limit, packet.truncated)

    return run


# {"op": "clone_ingress_pkt_to_egress", "parameters": [{"type": "hexstr", "value": "0x5"}, {"type": "hexstr", ...}]}
def clone(context: Context, session: Expression, fields: Expression) -> Run:
    number, kept = value_of(context, session), value_of(context, fields)

    def run(packet: Packet) -> None:
        packet.session, packet.session_list = number(packet) & SESSIONS, kept(packet) & LOW_16

    return run


# {"op": "resubmit", "parameters": [{"type": "hexstr", "value": "0x1"}]}
def resubmit(context: Context, fields: Expression) -> Run:
    kept = value_of(context, fields)

    def run(packet: Packet) -> None:
        packet.resubmit = kept(packet) & LOW_16

    return run


# {"op": "recirculate", "parameters": [{"type": "hexstr", "value": "0x1"}]}
def recirculate(context: Context, fields: Expression) -> Run:
    kept = value_of(context, fields)

    def run(packet: Packet) -> None:
        packet.recirculate = kept(packet) & LOW_16

    return run


# {"op": "generate_digest", "parameters": [{"type": "hexstr", "value": "0x1"}, {"type": "hexstr", "value": "0x1"}]}
def digest(context: Context, _receiver: Expression, fields: Expression) -> Run:
    number = value_of(context, fields)

    def run(packet: Packet) -> None:
        packet.digest = number(packet) & LOW_16

    return run


PRIMITIVES: dict[str, Handler] = {
    "add_header": add_header,
    "assert": claim,
    "assign": assign,
    "assign_VL": assign_variable,
    "assign_header": assign_header,
    "assume": claim,
    "clone_egress_pkt_to_egress": clone,
    "clone_ingress_pkt_to_egress": clone,
    "exit": leave,
    "generate_digest": digest,
    "mark_to_drop": mark_to_drop,
    "recirculate": recirculate,
    "remove_header": remove_header,
    "resubmit": resubmit,
    "truncate": truncate,
}

HANDLERS = PRIMITIVES | STACKS | EXTERNS
"""All primitives, from the file that each is in."""
