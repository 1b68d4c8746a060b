"""Parser and deparser to C: header fields are read from the packet's bytes and written back.

A state is written once for each position at which it is entered. Places in the packet are then constants, which the
kernel's verifier needs and the compiler optimises well. After a header of variable length, places count from its end.
The deparser writes changed headers back in place, or all valid headers anew before the payload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter

from inakit.switch.fast.compile.actions import PRIMITIVES, assign
from inakit.switch.fast.compile.calculations import emit_update, emit_verification
from inakit.switch.fast.compile.context import Context, located
from inakit.switch.fast.compile.expressions import WIDE, WORD, ParsedStacks, Value, word_text
from inakit.switch.fast.compile.headers import make_valid
from inakit.switch.fast.layout.field_usage import written_by
from inakit.switch.fast.layout.layout import Variable
from inakit.switch.fast.layout.records import load, store, whole_bytes
from inakit.switch.program.program import (
    JUMPS,
    Argument,
    Constant,
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
from inakit.topo.errors import UnsupportedError


@dataclass(frozen=True)
class Position:
    """A state entered `offset` bytes into the packet, with the number of `filled` elements of each header stack.

    `offset` excludes fields of variable length: there are `passed` of them, with at most `behind` bytes together.
    """

    state: str | None
    offset: int = 0
    filled: tuple[tuple[str, int], ...] = ()
    passed: int = 0
    behind: int = 0

    @property
    def label(self) -> str:
        """A name that is unique among a parser's positions."""
        filled = "".join(f" {stack} {count}" for stack, count in self.filled)
        passed = f" behind {self.passed}" if self.passed else ""
        return f"{self.state}_at_{self.offset}{filled}{passed}"

    def filled_of(self, stack: str) -> int:
        """The number of filled elements of a stack."""
        return dict(self.filled).get(stack, 0)

    def filling(self, stack: str, count: int) -> Position:
        """The position with `count` elements of a stack filled."""
        return replace(self, filled=tuple(sorted((dict(self.filled) | {stack: count}).items())))


@dataclass
class HeaderPlaces:
    """The offsets at which headers are found (`of`), and how far into the packet the parser looks (`furthest`)."""

    of: dict[str, set[int]] = field(default_factory=dict)
    furthest: int = 0


MAX_PARSER_STATES = 256


