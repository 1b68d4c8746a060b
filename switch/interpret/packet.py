"""A packet in the program: one list of numbers, and the places of all fields in it.

`Trace` records nothing and costs nothing: it returns the given functions unchanged. `TraceLines` wraps them, and
records each step of a packet, line by line, in the words of BMv2's log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

from inakit.switch.interpret.table_state import Installed
from inakit.switch.program.program import ActionCall, Conditional, Field, Header, ParserState, Primitive, Program, Table

NO_SESSION = -1


class Packet(list[int]):
    """The values of all fields of one packet, at their `PacketPlaces`; and the state that BMv2 keeps with them."""

    data = b""
    """All bytes of the packet when it came to the parser."""
    parsed = 0
    """The number of bytes that the parser has read; the rest is payload."""
    port = 0
    """The port at which the packet arrived."""
    received = 0
    """The packet's length on arrival, which counters and meters use."""
    length = 0
    """The packet's present length, including headers that actions have added or removed."""
    error = 0
    """The number of the parser's error, from the program's own list."""
    bad_checksum = False
    exited = False
    truncated: int | None = None
    """The greatest number of bytes of the packet that leave, if an action has set it."""
    session = NO_SESSION
    """The mirror session to which the packet will be cloned."""
    session_list = 0
    """The list of fields that the clone keeps."""
    digest = 0
    """The list of fields for a digest; 0 means none."""
    resubmit = 0
    recirculate = 0
    """The list of fields that the packet keeps when it returns to the parser; 0: it does not return."""

    @property
    def payload(self) -> bytes:
        """The bytes behind the parsed headers, cut to the packet's truncated length."""
        return self.data[self.parsed : self.truncated if self.truncated is None else self.parsed + self.truncated]

    def copy_with(self, values: list[int]) -> Packet:
        """Another packet with the same bytes and these values, without the requests of actions."""
        other = Packet(values)
        other.data, other.parsed, other.port = self.data, self.parsed, self.port
        other.received, other.length = self.received, self.length
        return other


Value = Callable[[Packet], int]
Run = Callable[[Packet], None]


class PacketPlaces:
    """The places of a packet's values: for each header its validity and then its fields, metadata first.

    The fields of a header with a variable-length field are followed by that length in bits. Then come the number of
    elements in each stack that the parser has filled, and the parameters of the action that runs.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.base: dict[str, int] = {}
        self.next: dict[str, int] = {}
        self.size = 0
        for header in sorted(program.headers.values(), key=lambda header: not header.metadata):
            self.base[header.name] = self.take(block_size(header))
        self.metadata = sum(block_size(header) for header in program.headers.values() if header.metadata)
        for stack in (*program.stacks, *program.union_stacks):
            self.next[stack] = self.take(1)
        self.parameters = self.take(max((len(action.parameters) for action in program.actions), default=0))

    def take(self, count: int) -> int:
        """The first of `count` unused places."""
        self.size += count
        return self.size - count

    @cached_property
    def initial(self) -> list[int]:
        """The values of a packet before the parser: metadata is valid and 0, no header is valid.

        Read it only after all places have been taken.
        """
        values = [0] * self.size
        for header in self.program.headers.values():
            values[self.base[header.name]] = int(header.metadata)
        return values

    def field(self, field: Field) -> int:
        names = [each.name for each in self.program.headers[field.header].fields]
        return self.base[field.header] + 1 + names.index(field.name)

    def length(self, header: str) -> int | None:
        """The place of the length of the header's variable field; None if it has none."""
        found = self.program.headers[header]
        return self.base[header] + 1 + len(found.fields) if has_variable(found) else None

    @cached_property
    def siblings(self) -> dict[int, tuple[int, ...]]:
        members = [[self.base[name] for name in union.members.values()] for union in self.program.unions.values()]
        return {base: tuple(other for other in bases if other != base) for bases in members for base in bases}

    def intrinsic(self, name: str) -> tuple[int, int]:
        """Place and mask of a metadata field of the switch itself; a separate place if the program lacks the field."""
        field = self.program.intrinsic(name)
        if field is None:
            return self.take(1), (1 << 64) - 1
        return self.field(field), (1 << field.bits) - 1


def has_variable(header: Header) -> bool:
    return any(field.variable for field in header.fields)


def block_size(header: Header) -> int:
    """The number of places of a header in a packet."""
    return 1 + len(header.fields) + has_variable(header)


