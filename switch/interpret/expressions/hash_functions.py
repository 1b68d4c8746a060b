"""Hash functions of v1model's HashAlgorithm, as BMv2 computes them over bytes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from inakit.switch.program.expressions import CrcParameters

Hash = Callable[[bytes], int]


def reflected(value: int, bits: int) -> int:
    """`value` with its lowest `bits` bits in the opposite order."""
    return int(f"{value:0{bits}b}"[::-1], 2)


@cache
def crc_table(polynomial: int, bits: int) -> tuple[int, ...]:
    """For each byte, the remainder of the division of that byte by the polynomial."""
    top, ones, table = 1 << bits - 1, (1 << bits) - 1, []
    for byte in range(256):
        remainder = byte << bits - 8
        for _ in range(8):
            remainder = (remainder << 1 ^ (polynomial if remainder & top else 0)) & ones
        table.append(remainder)
    return tuple(table)


REFLECTED_BYTES = tuple(reflected(byte, 8) for byte in range(256))


def crc(bits: int, parameters: CrcParameters) -> Hash:
    """A cyclic redundancy check whose result has so many bits."""
    table, ones = crc_table(parameters.polynomial, bits), (1 << bits) - 1

    def compute(data: bytes) -> int:
        remainder = parameters.first
        for byte in data:
            index = (REFLECTED_BYTES[byte] if parameters.reflect_data else byte) ^ remainder >> bits - 8
            remainder = table[index] ^ remainder << 8 & ones
        return (reflected(remainder, bits) if parameters.reflect_result else remainder) ^ parameters.last

    return compute


def internet_checksum(data: bytes) -> int:
    """RFC 1071: the complement of the sum of all 16-bit words in ones' complement.

    That sum is the bytes as one number, modulo 65535.
    """
    number = int.from_bytes(data if len(data) % 2 == 0 else data + b"\0", "big")
    return ~(number % 0xFFFF or (0xFFFF if number else 0)) & 0xFFFF


def identity(data: bytes) -> int:
    """The first 8 bytes as a number."""
    return int.from_bytes(data[:8], "big")


def exclusive_or(size: int) -> Hash:
    """The exclusive or of all words of `size` bytes; the last one is filled up with 0."""

    def compute(data: bytes) -> int:
        result = 0
        for at in range(0, len(data), size):
            result ^= int.from_bytes(data[at : at + size].ljust(size, b"\0"), "big")
        return result

    return compute


CRC16 = crc(16, CrcParameters(0x8005, 0, 0, reflect_data=True, reflect_result=True))
CRC32 = crc(32, CrcParameters(0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, reflect_data=True, reflect_result=True))

# {"name": "calc", "algo": "crc16", "input": [...]}; `_custom` ones are those that BMv2 starts with.
ALGORITHMS: dict[str, Hash] = {
    "crc16": CRC16,
    "crc16_custom": CRC16,
    "crc32": CRC32,
    "crc32_custom": CRC32,
    "crcCCITT": crc(16, CrcParameters(0x1021, 0xFFFF, 0, reflect_data=False, reflect_result=False)),
    "csum16": internet_checksum,
    "identity": identity,
    "xor16": exclusive_or(2),
    "xor32": exclusive_or(4),
}
