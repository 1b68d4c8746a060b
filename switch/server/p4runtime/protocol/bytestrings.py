"""Numbers as the byte strings of P4Runtime: big-endian, and canonically as short as they can be."""

from __future__ import annotations

from inakit.switch.server.p4runtime.protocol.faults import Code, Fault


def encode(number: int) -> bytes:
    """The canonical string of an unsigned number."""
    return number.to_bytes((number.bit_length() + 7) // 8 or 1, "big")


def decode(octets: bytes, bits: int, what: str) -> int:
    """The unsigned number in a string of any length; a fault if it is empty or has more than `bits` bits."""
    number = int.from_bytes(octets, "big")
    if not octets or number >> bits:
        raise Fault(Code.OUT_OF_RANGE, f"{what}: {shown(octets)} does not fit bit<{bits}>")
    return number


def encode_signed(number: int, bits: int) -> bytes:
    """The canonical string of a number of type int<bits>, given by its two's complement."""
    signed = number - (1 << bits) if number >> bits - 1 else number
    length = (signed if signed >= 0 else ~signed).bit_length() // 8 + 1
    return signed.to_bytes(length, "big", signed=True)


def decode_signed(octets: bytes, bits: int, what: str) -> int:
    """The two's complement in `bits` bits of the signed number in a string; a fault if it does not fit."""
    number = int.from_bytes(octets, "big", signed=True)
    if not octets or not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise Fault(Code.OUT_OF_RANGE, f"{what}: {shown(octets)} does not fit int<{bits}>")
    return number & (1 << bits) - 1


def shown(octets: bytes) -> str:
    """A string for people: its first bytes in hexadecimal."""
    return f"0x{octets[:32].hex()}{'...' if len(octets) > 32 else ''}" if octets else "an empty byte string"
