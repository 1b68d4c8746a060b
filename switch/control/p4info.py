"""Reads a P4Info against its program: ids, names, widths, keys, actions and types."""

from __future__ import annotations

from dataclasses import dataclass

from inakit.switch.control.action_profiles import ProfileSchema, read_profiles
from inakit.switch.control.actions import Parameter, read_action
from inakit.switch.control.codecs import ArraySchema, ById, Message, invalid
from inakit.switch.control.counters import read_counters
from inakit.switch.control.digests import DigestSchema, read_digests
from inakit.switch.control.meters import MeterSchema, read_direct_meters, read_meters
from inakit.switch.control.p4data import bits_of
from inakit.switch.control.p4runtime_entries import TableSchema, read_tables
from inakit.switch.control.registers import RegisterSchema, read_registers
from inakit.switch.control.value_sets import ValueSetSchema, read_value_sets
from inakit.switch.program.program import Program

PacketHeader = tuple[Parameter, ...]
"""The fields of the header in front of a packet from or to a controller."""


@dataclass(frozen=True)
class Schema:
    """The entities of a P4Info. `packet_in` and `packet_out` are the headers of packets to and from controllers.

    A header without fields means that there is none.
    """

    program: Program
    tables: ById[TableSchema]
    profiles: ById[ProfileSchema]
    counters: ById[ArraySchema]
    meters: ById[MeterSchema]
    registers: ById[RegisterSchema]
    digests: ById[DigestSchema]
    value_sets: ById[ValueSetSchema]
    packet_in: PacketHeader
    packet_out: PacketHeader


def read_schema(p4info: Message, program: Program) -> Schema:
    """The schema; a fault if the P4Info describes a table otherwise than the program declares it."""
    seen: set[int] = set()
    for kind in (p4info.tables, p4info.actions, p4info.action_profiles, p4info.counters, p4info.meters):
        for each in kind:
            if each.preamble.id in seen or not each.preamble.id:
                raise invalid(
                    f"P4Info: '{each.preamble.name}' has the id {each.preamble.id:#x}, which is 0 or used twice"
                )
            seen.add(each.preamble.id)
    actions = {each.preamble.id: read_action(each, p4info.type_info) for each in p4info.actions}
    tables = read_tables(p4info, program, actions, read_direct_meters(p4info, program))
    return Schema(
        program=program,
        tables=tables,
        profiles=read_profiles(p4info, program, {number: table.actions for number, table in tables.items()}),
        counters=read_counters(p4info, program),
        meters=read_meters(p4info, program),
        registers=read_registers(p4info, program),
        digests=read_digests(p4info, program),
        value_sets=read_value_sets(p4info, program),
        packet_in=packet_header(p4info, "packet_in"),
        packet_out=packet_header(p4info, "packet_out"),
    )


def packet_header(p4info: Message, name: str) -> PacketHeader:
    """The header of controllers' packets that is called `packet_in` or `packet_out`."""
    described = next((each for each in p4info.controller_packet_metadata if each.preamble.name == name), None)
    fields = described.metadata if described is not None else ()
    return tuple(Parameter(each.id, each.name, bits_of(each, p4info.type_info)) for each in fields)
