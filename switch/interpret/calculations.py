"""Hash calculations and checksums over fields, numbers, headers and the payload, with the algorithms of v1model."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from inakit.switch.interpret.expressions import value_of
from inakit.switch.interpret.headers import packer, store
from inakit.switch.interpret.packet import Packet, Run, Value
from inakit.switch.interpret.switch_state import Context
from inakit.switch.program.program import (
    CRC_CUSTOM,
    Calculation,
    Checksum,
    CrcParameters,
    Field,
    HeaderReference,
    Payload,
    SizedNumber,
)

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
    """A cyclic redundancy check with a result of `bits` bits."""
    table, ones = crc_table(parameters.polynomial, bits), (1 << bits) - 1

    def compute(data: bytes) -> int:
        remainder = parameters.first
        for byte in data:
            index = (REFLECTED_BYTES[byte] if parameters.reflect_data else byte) ^ remainder >> bits - 8
            remainder = table[index] ^ remainder << 8 & ones
        return (reflected(remainder, bits) if parameters.reflect_result else remainder) ^ parameters.last

    return compute


def internet_checksum(data: bytes) -> int:
    """RFC 1071: the complement of the ones' complement sum of all 16-bit words.

    The sum equals the bytes as one number, modulo 65535.
    """
    number = int.from_bytes(data if len(data) % 2 == 0 else data + b"\0", "big")
    return ~(number % 0xFFFF or (0xFFFF if number else 0)) & 0xFFFF


def identity(data: bytes) -> int:
    """The first 8 bytes as a number."""
    return int.from_bytes(data[:8], "big")


def exclusive_or(size: int) -> Hash:
    """The exclusive or of all words of `size` bytes; the last one is padded with 0."""

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


Bits = tuple[int, int]
"""A number with its width in bits."""
Part = Callable[[Packet], Bits]


def calculation_of(context: Context, calculation: Calculation) -> Value:
    """The function that gives a calculation's hash for a packet."""
    with context.located(calculation.source):
        if calculation.algorithm not in ALGORITHMS:
            known = ", ".join(ALGORITHMS)
            raise context.refusal(f"hash algorithm '{calculation.algorithm}'", f"choose from {known}")
    compute = function_of(context, calculation)
    parts = [PARTS[type(part)](context, part) for part in calculation.input if not isinstance(part, Payload)]
    with_payload = any(isinstance(part, Payload) for part in calculation.input)

    def value(packet: Packet) -> int:
        data = side_by_side([part(packet) for part in parts])
        return compute(data + packet.payload if with_payload else data)

    return value


def function_of(context: Context, calculation: Calculation) -> Hash:
    """The hash function of a calculation; for a custom CRC, the one that the control plane set last."""
    given = ALGORITHMS[calculation.algorithm]
    if calculation.algorithm not in CRC_CUSTOM:
        return given
    bits, parameters = CRC_CUSTOM[calculation.algorithm], context.state.crcs

    def compute(data: bytes) -> int:
        changed = parameters.get(calculation.name)
        return given(data) if changed is None else crc(bits, changed)(data)

    return compute


def side_by_side(parts: list[Bits]) -> bytes:
    """The bytes of numbers laid bit after bit; the unused bits of the last byte are 0."""
    number = length = 0
    for value, bits in parts:
        number, length = number << bits | value, length + bits
    return (number << -length % 8).to_bytes(-(-length // 8), "big")


# {"type": "field", "value": ["ipv4", "protocol"]}
def field_bits(context: Context, field: Field) -> Part:
    """A field as a part of a hash's input; empty if its header is not valid."""
    valid, place, bits = context.places.base[field.header], context.places.field(field), field.bits
    ones, length = (1 << bits) - 1, context.places.length(field.header)
    if field.variable and length is not None:
        return lambda packet: (packet[place], packet[length]) if packet[valid] else (0, 0)
    return lambda packet: (packet[place] & ones, bits) if packet[valid] else (0, 0)


# {"type": "hexstr", "value": "0x00", "bitwidth": 8}
def literal_bits(_context: Context, literal: SizedNumber) -> Part:
    return lambda _packet: (literal.value & (1 << literal.bits) - 1, literal.bits)


# {"type": "header", "value": "ipv4"}
def header_bits(context: Context, reference: HeaderReference) -> Part:
    """A whole header as a part of a hash's input; empty if it is not valid."""
    valid, pack = context.places.base[reference.header], packer(context, context.program.headers[reference.header])

    def bits(packet: Packet) -> Bits:
        data = pack(packet) if packet[valid] else b""
        return int.from_bytes(data, "big"), 8 * len(data)

    return bits


PARTS: dict[type, Callable[..., Part]] = {Field: field_bits, SizedNumber: literal_bits, HeaderReference: header_bits}


def checksums_verified(context: Context) -> Run | None:
    """The function that notes wrong checksums; None if the program checks none."""
    checks = [verification(context, checksum) for checksum in context.program.checksums if checksum.verify]

    def run(packet: Packet) -> None:
        for right in checks:
            if not right(packet):
                packet.bad_checksum = True

    return run if checks else None


# {"name": "cksum", "target": ["ipv4", "checksum"], "calculation": "calc", "verify": true, "if_cond": {...}}
def verification(context: Context, checksum: Checksum) -> Callable[[Packet], bool]:
    """The function that tells whether a checksum is right; the checksum of an invalid header counts as right."""
    applies, compute = condition_of(context, checksum), calculation_of(context, checksum.calculation)
    valid, target = context.places.base[checksum.target.header], context.places.field(checksum.target)
    name, note = checksum.name, context.trace.note

    def right(packet: Packet) -> bool:
        if not packet[valid] or not applies(packet):
            return True
        holds = compute(packet) == packet[target]
        note(f"Verified checksum '{name}': {'passed' if holds else 'failed'}")
        return holds

    return right


def condition_of(context: Context, checksum: Checksum) -> Value:
    """The function that tells whether a checksum applies to a packet."""
    with context.located(checksum.source):
        return value_of(context, checksum.condition) if checksum.condition is not None else lambda _packet: 1


def checksums_updated(context: Context) -> list[Run]:
    """The functions that set the program's checksums, in order."""
    return [update(context, checksum) for checksum in context.program.checksums if checksum.update]


# {"name": "cksum", "target": ["ipv4", "checksum"], "calculation": "calc", "update": true, "if_cond": {...}}
def update(context: Context, checksum: Checksum) -> Run:
    """The function that sets a checksum if it applies."""
    applies, compute = condition_of(context, checksum), calculation_of(context, checksum.calculation)
    write, name, note = store(context, checksum.target), checksum.name, context.trace.note

    def run(packet: Packet) -> None:
        if applies(packet):
            note(f"Updating checksum '{name}'")
            write(packet, compute(packet))

    return run
