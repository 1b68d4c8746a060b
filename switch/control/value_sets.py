"""Parser value sets: the values with which a parser compares packets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from inakit.switch.control.codecs import (
    ById,
    Call,
    Code,
    Codec,
    Command,
    Fault,
    Fields,
    Message,
    ReadArgument,
    encode,
    invalid,
)
from inakit.switch.control.match_keys import MatchField, kind_of, read_match
from inakit.switch.control.p4data import bits_of
from inakit.switch.control.requests import Core, Entities, RefusalKind, Refused, locked, unknown
from inakit.switch.entries import ValueSetMember
from inakit.switch.program.program import Program, ValueSet


class ValueSets(Entities):
    """Requests for parser value sets; `held` holds the values of each in the order of addition."""

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self.reset()

    def reset(self) -> None:
        """Remove all values."""
        self.held: dict[str, dict[int, None]] = {name: {} for name in self.program.value_sets}

    @locked
    def add(self, value_set: str, value: int) -> None:
        """Add a value; do nothing if it is known."""
        bits = self.value_set(value_set).bits
        if value >> bits:
            why = f"value set '{value_set}' takes values of {bits} bits, not {value.bit_length()}"
            raise Refused(RefusalKind.PARSE_VSET_ERROR, why)
        if value not in self.held[value_set]:
            self.data_plane.add_value(ValueSetMember(value_set, value))
            self.held[value_set][value] = None

    @locked
    def remove(self, value_set: str, value: int) -> None:
        """Remove a value; do nothing if it is unknown."""
        self.value_set(value_set)
        if value in self.held[value_set]:
            self.data_plane.remove_value(ValueSetMember(value_set, value))
            del self.held[value_set][value]

    @locked
    def clear(self, value_set: str) -> None:
        """Remove all values."""
        for value in self.values(value_set):
            self.remove(value_set, value)

    @locked
    def values(self, value_set: str) -> list[int]:
        """The values in the order of addition."""
        self.value_set(value_set)
        return list(self.held[value_set])

    def value_set(self, name: str) -> ValueSet:
        """The parser value set of this name, or a refusal."""
        known = self.program.value_sets
        if name not in known:
            raise unknown("parser value set", name, known, RefusalKind.INVALID_PARSE_VSET_NAME)
        return known[name]


COMMANDS = {
    "pvs_add": Command("VALUE_SET VALUE", ValueSets.add),
    "pvs_remove": Command("VALUE_SET VALUE", ValueSets.remove),
    "pvs_clear": Command("VALUE_SET", ValueSets.clear),
}


# Thrift


def values_in_order(value_sets: ValueSets, value_set: str) -> list[bytes]:
    """All values, in ascending order, as byte strings of their width."""
    size = (value_sets.value_set(value_set).bits + 7) // 8
    return [value.to_bytes(size, "big") for value in sorted(value_sets.values(value_set))]


CALLS = {
    "bm_parse_vset_add": Call(ValueSets.add),
    "bm_parse_vset_remove": Call(ValueSets.remove),
    "bm_parse_vset_get": Call(values_in_order),
    "bm_parse_vset_clear": Call(ValueSets.clear),
}

ARGUMENTS: dict[str, ReadArgument] = {"octets": lambda octets, *_: {"value": int.from_bytes(octets, "big")}}


# P4Runtime: a value of the program consists of a member's fields, the first in its highest bits


@dataclass(frozen=True)
class ValueSetSchema:
    """A parser value set; a number of the program holds the fields of a member one after the other."""

    id: int
    name: str
    fields: tuple[MatchField, ...]
    size: int


def read_value_sets(p4info: Message, program: Program) -> ById[ValueSetSchema]:
    """The parser value sets of a P4Info; a fault if the fields of one have not the program's width."""

    def read(each: Message, value_set: ValueSet) -> ValueSetSchema:
        types = p4info.type_info
        fields = tuple(MatchField(part.id, part.name, kind_of(part), bits_of(part, types)) for part in each.match)
        if sum(field.bits for field in fields) != value_set.bits:
            raise invalid(f"P4Info: the fields of value set '{value_set.name}' do not fill its {value_set.bits} bits")
        return ValueSetSchema(each.preamble.id, each.preamble.name, fields, each.size)

    return ById("value set", p4info.value_sets, program.value_sets, read)


class ValueSetCodec(Codec):
    """`ValueSetEntry`: all members of a value set."""

    member, id_field = "value_set_entry", "value_set_id"

    def __init__(self, schemas: ById[ValueSetSchema], value_sets: ValueSets) -> None:
        self.schemas, self.value_sets = schemas, value_sets

    def modify(self, message: Message) -> None:
        """Replace all members of a value set."""
        schema = self.schemas.expect(message.value_set_id)
        values = [value_of(schema, member) for member in message.members]
        if len(set(values)) < len(values):
            raise Fault(Code.ALREADY_EXISTS, f"value set '{schema.name}': a member is given twice")
        if schema.size and len(values) > schema.size:
            raise Fault(Code.RESOURCE_EXHAUSTED, f"value set '{schema.name}' has room for {schema.size} members")
        present = self.value_sets.values(schema.name)
        for value in values:
            self.value_sets.add(schema.name, value)
        for value in present:
            if value not in values:
                self.value_sets.remove(schema.name, value)

    def read(self, message: Message) -> Iterator[Fields]:
        found = []
        for schema in self.schemas.selected(message.value_set_id):
            members = [member_fields(schema, value) for value in self.value_sets.values(schema.name)]
            found.append({"value_set_id": schema.id, "members": members})
        return iter(found)


def value_of(schema: ValueSetSchema, member: Message) -> int:
    """The value of a member; a fault unless it has each field once, matched exactly."""
    given = {match.field_id: match for match in member.match}
    if len(given) < len(member.match) or set(given) != {field.id for field in schema.fields}:
        wanted = ", ".join(str(field.id) for field in schema.fields)
        raise invalid(f"value set '{schema.name}': a member has each of the fields {wanted} once")
    value = 0
    for field in schema.fields:
        part = read_match(field, given[field.id])
        if not isinstance(part, int):
            raise Fault(Code.UNIMPLEMENTED, f"value set '{schema.name}': BMv2 matches values exactly, not {field.kind}")
        value = value << field.bits | part
    return value


def member_fields(schema: ValueSetSchema, value: int) -> Fields:
    """The member that a value stands for."""
    matches, below = [], sum(field.bits for field in schema.fields)
    for field in schema.fields:
        below -= field.bits
        part = value >> below & (1 << field.bits) - 1
        matches.append({"field_id": field.id, "exact": {"value": encode(part)}})
    return {"match": matches}
