"""A P4Info read against the program that it describes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeVar

from inakit.switch.program.program import ActionProfile, Counter, Meter, Register, ValueSet
from inakit.switch.program.program import Program
from inakit.switch.server.p4runtime.protocol.faults import invalid
from inakit.switch.server.p4runtime.protocol.messages import Message
from inakit.switch.server.p4runtime.schema.schema import (
    ActionSchema,
    CounterSchema,
    DigestSchema,
    MatchField,
    MeterSchema,
    PacketHeader,
    Parameter,
    ProfileSchema,
    RegisterSchema,
    Schema,
    TableSchema,
    ValueSetSchema,
)
from inakit.switch.server.p4runtime.schema.tables import bits_of, kind_of, read_table
from inakit.switch.server.p4runtime.schema.type_layouts import layout_of

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
    """The numbers of the program's learning lists by name."""
    return {digest.name: number for number, digest in program.digests.items()}


def read_action(action: Message, types: Message) -> ActionSchema:
    """An action with its parameters."""
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
    """A meter."""
    return MeterSchema(each.preamble.id, each.preamble.name, meter, each.spec.type)


def read_direct_meter(each: Message, program: Program) -> MeterSchema | None:
    """A direct meter; None if the compiler has taken it out of the program."""
    found = program.direct_meters.get(each.preamble.name)
    return None if found is None else read_meter(each, found)


def read_register(types: Message, each: Message, register: Register) -> RegisterSchema:
    """A register."""
    return RegisterSchema(each.preamble.id, each.preamble.name, register, layout_of(each.type_spec, types))


def read_digest(types: Message, each: Message, list_id: int) -> DigestSchema:
    """A digest."""
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
