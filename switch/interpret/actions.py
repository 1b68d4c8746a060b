"""Actions as functions of a packet, with one handler per primitive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from inakit.switch.interpret.calculations import calculation_of
from inakit.switch.interpret.expressions import value_of
from inakit.switch.interpret.headers import WHOLE_HEADERS, cut_to, store
from inakit.switch.interpret.packet import Packet, Run
from inakit.switch.interpret.switch_state import Context
from inakit.switch.program.program import (
    Action,
    Argument,
    Arguments,
    Calculation,
    Constant,
    Counter,
    Expression,
    Extern,
    Field,
    HeaderReference,
    Meter,
    Primitive,
    Register,
    Text,
)
from inakit.topo.errors import RunError

WORD = (1 << 64) - 1


# {"op": "register_read", "parameters": [{"type": "field", ...}, {"type": "register_array", ...}, {"type": "field"}]}
def register_read(context: Context, target: Argument, register: Register, index: Expression) -> Run:
    """Write a register's element to a field; skip an index beyond the end, as a BMv2 with checks does."""
    cells, write, position = context.state.registers[register.name], store(context, target), value_of(context, index)

    def run(packet: Packet) -> None:
        at = position(packet)
        if 0 <= at < len(cells):
            write(packet, cells[at])

    return run


# {"op": "register_write", "parameters": [{"type": "register_array", ...}, {"type": "field", ...}, {"type": "field"}]}
def register_write(context: Context, register: Register, index: Expression, value: Expression) -> Run:
    """Write a value to a register's element; skip an index beyond the end."""
    cells, ones = context.state.registers[register.name], (1 << register.bits) - 1
    position, number = value_of(context, index), value_of(context, value)

    def run(packet: Packet) -> None:
        at = position(packet)
        if 0 <= at < len(cells):
            cells[at] = number(packet) & ones

    return run


# {"op": "count", "parameters": [{"type": "counter_array", "value": "InaIngress.events"}, {"type": "hexstr", ...}]}
def count(context: Context, counter: Counter, index: Expression) -> Run:
    """Add the packet to an element of a counter; skip an index beyond the end."""
    cells, position = context.state.counters[counter.name], value_of(context, index)

    def run(packet: Packet) -> None:
        at = position(packet)
        if 0 <= at < counter.size:
            cells.add(at, packet.received)

    return run


# {"op": "execute_meter", "parameters": [{"type": "meter_array", ...}, {"type": "field", ...}, {"type": "field", ...}]}
def execute_meter(context: Context, meter: Meter, index: Expression, target: Argument) -> Run:
    """Write the packet's colour, by a meter's cell, to a field; skip an index beyond the end."""
    cells = context.state.meters[meter.name]
    position, write = value_of(context, index), store(context, target)

    def run(packet: Packet) -> None:
        at = position(packet)
        if 0 <= at < meter.size:
            write(packet, cells.colour(at, packet.received))

    return run


# {"op": "modify_field_with_hash_based_offset", "parameters": [field, base, {"type": "calculation", ...}, size]}
def hash_into_range(context: Context, target: Argument, base: Expression, hashed: Calculation, size: Expression) -> Run:
    """Write base + hash % size to a field; a size of 0 counts as 1."""
    write, compute = store(context, target), calculation_of(context, hashed)
    least, numbers = value_of(context, base), value_of(context, size)
    return lambda packet: write(packet, (compute(packet) % (numbers(packet) or 1) + least(packet)) & WORD)


# {"op": "modify_field_rng_uniform", "parameters": [{"type": "field", ...}, {"type": "hexstr"}, {"type": "hexstr"}]}
def random_number(context: Context, target: Argument, low: Expression, high: Expression) -> Run:
    """Write a number from `low` to `high` to a field; an empty range leaves the field as it is."""
    write, least, most, draw = (
        store(context, target),
        value_of(context, low),
        value_of(context, high),
        context.state.random,
    )

    def run(packet: Packet) -> None:
        first, last = least(packet), most(packet)
        if first <= last:
            write(packet, draw.randint(first, last))

    return run


