"""Primitives that use the switch's state: registers, counters, meters, hashes, random numbers, log messages."""

from __future__ import annotations

from collections.abc import Callable

from inakit.switch.interpret.expressions.calculations import calculation_of
from inakit.switch.interpret.expressions.expressions import value_of
from inakit.switch.interpret.expressions.fields import store
from inakit.switch.interpret.state.context import Context
from inakit.switch.interpret.state.packets.packet import Packet, Run
from inakit.switch.program.program import Argument, Arguments, Text
from inakit.switch.program.expressions import Calculation
from inakit.switch.program.expressions import Expression
from inakit.switch.program.program import Counter, Meter, Register

WORD = (1 << 64) - 1


# {"op": "register_read", "parameters": [{"type": "field", ...}, {"type": "register_array", ...}, {"type": "field"}]}
def register_read(context: Context, target: Argument, register: Register, index: Expression) -> Run:
    """Write a register's element to a field; an index beyond the end skips the statement, as in a checked BMv2."""
    cells, write, position = context.state.registers[register.name], store(context, target), value_of(context, index)

    def run(packet: Packet) -> None:
        at = position(packet)
        if 0 <= at < len(cells):
            write(packet, cells[at])

    return run


# {"op": "register_write", "parameters": [{"type": "register_array", ...}, {"type": "field", ...}, {"type": "field"}]}
def register_write(context: Context, register: Register, index: Expression, value: Expression) -> Run:
    """Write a value to a register's element; an index beyond the end skips the statement."""
    cells, ones = context.state.registers[register.name], (1 << register.bits) - 1
    position, number = value_of(context, index), value_of(context, value)

    def run(packet: Packet) -> None:
        at = position(packet)
        if 0 <= at < len(cells):
            cells[at] = number(packet) & ones

    return run


# {"op": "count", "parameters": [{"type": "counter_array", "value": "InaIngress.events"}, {"type": "hexstr", ...}]}
def count(context: Context, counter: Counter, index: Expression) -> Run:
    """Add the packet to an element of a counter; an index beyond the end skips the statement."""
    cells, position = context.state.counters[counter.name], value_of(context, index)

    def run(packet: Packet) -> None:
        at = position(packet)
        if 0 <= at < counter.size:
            cells.add(at, packet.received)

    return run


# {"op": "execute_meter", "parameters": [{"type": "meter_array", ...}, {"type": "field", ...}, {"type": "field", ...}]}
def execute_meter(context: Context, meter: Meter, index: Expression, target: Argument) -> Run:
    """Write the packet's colour, by a meter's cell, to a field; an index beyond the end skips the statement."""
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


EXTERNS: dict[str, Callable[..., Run]] = {
    "count": count,
    "execute_meter": execute_meter,
    "log_msg": log_message,
    "modify_field_rng_uniform": random_number,
    "modify_field_with_hash_based_offset": hash_into_range,
    "register_read": register_read,
    "register_write": register_write,
}
