"""Parser and deparser to C: header fields out of the packet's bytes, and changed headers back into them.

Parser states are written once for each offset at which they are entered, so that every place in the
packet is a constant, which the kernel's verifier needs and the compiler likes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from switch.fast.actions import assign
from switch.fast.context import Context
from switch.fast.usage import written_by
from switch.program import Argument, Field, Header, HeaderReference, ParserState, Primitive, Transition
from topo.errors import UnsupportedError

MAX_PARSER_STATES = 256


@dataclass(frozen=True)
class Position:
    """A state entered `offset` bytes into the packet, after the header at `last` in the deparser's order."""

    state: str
    offset: int
    last: int

    @property
    def label(self) -> str:
        return f"{self.state}_at_{self.offset}_after_{self.last + 1}"


@dataclass
class Cursor:
    """How far the parser has come while one state is written, and what it found where."""

    offset: int
    last: int
    found: list[tuple[str, int]] = field(default_factory=list)


class PacketGenerator:
    """Writes the functions `parse` and `deparse`."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.places: dict[str, set[int]] = {name: set() for name in context.layout.packet_headers}
        self.cursor = Cursor(0, -1)

    @property
    def parsed_bytes(self) -> int:
        """The most bytes that the parser looks at; known once it is written."""
        headers = self.context.program.headers
        return max((at + headers[name].size for name, places in self.places.items() for at in places), default=0)

    # -- parser

    def emit_parser(self) -> None:
        """`parse`: BMv2's errors stop it and leave what was extracted before."""
        out = self.context.out
        with out.block("static INLINE void parse(PACKET *packet)"):
            out.line("const u8 *data = packet_data(packet), *end = packet_end(packet);")
            self.emit_states()
            with out.block("too_short:"):
                error = self.context.layout.intrinsic.get("parser_error")
                if error is not None:
                    number = self.context.program.errors["PacketTooShort"]
                    out.line(f"{self.context.layout.field(error)} = {number};")
            with out.block("accept:"):
                self.emit_invalid_headers()

    def emit_states(self) -> None:
        waiting, seen = [Position(self.context.program.parser.first, 0, -1)], set()
        while waiting:
            position = waiting.pop(0)
            if position in seen:
                continue
            seen.add(position)
            if len(seen) > MAX_PARSER_STATES:
                raise UnsupportedError(f"a parser with more than {MAX_PARSER_STATES} states times offsets, or a loop")
            waiting += self.emit_state(position)

    def emit_state(self, position: Position) -> list[Position]:
        """One state; gives the positions that it can lead to."""
        out, state = self.context.out, self.context.program.parser.states[position.state]
        self.cursor = Cursor(position.offset, position.last)
        with out.block(f"{self.label(position)}:"):
            for operation in state.operations:
                self.emit_operation(operation)
            self.context.touch(written_by(state.operations))
            return self.emit_transitions(state)

    def label(self, position: Position) -> str:
        return self.context.layout.names.of(position.label)

    def emit_operation(self, operation: Primitive) -> None:
        if operation.name not in PARSER_OPERATIONS:
            raise UnsupportedError(f"parser operation '{operation.name}'")
        PARSER_OPERATIONS[operation.name](self, *operation.arguments)

    # {"op": "extract", "parameters": [{"type": "regular", "value": "ipv4"}]}
    def extract(self, argument: Argument) -> None:
        if not isinstance(argument, HeaderReference):
            raise UnsupportedError(f"extracting {argument!r}")
        context, cursor, header = self.context, self.cursor, self.context.program.headers[argument.header]
        order = context.program.deparser
        if header.name not in order or order.index(header.name) <= cursor.last:
            raise UnsupportedError(
                f"header '{header.name}' in a way that changes the packet's length or order "
                "(every extracted header must be emitted, in the order of extraction)"
            )
        out, symbol = context.out, context.layout.names.of(header.name)
        out.comment(f"extract {header.name}")
        with out.block(f"if (data + {cursor.offset + header.size} > end)"):
            out.line("goto too_short;")
        for each in context.layout.used(header.name):
            out.line(f"{context.layout.field(each)} = {load(each, cursor.offset)};")
        out.line(f"state.valid.{symbol} = 1;")
        out.line(f"state.at.{symbol} = {cursor.offset};")
        self.places[header.name].add(cursor.offset)
        cursor.offset, cursor.last = cursor.offset + header.size, order.index(header.name)

    # {"op": "set", "parameters": [{"type": "field", ...}, {"type": "expression", ...}]}
    def set_field(self, target: Argument, value: Argument) -> None:
        if isinstance(value, HeaderReference):
            raise UnsupportedError("parser operation 'set' from a header")
        assign(self.context, target, value)  # type: ignore[arg-type]

    def emit_transitions(self, state: ParserState) -> list[Position]:
        out, reached = self.context.out, []
        fields = [part for part in state.key if isinstance(part, Field)]
        if len(fields) < len(state.key) or any(each.value_set for each in state.transitions):
            raise UnsupportedError(f"a select of parser state '{state.name}' on something else than fields")
        for transition in state.transitions:
            condition = self.condition(fields, transition)
            target = "accept"
            if transition.next_state is not None:
                reached.append(Position(transition.next_state, self.cursor.offset, self.cursor.last))
                target = self.label(reached[-1])
            out.line(f"if ({condition}) goto {target};" if condition else f"goto {target};")
            if not condition:
                return reached
        out.line("goto accept;")
        return reached

    # {"type": "hexstr", "value": "0x0405000011", "mask": null, "next_state": "udp"}
    def condition(self, fields: list[Field], transition: Transition) -> str:
        """The C condition of a transition; empty where it always happens."""
        if transition.value is None:
            return ""
        terms, value = [], transition.value
        mask = (1 << sum(each.bits for each in fields)) - 1 if transition.mask is None else transition.mask
        for each in reversed(fields):
            ones = (1 << each.bits) - 1
            if mask & ones:
                text = f"((u64){self.context.layout.field(each)} & {mask & ones:#x}ull)"
                terms.append(f"{text} == {value & mask & ones:#x}ull")
            value, mask = value >> each.bits, mask >> each.bits
        return " && ".join(reversed(terms)) or "1"

    def emit_invalid_headers(self) -> None:
        """Fields of a header that is not there read as 0 (BMv2 leaves them undefined)."""
        layout = self.context.layout
        for name in layout.packet_headers:
            if layout.used(name):
                record = layout.header(name)
                self.context.out.line(
                    f"if (!{self.context.validity(name)}) __builtin_memset(&{record}, 0, sizeof {record});"
                )

    # -- deparser

    def emit_deparser(self) -> None:
        """`deparse`: headers that changed go back to where they came from; all else is in the packet already."""
        layout, out = self.context.layout, self.context.out
        with out.block("static INLINE void deparse(PACKET *packet)"):
            out.line("u8 *data = packet_data(packet), *end = packet_end(packet);")
            for name in layout.packet_headers:
                symbol = layout.names.of(name)
                for place in sorted(self.places[name]):
                    header = self.context.program.headers[name]
                    fits = f"data + {place + header.size} <= end"
                    with out.block(f"if (state.dirty.{symbol} && state.at.{symbol} == {place} && {fits})"):
                        self.emit_write_back(header, place)
                out.line(f"state.dirty.{symbol} = 0;")

    def emit_write_back(self, header: Header, place: int) -> None:
        changed = self.context.layout.written
        for each in self.context.layout.used(header.name):
            if each in changed:
                self.context.out.line(store(each, place, self.context.layout.field(each)))


