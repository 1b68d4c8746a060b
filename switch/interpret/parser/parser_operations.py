"""The operations of parser states as functions of a packet. The handler of each stands in `PARSER_OPERATIONS`."""

from __future__ import annotations

from collections.abc import Callable

from inakit.switch.interpret.actions.actions import statement
from inakit.switch.interpret.expressions.expressions import elements, value_of
from inakit.switch.interpret.expressions.fields import store
from inakit.switch.interpret.expressions.header_bytes import byte_size, unpack_variable, unpacker
from inakit.switch.interpret.state.context import Context
from inakit.switch.interpret.state.packets.packet import Packet, Run, Value
from inakit.switch.program.program import Argument, Primitive
from inakit.switch.program.expressions import (
    Expression,
    HeaderReference,
    Lookahead,
    StackReference,
    UnionStackReference,
)
from inakit.switch.program.expressions import Field, Header


class ParserError(Exception):
    """Stops the parser; `number` is the value that `parser_error` then has."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def failure(context: Context, name: str) -> int:
    """The number that the program gives to an error of core.p4."""
    return context.program.errors[name]


# {"op": "extract", "parameters": [{"type": "regular", "value": "ipv4"}]}
def extract(context: Context, target: HeaderReference | StackReference | UnionStackReference) -> Run:
    """Read a header of constant length; the parser goes on behind it."""
    place, header, filled = target_of(context, target)
    short, unpack, size, fields = failure(context, "PacketTooShort"), unpacker(header), header.size, len(header.fields)
    siblings = context.places.siblings

    def run(packet: Packet) -> None:
        base, start = place(packet), packet.parsed
        end = start + size
        if end > len(packet.data):
            raise ParserError(short)
        packet[base + 1 : base + 1 + fields] = unpack(packet.data, start)
        packet[base] = 1
        packet.parsed = end
        for other in siblings.get(base, ()):
            packet[other] = 0
        if filled is not None:
            packet[filled] += 1

    return run


def target_of(
    context: Context, target: HeaderReference | StackReference | UnionStackReference
) -> tuple[Value, Header, int | None]:
    """The place of the header to extract, a header of its type, and the place that counts a stack's elements."""
    headers, places = context.program.headers, context.places
    match target:
        case HeaderReference(name):
            return value_of(context, target), headers[name], None
        case StackReference(name):
            return next_of(context, name, None), headers[context.program.stacks[name].headers[0]], places.next[name]
        case UnionStackReference(name, str(member)):
            header = context.program.union_stacks[name].unions[0].members[member]
            return next_of(context, name, member), headers[header], places.next[name]
    raise context.refusal(f"extracting '{target}'")


def next_of(context: Context, stack: str, member: str | None) -> Value:
    """The place of the element that the parser fills next; `ParserError` if the stack is full."""
    bases, filled, full = (
        elements(context, stack, member),
        context.places.next[stack],
        failure(context, "StackOutOfBounds"),
    )

    def place(packet: Packet) -> int:
        if packet[filled] >= len(bases):
            raise ParserError(full)
        return bases[packet[filled]]

    return place


# {"op": "extract_VL", "parameters": [{"type": "regular", "value": "options"}, {"type": "expression", ...}]}
def extract_variable(
    context: Context, target: HeaderReference | StackReference | UnionStackReference, bits: Expression
) -> Run:
    """Read a header whose variable field has `bits` bits; the parser goes on behind it."""
    place, header, filled = target_of(context, target)
    length_of, size, siblings = value_of(context, bits), byte_size(header), context.places.siblings
    odd, short, long = (failure(context, n) for n in ("ParserInvalidArgument", "PacketTooShort", "HeaderTooShort"))
    values = 1 + len(header.fields)

    def run(packet: Packet) -> None:
        base, length = place(packet), length_of(packet)
        if length % 8:
            raise ParserError(odd)
        needed = size(packet, base) + length // 8
        if packet.parsed + needed > len(packet.data):
            raise ParserError(short)
        if header.max_bytes and needed > header.max_bytes:
            raise ParserError(long)
        packet[base + 1 : base + 1 + values] = unpack_variable(header, packet.data, packet.parsed, length)
        packet[base] = 1
        packet.parsed += header.size + length // 8
        for other in siblings.get(base, ()):
            packet[other] = 0
        if filled is not None:
            packet[filled] += 1

    return run


# {"op": "set", "parameters": [{"type": "field", ...}, {"type": "lookahead", "value": [0, 16]}]}
def set_field(context: Context, target: Argument, source: Expression) -> Run:
    """Write a value, or bits that are still to be parsed, to a field."""
    if isinstance(target, Field) and target.variable and isinstance(source, Field):
        return statement(context, Primitive("assign_VL", (target, source), context.source))
    if not isinstance(source, Lookahead):
        return statement(context, Primitive("assign", (target, source), None))
    write, peek, size = store(context, target), lookahead(source), -(-source.bits // 8)
    short = failure(context, "PacketTooShort")

    def run(packet: Packet) -> None:
        if packet.parsed + size > len(packet.data):
            raise ParserError(short)
        write(packet, peek(packet))

    return run


def lookahead(ahead: Lookahead) -> Value:
    """Bits that are still to be parsed; 0 beyond the end of the packet."""
    first, end = ahead.offset // 8, -(-(ahead.offset + ahead.bits) // 8)
    shift, ones = 8 * end - ahead.offset - ahead.bits, (1 << ahead.bits) - 1

    def peek(packet: Packet) -> int:
        data = packet.data[packet.parsed + first : packet.parsed + end].ljust(end - first, b"\0")
        return int.from_bytes(data, "big") >> shift & ones

    return peek


# {"op": "verify", "parameters": [{"type": "expression", ...}, {"type": "hexstr", "value": "0x7"}]}
def verify(context: Context, condition: Expression, error: Expression) -> Run:
    """Stop the parser with `error` unless the condition holds."""
    holds, number = value_of(context, condition), value_of(context, error)

    def run(packet: Packet) -> None:
        if not holds(packet):
            raise ParserError(number(packet))

    return run


# {"op": "advance", "parameters": [{"type": "hexstr", "value": "0x10"}]}
def advance(context: Context, bits: Expression) -> Run:
    """Go on behind so many bits, which must be whole bytes of the packet."""
    distance = value_of(context, bits)
    odd, short = failure(context, "ParserInvalidArgument"), failure(context, "PacketTooShort")

    def run(packet: Packet) -> None:
        by = distance(packet)
        if by % 8:
            raise ParserError(odd)
        if packet.parsed + by // 8 > len(packet.data):
            raise ParserError(short)
        packet.parsed += by // 8

    return run


PARSER_OPERATIONS: dict[str, Callable[..., Run]] = {
    "advance": advance,
    "extract": extract,
    "extract_VL": extract_variable,
    "set": set_field,
    "verify": verify,
}
