"""Fields and the bytes that hold them: how headers come out of a packet, go into it, and how fields are written."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from switch.interpret.stages.expressions import element_place, header_of, last_place
from switch.interpret.state.context import Context
from switch.interpret.state.packet import Packet, Value, has_variable
from switch.program.actions import Argument
from switch.program.expressions import ElementField, LastField
from switch.program.headers import Field, Header

Store = Callable[[Packet, int], None]
Cut = Callable[[int], int]

WHOLE = {8: "B", 16: "H", 32: "I", 64: "Q"}
"""How Python's struct names fields that are whole bytes."""


def signed(value: int, bits: int) -> int:
    """The number whose two's complement is `value`."""
    return value - (1 << bits) if value >> bits - 1 else value


def cut_to(field: Field) -> Cut:
    """What BMv2 keeps of a number that is written to a field.

    Of a signed field, numbers up to that of all ones stay as they are: p4c writes none that the type does not have.
    """
    bits, ones = field.bits, (1 << field.bits) - 1
    if not field.signed:
        return lambda value: value & ones
    least = -(1 << bits - 1)
    return lambda value: value if least <= value <= ones else signed(value & ones, bits)


def store(context: Context, target: Argument) -> Store:
    """The function that writes to a field, wherever it is."""
    if isinstance(target, Field):
        return store_field(context, target)
    for kind, placed in PLACED.items():
        if isinstance(target, kind):
            return store_at(placed(context, target), cut_to(declared(context, target)))
    raise context.refusal(f"writing to '{target}'")


def store_field(context: Context, field: Field) -> Store:
    place, ones, cut = context.places.field(field), (1 << field.bits) - 1, cut_to(field)

    def write(packet: Packet, value: int) -> None:
        packet[place] = value & ones

    def write_signed(packet: Packet, value: int) -> None:
        packet[place] = cut(value)

    return write_signed if field.signed else write


def store_at(place: Value, cut: Cut) -> Store:
    def write(packet: Packet, value: int) -> None:
        found = place(packet)
        if found >= 0:
            packet[found] = cut(value)

    return write


PLACED: dict[type, Callable[..., Value]] = {ElementField: element_place, LastField: last_place}


def declared(context: Context, target: Argument) -> Field:
    """A field like the one that `target` is at run time."""
    if isinstance(target, ElementField):
        return header_of(context, target.header).fields[target.index]
    assert isinstance(target, LastField)
    program, stack, member = context.program, target.stack, target.member
    header = (
        program.stacks[stack].headers[0] if member is None else program.union_stacks[stack].unions[0].members[member]
    )
    return context.program.headers[header].fields[target.index]


# ---- headers in bytes -------------------------------------------------------------------------------


def unpacker(header: Header) -> Callable[[bytes, int], Sequence[int]]:
    """The function that gives a header's fields, from where it begins in a packet; none of variable length."""
    whole = struct_of(header)
    if whole is not None:
        return whole.unpack_from
    size = header.size
    cuts = [(header.bits - field.offset - field.bits, (1 << field.bits) - 1) for field in header.fields]
    negative = [(index, field.bits) for index, field in enumerate(header.fields) if field.signed]

    def unpack(data: bytes, start: int) -> Sequence[int]:
        number = int.from_bytes(data[start : start + size], "big")
        values = [number >> shift & ones for shift, ones in cuts]
        for index, bits in negative:
            values[index] = signed(values[index], bits)
        return values

    return unpack


def struct_of(header: Header) -> struct.Struct | None:
    """The header as a C struct, if it is one."""
    if any(field.signed or field.bits not in WHOLE for field in header.fields):
        return None
    return struct.Struct(">" + "".join(WHOLE[field.bits] for field in header.fields))


def packer(context: Context, header: Header) -> Callable[[Packet], bytes]:
    """The function that gives a header's bytes."""
    whole, variable = struct_of(header), context.places.length(header.name)
    first, size = context.places.base[header.name] + 1, header.size
    if whole is not None:
        end = first + len(header.fields)
        return lambda packet: whole.pack(*packet[first:end])
    if variable is not None:
        return variable_packer(header, first, variable)
    parts = [(first + index, field.bits, (1 << field.bits) - 1) for index, field in enumerate(header.fields)]

    def pack(packet: Packet) -> bytes:
        number = 0
        for place, bits, ones in parts:
            number = number << bits | packet[place] & ones
        return number.to_bytes(size, "big")

    return pack


def variable_packer(header: Header, first: int, length: int) -> Callable[[Packet], bytes]:
    def pack(packet: Packet) -> bytes:
        number = 0
        for place, field in enumerate(header.fields, start=first):
            bits = packet[length] if field.variable else field.bits
            number = number << bits | packet[place] & (1 << bits) - 1
        return number.to_bytes((header.bits + packet[length]) // 8, "big")

    return pack


def unpack_variable(header: Header, data: bytes, start: int, length: int) -> list[int]:
    """The fields of a header whose variable one is of `length` bits, and that length."""
    left = header.bits + length
    number, values = int.from_bytes(data[start : start + left // 8], "big"), []
    for field in header.fields:
        bits = length if field.variable else field.bits
        left -= bits
        value = number >> left & (1 << bits) - 1
        values.append(signed(value, bits) if field.signed and bits else value)
    return [*values, length]


def byte_size(header: Header) -> Callable[[Packet, int], int]:
    """The function that gives how many bytes of a packet a header of this type takes, by its place."""
    size, length = header.size, 1 + len(header.fields)
    if has_variable(header):
        return lambda packet, base: size + packet[base + length] // 8
    return lambda _packet, _base: size
