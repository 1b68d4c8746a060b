"""The places of a program's state: packet fields, registers, counters and tables.

Registers of equal length are the columns of one array of rows: a program that uses many registers at the same index
then touches one run of cache lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from inakit.switch.fast.layout.field_usage import (
    COPYING,
    MOVING,
    REPORTING,
    action_statements,
    extracted_headers,
    headers_stay,
    local_fields,
    meter_results,
    parser_statements,
    read_in_egress_actions_only,
    used_fields,
    uses,
    written_by,
)
from inakit.switch.fast.layout.records import LONGEST_BYTES, Emitter, Identifiers, MemoryRecord, make_record, rounded_up
from inakit.switch.fast.layout.table_layout import (
    COPIES,
    COUNTER,
    GROUP_RECORD,
    METER,
    Front,
    TableLayout,
    default_array,
    entry_arrays,
    entry_record,
    key_record,
    meter_array,
    rule_record,
    table_arrays,
)
from inakit.switch.program.program import CRC_CUSTOM, PORTS, Counter, Field, Header, Program, Register, Table, ValueSet
from inakit.topo.errors import UnsupportedError

CHOSEN = "chosen crc parameters"
"""The array with one place per such calculation: the copy of parameters in use (0: BMv2's initial ones)."""

PARAMETERS = make_record(
    "crc", [("polynomial", 32), ("first", 32), ("last", 32), ("flip_bytes", 8), ("flip_result", 8)]
)
"""The parameters of a CRC that takes the lowest bit first; `flip_bytes` and `flip_result` if BMv2's takes it last."""


crc_array = "crc parameters of {}".format  # the parameters of a calculation, by its name


def crc_arrays(program: Program) -> Iterator[tuple[str, MemoryRecord, int]]:
    """The arrays of calculations whose parameters the control plane sets, as (name, record, length)."""
    if found := [name for name, each in program.calculations.items() if each.algorithm in CRC_CUSTOM]:
        yield CHOSEN, make_record("chosen_crc", [(name, 8) for name in found]), 1
        yield from ((crc_array(name), PARAMETERS, COPIES) for name in found)


COUNTS = "counts of digests"
RING = 4096
"""The number of places for digests of one list; the oldest is overwritten. A power of two."""


ring_name = "digests {}".format  # the ring of a list, by its number


def ring_arrays(program: Program) -> Iterator[tuple[str, MemoryRecord, int]]:
    """The rings of digests, and the counts of all digests and of each list; as (name, record, length).

    A place in a ring holds the digest's number among all digests of the switch, and its values.
    """
    yield COUNTS, make_record("digest_counts", [("total", 64), *((str(number), 64) for number in program.digests)]), 1
    for number, digest in program.digests.items():
        values = [(str(index), field.bits) for index, field in enumerate(digest.only_fields)]
        yield ring_name(number), make_record(f"digest_{number}", [("number", 64), *values]), RING


MOST_VARIABLE_BYTES = 512


@dataclass(frozen=True)
class Variable:
    """A field of variable length, of up to `most` bytes; `bytes` and `length` are its C expressions."""

    field: Field
    most: int
    bytes: str
    length: str


def most_variable_bytes(header: Header) -> int:
    """The greatest length of the header's variable field, in bytes; `UnsupportedError` if it is too great."""
    most = (header.max_bytes or 0) - header.size
    if not 0 < most <= MOST_VARIABLE_BYTES:
        raise UnsupportedError(
            f"header '{header.name}' with {most} bytes of variable length (1 to {MOST_VARIABLE_BYTES})"
        )
    return most


MAX_REPLICAS = 128
DIRECT_BITS = 12
"""A table whose key is one number of up to this many bits is an array with the key as its index."""

FRONT_BITS = 11
"""The array in front of a hash table has 2**`FRONT_BITS` places."""

ARRIVALS = 1024
"""The size of the array that gives the port of an interface, by the kernel's interface index modulo this size.

If several interfaces share a place, a map has the others.
"""

EGRESS_TIME = "egress_global_timestamp"
CLOCKS = ("ingress_global_timestamp", "enq_timestamp", EGRESS_TIME)
METADATA = (
    "ingress_port", "egress_spec", "egress_port", "instance_type", "packet_length", "mcast_grp", "egress_rid",
    "parser_error", "priority", "checksum_error",
)  # fmt: skip
"""The metadata that the switch itself reads and writes, without the fields that it fills from its clock."""

STARTED = "start of the clock"
LOST = "lost packets"
"""Arrays of one place: the time when the switch started, and the number of packets whose headers could not be made."""

DEFAULTS = "defaults"
"""The array with one place per table: the copy of the control plane's default action in use (0: none is set)."""

RANDOM, FAILED = "random numbers", "failed claims"
"""Arrays of one place: the state of a process's random numbers, and the number of failed assertions of the program."""

MIRRORS = "mirror sessions"
"""The array of mirror sessions, by their numbers: group and port of the clones, plus one; 0 means none."""

MAX_SESSIONS = 1 << 15

GROUPS = "groups"
"""The hash table of multicast groups."""

GROUP_BITS = 8
VALUE_BYTES, LEAST_VALUES = 8, 1024
GROUP_KEY_BYTES, GROUP_BYTES = 8, 8 * -(-(4 + 4 * MAX_REPLICAS) // 8)


@dataclass(frozen=True)
class ValueSetLayout:
    """A parser value set: a hash table whose entries are empty."""

    value_set: ValueSet
    symbol: str
    key: MemoryRecord

    @property
    def most(self) -> int:
        """The greatest number of values: BMv2 takes more than the program declares."""
        return max(self.value_set.size, LEAST_VALUES)


@dataclass(frozen=True)
class Array:
    """An array of records in the switch's memory."""

    name: str
    symbol: str
    record: MemoryRecord
    length: int
    offset: int

    @property
    def size(self) -> int:
        """The bytes that the array takes."""
        return self.record.size * self.length


class ProgramLayout:
    """The places of a program's state. The generator and the code that fills the switch use the same layout."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.names = Identifiers()

    @cached_property
    def intrinsic(self) -> dict[str, Field]:
        """The metadata fields that the switch itself reads and writes, by name, if the program has them."""
        found = {name: self.program.intrinsic(name) for name in (*METADATA, *filter(self.timed, CLOCKS))}
        return {name: field for name, field in found.items() if field is not None}

    def timed(self, name: str) -> bool:
        """Whether the program uses this metadata field, which the switch fills from its clock."""
        return self.program.intrinsic(name) in self.named

    @cached_property
    def late_clock(self) -> Field | None:
        """The time when egress begins, if the first action that needs it can read the clock itself."""
        field = self.program.intrinsic(EGRESS_TIME)
        return field if field is not None and read_in_egress_actions_only(self.program, field) else None

    @cached_property
    def in_place(self) -> bool:
        """Whether fields are changed where they are in the packet, as long as no header has been added or removed."""
        return headers_stay(self.program)

    @cached_property
    def rebuilt(self) -> bool:
        """Whether the leaving headers may have to be written anew before the payload."""
        return not self.in_place or self.moving

    @cached_property
    def moving(self) -> bool:
        """Whether fields are changed in place unless a statement has added or removed a header."""
        return self.in_place and uses(self.program, MOVING)

    @cached_property
    def named(self) -> set[Field]:
        """Every field that the program names."""
        return used_fields(self.program)

    @cached_property
    def local(self) -> set[Field]:
        """The metadata that are variables of actions."""
        return local_fields(self.program)

    @property
    def places(self) -> list[str]:
        """What the packet's state has of the places of headers."""
        kept = {("head", "current_length"): self.rebuilt, ("at", "dirty"): self.in_place, ("moved",): self.moving}
        return [name for names, has in kept.items() if has for name in names]

    @cached_property
    def state(self) -> dict[str, MemoryRecord]:
        """For each header instance, the record of the fields that are kept outside the packet.

        These are the used fields; for a header that is written anew when the packet leaves, all fields.
        """
        used = self.named - self.local | set(self.intrinsic.values())
        records = {}
        for header in self.program.headers.values():
            whole = self.rebuilt and not header.metadata
            fields = [(f.name, f.bits) for f in header.fields if (whole or f in used) and not f.variable]
            for f in header.fields:
                if f.variable:  # its bytes are an array
                    room = 8 * max(most_variable_bytes(header), LONGEST_BYTES + 1)
                    fields += [(f.name, room), (f"{f.name} length", 32)]
            records[header.name] = make_record("fields_" + self.names.of(header.type if whole else header.name), fields)
        return records

    @cached_property
    def primitives(self) -> frozenset[str]:
        return frozenset(each.name for each in [*parser_statements(self.program), *action_statements(self.program)])

    @cached_property
    def copying(self) -> bool:
        """Whether the program copies packets, or returns them to the parser."""
        return uses(self.program, COPYING)

    @cached_property
    def digesting(self) -> bool:
        return uses(self.program, REPORTING)

    @property
    def losing(self) -> bool:
        """Whether packets can be lost because the kernel cannot make them, or because there is no room to wait."""
        return self.rebuilt or self.copying

    @property
    def claims(self) -> bool:
        """Whether the program has assertions."""
        return bool(self.primitives & {"assert", "assume"})

    def used(self, header: str) -> list[Field]:
        """The fields of `header` that are kept outside the packet."""
        symbols = self.state[header].symbols
        fields = self.program.headers[header].fields
        return [field for field in fields if field.name in symbols and not field.variable]

    def variable(self, header: str) -> Variable | None:
        """The field of `header` whose length varies, or None."""
        declared = self.program.headers[header]
        for field in declared.fields:
            if field.variable:
                symbols = self.state[header].symbols
                place = f"{self.header(header)}."
                most = most_variable_bytes(declared)
                return Variable(field, most, place + symbols[field.name], place + symbols[f"{field.name} length"])
        return None

    def header(self, name: str) -> str:
        """The C expression of a header's record."""
        return f"state.{self.names.of(name)}"

    def field(self, field: Field) -> str:
        """The C expression of a field."""
        return f"{self.header(field.header)}.{self.state[field.header].symbols[field.name]}"

    @cached_property
    def packet_headers(self) -> list[str]:
        """The headers, without metadata, whose validity and places the switch keeps."""
        if self.rebuilt:
            return [header.name for header in self.program.headers.values() if not header.metadata]
        return extracted_headers(self.program)

    def most_bytes(self, header: str) -> int:
        """The greatest size of a header in a packet, in bytes."""
        variable = self.variable(header)
        return self.program.headers[header].size + (variable.most if variable else 0)

    def siblings(self, header: str) -> list[str]:
        """The other members of the header union that `header` belongs to."""
        unions = [union.members.values() for union in self.program.unions.values()]
        return [other for members in unions if header in members for other in members if other != header]

    @cached_property
    def written(self) -> set[Field]:
        """The fields that the parser, an action or a direct meter writes."""
        statements = [*parser_statements(self.program), *action_statements(self.program)]
        results = {field for each in self.program.pipelines for field in meter_results(self.program, each)}
        return written_by(statements) | results | {checksum.target for checksum in self.program.checksums}

    @cached_property
    def rows(self) -> dict[int, MemoryRecord]:
        """For each register length, the record with one element of each register of that length."""
        columns: dict[int, list[tuple[str, int]]] = {}
        for register in self.program.registers.values():
            columns.setdefault(register.size, []).append((register.name, register.bits))
        return {length: make_record(f"row_{length}", each, whole_lines=True) for length, each in columns.items()}

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """All of the switch's memory, by name: ports, rows of registers, counters, direct tables."""
        parts = [(f"rows_{length}", record, length) for length, record in self.rows.items()]
        parts += [("ports", make_record("port", [("ifindex", 32)]), PORTS)]
        parts += [("arrivals", make_record("arrival", [("ifindex", 32), ("port", 32)]), ARRIVALS)]
        if any(map(self.timed, CLOCKS)) or self.meters:
            parts.append((STARTED, make_record("started", [("ns", 64)]), 1))
        if self.losing:
            parts.append((LOST, make_record("lost", [("packets", 64)]), 1))
        parts += [(meter_array(name), METER, size) for name, size in self.meters.items()]
        if self.primitives & {"modify_field_rng_uniform"}:
            parts.append((RANDOM, make_record("random", [("state", 64)]), 1))
        if self.digesting:
            parts += ring_arrays(self.program)
        if self.copying:
            parts.append((MIRRORS, make_record("mirror", [("group", 32), ("port", 32)]), MAX_SESSIONS))
        if self.claims:
            parts.append((FAILED, make_record("failed", [("claims", 64)]), 1))
        parts += [(counter.name, COUNTER, counter.size) for counter in self.program.counters.values()]
        parts += [part for layout in self.tables.values() for part in table_arrays(layout)]
        if self.changeable:
            parts.append((DEFAULTS, make_record(DEFAULTS, [(name, 8) for name in self.changeable]), 1))
        parts += [(default_array(name), entry_record(each), COPIES) for name, each in self.changeable.items()]
        parts += crc_arrays(self.program)
        parts += [part for layout in self.tables.values() for part in entry_arrays(self.program, layout)]
        parts += [(front.record.name, front.record, 1 << front.bits) for front in self.fronts.values()]
        placed, offset = {}, 0
        for name, record, length in parts:
            offset = rounded_up(offset, record.alignment)
            placed[name] = Array(name, self.names.of(name), record, length, offset)
            offset += placed[name].size
        return placed

    @property
    def defaults(self) -> Array:
        """The array that says which default actions the control plane has set."""
        return self.arrays[DEFAULTS]

    @cached_property
    def fronts(self) -> dict[str, Front]:
        hashed = [table for table in self.tables.values() if table.hashed]
        fronts = [Front(each.symbol, each.key.size, each.entry_bytes, FRONT_BITS) for each in hashed]
        fronts.append(Front(GROUPS, GROUP_KEY_BYTES, GROUP_BYTES, GROUP_BITS))
        fronts += [Front(each.symbol, each.key.size, VALUE_BYTES, GROUP_BITS) for each in self.value_sets.values()]
        return {front.symbol: front for front in fronts}

    @property
    def memory_bytes(self) -> int:
        """The size of the whole memory in bytes; the C struct can be longer, by unused padding."""
        return max(array.offset + array.size for array in self.arrays.values())

    def register(self, register: Register, index: str) -> str:
        """The C expression of one element of a register array."""
        array = self.arrays[f"rows_{register.size}"]
        return f"own->{array.symbol}[{index}].{array.record.symbols[register.name]}"

    @cached_property
    def following(self) -> dict[Field | Register, Field | Register]:
        """For each field and register, the one behind it in memory, if that is alike but for its name."""
        parts: list[tuple[MemoryRecord, Mapping[str, Field | Register]]] = [
            (record, {field.name: field for field in self.used(name)}) for name, record in self.state.items()
        ]
        parts += [(record, self.program.registers) for record in self.rows.values()]
        found = {}
        for record, members in parts:
            for pair in pairwise(record.members):
                if all(each.name in members for each in pair):
                    one, other = (members[each.name] for each in pair)
                    if (one.bits, getattr(one, "signed", False)) == (other.bits, getattr(other, "signed", False)):
                        found[one] = other
        return found

    def counter(self, counter: Counter, index: str) -> str:
        """The C expression of one element of a counter."""
        return f"own->{self.arrays[counter.name].symbol}[{index}]"

    def view(self, memory: np.ndarray, name: str) -> np.ndarray:
        """The array `name` in the switch's memory (bytes), as an array of its records, without a copy."""
        array = self.arrays[name]
        view: np.ndarray = memory[array.offset : array.offset + array.size].view(array.record.dtype)
        return view

    @cached_property
    def parameters(self) -> dict[int, MemoryRecord]:
        return {
            action.number: make_record(f"parameters_{action.number}", [(p.name, p.bits) for p in action.parameters])
            for action in self.program.actions
        }

    @cached_property
    def tables(self) -> dict[str, TableLayout]:
        return {table.name: self.table(table) for table in self.program.tables.values() if table.key}

    @cached_property
    def value_sets(self) -> dict[str, ValueSetLayout]:
        """The hash tables of the parser's value sets, by name."""
        found = {}
        for name, each in self.program.value_sets.items():
            symbol = self.names.of(name)
            found[name] = ValueSetLayout(each, symbol, make_record(f"key_{symbol}", [("value", each.bits)]))
        return found

    @cached_property
    def meters(self) -> dict[str, int]:
        """The number of cells of each meter: a direct meter has one for each entry of its table."""
        arrays = {meter.name: meter.size for meter in self.program.meters.values()}
        return arrays | {
            each.table.meter: each.most_entries for each in self.tables.values() if each.table.meter is not None
        }

    @cached_property
    def changeable(self) -> dict[str, TableLayout]:
        """The layouts of the tables whose default action can be changed by the control plane, by name."""
        free = [table for table in self.program.tables.values() if table.actions and not table.default_is_const]
        return {table.name: self.tables.get(table.name) or self.table(table) for table in free}

    def table(self, table: Table) -> TableLayout:
        symbol, least = self.names.of(table.name), GROUP_RECORD.size if table.profile else 0
        values = {action.number: self.parameters[action.number] for action in table.actions}
        return TableLayout(
            table=table,
            symbol=symbol,
            key=key_record(f"key_{symbol}", table),
            values=values,
            entry_bytes=TableLayout.HEAD_BYTES + max([least, *(record.size for record in values.values())]),
            direct=table.match == "exact" and len(table.key) == 1 and table.key[0].bits <= DIRECT_BITS,
            rule=None if table.match in ("exact", "lpm") else rule_record(f"rule_{symbol}", table),
        )


def declare_memory(layout: ProgramLayout, out: Emitter) -> None:
    """Write the struct `memory`, with assertions of the place of each array."""
    with out.block("struct memory", ";"):
        for array in layout.arrays.values():
            out.line(f"struct {array.record.name} {array.symbol}[{array.length}];")
    for array in layout.arrays.values():
        place = f"__builtin_offsetof(struct memory, {array.symbol}) == {array.offset}"
        out.line(f'_Static_assert({place}, "layout of {array.symbol}");')
