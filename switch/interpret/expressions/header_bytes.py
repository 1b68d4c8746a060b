"""Headers out of a packet's bytes, and into bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from inakit.switch.interpret.expressions.fields import signed
from inakit.switch.interpret.state.context import Context
from inakit.switch.interpret.state.packets.packet import Packet, has_variable
from inakit.switch.program.expressions import Header

WHOLE = {8: "B", 16: "H", 32: "I", 64: "Q"}
"""The letters of Python's struct for fields of 1, 2, 4 and 8 bytes."""


def unpacker(header: Header) -> Callable[[bytes, int], Sequence[int]]:
    """The function that gives a header's fields from where it begins in a packet; for headers of constant length."""
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
    """The header as one of Python's structs; None if some field is signed, or no whole number of such a size."""
    if any(field.signed or field.bits not in WHOLE for field in header.fields):
        return None
    return struct.Struct(">" + "".join(WHOLE[field.bits] for field in header.fields))


def packer(context: Context, header: Header) -> Callable[[Packet], bytes]:
    """The function that gives the bytes of a packet's header."""
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
    """The function that gives the bytes of a header with a field of variable length."""

    def pack(packet: Packet) -> bytes:
        number = 0
        for place, field in enumerate(header.fields, start=first):
            bits = packet[length] if field.variable else field.bits
            number = number << bits | packet[place] & (1 << bits) - 1
        return number.to_bytes((header.bits + packet[length]) // 8, "big")

    return pack


def unpack_variable(header: Header, data: bytes, start: int, length: int) -> list[int]:
    """The fields of a header whose variable one has `length` bits, and behind them that length."""
    left = header.bits + length
    number, values = int.from_bytes(data[start : start + left // 8], "big"), []
    for field in header.fields:
        bits = length if field.variable else field.bits
        left -= bits
        value = number >> left & (1 << bits) - 1
        values.append(signed(value, bits) if field.signed and bits else value)
    return [*values, length]


def byte_size(header: Header) -> Callable[[Packet, int], int]:
    """The function that gives how many bytes of a packet a header of this type takes, from the header's place."""
    size, length = header.size, 1 + len(header.fields)
    if has_variable(header):
        return lambda packet, base: size + packet[base + length] // 8
    return lambda _packet, _base: size
