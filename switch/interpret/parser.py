"""Parser and deparser as functions of a packet: each state's function returns the number of the next state.

`PARSER_OPERATIONS` holds the handler of each operation of a state.
"""

from __future__ import annotations

from collections.abc import Callable

from inakit.switch.interpret.actions import statement
from inakit.switch.interpret.calculations import checksums_updated, checksums_verified
from inakit.switch.interpret.expressions import elements, headers_of, value_of
from inakit.switch.interpret.headers import byte_size, packer, store, unpack_variable, unpacker
from inakit.switch.interpret.packet import Packet, Run, Value
from inakit.switch.interpret.switch_state import Context
from inakit.switch.program.program import (
    Argument,
    Expression,
    Field,
    Header,
    HeaderReference,
    LastField,
    Lookahead,
    ParserState,
    Primitive,
    StackReference,
    Transition,
    UnionStackReference,
    Unknown,
)
from inakit.topo.errors import RunError


class ParserError(Exception):
    """Stops the parser; `number` becomes the value of `parser_error`."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


# {"op": "extract", "parameters": [{"type": "regular", "value": "ipv4"}]}
def extract(context: Context, target: HeaderReference | StackReference | UnionStackReference) -> Run:
    """Read a header of constant length, and advance the parser by it."""
    place, header, filled = target_of(context, target)
    short, unpack, size, fields = (
        context.program.errors["PacketTooShort"],
        unpacker(header),
        header.size,
        len(header.fields),
    )
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
    """The place of the header to extract, a header of its type, and the place with a stack's number of elements."""
    match target:
        case HeaderReference(name):
            return value_of(context, target), context.program.headers[name], None
        case StackReference(stack):
            member = None
        case UnionStackReference(stack, str(member)):
            pass
        case _:
            raise context.refusal(f"extracting '{target}'")
    header = context.program.headers[headers_of(context, stack, member)[0]]
    return next_of(context, stack, member), header, context.places.next[stack]


