"""Fields and headers of a packet: parsed from bytes and written to bytes; numbers cut to a field.

Whole headers are added, removed, moved and copied: validity, header stacks and header unions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from inakit.switch.interpret.expressions import element_place, header_of, headers_of, last_place, value_of
from inakit.switch.interpret.packet import Packet, Run, block_size, has_variable
from inakit.switch.interpret.switch_state import Context
from inakit.switch.program.program import (
    Argument,
    ElementField,
    Expression,
    Field,
    Header,
    LastField,
    StackReference,
    UnionReference,
    UnionStackReference,
)

Store = Callable[[Packet, int], None]
Cut = Callable[[int], int]


def signed(value: int, bits: int) -> int:
    """The signed number of `bits` bits whose two's complement is `value`."""
    return value - (1 << bits) if value >> bits - 1 else value


def cut_to(field: Field) -> Cut:
    """The function that cuts a number as BMv2 does when writing it to a field.

    Numbers for a signed field, up to all ones, stay unchanged: p4c writes none outside the field's type.
    """
    bits, ones = field.bits, (1 << field.bits) - 1
    if not field.signed:
        return lambda value: value & ones
    least = -(1 << bits - 1)
    return lambda value: value if least <= value <= ones else signed(value & ones, bits)


def store(context: Context, target: Argument) -> Store:
    """The function that writes a number to a field at any place; it ignores a negative place."""
    match target:
        case Field():
            return store_field(context, target)
        case ElementField():
            place, field = element_place(context, target), header_of(context, target.header).fields[target.index]
        case LastField(stack, index, _, member):
            header = headers_of(context, stack, member)[0]
            place, field = last_place(context, target), context.program.headers[header].fields[index]
        case _:
            raise context.refusal(f"writing to '{target}'")
    cut = cut_to(field)

    def write(packet: Packet, value: int) -> None:
        found = place(packet)
        if found >= 0:
            packet[found] = cut(value)

    return write


def store_field(context: Context, field: Field) -> Store:
    """The function that writes to a field with a known place."""
    place, ones, cut = context.places.field(field), (1 << field.bits) - 1, cut_to(field)

    def write(packet: Packet, value: int) -> None:
        packet[place] = value & ones

    def write_signed(packet: Packet, value: int) -> None:
        packet[place] = cut(value)

    return write_signed if field.signed else write


WHOLE = {8: "B", 16: "H", 32: "I", 64: "Q"}
"""The letters of Python's struct for fields of 1, 2, 4 and 8 bytes."""


