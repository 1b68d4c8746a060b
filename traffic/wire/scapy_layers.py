"""Scapy layers `INA` and `Values` of the packet format, built from the compiled P4 program.

They are bound to the INA port of UDP, so that any capture or pcap read with scapy shows them.
"""

from __future__ import annotations

from typing import Any

from scapy.fields import BitField, ByteEnumField, FlagsField, IntField, LongField, ShortField, SignedIntField
from scapy.layers.inet import UDP
from scapy.packet import Packet, bind_layers

from traffic.wire.packet_format import UDP_PORT, Field, Flag, Kind, header

FIELD_OF_BITS = {16: ShortField, 32: IntField, 64: LongField}


def plain_field(field: Field) -> Any:
    """An unsigned number of the field's width."""
    if field.bits in FIELD_OF_BITS:
        return FIELD_OF_BITS[field.bits](field.name, 0)
    return BitField(field.name, 0, field.bits)


def ina_field(field: Field) -> Any:
    """A field of the INA header; the kind and the flags show their names."""
    if field.name == "kind":
        return ByteEnumField("kind", Kind.GRADIENT, {kind.value: kind.name.lower() for kind in Kind})
    if field.name == "flags":
        names = {flag.value: str(flag.name) for flag in Flag}
        return FlagsField("flags", 0, field.bits, [names.get(1 << bit, f"bit{bit}") for bit in range(field.bits)])
    return plain_field(field)


class INA(Packet):
    """The header of an aggregation packet."""

    name = "INA"
    fields_desc = [ina_field(field) for field in header("ina_t")]  # noqa: RUF012


class Values(Packet):
    """The integers of one fragment: fields v0, v1, ..."""

    name = "Values"
    fields_desc = [SignedIntField(field.name, 0) for field in header("values_t")]  # noqa: RUF012


bind_layers(UDP, INA, dport=UDP_PORT)
bind_layers(INA, Values, kind=Kind.GRADIENT)
bind_layers(INA, Values, kind=Kind.RESULT)
