"""The program in a `p4_device_config`: BMv2 JSON, or older controllers' `P4DeviceConfig` around it."""

from __future__ import annotations

from inakit.switch.server.p4runtime.protocol.faults import invalid

DEVICE_DATA = 3
"""The field of a `P4DeviceConfig` that has the JSON."""

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
"""How a field of a protobuf message is written."""


def program_text(config: bytes) -> str:
    """The BMv2 JSON of a config; a fault if there is none in it."""
    document = config if config.lstrip()[:1] == b"{" else device_data(config)
    try:
        return document.decode()
    except UnicodeDecodeError as error:
        raise invalid(f"p4_device_config: not a text ({error}); expected BMv2 JSON of p4c-bm2-ss") from error


def device_data(message: bytes) -> bytes:
    """The field `device_data` of a serialized `P4DeviceConfig`; a fault if it is none."""
    position = 0
    try:
        while position < len(message):
            tag, position = varint(message, position)
            if tag & 7 == LENGTH:
                size, position = varint(message, position)
                if tag >> 3 == DEVICE_DATA:
                    return message[position : position + size]
                position += size
            else:
                position = after(message, position, tag & 7)
    except (IndexError, KeyError) as error:
        raise invalid("p4_device_config: neither BMv2 JSON of p4c-bm2-ss nor a P4DeviceConfig with it") from error
    raise invalid("p4_device_config: there is no program in it; expected BMv2 JSON of p4c-bm2-ss")


def after(message: bytes, position: int, kind: int) -> int:
    """The position behind a number that is written in this way."""
    if kind == VARINT:
        return varint(message, position)[1]
    return position + {FIXED64: 8, FIXED32: 4}[kind]


def varint(message: bytes, position: int) -> tuple[int, int]:
    """The number that begins at a position, and the position behind it."""
    number, shift = 0, 0
    while message[position] & 0x80:
        number |= (message[position] & 0x7F) << shift
        position, shift = position + 1, shift + 7
    return number | message[position] << shift, position + 1
