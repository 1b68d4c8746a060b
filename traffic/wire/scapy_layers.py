"""Scapy layers `INA` and `Values` of the packet format, built from the compiled P4 program.

They are bound to the INA port of UDP, so that any capture or pcap read with scapy shows them: importing this module is
enough. `gradient_packet` is a packet of these layers, and `template_frames` the same as frames for NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scapy.fields import BitField, ByteEnumField, FlagsField, IntField, LongField, ShortField, SignedIntField
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, bind_layers

from inakit.traffic.wire.packet_format import FRAME, TOLD, UDP_PORT, Field, Flag, Frames, Kind, constant, header

FIELD_OF_BITS = {16: ShortField, 32: IntField, 64: LongField}
SHOWN_VALUES = 4
"""The number of values in a packet's summary line."""


def ina_field(field: Field) -> Any:
    """A field of the INA header; the kind and the flags show their names."""
    if field.name == "kind":
        return ByteEnumField("kind", Kind.GRADIENT, {kind.value: kind.name.lower() for kind in Kind})
    if field.name == "flags":
        names = {flag.value: str(flag.name) for flag in Flag}
        return FlagsField("flags", 0, field.bits, [names.get(1 << bit, f"bit{bit}") for bit in range(field.bits)])
    plain = FIELD_OF_BITS.get(field.bits)
    return plain(field.name, 0) if plain else BitField(field.name, 0, field.bits)


class INA(Packet):
    """The header of an aggregation packet."""

    name = "INA"
    fields_desc = [ina_field(field) for field in header("ina_t")]  # noqa: RUF012

    def mysummary(self) -> Any:
        """The summary line, as in Wireshark's list, with the flags that are set and the addresses."""
        told = " ".join(f"{name} {self.getfieldval(name)}" for name in TOLD)
        flags = f" {self.flags}" if self.flags else ""
        return f"INA {self.sprintf('%INA.kind%')} {told}{flags}", [IP]


class Values(Packet):
    """The integers of one fragment: fields v0, v1, ..."""

    name = "Values"
    fields_desc = [SignedIntField(field.name, 0) for field in header("values_t")]  # noqa: RUF012

    def mysummary(self) -> Any:
        """The number of values and the first of them, after the summary line of the INA header."""
        first = " ".join(str(self.getfieldval(field.name)) for field in self.fields_desc[:SHOWN_VALUES])
        return f"{len(self.fields_desc)} values {first} ...", [INA, IP]


bind_layers(UDP, INA, dport=UDP_PORT)
bind_layers(INA, Values, kind=Kind.GRADIENT)
bind_layers(INA, Values, kind=Kind.RESULT)


def gradient_packet(
    *, src_mac: str, dst_mac: str, src_ip: str, dst_ip: str, ina: Mapping[str, Any], capable: bool = False
) -> Packet:
    """A packet from one host to another, whose values are zero; the parameters are those of `new_frames`.

    It has no UDP checksum, so that its values can be filled in.
    """
    tos = constant("ECN_CAPABLE") if capable else 0
    addresses = Ether(src=src_mac, dst=dst_mac) / IP(src=src_ip, dst=dst_ip, id=0, tos=tos)
    return addresses / UDP(sport=UDP_PORT, dport=UDP_PORT, chksum=0) / INA(**ina) / Values()


def template_frames(count: int, **given: Any) -> Frames:
    """`count` frames of scapy's `gradient_packet`, equal to those of `new_frames` byte for byte."""
    return np.frombuffer(bytearray(bytes(gradient_packet(**given)) * count), FRAME)
