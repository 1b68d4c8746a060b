"""A P4Info read against the program that it describes: ids, names, widths, keys, actions and types.

A program has the members of structs, tuples and headers one after the other, each an unsigned number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Protocol, TypeVar

from inakit.switch.control.entry_check import by_priority
from inakit.switch.entries import KeyPart, Lpm, Range, Ternary
from inakit.switch.program.program import ActionProfile, Counter, MatchKey, Meter, Program, Register, Table, ValueSet
from inakit.switch.server.p4runtime.messages import (
    Code,
    Fault,
    Message,
    decode,
    decode_signed,
    encode,
    encode_signed,
    invalid,
    not_found,
    v1,
)


class Layout(Protocol):
    """A type whose values a client writes and reads."""

    def encode(self, numbers: Iterator[int]) -> Message:
        """The `P4Data` of the next numbers."""

    def decode(self, data: Message, what: str) -> list[int]:
        """The numbers in a `P4Data`; a fault if it is not of this type."""


@dataclass(frozen=True)
class Number:
    """`bit<bits>`, `int<bits>`, or a serializable enum, which is in the member `place` of a `P4Data`."""

    bits: int
    signed: bool = False
    place: str = "bitstring"

    def encode(self, numbers: Iterator[int]) -> Message:
        number = next(numbers)
        return v1.P4Data(**{self.place: encode_signed(number, self.bits) if self.signed else encode(number)})

    def decode(self, data: Message, what: str) -> list[int]:
        octets = getattr(expect(data, self.place, what), self.place)
        return [(decode_signed if self.signed else decode)(octets, self.bits, what)]


@dataclass(frozen=True)
class Truth:
    """`bool`."""

    def encode(self, numbers: Iterator[int]) -> Message:
        return v1.P4Data(bool=bool(next(numbers)))

    def decode(self, data: Message, what: str) -> list[int]:
        """1 or 0."""
        return [int(expect(data, "bool", what).bool)]


@dataclass(frozen=True)
class Members:
    """A struct or a tuple, which is in the member `place` of a `P4Data`."""

    place: str
    layouts: tuple[Layout, ...]

    def encode(self, numbers: Iterator[int]) -> Message:
        """The `P4Data` of the members, each of the next numbers."""
        data = v1.P4Data()
        members = getattr(data, self.place).members
        members.extend([layout.encode(numbers) for layout in self.layouts])
        getattr(data, self.place).SetInParent()
        return data

    def decode(self, data: Message, what: str) -> list[int]:
        """The numbers of all members."""
        members = getattr(expect(data, self.place, what), self.place).members
        if len(members) != len(self.layouts):
            raise invalid(f"{what}: {len(members)} members, {len(self.layouts)} expected")
        return [
            number
            for layout, member in zip(self.layouts, members, strict=True)
            for number in layout.decode(member, what)
        ]


@dataclass(frozen=True)
class HeaderFields:
    """A header that is always valid."""

    layouts: tuple[Number, ...]

    def encode(self, numbers: Iterator[int]) -> Message:
        """The `P4Data` of a valid header of the next numbers."""
        strings = [layout.encode(numbers).bitstring for layout in self.layouts]
        return v1.P4Data(header=v1.P4Header(is_valid=True, bitstrings=strings))

    def decode(self, data: Message, what: str) -> list[int]:
        """The numbers of all fields."""
        header = expect(data, "header", what).header
        if not header.is_valid or len(header.bitstrings) != len(self.layouts):
            raise invalid(f"{what}: a valid header with {len(self.layouts)} fields is expected")
        datas = [v1.P4Data(bitstring=octets) for octets in header.bitstrings]
        return [layout.decode(each, what)[0] for layout, each in zip(self.layouts, datas, strict=True)]


def expect(data: Message, place: str, what: str) -> Message:
    """The `P4Data` if it has this member, or a fault."""
    if data.WhichOneof("data") != place:
        raise invalid(f"{what}: P4Data has '{data.WhichOneof('data')}', '{place}' is expected")
    return data


def layout_of(spec: Message, types: Message) -> Layout:  # noqa: PLR0911
    """The layout of a `P4DataTypeSpec`; `types` is the P4Info's `type_info`."""
    kind = spec.WhichOneof("type_spec")
    match kind:
        case "bitstring":
            return number_of(spec.bitstring)
        case "bool":
            return Truth()
        case "serializable_enum":
            enum = types.serializable_enums[spec.serializable_enum.name]
            return Number(enum.underlying_type.bitwidth, place="enum_value")
        case "new_type":
            return new_type(types.new_types[spec.new_type.name], types)
        case "struct":
            members = types.structs[spec.struct.name].members
            return Members("struct", tuple(layout_of(member.type_spec, types) for member in members))
        case "tuple":
            return Members("tuple", tuple(layout_of(member, types) for member in spec.tuple.members))
        case "header":
            fields = types.headers[spec.header.name].members
            return HeaderFields(tuple(number_of(field.type_spec) for field in fields))
    raise Fault(Code.UNIMPLEMENTED, f"values of type '{kind}' are not supported: use bits, structs, tuples or headers")


