"""Random table entries and packets for any program, with keys, parameters and fields that fit.

A packet is made by walking the parser's states: each header that a state extracts is appended, and fields that decide
are set to values with a next state. Half of the fields that tables match get a value of some entry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from types import MappingProxyType

from inakit.switch.control.entry_check import by_priority, numbers_of
from inakit.switch.entries import KeyPart, Lpm, Range, SwitchEntries, TableEntry, Ternary
from inakit.switch.program.program import (
    ActionParameter,
    Expression,
    Field,
    Header,
    HeaderReference,
    Lookahead,
    MatchKey,
    ParserState,
    Primitive,
    Program,
    StackReference,
    Table,
    Transition,
)
from inakit.switch.server.packet_sockets import LEAST_FRAME, MOST_FRAME
from inakit.topo.errors import InputError

PORTS = range(5)
"""The ports of switches that get random entries and packets."""

PORT_BITS = 9
SMALL_NUMBERS = 0.3
"""The chance that a number of an entry is one of the lowest or the highest."""

Limits = Mapping[str, int]
NO_LIMITS: Limits = MappingProxyType({})


def random_entries(program: Program, random: Random, per_table: int, limits: Limits = NO_LIMITS) -> SwitchEntries:
    """Up to `per_table` entries for each table that takes entries."""
    tables = [table for table in program.tables.values() if fillable(table)]
    entries = (entry for table in tables for entry in entries_of(table, random, per_table, limits))
    return SwitchEntries("switch", tuple(entries))


def fillable(table: Table) -> bool:
    """Whether a table takes plain entries: it has a key, is not const, and has no action profile."""
    return bool(table.key) and table.entries is None and table.profile is None


def entries_of(table: Table, random: Random, most: int, limits: Limits = NO_LIMITS) -> Iterator[TableEntry]:
    """At most `most` entries with distinct keys and distinct priorities."""
    seen: set[tuple[KeyPart, ...]] = set()
    prioritised = by_priority(table)
    for priority in random.sample(range(1, 1000), min(most, table.size)):
        key = tuple(random_key_part(random, part, limits.get(str(part.value))) for part in table.key)
        if key in seen:
            continue
        seen.add(key)
        action = random.choice(table.actions)
        params = tuple(
            random_parameter(random, each, limits.get(f"{action.name}.{each.name}")) for each in action.parameters
        )
        yield TableEntry(table.name, key, action.name, params, priority if prioritised else None)


def random_key_part(random: Random, part: MatchKey, most: int | None = None) -> KeyPart:
    """One part of a key for the table's kind of match; its numbers are at most `most`."""
    everything = (1 << part.bits) - 1
    highest = everything if most is None else min(most, everything)
    value = random_number(random, part.bits, SMALL_NUMBERS) % (highest + 1)
    match part.match:
        case "lpm":
            prefix = random.randint(0, part.bits)
            return Lpm(value >> part.bits - prefix << part.bits - prefix, prefix)
        case "ternary":
            mask = random.choice([0, everything, random.getrandbits(part.bits)])
            return Ternary(value & mask, mask)
        case "range":
            return Range(value, random.randint(value, highest))
    return value


def random_parameter(random: Random, parameter: ActionParameter, most: int | None = None) -> int:
    """A number for a parameter, at most `most`; one of `PORTS` if it has no limit and a port's width."""
    if most is None and parameter.bits == PORT_BITS:
        return random.choice(PORTS)
    drawn = random_number(random, parameter.bits, SMALL_NUMBERS)
    return drawn if most is None else drawn % (most + 1)


def random_number(random: Random, bits: int, small: float) -> int:
    """A random number of `bits` bits; with probability `small`, one of the lowest or the highest."""
    if random.random() < small:
        return random.choice([0, 1, 2, 3, (1 << bits) - 1]) & (1 << bits) - 1
    return random.getrandbits(bits) if bits else 0


MAX_STATES = 64
MAX_TRIES = 1000
MAX_PAYLOAD_BYTES = 80
MAX_VARIABLE_BYTES = 12
TRUNCATED = 0.05
"""The share of packets that are cut short."""

SMALL_FIELDS = 0.25
"""The chance that a field of a packet is one of the lowest numbers or the highest."""


