"""How fields are written: what of a number a field keeps, and where the field stands."""

from __future__ import annotations

from collections.abc import Callable

from inakit.switch.interpret.expressions.expressions import element_place, header_of, last_place
from inakit.switch.interpret.state.context import Context
from inakit.switch.interpret.state.packets.packet import Packet, Value
from inakit.switch.program.program import Argument
from inakit.switch.program.expressions import ElementField, LastField
from inakit.switch.program.expressions import Field

Store = Callable[[Packet, int], None]
Cut = Callable[[int], int]


def signed(value: int, bits: int) -> int:
    """The signed number of so many bits whose two's complement is `value`."""
    return value - (1 << bits) if value >> bits - 1 else value


def cut_to(field: Field) -> Cut:
    """The function that gives what BMv2 keeps of a number that is written to a field.

    Of a signed field, numbers up to that of all ones stay as they are: p4c writes none that the type does not have.
    """
    bits, ones = field.bits, (1 << field.bits) - 1
    if not field.signed:
        return lambda value: value & ones
    least = -(1 << bits - 1)
    return lambda value: value if least <= value <= ones else signed(value & ones, bits)


def store(context: Context, target: Argument) -> Store:
    """The function that writes a number to a field, wherever it is."""
    if isinstance(target, Field):
        return store_field(context, target)
    for kind, placed in PLACED.items():
        if isinstance(target, kind):
            return store_at(placed(context, target), cut_to(declared(context, target)))
    raise context.refusal(f"writing to '{target}'")


def store_field(context: Context, field: Field) -> Store:
    """The function that writes to a field whose place is known now."""
    place, ones, cut = context.places.field(field), (1 << field.bits) - 1, cut_to(field)

    def write(packet: Packet, value: int) -> None:
        packet[place] = value & ones

    def write_signed(packet: Packet, value: int) -> None:
        packet[place] = cut(value)

    return write_signed if field.signed else write


def store_at(place: Value, cut: Cut) -> Store:
    """The function that writes to the place that `place` gives; to a negative one it writes nothing."""

    def write(packet: Packet, value: int) -> None:
        found = place(packet)
        if found >= 0:
            packet[found] = cut(value)

    return write


PLACED: dict[type, Callable[..., Value]] = {ElementField: element_place, LastField: last_place}


def declared(context: Context, target: Argument) -> Field:
    """A field of the same type as the one that `target` is at run time."""
    if isinstance(target, ElementField):
        return header_of(context, target.header).fields[target.index]
    assert isinstance(target, LastField)
    program, stack, member = context.program, target.stack, target.member
    header = (
        program.stacks[stack].headers[0] if member is None else program.union_stacks[stack].unions[0].members[member]
    )
    return context.program.headers[header].fields[target.index]
