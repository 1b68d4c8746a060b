"""Hash calculations over fields, and the checksums that are checked after the parser and set before the deparser."""

from __future__ import annotations

from collections.abc import Callable

from switch.interpret.stages.expressions import value_of
from switch.interpret.stages.fields import packer, store
from switch.interpret.stages.hash_functions import ALGORITHMS
from switch.interpret.state.context import Context
from switch.interpret.state.packet import Packet, Run, Value
from switch.program.calculations import Calculation, Checksum, Literal, Payload
from switch.program.expressions import HeaderReference
from switch.program.headers import Field

Bits = tuple[int, int]
"""A number, and of how many bits it is."""
Part = Callable[[Packet], Bits]


def calculation_of(context: Context, calculation: Calculation) -> Value:
    """The function that gives the hash of what the calculation names."""
    with context.located(calculation.source):
        if calculation.algorithm not in ALGORITHMS:
            known = ", ".join(ALGORITHMS)
            raise context.refusal(f"hash algorithm '{calculation.algorithm}'", f"choose from {known}")
    compute = ALGORITHMS[calculation.algorithm]
    parts = [PARTS[type(part)](context, part) for part in calculation.input if not isinstance(part, Payload)]
    with_payload = any(isinstance(part, Payload) for part in calculation.input)

    def value(packet: Packet) -> int:
        data = side_by_side([part(packet) for part in parts])
        return compute(data + packet.payload if with_payload else data)

    return value


def side_by_side(parts: list[Bits]) -> bytes:
    """Numbers bit after bit; what is left of the last byte is 0."""
    number = length = 0
    for value, bits in parts:
        number, length = number << bits | value, length + bits
    return (number << -length % 8).to_bytes(-(-length // 8), "big")


# {"type": "field", "value": ["ipv4", "protocol"]}
def field_bits(context: Context, field: Field) -> Part:
    """Nothing, if the header is not there."""
    valid, place, bits = context.places.base[field.header], context.places.field(field), field.bits
    ones, length = (1 << bits) - 1, context.places.length(field.header)
    if field.variable and length is not None:
        return lambda packet: (packet[place], packet[length]) if packet[valid] else (0, 0)
    return lambda packet: (packet[place] & ones, bits) if packet[valid] else (0, 0)


# {"type": "hexstr", "value": "0x00", "bitwidth": 8}
def literal_bits(_context: Context, literal: Literal) -> Part:
    return lambda _packet: (literal.value & (1 << literal.bits) - 1, literal.bits)


# {"type": "header", "value": "ipv4"}
def header_bits(context: Context, reference: HeaderReference) -> Part:
    valid, pack = context.places.base[reference.header], packer(context, context.program.headers[reference.header])

    def bits(packet: Packet) -> Bits:
        data = pack(packet) if packet[valid] else b""
        return int.from_bytes(data, "big"), 8 * len(data)

    return bits


PARTS: dict[type, Callable[..., Part]] = {Field: field_bits, Literal: literal_bits, HeaderReference: header_bits}


def checksums_verified(context: Context) -> Run | None:
    """The function that finds wrong checksums; None if the program checks none."""
    checks = [verification(context, checksum) for checksum in context.program.checksums if checksum.verify]

    def run(packet: Packet) -> None:
        for right in checks:
            if not right(packet):
                packet.bad_checksum = True

    return run if checks else None


# {"name": "cksum", "target": ["ipv4", "checksum"], "calculation": "calc", "verify": true, "if_cond": {...}}
def verification(context: Context, checksum: Checksum) -> Callable[[Packet], bool]:
    """Whether the checksum is right; one of a header that is not there is."""
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
    with context.located(checksum.source):
        return value_of(context, checksum.condition) if checksum.condition is not None else lambda _packet: 1


def checksums_updated(context: Context) -> list[Run]:
    return [update(context, checksum) for checksum in context.program.checksums if checksum.update]


# {"name": "cksum", "target": ["ipv4", "checksum"], "calculation": "calc", "update": true, "if_cond": {...}}
def update(context: Context, checksum: Checksum) -> Run:
    applies, compute = condition_of(context, checksum), calculation_of(context, checksum.calculation)
    write, name, note = store(context, checksum.target), checksum.name, context.trace.note

    def run(packet: Packet) -> None:
        if applies(packet):
            note(f"Updating checksum '{name}'")
            write(packet, compute(packet))

    return run