def number_of(spec: Message) -> Number:
    """The layout of a `P4BitstringLikeTypeSpec`."""
    match spec.WhichOneof("type_spec"):
        case "bit":
            return Number(spec.bit.bitwidth)
        case "int":
            return Number(spec.int.bitwidth, signed=True)
    raise Fault(Code.UNIMPLEMENTED, "values of type varbit are not supported")


def new_type(spec: Message, types: Message) -> Layout:
    """The layout of a type that the program declares by `type`."""
    if spec.WhichOneof("representation") == "original_type":
        return layout_of(spec.original_type, types)
    return Number(translated_bits(spec))


def translated_bits(spec: Message) -> int:
    """The bits of a translated type; a fault if it is a string."""
    if spec.translated_type.WhichOneof("sdn_type") == "sdn_string":
        raise Fault(Code.UNIMPLEMENTED, f"type '{spec.translated_type.uri}' is translated to strings: use bit<W>")
    return int(spec.translated_type.sdn_bitwidth)


TABLE_ONLY, DEFAULT_ONLY = 1, 2
"""Scopes of an action in a table."""

Found = TypeVar("Found")


@dataclass(frozen=True)
class MatchField:
    """A part of a key; `kind` is that of the P4Info: exact, lpm, ternary, range or optional."""

    id: int
    name: str
    kind: str
    bits: int


@dataclass(frozen=True)
class Parameter:
    """A parameter of an action."""

    id: int
    name: str
    bits: int


@dataclass(frozen=True)
class ActionSchema:
    """An action with its parameters in the order of the program."""

    id: int
    name: str
    parameters: tuple[Parameter, ...]

    @cached_property
    def positions(self) -> dict[int, int]:
        return {parameter.id: position for position, parameter in enumerate(self.parameters)}


@dataclass(frozen=True)
class TableSchema:
    """A table; its fields are in the order of the program's key. `profile` is the id of its action profile."""

    id: int
    name: str
    table: Table
    fields: tuple[MatchField, ...]
    actions: dict[int, ActionSchema]
    scopes: dict[int, int]
    profile: int | None
    has_counter: bool
    meter: MeterSchema | None
    idle_timeout: bool

    @cached_property
    def positions(self) -> dict[int, int]:
        return {each.id: position for position, each in enumerate(self.fields)}

    @cached_property
    def ids(self) -> dict[str, int]:
        return {action.name: action.id for action in self.actions.values()}

    @cached_property
    def prioritised(self) -> bool:
        """Whether entries have priorities."""
        return by_priority(self.table)

    @property
    def is_const(self) -> bool:
        """Whether the program gives the entries."""
        return self.table.entries is not None


@dataclass(frozen=True)
class ProfileSchema:
    """An action profile; `actions` are those of its tables. A size of 0 is no limit."""

    id: int
    name: str
    profile: ActionProfile
    actions: dict[int, ActionSchema]
    tables: tuple[int, ...]
    size: int
    max_group_size: int
    of_members: bool
    max_member_weight: int
    weights_disallowed: bool

    @property
    def with_selector(self) -> bool:
        """Whether entries can name groups."""
        return self.profile.selector is not None


@dataclass(frozen=True)
class MeterSchema:
    """A meter, direct or not; `type` is the number of a `MeterSpec.Type`."""

    id: int
    name: str
    meter: Meter
    type: int


@dataclass(frozen=True)
class CounterSchema:
    """An indirect counter."""

    id: int
    name: str
    counter: Counter


@dataclass(frozen=True)
class RegisterSchema:
    """A register, and the type of its cells."""

    id: int
    name: str
    register: Register
    layout: Layout