class MetadataSlot(NamedTuple):
    """The place of a metadata field that the switch itself uses, and a mask with as many ones as the field has bits."""

    place: int
    ones: int

    def write(self, packet: Packet, value: int) -> None:
        """Write a number, cut to the field's bits."""
        packet[self.place] = value & self.ones


class Standard:
    """The metadata fields that the switch itself uses; a field that the program lacks has a separate place."""

    def __init__(self, places: PacketPlaces) -> None:
        def slot(name: str) -> MetadataSlot:
            return MetadataSlot(*places.intrinsic(name))

        self.ingress_port = slot("ingress_port")
        self.egress_spec = slot("egress_spec")
        self.egress_port = slot("egress_port")
        self.instance_type = slot("instance_type")
        self.packet_length = slot("packet_length")
        self.parser_error = slot("parser_error")
        self.checksum_error = slot("checksum_error")
        self.group = slot("mcast_grp")
        self.replica = slot("egress_rid")
        self.priority = slot("priority")
        self.received_us = slot("ingress_global_timestamp")
        self.egress_us = slot("egress_global_timestamp")
        self.queued_us = slot("enq_timestamp")
        self.queued_depth = slot("enq_qdepth")
        self.left_depth = slot("deq_qdepth")
        self.queue = slot("qid")
        self.waited_us = slot("deq_timedelta")


Result = TypeVar("Result")


class Trace:
    """A trace that is not kept."""

    listens = False

    def note(self, line: str) -> None:
        """Receive an event of the switch."""

    def state(self, _state: ParserState, run: Value) -> Value:
        """The function of a parser state, traced."""
        return run

    def key(self, _state: ParserState, run: Value) -> Value:
        """The function of a parser state's key, traced."""
        return run

    def statement(self, _primitive: Primitive, run: Callable[[Packet], Result]) -> Callable[[Packet], Result]:
        """The function of a statement of an action, of the parser or of the deparser, traced."""
        return run

    def condition(self, _node: Conditional, run: Value) -> Value:
        """The function of a condition of a pipeline, traced."""
        return run

    def table(self, table: Table, key: Sequence[int], found: Installed | None, call: ActionCall | None) -> None:
        """Receive the result of a table lookup, before the action runs."""


class TraceLines(Trace):
    """A trace that keeps a line for each step."""

    listens = True

    def __init__(self, places: PacketPlaces) -> None:
        self.places = places
        self.lines: list[str] = []

    def note(self, line: str) -> None:
        """Keep a line."""
        self.lines.append(line)

    def state(self, state: ParserState, run: Value) -> Value:
        """The function of a parser state, which notes its start and how many bytes are parsed."""

        def watched(packet: Packet) -> int:
            self.note(f"Parser 'parser' entering state '{state.name}'")
            following = run(packet)
            self.note(f"Bytes parsed: {packet.parsed}")
            return following

        return watched

    def key(self, state: ParserState, run: Value) -> Value:
        """The function of a parser state's key, which notes the value."""

        def watched(packet: Packet) -> int:
            value = run(packet)
            self.note(f"Parser state '{state.name}': key is {value:#x}")
            return value

        return watched

    def statement(self, primitive: Primitive, run: Callable[[Packet], Result]) -> Callable[[Packet], Result]:
        """The function of a statement, which notes its line of P4 and the value written to a field."""
        named = str(primitive.source) if primitive.source else primitive.name
        targets = [each for each in primitive.arguments[:1] if isinstance(each, Field)]

        def watched(packet: Packet) -> Result:
            result = run(packet)
            values = "".join(f": {field} = {packet[self.places.field(field)]:#x}" for field in targets)
            self.note(f"Primitive {named}{values}")
            return result

        return watched

    def condition(self, node: Conditional, run: Value) -> Value:
        """The function of a condition, which notes its result."""
        named = node.source.fragment if node.source else node.name

        def watched(packet: Packet) -> int:
            value = run(packet)
            self.note(f'Condition "{named}" ({node.name}) is {"true" if value else "false"}')
            return value

        return watched

    def table(self, table: Table, key: Sequence[int], found: Installed | None, call: ActionCall | None) -> None:
        """Note the key, hit or miss, and the action with its parameters."""
        self.note(f"Applying table '{table.name}'")
        for part, value in zip(table.key, key, strict=True):
            self.note(f"* {part.name}: {value:#x}")
        self.note(f"Table '{table.name}': {'miss' if found is None else 'hit'}")
        if call is not None:
            given = ", ".join(f"{p.name}={v:#x}" for p, v in zip(call.action.parameters, call.values, strict=True))
            self.note(f"Action {call.action.name}({given})")
