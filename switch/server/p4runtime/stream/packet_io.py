"""Packets from and to controllers: the header that a program gives them on the CPU port, as metadata.

The fields of the header stand in the order of the P4Info, bit by bit; its last byte is filled up with zeros.
"""

from __future__ import annotations

from inakit.switch.server.p4runtime.protocol.bytestrings import decode, encode
from inakit.switch.server.p4runtime.protocol.faults import invalid
from inakit.switch.server.p4runtime.protocol.messages import Message, v1
from inakit.switch.server.p4runtime.schema.schema import PacketHeader, Parameter

PADDING = ("_", "pad")
"""How fields begin that a client may leave out, and are then 0."""


def header_bytes(header: PacketHeader) -> int:
    """The bytes that a header takes."""
    return (sum(field.bits for field in header.fields) + 7) // 8


def packet_out(header: PacketHeader | None, message: Message) -> bytes:
    """The packet that arrives at the CPU port; a fault if its metadata are not those of the header."""
    fields = header.fields if header is not None else ()
    given = {each.metadata_id: each.value for each in message.metadata}
    unknown = set(given) - {field.id for field in fields}
    if unknown or len(given) < len(message.metadata):
        raise invalid(f"packet_out: metadata of the ids {sorted(unknown) or sorted(given)} are unknown or given twice")
    number = 0
    for field in fields:
        number = number << field.bits | value_of(field, given)
    size = header_bytes(header) if header is not None else 0
    filling = 8 * size - sum(field.bits for field in fields)
    return (number << filling).to_bytes(size, "big") + bytes(message.payload)


def value_of(field: Parameter, given: dict[int, bytes]) -> int:
    """The value of one field; only padding may be left out."""
    if field.id in given:
        return decode(given[field.id], field.bits, f"packet_out: '{field.name}'")
    if field.name.startswith(PADDING):
        return 0
    raise invalid(f"packet_out: the metadata '{field.name}' (id {field.id}) are missing")


def packet_in(header: PacketHeader | None, packet: bytes) -> Message:
    """The message of a packet that has left by the CPU port; one that is shorter than the header has no metadata."""
    size = header_bytes(header) if header is not None else 0
    message = v1.PacketIn()
    if header is None or len(packet) < size:
        message.payload = packet
        return message
    message.payload = packet[size:]
    number, below = int.from_bytes(packet[:size], "big"), 8 * size
    for field in header.fields:
        below -= field.bits
        message.metadata.add(metadata_id=field.id, value=encode(number >> below & (1 << field.bits) - 1))
    return message