PARSER_OPERATIONS: dict[str, Callable[..., None]] = {
    "extract": PacketGenerator.extract,
    "set": PacketGenerator.set_field,
}


@dataclass(frozen=True)
class Span:
    """The bytes of the packet that hold a field, and how far it stands above the last one's lowest bit."""

    first: int
    length: int
    shift: int


def span_of(each: Field, header_offset: int) -> Span:
    start = header_offset * 8 + each.offset
    first, last = start // 8, (start + each.bits - 1) // 8
    if last - first >= 8:
        raise UnsupportedError(f"field '{each}', which lies in more than 8 bytes of the packet")
    return Span(first, last - first + 1, (last + 1) * 8 - start - each.bits)


def load(each: Field, header_offset: int) -> str:
    """The C expression of a field in the packet."""
    span, mask = span_of(each, header_offset), (1 << each.bits) - 1
    word = f"load_{span.length}(data + {span.first})"
    whole = span.length * 8 == each.bits
    return word if whole else f"({word} >> {span.shift}) & {mask:#x}ull"


def store(each: Field, header_offset: int, value: str) -> str:
    """The C statement that puts `value` where the field is in the packet."""
    span, mask = span_of(each, header_offset), (1 << each.bits) - 1
    if span.length * 8 == each.bits:
        return f"store_{span.length}(data + {span.first}, {value});"
    kept = f"(load_{span.length}(data + {span.first}) & {~(mask << span.shift) & (1 << 8 * span.length) - 1:#x}ull)"
    return f"store_{span.length}(data + {span.first}, {kept} | ((u64){value} << {span.shift}));"