class ParserGenerator:
    """Writes the function `parse`, state by state.

    `at` is the position in the state that is being written. `stopped` says that this state ends in an error for every
    packet.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.places = HeaderPlaces({name: set() for name in context.layout.packet_headers})
        self.at = Position(context.program.parser.first)
        self.errors: dict[int, None] = {}
        self.stopped = False

    def emit(self) -> None:
        """Write `parse`. An error stops it and keeps the headers extracted before."""
        out = self.context.out
        self.context.parsed = ParsedStacks(self.last_field, lambda stack: self.at.filled_of(stack))  # noqa: PLW0108, `at` changes
        with out.block("static INLINE void parse(PACKET *packet)"):
            out.line("const u8 *data = packet_data(packet), *end = packet_end(packet);")
            if self.context.layout.rebuilt:
                out.line(
                    "u32 base = 0; // bytes of variable length passed so far, to which places in the packet are added"
                )
            if self.context.program.no_error:  # 0 is the value at the start of a packet
                self.emit_error(str(self.context.program.no_error))
            self.emit_states()
            for number in self.errors:
                with out.block(f"error_{number}:"):
                    self.emit_error(str(number))
                    out.line("goto accept;")
            with out.block("accept:"):
                self.emit_invalid_headers()
                emit_verification(self.context)
        self.context.parsed = None

    def emit_states(self) -> None:
        """Write every state at every position at which it is entered; refuse loops."""
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
        """Write one state; return the positions that it can lead to."""
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
        """Write one operation of a state, or one action primitive that stands in it."""
        if operation.name in PARSER_OPERATIONS:
            PARSER_OPERATIONS[operation.name](self, *operation.arguments)
        elif operation.name in PRIMITIVES and operation.name not in JUMPS:
            PRIMITIVES[operation.name](self.context, *operation.arguments)
        else:
            raise UnsupportedError(f"parser operation '{operation.name}'")

    def emit_error(self, number: str) -> None:
        """Write that the parser has met an error, for programs that use `parser_error`."""
        error = self.context.layout.intrinsic.get("parser_error")
        if error is not None:
            self.context.out.line(f"{self.context.layout.field(error)} = {number};")

    def error(self, name: str) -> str:
        """The jump to where the error called `name` in P4 is noted."""
        number = self.context.program.errors[name]
        self.errors[number] = None
        return f"goto error_{number};"

    def need(self, size: int) -> None:
        """Write a test that stops the parser if the packet has fewer than `size` bytes left."""
        self.places.furthest = max(self.places.furthest, self.at.behind + self.at.offset + size)
        with self.context.out.block(f"if (data + {self.at.offset + size} > end)"):
            self.context.out.line(self.error("PacketTooShort"))

    # {"op": "extract", "parameters": [{"type": "regular", "value": "ipv4"}]}
    def extract(self, target: Argument) -> None:
        """Read a header of constant length."""
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
        """Read a header whose variable field has `bits` bits; the fields after it move by as many."""
        name = self.next_header(target)
        if name is None:
            return
        header, variable = self.context.program.headers[name], self.context.layout.variable(name)
        if variable is None:
            raise UnsupportedError(f"extracting '{name}' with a length, of which no field is variable")
        length = self.context.value(bits)
        if not length.unsigned:
            raise UnsupportedError("a length that may not fit 64 bits")
        self.context.out.comment(f"extract {name}")
        with self.context.out.block(""):
            self.check_length(header, variable, length)
            self.read_variable(header, variable)
        make_valid(self.context, name)
        self.move(header.size)

    def check_length(self, header: Header, variable: Variable, length: Value) -> None:
        """Put the bytes of the variable field into `more`; stop the parser if the field or the header cannot fit."""
        out = self.context.out
        out.line(f"u64 more = {length.text};")
        out.line(f"if (more % 8) {self.error('ParserInvalidArgument')}")
        out.line("more /= 8;")
        out.line("CHECKED(more);")
        self.need(header.size)
        left = f"state.length - base - {self.at.offset + header.size}"
        out.line(f"if (more > {left}) {self.error('PacketTooShort')}")
        out.line(f"if (more > {variable.most}) {self.error('HeaderTooShort')}")

    def read_variable(self, header: Header, variable: Variable) -> None:
        """Read the fields before the variable one, its `more` bytes, and the fields behind them."""
        out, start, used = self.context.out, variable.field.offset, self.context.layout.used(header.name)
        self.load_fields([each for each in used if each.offset < start])
        place = f"base + {self.at.offset + start // 8}"
        out.line(f"take_bytes(packet, {place}, {variable.bytes}, more);")
        out.line(f"{variable.length} = more;")
        out.line("data += more, base += more;")
        out.line("CHECKED(data);")
        self.at = replace(self.at, passed=self.at.passed + 1, behind=self.at.behind + variable.most)
        self.need(header.size)
        self.load_fields([each for each in used if each.offset >= start])

    def next_header(self, target: Argument) -> str | None:
        """The header to extract; None, with a stopped parser, if the stack is full."""
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
        """The next element of a stack; None, with a stopped parser, if the stack is full."""
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
        """Read the used fields of a header, and note that it is valid and where it is."""
        layout, offset = self.context.layout, self.at.offset
        self.load_fields(layout.used(header.name))
        make_valid(self.context, header.name)
        if layout.in_place:
            self.context.out.line(f"state.at.{layout.names.of(header.name)} = {offset};")
            self.places.of[header.name].add(offset)

    def load_fields(self, fields: list[Field]) -> None:
        """Load fields of the header at the parser's position."""
        for each, count in rows_of_words(self.context, fields):
            target = self.context.layout.field(each)
            if count > 1:
                self.context.out.line(f"load_words(&{target}, data + {self.at.offset + each.offset // 8}, {count});")
            elif each.bits > WIDE:
                size, start = whole_bytes(each)
                self.context.out.line(f"take_bytes(packet, base + {self.at.offset + start}, {target}, {size});")
            else:
                self.context.out.line(f"{target} = {load(each, self.at.offset)};")

    def move(self, size: int) -> None:
        """Advance by `size` bytes that the packet has."""
        self.at = replace(self.at, offset=self.at.offset + size)
        if self.context.layout.rebuilt:
            self.context.out.line(f"state.head = {'base + ' if self.at.passed else ''}{self.at.offset};")

    # {"op": "set", "parameters": [{"type": "field", ...}, {"type": "expression", ...}]}
    def set_field(self, target: Argument, value: Expression) -> None:
        """Write a value, or bits ahead of the parser, to a field."""
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
        """Stop with `error` unless the condition holds."""
        with self.context.out.block(f"if (!{self.context.value(condition).text})"):
            self.emit_error(self.context.value(error).text)
            self.context.out.line("goto accept;")

    # {"op": "advance", "parameters": [{"type": "hexstr", "value": "0x00000008"}]}
    def advance(self, amount: Expression) -> None:
        """Advance by a constant number of bits."""
        if not isinstance(amount, Constant):
            raise UnsupportedError("advancing by a number of bits that is not a constant")
        if amount.value % 8:
            self.stop("ParserInvalidArgument")
            return
        self.need(amount.value // 8)
        self.move(amount.value // 8)

    def emit_transitions(self, state: ParserState) -> list[Position]:
        """Write the jumps to the following states; return their positions."""
        out, reached = self.context.out, []
        parts = [self.key_part(part) for part in state.key]
        for transition in state.transitions:
            condition = self.condition(parts, transition)
            target = "accept"
            if transition.next_state is not None:
                reached.append(replace(self.at, state=transition.next_state))
                target = self.label(reached[-1])
            out.line(f"if ({condition}) goto {target};" if condition else f"goto {target};")
            if not condition:
                return reached
        out.line("goto accept;")
        return reached

    def condition(self, parts: list[tuple[str, int]], transition: Transition) -> str:
        """The C condition of a transition; "" for one that always happens."""
        if transition.value_set is None:
            return condition_of(parts, transition)
        value_set = self.context.layout.value_sets[transition.value_set]
        if transition.mask is not None or sum(bits for _, bits in parts) != value_set.value_set.bits:
            raise UnsupportedError(f"parser value set '{transition.value_set}' with a mask")
        word, above, terms = WORD if value_set.value_set.bits <= WORD else WIDE, 0, []
        for text, bits in reversed(parts):
            terms.append(f"(u{word}){text} << {above}")
            above += bits
        return f"in_{value_set.symbol}({' | '.join(terms)})"

    def key_part(self, part: Field | LastField | Lookahead | Unknown) -> tuple[str, int]:
        """The C expression of a part of the transitions' key, and its bits."""
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
        """The field of a stack's last element, which is known at the parser's position."""
        program, filled = self.context.program, self.at.filled_of(part.stack)
        if not filled:
            raise UnsupportedError(f"the last element of header stack '{part.stack}' where it is still empty")
        if part.member is None:
            header = program.stacks[part.stack].headers[filled - 1]
        else:
            header = program.union_stacks[part.stack].unions[filled - 1].members[part.member]
        return program.headers[header].fields[part.index]

    def emit_invalid_headers(self) -> None:
        """Set the fields of headers that are not valid to 0; BMv2 leaves them undefined."""
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
    """The C condition of a transition; "" for one that always happens."""
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


def emit_deparser(context: Context, places: HeaderPlaces) -> None:
    """Write the function `deparse`, which returns 0, or another number if the packet cannot be made."""
    layout, out = context.layout, context.out
    if layout.rebuilt:
        emit_rebuilding(context)
    if layout.in_place:
        emit_changing(context, places)
    with out.block("static INLINE int deparse(PACKET *packet)"):
        emit_update(context)
        if layout.moving:
            out.line("if (state.moved) return rebuild(packet);")
        out.line(f"return {'change' if layout.in_place else 'rebuild'}(packet);")


def emit_changing(context: Context, places: HeaderPlaces) -> None:
    """Write the function `change`: it writes changed fields back into headers that have stayed in the packet."""
    layout, out = context.layout, context.out
    with out.block("static INLINE int change(PACKET *packet)"):
        out.line("u8 *data = packet_data(packet), *end = packet_end(packet);")
        for name in layout.packet_headers:
            symbol = layout.names.of(name)
            for place in sorted(places.of[name]):
                header = context.program.headers[name]
                fits = f"data + {place + header.size} <= end"
                there = f"{context.validity(name)} && state.dirty.{symbol}"
                with out.block(f"if ({there} && state.at.{symbol} == {place} && {fits})"):
                    written = [each for each in layout.used(name) if each in layout.written]
                    emit_stores(context, written, place)
            out.line(f"state.dirty.{symbol} = 0;")
        out.line("return 0;")


FEWEST_WORDS, WORD_OF_ROW = 8, 32


def rows_of_words(context: Context, fields: list[Field]) -> Iterator[tuple[Field, int]]:
    """The fields in order; of 32-bit neighbours, in memory and in the packet, the first one and their number."""
    following, at = context.layout.following, 0
    while at < len(fields):
        row = [fields[at]]
        for each in fields[at + 1 :]:
            behind = each.offset == row[-1].offset + WORD_OF_ROW and following.get(row[-1]) == each
            if not behind or each.bits != WORD_OF_ROW or each.offset % 8:
                break
            row.append(each)
        count = len(row) if len(row) >= FEWEST_WORDS else 1
        yield row[0], count
        at += count


def emit_stores(context: Context, fields: list[Field], place: int) -> None:
    """Write statements that put fields into the header that begins `place` bytes behind `data`."""
    for each, count in rows_of_words(context, fields):
        if count > 1:
            target = context.layout.field(each)
            context.out.line(f"store_words(data + {place + each.offset // 8}, &{target}, {count});")
            continue
        if each.bits > WIDE:
            size, start = whole_bytes(each)
            context.out.line(f"copy_bytes(data + {place + start}, {context.layout.field(each)}, {size}, {size});")
            continue
        for statement in store(each, place, context.layout.field(each)):
            context.out.line(statement)


def emit_rebuilding(context: Context) -> None:
    """Write the function `rebuild`: it replaces the parsed headers by all valid ones, in order."""
    order, out = context.program.deparser, context.out
    for name in dict.fromkeys(order):
        emit_header(context, context.program.headers[name])
    with out.block("FUNCTION int rebuild(PACKET *packet)"):
        out.line("u32 length = 0;")
        for name in order:
            out.line(f"if ({context.validity(name)}) length = emit_{context.layout.names.of(name)}(length);")
        out.line("int failed = replace_head(packet, state.head, length);")
        out.line("state.head = length;")
        out.line("return failed;")


def emit_header(context: Context, header: Header) -> None:
    """Write a function that writes one header into `head` at `at` and returns its end."""
    out, variable = context.out, context.layout.variable(header.name)
    fields = context.layout.used(header.name)
    out.comment(f"emit {header.name}")
    with out.block(f"FUNCTION u32 emit_{context.layout.names.of(header.name)}(u32 at)"):
        most = context.layout.most_bytes(header.name)
        out.line(f"if (at > HEAD_BYTES - {most}) return 0; // never: there is room for all headers")
        out.line("u8 *data = head + at;")
        if variable is None:
            emit_stores(context, fields, 0)
            out.line(f"return at + {header.size};")
            return
        start = variable.field.offset
        emit_stores(context, [each for each in fields if each.offset < start], 0)
        out.line(f"u64 more = {variable.length};")
        out.line(f"if (more > {variable.most}) return 0; // never")
        out.line("CHECKED(more);")
        out.line(f"copy_bytes(data + {start // 8}, {variable.bytes}, more, {variable.most});")
        out.line("data += more;")
        emit_stores(context, [each for each in fields if each.offset >= start], 0)
        out.line(f"return at + {header.size} + more;")