@dataclass(frozen=True)
class DigestSchema:
    """A digest, and the type of its messages."""

    id: int
    name: str
    list_id: int
    layout: Layout


@dataclass(frozen=True)
class ValueSetSchema:
    """A parser value set; the fields of its members stand one after the other in a number of the program."""

    id: int
    name: str
    value_set: ValueSet
    fields: tuple[MatchField, ...]
    size: int


@dataclass(frozen=True)
class PacketHeader:
    """The header that comes before a packet from (`packet_out`) or to (`packet_in`) a controller."""

    fields: tuple[Parameter, ...]


@dataclass(frozen=True)
class Schema:
    """A P4Info against its program. Ids of what the compiler has taken out of the program are in `absent`."""

    p4info: Message
    program: Program
    actions: dict[int, ActionSchema] = field(default_factory=dict)
    tables: dict[int, TableSchema] = field(default_factory=dict)
    profiles: dict[int, ProfileSchema] = field(default_factory=dict)
    counters: dict[int, CounterSchema] = field(default_factory=dict)
    meters: dict[int, MeterSchema] = field(default_factory=dict)
    registers: dict[int, RegisterSchema] = field(default_factory=dict)
    digests: dict[int, DigestSchema] = field(default_factory=dict)
    value_sets: dict[int, ValueSetSchema] = field(default_factory=dict)
    packet_in: PacketHeader | None = None
    packet_out: PacketHeader | None = None
    absent: dict[int, str] = field(default_factory=dict)

    @cached_property
    def digest_ids(self) -> dict[str, int]:
        return {digest.name: digest.id for digest in self.digests.values()}

    def find(self, known: Mapping[int, Found], number: int, what: str) -> Found:
        """What has this id; a fault if nothing has, or the compiler has taken it out of the program."""
        found = known.get(number)
        if found is not None:
            return found
        if number in self.absent:
            raise Fault(Code.UNIMPLEMENTED, f"{what} '{self.absent[number]}' is not in the program that p4c has made")
        raise not_found(f"no {what} has the id {number:#010x}")


Call = tuple[str, tuple[int, ...]]
"""The name of an action, and its parameters in the order of the program."""


def read_call(actions: Mapping[int, ActionSchema], action: Message, where: str) -> Call:
    """The call that an `Action` describes; a fault if it is none of `actions`, or its parameters are not right."""
    schema = actions.get(action.action_id)
    if schema is None:
        known = ", ".join(each.name for each in actions.values())
        raise invalid(f"{where} has no action of the id {action.action_id:#010x}: it has {known}")
    params: list[int | None] = [None] * len(schema.parameters)
    for param in action.params:
        position = schema.positions.get(param.param_id)
        if position is None or params[position] is not None:
            raise invalid(f"action '{schema.name}': parameter {param.param_id} is unknown, or given twice")
        parameter = schema.parameters[position]
        params[position] = decode(param.value, parameter.bits, f"parameter '{parameter.name}'")
    given = tuple(value for value in params if value is not None)
    if len(given) < len(params):
        missing = next(
            parameter.name for parameter, value in zip(schema.parameters, params, strict=True) if value is None
        )
        raise invalid(f"action '{schema.name}': its parameter '{missing}' is missing")
    return schema.name, given


def check_scope(table: TableSchema, number: int, default: bool) -> None:
    """Raise a fault if an action is not for entries of the table, or (`default`) not for what it runs on a miss."""
    if table.scopes.get(number) == (TABLE_ONLY if default else DEFAULT_ONLY):
        place = "entries of" if default else "the default of"
        raise Fault(Code.PERMISSION_DENIED, f"action {number:#010x} is only for {place} table '{table.name}'")


def call_message(actions: Mapping[int, ActionSchema], ids: Mapping[str, int], call: Call) -> Message:
    """The `Action` of a call; `ids` are those of the actions by name."""
    name, values = call
    action = v1.Action(action_id=ids.get(name, 0))
    if name in ids:
        for parameter, value in zip(actions[ids[name]].parameters, values, strict=True):
            action.params.add(param_id=parameter.id, value=encode(value))
    return action


Key = tuple[KeyPart, ...]