# {"op": "log_msg", "parameters": [{"type": "string", "value": "port {}"}, {"type": "parameters_vector", ...}]}
def log_message(context: Context, text: Text, values: Arguments) -> Run:
    """Add a line to the trace; without a trace, do nothing."""
    numbers, pieces = [value_of(context, value) for value in values.values], text.value.split("{}")
    note = context.trace.note

    def run(packet: Packet) -> None:
        filled = [f"{number(packet)}{piece}" for number, piece in zip(numbers, pieces[1:], strict=False)]
        note(pieces[0] + "".join(filled))

    return run if context.trace.listens else lambda _packet: None


Handler = Callable[..., Run]
Made = TypeVar("Made", Run, "Step")
Step = Callable[[Packet], int | None]
"""A statement of an action with jumps; it returns the index of the next one, or None for the following one."""

MAX_STATEMENTS = 1 << 20
"""The greatest number of statements that an action runs for a packet; more are a loop, which never ends on BMv2."""
LOW_16 = (1 << 16) - 1
SESSIONS = (1 << 15) - 1


def action_of(context: Context, action: Action) -> Run:
    """The function that runs an action whose parameters are already stored in the packet."""
    if action.jumps:
        return run_with_jumps(context, action)
    steps = [statement(context, primitive) for primitive in action.primitives]
    if len(steps) == 1:
        return steps[0]

    def run(packet: Packet) -> None:
        for step in steps:
            step(packet)

    return run


def run_with_jumps(context: Context, action: Action) -> Run:
    """The function of an action with statements that choose the next one."""
    steps: list[Step] = [step(context, primitive, HANDLERS | JUMPING) for primitive in action.primitives]
    name = action.name

    def run(packet: Packet) -> None:
        at = 0
        for _ in range(MAX_STATEMENTS):
            following = steps[at](packet)
            at = at + 1 if following is None else following
            if at >= len(steps):
                return
        raise RunError(f"action '{name}' has run {MAX_STATEMENTS} statements for one packet: it loops")

    return run


# {"op": "_jump", "parameters": [{"type": "hexstr", "value": "0x4"}]}
def jump(context: Context, target: Argument) -> Step:
    """Continue at the statement with this index."""
    index = index_of(context, target)
    return lambda _packet: index


# {"op": "_jump_if_zero", "parameters": [{"type": "expression", ...}, {"type": "hexstr", "value": "0x4"}]}
def jump_if_zero(context: Context, condition: Expression, target: Argument) -> Step:
    """Continue at the statement with this index if the condition is false or the number is 0."""
    index, holds = index_of(context, target), value_of(context, condition)
    return lambda packet: None if holds(packet) else index


def index_of(context: Context, target: Argument) -> int:
    if not isinstance(target, Constant) or target.value < 0:
        raise context.refusal("a jump whose target is computed")
    return target.value


def statement(context: Context, primitive: Primitive) -> Run:
    """The function of one statement; `UnsupportedError` for a primitive without a handler."""
    return step(context, primitive, HANDLERS)


def step(context: Context, primitive: Primitive, handlers: Mapping[str, Callable[..., Made]]) -> Made:
    with context.located(primitive.source):
        handler = handlers.get(primitive.name)
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
    """Write a value to a field with a known place, as most have."""
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
    """Copy a field of variable length, including its length."""
    to, to_length = context.places.field(target), context.places.length(target.header)
    of, of_length = context.places.field(source), context.places.length(source.header)
    if to_length is None or of_length is None:
        raise context.refusal(f"assignment between '{target}' and '{source}'")

    def run(packet: Packet) -> None:
        packet[to], packet[to_length] = packet[of], packet[of_length]

    return run


