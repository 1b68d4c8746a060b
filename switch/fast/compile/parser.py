"""Parser to C: header fields out of the packet's bytes.

States are written once for each position at which they are entered, so that places in the packet are constants,
which the kernel's verifier needs and the compiler likes. Behind a header of variable length they count from its end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter

from switch.fast.compile.actions import PRIMITIVES, assign
from switch.fast.compile.calculations import emit_verification
from switch.fast.compile.context import Context, located
from switch.fast.compile.expressions import WIDE, WORD, word_text
from switch.fast.compile.headers import make_valid
from switch.fast.layout.bits import load, whole_bytes
from switch.fast.layout.field_usage import written_by
from switch.program.actions import Argument, Primitive
from switch.program.expressions import (
    Constant,
    Expression,
    HeaderReference,
    LastField,
    Lookahead,
    StackReference,
    UnionStackReference,
    Unknown,
)
from switch.program.headers import Field, Header
from switch.program.parser import ParserState, Transition
from topo.errors import UnsupportedError

MAX_PARSER_STATES = 256


@dataclass(frozen=True)
class Position:
    """A state entered `offset` bytes into the packet, with so many elements of each header stack filled.

    What had a variable length (`passed` of them, of at most `behind` bytes) is not in `offset`.
    """

    state: str | None
    offset: int = 0
    filled: tuple[tuple[str, int], ...] = ()
    passed: int = 0
    behind: int = 0

    @property
    def label(self) -> str:
        filled = "".join(f" {stack} {count}" for stack, count in self.filled)
        passed = f" behind {self.passed}" if self.passed else ""
        return f"{self.state}_at_{self.offset}{filled}{passed}"

    def filled_of(self, stack: str) -> int:
        return dict(self.filled).get(stack, 0)

    def filling(self, stack: str, count: int) -> Position:
        return replace(self, filled=tuple(sorted((dict(self.filled) | {stack: count}).items())))


@dataclass
class Places:
    """Where headers were found, for whoever writes them back, and how far into the packet the parser looks."""

    of: dict[str, set[int]] = field(default_factory=dict)
    furthest: int = 0


class ParserGenerator:
    """Writes the function `parse`."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.places = Places({name: set() for name in context.layout.packet_headers})
        self.at = Position(context.program.parser.first)
        self.errors: dict[int, None] = {}
        self.stopped = False

    def emit(self) -> None:
        """`parse`: errors stop it, and leave what was extracted before."""
        out = self.context.out
        self.context.last = self.last_field
        with out.block("static INLINE void parse(PACKET *packet)"):
            out.line("const u8 *data = packet_data(packet), *end = packet_end(packet);")
            if self.context.layout.rebuilt:
                out.line(
                    "u32 base = 0; // bytes of variable length passed so far, to which places in the packet are added"
                )
            self.emit_states()
            for number in self.errors:
                with out.block(f"error_{number}:"):
                    self.emit_error(str(number))
                    out.line("goto accept;")
            with out.block("accept:"):
                self.emit_invalid_headers()
                emit_verification(self.context)
        self.context.last = None

    def emit_states(self) -> None:
        waiting: list[Position] = [self.at]
        followers: dict[Position, list[Position]] = {}
        while waiting:
            position = waiting.pop(0)
            if position in followers:
                continue
            if len(followers) >= MAX_PARSER_STATES:
                raise UnsupportedError(f"a parser with more than {MAX_PARSER_STATES} states times offsets, or a loop")
            followers[position] = self.emit_state(position)
            waiting += followers[position]
        try:
            TopologicalSorter(followers).prepare()
        except CycleError as error:
            raise UnsupportedError(f"a loop in the parser, at state '{error.args[1][0].state}'") from None

    def emit_state(self, position: Position) -> list[Position]:
        """One state; gives the positions that it can lead to."""
        assert position.state is not None
        out, state = self.context.out, self.context.program.parser.states[position.state]
        self.at, self.stopped = position, False
        with out.block(f"{self.label(position)}:"):
            for operation in state.operations:
                with located(operation.source):
                    self.emit_operation(operation)
            self.context.touch(written_by(state.operations))
            return [] if self.stopped else self.emit_transitions(state)

    def label(self, position: Position) -> str:
        return self.context.layout.names.of(position.label)

    def emit_operation(self, operation: Primitive) -> None:
        if operation.name in PARSER_OPERATIONS:
            PARSER_OPERATIONS[operation.name](self, *operation.arguments)
        elif operation.name in PRIMITIVES:
            PRIMITIVES[operation.name](self.context, *operation.arguments)
        else:
            raise UnsupportedError(f"parser operation '{operation.name}'")

    # -- errors

    def emit_error(self, number: str) -> None:
        error = self.context.layout.intrinsic.get("parser_error")
        if error is not None:
            self.context.out.line(f"{self.context.layout.field(error)} = {number};")

    def error(self, name: str) -> str:
        """The jump to where the error `name` of P4 is noted."""
        number = self.context.program.errors[name]
        self.errors[number] = None
        return f"goto error_{number};"

    def need(self, size: int) -> None:
        """Stop the parser where the packet has no `size` bytes more."""
        self.places.furthest = max(self.places.furthest, self.at.behind + self.at.offset + size)
        with self.context.out.block(f"if (data + {self.at.offset + size} > end)"):
            self.context.out.line(self.error("PacketTooShort"))

    # -- operations

    # {"op": "extract", "parameters": [{"type": "regular", "value": "ipv4"}]}
    def extract(self, target: Argument) -> None:
        name = self.next_header(target)
        if name is None:
            return
        header = self.context.program.headers[name]
        self.context.out.comment(f"extract {name}")
        self.need(header.size)
        self.read_fields(header)
        self.move(header.size)

    # {"op": "extract_VL", "parameters": [{"type": "regular", "value": "ipv4"}, {"type": "expression", ...}]}
    def extract_variable(self, target: Argument, bits: Expression) -> None:
        """A header with a field of so many bits; the fields behind it stand so much further."""
        name, out = self.next_header(target), self.context.out
        if name is None:
            return
        header, variable = self.context.program.headers[name], self.context.layout.variable(name)
        if variable is None:
            raise UnsupportedError(f"extracting '{name}' with a length, of which no field is variable")
        length = self.context.value(bits)
        if not length.unsigned:
            raise UnsupportedError("a length that may not fit 64 bits")
        out.comment(f"extract {name}")
        with out.block(""):
            out.line(f"u64 more = {length.text};")
            out.line(f"if (more % 8) {self.error('ParserInvalidArgument')}")
            out.line("more /= 8;")
            out.line("CHECKED(more);")
            self.need(header.size)
            left = f"state.length - base - {self.at.offset + header.size}"
            out.line(f"if (more > {left}) {self.error('PacketTooShort')}")
            out.line(f"if (more > {variable.most}) {self.error('HeaderTooShort')}")
            start = variable.field.offset
            self.load_fields([each for each in self.context.layout.used(name) if each.offset < start])
            place = f"base + {self.at.offset + start // 8}"
            out.line(f"take_bytes(packet, {place}, {variable.bytes}, more);")
            out.line(f"{variable.length} = more;")
            out.line("data += more, base += more;")
            out.line("CHECKED(data);")
            self.at = replace(self.at, passed=self.at.passed + 1, behind=self.at.behind + variable.most)
            self.need(header.size)
            self.load_fields([each for each in self.context.layout.used(name) if each.offset >= start])
        make_valid(self.context, name)
        self.move(header.size)

    def next_header(self, target: Argument) -> str | None:
        """The header to extract; None, and the parser stops, where a stack is full."""
        match target:
            case HeaderReference(header):
                return header
            case StackReference(stack):
                return self.next_element(stack, self.context.program.stacks[stack].headers)
            case UnionStackReference(stack, str() as member):
                unions = self.context.program.union_stacks[stack].unions
                return self.next_element(stack, tuple(union.members[member] for union in unions))
        raise UnsupportedError(f"extracting {target!r}")

    def next_element(self, stack: str, headers: tuple[str, ...]) -> str | None:
        filled = self.at.filled_of(stack)
        if filled == len(headers):
            self.stop("StackOutOfBounds")
            return None
        self.at = self.at.filling(stack, filled + 1)
        return headers[filled]

    def stop(self, error: str) -> None:
        if not self.stopped:
            self.context.out.line(self.error(error))
        self.stopped = True

    def read_fields(self, header: Header) -> None:
        layout, offset = self.context.layout, self.at.offset
        self.load_fields(layout.used(header.name))
        make_valid(self.context, header.name)
        if not layout.rebuilt:
            self.context.out.line(f"state.at.{layout.names.of(header.name)} = {offset};")
            self.places.of[header.name].add(offset)

    def load_fields(self, fields: list[Field]) -> None:
        for each in fields:
            target = self.context.layout.field(each)
            if each.bits > WIDE:
                size, start = whole_bytes(each)
                self.context.out.line(f"take_bytes(packet, base + {self.at.offset + start}, {target}, {size});")
            else:
                self.context.out.line(f"{target} = {load(each, self.at.offset)};")

    def move(self, size: int) -> None:
        """Go on behind `size` bytes that are there."""
        self.at = replace(self.at, offset=self.at.offset + size)
        if self.context.layout.rebuilt:
            self.context.out.line(f"state.head = {'base + ' if self.at.passed else ''}{self.at.offset};")

    # {"op": "set", "parameters": [{"type": "field", ...}, {"type": "expression", ...}]}
    def set_field(self, target: Argument, value: Expression) -> None:
        if not isinstance(value, Lookahead):
            assign(self.context, target, value)
            return
        if not isinstance(target, Field):
            raise UnsupportedError(f"writing to {target!r}")
        self.need(-(-(value.offset + value.bits) // 8))
        bits = min(value.bits, target.bits)
        ahead = Field("", "", bits, False, value.offset + value.bits - bits)
        self.context.out.line(f"{self.context.layout.field(target)} = {load(ahead, self.at.offset)};")

    # {"op": "verify", "parameters": [{"type": "expression", ...}, {"type": "hexstr", "value": "0x9"}]}
    def verify(self, condition: Expression, error: Expression) -> None:
        with self.context.out.block(f"if (!{self.context.value(condition).text})"):
            self.emit_error(self.context.value(error).text)
            self.context.out.line("goto accept;")

    # {"op": "advance", "parameters": [{"type": "hexstr", "value": "0x00000008"}]}
    def advance(self, amount: Expression) -> None:
        if not isinstance(amount, Constant):
            raise UnsupportedError("advancing by a number of bits that is not a constant")
        if amount.value % 8:
            self.stop("ParserInvalidArgument")
            return
        self.need(amount.value // 8)
        self.move(amount.value // 8)

    # -- transitions

    def emit_transitions(self, state: ParserState) -> list[Position]:
        out, reached = self.context.out, []
        parts = [self.key_part(part) for part in state.key]
        for transition in state.transitions:
            condition = condition_of(parts, transition)
            target = "accept"
            if transition.next_state is not None:
                reached.append(replace(self.at, state=transition.next_state))
                target = self.label(reached[-1])
            out.line(f"if ({condition}) goto {target};" if condition else f"goto {target};")
            if not condition:
                return reached
        out.line("goto accept;")
        return reached

    def key_part(self, part: Field | LastField | Lookahead | Unknown) -> tuple[str, int]:
        """The C expression of a part of what transitions look at, and its bits."""
        match part:
            case Field():
                return self.context.layout.field(part), part.bits
            case LastField():
                return self.context.layout.field(self.last_field(part)), part.bits
            case Lookahead(offset, bits):
                self.need(-(-(offset + bits) // 8))
                return f"({load(Field('', '', bits, False, offset), self.at.offset)})", bits
        raise UnsupportedError(f"{part.kind} '{part.name}' in a parser's select")

    def last_field(self, part: LastField) -> Field:
        program, filled = self.context.program, self.at.filled_of(part.stack)
        if not filled:
            raise UnsupportedError(f"the last element of header stack '{part.stack}' where it is still empty")
        if part.member is None:
            header = program.stacks[part.stack].headers[filled - 1]
        else:
            header = program.union_stacks[part.stack].unions[filled - 1].members[part.member]
        return program.headers[header].fields[part.index]

    def emit_invalid_headers(self) -> None:
        """Fields of a header that is not there read as 0 (BMv2 leaves them undefined)."""
        layout = self.context.layout
        for name in layout.packet_headers:
            if layout.used(name):
                record = layout.header(name)
                self.context.out.line(
                    f"if (!{self.context.validity(name)}) __builtin_memset(&{record}, 0, sizeof {record});"
                )


PARSER_OPERATIONS: dict[str, Callable[..., None]] = {
    "advance": ParserGenerator.advance,
    "extract": ParserGenerator.extract,
    "extract_VL": ParserGenerator.extract_variable,
    "set": ParserGenerator.set_field,
    "verify": ParserGenerator.verify,
}


# {"type": "hexstr", "value": "0x0405000011", "mask": null, "next_state": "udp"}
def condition_of(parts: list[tuple[str, int]], transition: Transition) -> str:
    """The C condition of a transition; empty where it always happens."""
    if transition.value_set is not None:
        raise UnsupportedError(f"parser value set '{transition.value_set}'")
    if transition.value is None:
        return ""
    terms, value = [], transition.value
    mask = (1 << sum(bits for _, bits in parts)) - 1 if transition.mask is None else transition.mask
    for text, bits in reversed(parts):
        ones, word = (1 << bits) - 1, WORD if bits <= WORD else 2 * WORD
        if mask & ones:
            masked = f"((u{word}){text} & {word_text(mask & ones, word)})"
            terms.append(f"{masked} == {word_text(value & mask & ones, word)}")
        value, mask = value >> bits, mask >> bits
    return " && ".join(reversed(terms)) or "1"