def read_key(table: TableSchema, matches: Iterable[Message]) -> Key:
    """The key that the matches of an entry make; a fault if one is wrong, or an exact one is missing."""
    parts: list[KeyPart | None] = [None] * len(table.fields)
    for match in matches:
        position = table.positions.get(match.field_id)
        if position is None:
            known = ", ".join(f"{each.id} ({each.name})" for each in table.fields) or "none"
            raise invalid(f"table '{table.name}' has no field {match.field_id}: it has {known}")
        if parts[position] is not None:
            raise invalid(f"table '{table.name}': field {match.field_id} is given twice")
        parts[position] = read_match(table.fields[position], match)
    fields = zip(parts, table.fields, strict=True)
    return tuple(anything(field) if part is None else part for part, field in fields)


def read_match(field: MatchField, match: Message) -> KeyPart:
    """The part of a key that one match stands for; a fault if it is not canonical, as one that matches everything."""
    kind = match.WhichOneof("field_match_type")
    if kind != field.kind:
        raise invalid(f"field '{field.name}' matches {field.kind}, not {kind}")
    what, bits = field.name, field.bits
    match kind:
        case "exact":
            return decode(match.exact.value, bits, what)
        case "lpm":
            return read_prefix(field, match.lpm)
        case "ternary":
            return canonical_ternary(what, Ternary(*(decode(each, bits, what) for each in pair_of(match.ternary))))
        case "range":
            low, high = decode(match.range.low, bits, what), decode(match.range.high, bits, what)
            if low > high or (low == 0 and high == ones(bits)):
                raise invalid(f"field '{what}': the range {low} to {high} is empty, or everything: then leave it out")
            return Range(low, high)
        case _:
            return Ternary(decode(match.optional.value, bits, what), ones(bits))


def pair_of(ternary: Message) -> tuple[bytes, bytes]:
    return ternary.value, ternary.mask


def read_prefix(field: MatchField, lpm: Message) -> Lpm:
    """A prefix, the rest of whose value is 0."""
    value, length = decode(lpm.value, field.bits, field.name), lpm.prefix_len
    if not 0 < length <= field.bits:
        raise invalid(f"field '{field.name}': a prefix of {length} bits, of {field.bits}; without any, leave it out")
    if value & ones(field.bits - length):
        raise invalid(f"field '{field.name}': the value {value:#x} has bits behind its prefix of {length}")
    return Lpm(value, length)


def canonical_ternary(what: str, part: Ternary) -> Ternary:
    """A value and a mask, if the mask is not 0 and the value has no other bits."""
    if not part.mask or part.value & ~part.mask:
        raise invalid(f"field '{what}': {part} has a mask of 0 (then leave it out), or a value outside of its mask")
    return part


def anything(field: MatchField) -> KeyPart:
    """The part of a key that matches everything; a fault for a field that matches exactly."""
    match field.kind:
        case "lpm":
            return Lpm(0, 0)
        case "range":
            return Range(0, ones(field.bits))
        case "ternary" | "optional":
            return Ternary(0, 0)
    raise invalid(f"field {field.id} ('{field.name}') matches exactly: it cannot be left out")


def matches_of(table: TableSchema, key: Sequence[KeyPart]) -> list[Message]:
    """The matches of an entry, without those that match everything."""
    found = (match_of(field, part) for field, part in zip(table.fields, key, strict=True))
    return [match for match in found if match is not None]


def match_of(field: MatchField, part: KeyPart) -> Message | None:
    """One match; None for one that matches everything."""
    match = v1.FieldMatch(field_id=field.id)
    match part:
        case Lpm(_, 0) | Ternary(_, 0):
            return None
        case Lpm(value, prefix):
            match.lpm.value, match.lpm.prefix_len = encode(value >> field.bits - prefix << field.bits - prefix), prefix
        case Ternary(value, _) if field.kind == "optional":
            match.optional.value = encode(value)
        case Ternary(value, mask):
            match.ternary.value, match.ternary.mask = encode(value & mask), encode(mask)
        case Range(low, high):
            if low == 0 and high == ones(field.bits):
                return None
            match.range.low, match.range.high = encode(low), encode(high)
        case int(value):
            match.exact.value = encode(value)
    return match


def ones(bits: int) -> int:
    """The greatest number of so many bits."""
    return (1 << bits) - 1


KINDS = {2: "exact", 3: "lpm", 4: "ternary", 5: "range", 6: "optional"}
"""The kinds of matches by their numbers in `MatchField.MatchType`."""