# {"op": "mark_to_drop", "parameters": [{"type": "header", "value": "standard_metadata"}]}
def mark_to_drop(context: Context, standard: HeaderReference) -> Run:
    """Set `egress_spec` to the drop port and `mcast_grp` to none.

    `standard` can name a copy of the metadata, which takes effect only when it is copied back.
    """
    program, places = context.program, context.places
    spec = places.field(program.field(standard.header, "egress_spec"))
    group = program.find_field(standard.header, "mcast_grp") or program.intrinsic("mcast_grp")
    to_none = None if group is None else places.field(group)
    drop_port = context.state.target.drop_port

    def run(packet: Packet) -> None:
        packet[spec] = drop_port
        if to_none is not None:
            packet[to_none] = 0

    return run


# {"op": "exit", "parameters": []}
def leave(_context: Context) -> Run:
    """Leave the pipeline after this action."""

    def run(packet: Packet) -> None:
        packet.exited = True

    return run


# {"op": "assert", "parameters": [{"type": "expression", ...}]}
def claim(context: Context, condition: Expression) -> Run:
    """End the switch, as BMv2 ends, if an assertion fails."""
    holds, source = value_of(context, condition), context.source

    def run(packet: Packet) -> None:
        if not holds(packet):
            raise RunError(f"an assertion of '{context.program.name}' does not hold ({source}): BMv2 ends here")

    return run


# {"op": "truncate", "parameters": [{"type": "hexstr", "value": "0x00000040"}]}
def truncate(context: Context, length: Expression) -> Run:
    """Limit the bytes of the packet that leave; of several limits the lowest counts."""
    most = value_of(context, length)

    def run(packet: Packet) -> None:
        limit = most(packet)
        packet.truncated = limit if packet.truncated is None else min(limit, packet.truncated)

    return run


# {"op": "clone_ingress_pkt_to_egress", "parameters": [{"type": "hexstr", "value": "0x5"}, {"type": "hexstr", ...}]}
def clone(context: Context, session: Expression, fields: Expression) -> Run:
    """Request a clone to a mirror session; it keeps a list of fields."""
    number, kept = value_of(context, session), value_of(context, fields)

    def run(packet: Packet) -> None:
        packet.session, packet.session_list = number(packet) & SESSIONS, kept(packet) & LOW_16

    return run


# {"op": "resubmit", "parameters": [{"type": "hexstr", "value": "0x1"}]}, and "recirculate"
# {"op": "generate_digest", "parameters": [{"type": "hexstr", "value": "0x1"}, {"type": "hexstr", "value": "0x1"}]}
def ask(what: str) -> Handler:
    """The handler that notes the list of fields for a new pass through the parser, or for a digest."""

    def asking(context: Context, *arguments: Expression) -> Run:
        number = value_of(context, arguments[-1])

        def run(packet: Packet) -> None:
            setattr(packet, what, number(packet) & LOW_16)

        return run

    return asking


PRIMITIVES: dict[str, Handler] = {
    "assert": claim,
    "assign": assign,
    "assign_VL": assign_variable,
    "assume": claim,
    "count": count,
    "clone_egress_pkt_to_egress": clone,
    "clone_ingress_pkt_to_egress": clone,
    "execute_meter": execute_meter,
    "exit": leave,
    "generate_digest": ask("digest"),
    "log_msg": log_message,
    "mark_to_drop": mark_to_drop,
    "modify_field_rng_uniform": random_number,
    "modify_field_with_hash_based_offset": hash_into_range,
    "recirculate": ask("recirculate"),
    "register_read": register_read,
    "register_write": register_write,
    "resubmit": ask("resubmit"),
    "truncate": truncate,
}

JUMPING: dict[str, Callable[..., Step]] = {"_jump": jump, "_jump_if_zero": jump_if_zero}
"""The primitives that choose the next statement of their action."""

HANDLERS = PRIMITIVES | WHOLE_HEADERS
"""All primitives but jumps: those of this file, and those for whole headers."""
