"""Hash calculations over fields, numbers, headers and the payload."""

from __future__ import annotations

from collections.abc import Callable

from inakit.switch.interpret.expressions.hash_functions import ALGORITHMS, Hash, crc
from inakit.switch.interpret.expressions.header_bytes import packer
from inakit.switch.interpret.state.context import Context
from inakit.switch.interpret.state.packets.packet import Packet, Value
from inakit.switch.program.expressions import CRC_CUSTOM, Calculation, Payload, SizedNumber
from inakit.switch.program.expressions import HeaderReference
from inakit.switch.program.expressions import Field

Bits = tuple[int, int]
"""A number, and how many bits it has."""
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
    """The hash function of a calculation; one that the control plane can set is that which it set last."""
    given = ALGORITHMS[calculation.algorithm]
    if calculation.algorithm not in CRC_CUSTOM:
        return given
    bits, parameters = CRC_CUSTOM[calculation.algorithm], context.state.crcs

    def compute(data: bytes) -> int:
        changed = parameters.get(calculation.name)
        return given(data) if changed is None else crc(bits, changed)(data)

    return compute


def side_by_side(parts: list[Bits]) -> bytes:
    """Numbers, bit after bit, in bytes; the unused bits of the last byte are 0."""
    number = length = 0
    for value, bits in parts:
        number, length = number << bits | value, length + bits
    return (number << -length % 8).to_bytes(-(-length // 8), "big")


# {"type": "field", "value": ["ipv4", "protocol"]}
def field_bits(context: Context, field: Field) -> Part:
    """A field as a part of what is hashed: nothing, if its header is not valid."""
    valid, place, bits = context.places.base[field.header], context.places.field(field), field.bits
    ones, length = (1 << bits) - 1, context.places.length(field.header)
    if field.variable and length is not None:
        return lambda packet: (packet[place], packet[length]) if packet[valid] else (0, 0)
    return lambda packet: (packet[place] & ones, bits) if packet[valid] else (0, 0)


# {"type": "hexstr", "value": "0x00", "bitwidth": 8}
def literal_bits(_context: Context, literal: SizedNumber) -> Part:
    """A number as a part of what is hashed."""
    return lambda _packet: (literal.value & (1 << literal.bits) - 1, literal.bits)


# {"type": "header", "value": "ipv4"}
def header_bits(context: Context, reference: HeaderReference) -> Part:
    """A whole header as a part of what is hashed: nothing, if it is not valid."""
    valid, pack = context.places.base[reference.header], packer(context, context.program.headers[reference.header])

    def bits(packet: Packet) -> Bits:
        data = pack(packet) if packet[valid] else b""
        return int.from_bytes(data, "big"), 8 * len(data)

    return bits


PARTS: dict[type, Callable[..., Part]] = {Field: field_bits, SizedNumber: literal_bits, HeaderReference: header_bits}