def next_of(context: Context, stack: str, member: str | None) -> Value:
    """The place of the element that the parser fills next; `ParserError` if the stack is full."""
    bases, filled, full = (
        elements(context, stack, member),
        context.places.next[stack],
        context.program.errors["StackOutOfBounds"],
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
    """Read a header whose variable field has `bits` bits, and advance the parser by it."""
    place, header, filled = target_of(context, target)
    length_of, size, siblings = value_of(context, bits), byte_size(header), context.places.siblings
    odd, short, long = (
        context.program.errors[n] for n in ("ParserInvalidArgument", "PacketTooShort", "HeaderTooShort")
    )
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
    """Write a value, or bits ahead of the parser, to a field."""
    if isinstance(target, Field) and target.variable and isinstance(source, Field):
        return statement(context, Primitive("assign_VL", (target, source), context.source))
    if not isinstance(source, Lookahead):
        return statement(context, Primitive("assign", (target, source), None))
    write, peek, size = store(context, target), lookahead(source), -(-source.bits // 8)
    short = context.program.errors["PacketTooShort"]

    def run(packet: Packet) -> None:
        if packet.parsed + size > len(packet.data):
            raise ParserError(short)
        write(packet, peek(packet))

    return run


def lookahead(ahead: Lookahead) -> Value:
    """Bits ahead of the parser; 0 beyond the end of the packet."""
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
    """Advance by a number of bits that must be whole bytes of the packet."""
    distance = value_of(context, bits)
    odd, short = context.program.errors["ParserInvalidArgument"], context.program.errors["PacketTooShort"]

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


ACCEPT = -1
"""The number of the state that ends the parser."""


# {"type": "hexstr", "value": "0x0800", "mask": null, "next_state": "ipv4"}
def transition_of(context: Context, state: ParserState, numbers: dict[str, int]) -> Value:
    """The function that gives the number of the next state, by the first transition that matches or the default."""

    def number(transition: Transition) -> int:
        return ACCEPT if transition.next_state is None else numbers[transition.next_state]

    default = next((number(each) for each in state.transitions if is_default(each)), ACCEPT)
    cases = [each for each in state.transitions if not is_default(each)]
    if not state.key or not cases:
        return lambda _packet: default
    key = context.trace.key(state, key_of(context, state))
    if all(each.mask is None and each.value_set is None for each in cases):
        exact = {each.value: number(each) for each in reversed(cases)}
        return lambda packet: exact.get(key(packet), default)
    tests = [(matcher(context, each), number(each)) for each in cases]

    def choose(packet: Packet) -> int:
        value = key(packet)
        return next((following for matches, following in tests if matches(value)), default)

    return choose


def is_default(transition: Transition) -> bool:
    """Whether a transition always matches."""
    return transition.value is None and transition.value_set is None


def matcher(context: Context, transition: Transition) -> Callable[[int], bool]:
    """The function that tells whether a state's key matches this transition."""
    mask = -1 if transition.mask is None else transition.mask
    if transition.value_set is not None:
        members = context.state.value_sets[transition.value_set]
        return lambda key: key in members if mask == -1 else any(key & mask == each & mask for each in members)
    wanted = (transition.value or 0) & mask
    return lambda key: key & mask == wanted


def key_of(context: Context, state: ParserState) -> Value:
    """The function of a state's key: its parts side by side, each with its bits."""
    known = [part for part in state.key if not isinstance(part, Unknown)]
    parts = [(key_part(context, part), part.bits) for part in known]
    if len(known) < len(state.key):
        raise context.refusal(f"a select of parser state '{state.name}' on something else than fields")
    if len(parts) == 1:
        return parts[0][0]

    def value(packet: Packet) -> int:
        number = 0
        for part, bits in parts:
            number = number << bits | part(packet)
        return number

    return value


def key_part(context: Context, part: Field | LastField | Lookahead) -> Value:
    """The function of one part of a state's key."""
    if isinstance(part, Lookahead):
        return lookahead(part)
    value, ones = value_of(context, part), (1 << part.bits) - 1
    return (lambda packet: value(packet) & ones) if not isinstance(part, Field) or part.signed else value


MAX_STEPS = 1 << 16
"""The greatest number of states that a packet passes; more are a loop."""


def parser_of(context: Context) -> Run:
    """The function that parses a packet. An error stops it and keeps the headers extracted before."""
    parser = context.program.parser
    numbers = {name: number for number, name in enumerate(parser.states)}
    states = [state_of(context, state, numbers) for state in parser.states.values()]
    first, verify, note = numbers[parser.first], checksums_verified(context), context.trace.note
    names = {number: name for name, number in context.program.errors.items()}
    no_error = context.program.no_error

    def follow(packet: Packet) -> None:
        at = first
        for _ in range(MAX_STEPS):
            at = states[at](packet)
            if at == ACCEPT:
                return
        raise RunError(f"the parser of '{context.program.name}' has gone through {MAX_STEPS} states: it loops")

    def parse(packet: Packet) -> None:
        packet.parsed, packet.error = 0, no_error
        try:
            follow(packet)
        except ParserError as error:
            packet.error = error.number
            note(f"Exception while parsing: {names.get(error.number, error.number)}")
        if verify is not None:
            verify(packet)

    return parse


# {"name": "ipv4", "parser_ops": [...], "transition_key": [...], "transitions": [...]}
def state_of(context: Context, state: ParserState, numbers: dict[str, int]) -> Value:
    """The function of one state; `numbers` has the numbers of all states."""
    steps = [operation_of(context, operation) for operation in state.operations]
    following = transition_of(context, state, numbers)

    def run(packet: Packet) -> int:
        for step in steps:
            step(packet)
        return following(packet)

    return context.trace.state(state, run)


def operation_of(context: Context, operation: Primitive) -> Run:
    """The function of one operation of a state, or of an action primitive that stands in it."""
    handler = PARSER_OPERATIONS.get(operation.name)
    if handler is None:
        return statement(context, operation)
    with context.located(operation.source):
        return context.trace.statement(operation, handler(context, *operation.arguments))


# {"name": "deparser", "order": ["ethernet", "ipv4"], "primitives": [...]}
def deparser_of(context: Context) -> Callable[[Packet], bytes]:
    """The function that gives the bytes of the whole packet before truncation."""
    program, base = context.program, context.places.base
    before = [*checksums_updated(context), *(statement(context, each) for each in program.deparser_statements)]
    headers = [(name, base[name], packer(context, program.headers[name])) for name in program.deparser]
    note, listens = context.trace.note, context.trace.listens

    def deparse(packet: Packet) -> bytes:
        for step in before:
            step(packet)
        if listens:
            for name, valid, _ in headers:
                if packet[valid]:
                    note(f"Deparsing header '{name}'")
        return b"".join([pack(packet) for _, valid, pack in headers if packet[valid]]) + packet.data[packet.parsed :]

    return deparse