MATCHED_AS = {
    "exact": ("exact", "valid"),
    "lpm": ("lpm",),
    "ternary": ("ternary",),
    "range": ("range",),
    "optional": ("ternary",),
}
"""How the program matches a part of a key of each kind."""


def read_table(
    described: Message,
    types: Message,
    program: Program,
    actions: Mapping[int, ActionSchema],
    meters: Mapping[int, MeterSchema | None],
) -> TableSchema:
    """One table; a fault if the program has none of its name, key and actions."""
    name = described.preamble.name
    table = program.tables.get(name)
    if table is None:
        raise invalid(f"P4Info: table '{name}' is not in the program, which has {', '.join(program.tables) or 'none'}")
    return TableSchema(
        id=described.preamble.id,
        name=name,
        table=table,
        fields=read_fields(described, types, table),
        actions={each.id: known_action(actions, each.id, table) for each in described.action_refs},
        scopes={each.id: each.scope for each in described.action_refs},
        profile=described.implementation_id or None,
        has_counter=table.counted,
        meter=meters.get(described.preamble.id) if table.meter is not None else None,
        idle_timeout=table.idle_timeout,
    )


def known_action(actions: Mapping[int, ActionSchema], number: int, table: Table) -> ActionSchema:
    """The action that a table refers to, if it has the program's parameters; a fault otherwise."""
    action = actions.get(number)
    if action is None:
        raise invalid(f"P4Info: table '{table.name}' refers to an action {number:#x} that is not described")
    for known in table.actions:
        if known.name == action.name and len(known.parameters) != len(action.parameters):
            raise invalid(f"P4Info: action '{action.name}' has not the {len(known.parameters)} parameters it should")
    return action


def read_fields(described: Message, types: Message, table: Table) -> tuple[MatchField, ...]:
    """The parts of a key; a fault if they are not those of the program."""
    if len(described.match_fields) != len(table.key):
        count = len(described.match_fields)
        raise invalid(f"P4Info: table '{table.name}' has {count} match fields, in the program {len(table.key)}")
    pairs = zip(described.match_fields, table.key, strict=True)
    return tuple(read_field(table.name, each, types, part) for each, part in pairs)


def read_field(table: str, described: Message, types: Message, part: MatchKey) -> MatchField:
    """One part of a key; its width is the program's, whatever a translation makes of it."""
    kind = kind_of(described)
    translated = bits_of(described, types) != described.bitwidth or described.HasField("type_name")
    if part.match not in MATCHED_AS[kind] or (described.bitwidth != part.bits and not translated):
        has = f"{kind} with {described.bitwidth} bits"
        raise invalid(f"P4Info: '{described.name}' of table '{table}' is {has}, not {part.match} with {part.bits}")
    return MatchField(described.id, described.name, kind, part.bits)


def kind_of(described: Message) -> str:
    """The kind of a match field; a fault for kinds of other architectures."""
    if described.match_type not in KINDS:
        other = described.other_match_type or described.match_type
        raise invalid(f"P4Info: '{described.name}' matches by '{other}': known are {', '.join(KINDS.values())}")
    return KINDS[described.match_type]


def bits_of(described: Message, types: Message) -> int:
    """The bits of a field, a parameter or a piece of metadata, as a client writes it; a fault if it is a string."""
    spec = types.new_types[described.type_name.name] if described.HasField("type_name") else None
    if spec is not None and spec.WhichOneof("representation") == "translated_type":
        return translated_bits(spec)
    return int(described.bitwidth)


Declared = TypeVar("Declared")
Read = TypeVar("Read")


def read_schema(p4info: Message, program: Program) -> Schema:
    """The schema; a fault if the P4Info describes a table that the program does not have so."""
    check_ids(p4info)
    types = p4info.type_info
    actions = {each.preamble.id: read_action(each, types) for each in p4info.actions}
    meters = {each.direct_table_id: read_direct_meter(each, program) for each in p4info.direct_meters}
    tables = {each.preamble.id: read_table(each, types, program, actions, meters) for each in p4info.tables}
    absent: dict[int, str] = {}
    present = partial(read_present, absent)
    return Schema(
        p4info=p4info,
        program=program,
        actions=actions,
        tables=tables,
        profiles=present(p4info.action_profiles, program.profiles, partial(read_profile, tables)),
        counters=present(p4info.counters, program.counters, read_counter),
        meters=present(p4info.meters, program.meters, read_meter),
        registers=present(p4info.registers, program.registers, partial(read_register, types)),
        digests=present(p4info.digests, lists_of(program), partial(read_digest, types)),
        value_sets=present(p4info.value_sets, program.value_sets, partial(read_value_set, types)),
        packet_in=packet_header(p4info, "packet_in"),
        packet_out=packet_header(p4info, "packet_out"),
        absent=absent,
    )


