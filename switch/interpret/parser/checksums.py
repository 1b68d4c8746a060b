"""Checksums, which are checked after the parser and set before the deparser."""

from __future__ import annotations

from collections.abc import Callable

from inakit.switch.interpret.expressions.calculations import calculation_of
from inakit.switch.interpret.expressions.expressions import value_of
from inakit.switch.interpret.expressions.fields import store
from inakit.switch.interpret.state.context import Context
from inakit.switch.interpret.state.packets.packet import Packet, Run, Value
from inakit.switch.program.expressions import Checksum


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
    """The function that says whether a checksum is right; one of a header that is not valid is."""
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
    """The function that says whether a checksum applies to a packet."""
    with context.located(checksum.source):
        return value_of(context, checksum.condition) if checksum.condition is not None else lambda _packet: 1


def checksums_updated(context: Context) -> list[Run]:
    """The functions that set the program's checksums, in order."""
    return [update(context, checksum) for checksum in context.program.checksums if checksum.update]


# {"name": "cksum", "target": ["ipv4", "checksum"], "calculation": "calc", "update": true, "if_cond": {...}}
def update(context: Context, checksum: Checksum) -> Run:
    """The function that sets a checksum, where it applies."""
    applies, compute = condition_of(context, checksum), calculation_of(context, checksum.calculation)
    write, name, note = store(context, checksum.target), checksum.name, context.trace.note

    def run(packet: Packet) -> None:
        if applies(packet):
            note(f"Updating checksum '{name}'")
            write(packet, compute(packet))

    return run