def unpacker(header: Header) -> Callable[[bytes, int], Sequence[int]]:
    """The function that reads a header's fields at its place in a packet; for headers of constant length."""
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
    """The header as a Python struct; None if a field is signed, or its size is not one of `WHOLE`."""
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
    """The fields of a header whose variable one has `length` bits, followed by that length."""
    left = header.bits + length
    number, values = int.from_bytes(data[start : start + left // 8], "big"), []
    for field in header.fields:
        bits = length if field.variable else field.bits
        left -= bits
        value = number >> left & (1 << bits) - 1
        values.append(signed(value, bits) if field.signed and bits else value)
    return [*values, length]


def byte_size(header: Header) -> Callable[[Packet, int], int]:
    """The function that gives the bytes of a packet in a header of this type, from the header's place."""
    size, length = header.size, 1 + len(header.fields)
    if has_variable(header):
        return lambda packet, base: size + packet[base + length] // 8
    return lambda _packet, _base: size


Copy = Callable[[Packet, int, int], None]


def header_copy(context: Context, header: Header) -> Copy:
    """The function that copies one header of this type to another, given their places, including validity."""
    size, siblings = block_size(header), context.places.siblings

    def copy(packet: Packet, to: int, of: int) -> None:
        if not packet[of]:
            packet[to] = 0
            return
        packet[to : to + size] = packet[of : of + size]
        for other in siblings.get(to, ()):
            packet[other] = 0

    return copy


# {"op": "assign_header", "parameters": [{"type": "header", "value": "outer"}, {"type": "header", "value": "inner"}]}
def assign_header(context: Context, target: Expression, source: Expression) -> Run:
    """Copy one header to another."""
    to, of, copy = (
        value_of(context, target),
        value_of(context, source),
        header_copy(context, header_of(context, target)),
    )
    return lambda packet: copy(packet, to(packet), of(packet))


# {"op": "add_header", "parameters": [{"type": "header", "value": "vlan"}]}
def add_header(context: Context, target: Expression) -> Run:
    """Make a header valid with all fields 0, unless it is already valid."""
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
    """Make a header invalid."""
    place, size = value_of(context, target), byte_size(header_of(context, target))

    def run(packet: Packet) -> None:
        base = place(packet)
        if packet[base]:
            packet[base] = 0
            packet.length -= size(packet, base)

    return run


# {"op": "assign_union", "parameters": [{"type": "header_union", "value": "u"}, {"type": "header_union", ...}]}
# {"op": "assign_header_stack", "parameters": [{"type": "header_stack", "value": "a"}, {"type": "header_stack", ...}]}
# {"op": "assign_union_stack", "parameters": [{"type": "header_union_stack", "value": "a"}, ...]}
def assign_all(context: Context, target: Several, source: Several) -> Run:
    """Copy a union or a stack, header by header; for a stack, copy the number of filled elements too."""
    headers, base, following = context.program.headers, context.places.base, context.places.next
    pairs = zip(all_headers(context, target), all_headers(context, source), strict=True)
    copies = [(header_copy(context, headers[to]), base[to], base[of]) for to, of in pairs]
    counts = []
    if not isinstance(target, UnionReference) and not isinstance(source, UnionReference):
        counts.append((following[target.stack], following[source.stack]))

    def run(packet: Packet) -> None:
        for to, of in counts:
            packet[to] = packet[of]
        for copy, to, of in copies:
            copy(packet, to, of)

    return run


Several = StackReference | UnionReference | UnionStackReference


def all_headers(context: Context, named: Several) -> list[str]:
    """The headers of a union or stack; for a stack of unions, union by union."""
    program = context.program
    match named:
        case UnionReference(union):
            return [*program.unions[union].members.values()]
        case StackReference(stack):
            return [*program.stacks[stack].headers]
    return [name for union in program.union_stacks[named.stack].unions for name in union.members.values()]


def rows_of(context: Context, stack: StackReference | UnionStackReference) -> list[tuple[list[int], int]]:
    """The places and the size of a stack's headers; for a stack of unions, those of each member."""
    members: list[str | None] = [None]
    if isinstance(stack, UnionStackReference):
        members = [*context.program.union_stacks[stack.stack].unions[0].members]
    rows = [headers_of(context, stack.stack, member) for member in members]
    base, headers = context.places.base, context.program.headers
    return [([base[name] for name in row], block_size(headers[row[0]])) for row in rows]


def swap(packet: Packet, one: int, other: int, size: int) -> None:
    """Exchange two headers of `size` places."""
    packet[one : one + size], packet[other : other + size] = packet[other : other + size], packet[one : one + size]


# {"op": "push", "parameters": [{"type": "header_stack", "value": "mpls"}, {"type": "hexstr", "value": "0x1"}]}
def push(context: Context, stack: StackReference | UnionStackReference, count: Expression) -> Run:
    """Move a stack's elements up by `count`; the first ones become invalid."""
    number, following, rows = value_of(context, count), context.places.next[stack.stack], rows_of(context, stack)

    def run(packet: Packet) -> None:
        by, filled = number(packet), packet[following]
        for bases, size in rows:
            for index in range(len(bases) - 1, by - 1, -1):
                swap(packet, bases[index], bases[index - by], size)
            for base in bases[:by]:
                packet[base] = 0
            packet[following] = min(len(bases), filled + by)

    return run


# {"op": "pop", "parameters": [{"type": "header_stack", "value": "mpls"}, {"type": "hexstr", "value": "0x1"}]}
def pop(context: Context, stack: StackReference | UnionStackReference, count: Expression) -> Run:
    """Move a stack's elements down by `count`; the last ones become invalid."""
    number, following, rows = value_of(context, count), context.places.next[stack.stack], rows_of(context, stack)

    def run(packet: Packet) -> None:
        by = number(packet)
        packet[following] -= min(packet[following], by)
        for bases, size in rows:
            for index in range(len(bases) - by):
                swap(packet, bases[index], bases[index + by], size)
            for base in bases[max(len(bases) - by, 0) :]:
                packet[base] = 0

    return run


WHOLE_HEADERS: dict[str, Callable[..., Run]] = {
    "add_header": add_header,
    "assign_header": assign_header,
    "assign_header_stack": assign_all,
    "assign_union": assign_all,
    "assign_union_stack": assign_all,
    "pop": pop,
    "push": push,
    "remove_header": remove_header,
}