def check_ids(p4info: Message) -> None:
    """Raise a fault if an id is 0, or two things have the same."""
    seen: set[int] = set()
    for kind in (p4info.tables, p4info.actions, p4info.action_profiles, p4info.counters, p4info.meters):
        for each in kind:
            if each.preamble.id in seen or not each.preamble.id:
                raise invalid(f"P4Info: '{each.preamble.name}' has the id {each.preamble.id:#x}, 0 or another one's")
            seen.add(each.preamble.id)


def read_present(
    absent: dict[int, str],
    described: Iterable[Message],
    declared: Mapping[str, Declared],
    read: Callable[[Message, Declared], Read],
) -> dict[int, Read]:
    """What `described` says of what the program declares, by id. The rest goes to `absent`."""
    found: dict[int, Read] = {}
    for each in described:
        number, name = each.preamble.id, each.preamble.name
        if name in declared:
            found[number] = read(each, declared[name])
        else:
            absent[number] = name
    return found


def lists_of(program: Program) -> dict[str, int]:
    return {digest.name: number for number, digest in program.digests.items()}


def read_action(action: Message, types: Message) -> ActionSchema:
    parameters = tuple(Parameter(each.id, each.name, bits_of(each, types)) for each in action.params)
    return ActionSchema(action.preamble.id, action.preamble.name, parameters)


def read_profile(tables: Mapping[int, TableSchema], each: Message, profile: ActionProfile) -> ProfileSchema:
    """An action profile; a fault if it names a table that is not there."""
    if missing := [number for number in each.table_ids if number not in tables]:
        raise invalid(f"P4Info: action profile '{each.preamble.name}' names no table: {missing}")
    return ProfileSchema(
        id=each.preamble.id,
        name=each.preamble.name,
        profile=profile,
        actions={key: action for number in each.table_ids for key, action in tables[number].actions.items()},
        tables=tuple(each.table_ids),
        size=each.size,
        max_group_size=each.max_group_size,
        of_members=each.WhichOneof("selector_size_semantics") == "sum_of_members",
        max_member_weight=each.sum_of_members.max_member_weight,
        weights_disallowed=each.weights_disallowed,
    )


def read_counter(each: Message, counter: Counter) -> CounterSchema:
    """An indirect counter."""
    return CounterSchema(each.preamble.id, each.preamble.name, counter)


def read_meter(each: Message, meter: Meter) -> MeterSchema:
    return MeterSchema(each.preamble.id, each.preamble.name, meter, each.spec.type)


def read_direct_meter(each: Message, program: Program) -> MeterSchema | None:
    """A direct meter; None if the compiler has taken it out of the program."""
    found = program.direct_meters.get(each.preamble.name)
    return None if found is None else read_meter(each, found)


def read_register(types: Message, each: Message, register: Register) -> RegisterSchema:
    return RegisterSchema(each.preamble.id, each.preamble.name, register, layout_of(each.type_spec, types))


def read_digest(types: Message, each: Message, list_id: int) -> DigestSchema:
    return DigestSchema(each.preamble.id, each.preamble.name, list_id, layout_of(each.type_spec, types))


def read_value_set(types: Message, each: Message, value_set: ValueSet) -> ValueSetSchema:
    """A parser value set; a fault if its fields do not fill the program's."""
    fields = tuple(MatchField(part.id, part.name, kind_of(part), bits_of(part, types)) for part in each.match)
    if sum(field.bits for field in fields) != value_set.bits:
        raise invalid(f"P4Info: the fields of value set '{value_set.name}' have not its {value_set.bits} bits")
    return ValueSetSchema(each.preamble.id, each.preamble.name, value_set, fields, each.size)


def packet_header(p4info: Message, name: str) -> PacketHeader | None:
    """The header that controllers' packets have, by the name `packet_in` or `packet_out`."""
    for each in p4info.controller_packet_metadata:
        if each.preamble.name == name:
            types = p4info.type_info
            return PacketHeader(tuple(Parameter(part.id, part.name, bits_of(part, types)) for part in each.metadata))
    return None