@dataclass
class Draw:
    """Draws packets and entries for `program`. `pool` has the values of fields that entries match, by the field's name.

    `limits` are the highest values of fields and of action parameters, needed for indices of registers and counters:
    beyond the end of an array, the behaviour of `simple_switch`, built for speed, is undefined. Every packet has all
    `headers`: if a program reads a field of an absent header, `simple_switch` returns the value of an earlier packet.
    """

    program: Program
    random: Random
    limits: Mapping[str, int] = field(default_factory=dict)
    headers: Collection[str] = ()
    pool: dict[str, list[int]] = field(default_factory=dict)

    def know(self, entries: SwitchEntries) -> None:
        """From now on, also draw fields of packets from values that these entries match."""
        for entry in entries.tables:
            for part, given in zip(self.program.table(entry.table).key, entry.key, strict=True):
                self.pool.setdefault(str(part.value), []).append(numbers_of(given)[0])

    def entries(self, per_table: int) -> SwitchEntries:
        """Up to `per_table` random entries for each table that takes entries."""
        return random_entries(self.program, self.random, per_table, self.limits)

    def packets(self, count: int) -> Iterator[tuple[int, bytes]]:
        """`count` packets with their ports."""
        for _ in range(count):
            yield self.random.choice(PORTS), self.packet()

    def packet(self) -> bytes:
        """One packet that the parser accepts for some states; `InputError` if no packet with all `headers` is found."""
        for _ in range(MAX_TRIES):
            written = self.walked()
            if all(name in written.places for name in self.headers):
                break
        else:
            raise InputError(f"none of {MAX_TRIES} packets has the headers {', '.join(self.headers)} together")
        data = written.to_bytes() + self.random.randbytes(self.random.randrange(MAX_PAYLOAD_BYTES))
        if not self.headers and self.random.random() < TRUNCATED:
            data = data[: self.random.randrange(len(data) + 1)]
        missing = max(0, LEAST_FRAME - len(data))
        return (data + self.random.randbytes(missing))[:MOST_FRAME]

    def walked(self) -> Written:
        """The headers of one packet, along a random way through the parser."""
        written = Written(self)
        state: str | None = self.program.parser.first
        for _ in range(MAX_STATES):
            if state is None:
                break
            state = written.walk(self.program.parser.states[state])
        return written

    def value(self, of: Field) -> int:
        """A value for a field of a packet: one that an entry matches, or any up to the field's limit."""
        known = self.pool.get(str(of))
        if known and self.random.random() < 0.5:
            return self.random.choice(known)
        drawn = random_number(self.random, of.bits, SMALL_FIELDS)
        return drawn % (self.limits[str(of)] + 1) if str(of) in self.limits else drawn


@dataclass
class Written:
    """A packet that grows as the parser reads it: `bits` long, with its bits as one number, the first bit highest.

    In bits, `cursor` is the parser's position and `places` the start of each header; `filled` counts a stack's
    elements.
    """

    draw: Draw
    bits: int = 0
    value: int = 0
    cursor: int = 0
    places: dict[str, int] = field(default_factory=dict)
    filled: dict[str, int] = field(default_factory=dict)

    @cached_property
    def program(self) -> Program:
        """The program for which packets are drawn."""
        return self.draw.program

    def walk(self, state: ParserState) -> str | None:
        """Write the headers that a state reads, choose a transition, and return the next state."""
        for operation in state.operations:
            self.extract(operation)
        if not state.transitions:
            return None
        chosen = self.draw.random.choice(state.transitions)
        self.lead(state, chosen)
        return chosen.next_state

    def extract(self, operation: Primitive) -> None:
        """Append the header that `operation` reads, if it reads one."""
        if not operation.name.startswith("extract"):
            return
        header = self.header_of(operation.arguments[0])
        if header is None:
            return
        start = self.cursor
        self.places[header.name] = start
        for each in header.fields:
            self.write(start + each.offset, each.bits, self.draw.value(each))
        more = self.draw.random.randrange(MAX_VARIABLE_BYTES) * 8 if operation.name == "extract_VL" else 0
        self.cursor = start + header.bits + more
        self.grow(self.cursor)

    def header_of(self, argument: object) -> Header | None:
        """The extracted header; in a stack the next one, or None if the stack is full or unknown."""
        match argument:
            case HeaderReference(name):
                return self.program.headers[name]
            case StackReference(stack):
                number = self.filled.get(stack, 0)
                self.filled[stack] = number + 1
                names = self.program.stacks[stack].headers
                return self.program.headers[names[number]] if number < len(names) else None
        return None

    def lead(self, state: ParserState, transition: Transition) -> None:
        """Set the key's fields so that `transition` matches."""
        if transition.value is None:
            return
        left = sum(part_bits(part) for part in state.key)
        for part in state.key:
            left -= part_bits(part)
            place = self.place_of(part)
            if place is None:
                continue
            bits = part_bits(part)
            everything = (1 << bits) - 1
            mask = everything if transition.mask is None else transition.mask >> left & everything
            wanted = transition.value >> left & everything
            self.write(place, bits, wanted & mask | self.read(place, bits) & ~mask)

    def place_of(self, part: Expression) -> int | None:
        """The position of a key part's bits in the packet."""
        match part:
            case Field(header, offset=offset) if header in self.places:
                return self.places[header] + offset
            case Lookahead(offset):
                return self.cursor + offset
        return None

    def grow(self, bits: int) -> None:
        """Extend the packet to at least `bits` bits, with random ones."""
        more = bits - self.bits
        if more > 0:
            self.value = self.value << more | self.draw.random.getrandbits(more)
            self.bits = bits

    def read(self, place: int, bits: int) -> int:
        """The number in `bits` bits from `place` on; the packet grows to hold them."""
        self.grow(place + bits)
        return self.value >> self.bits - place - bits & (1 << bits) - 1

    def write(self, place: int, bits: int, value: int) -> None:
        """Write a number into `bits` bits from `place` on."""
        changed = self.read(place, bits) ^ value
        self.value ^= changed << self.bits - place - bits

    def to_bytes(self) -> bytes:
        """The packet's bytes; the packet grows to a whole number of them."""
        self.grow(-(-self.bits // 8) * 8)
        return self.value.to_bytes(self.bits // 8, "big")


def part_bits(part: Expression) -> int:
    """The number of bits in a part of a parser's key."""
    return part.bits if isinstance(part, Field | Lookahead) else getattr(part, "bits", 0)
