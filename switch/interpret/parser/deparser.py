"""The deparser: checksums are set, and the bytes of valid headers are put before the payload."""

from __future__ import annotations

from collections.abc import Callable

from inakit.switch.interpret.actions.actions import statement
from inakit.switch.interpret.expressions.header_bytes import packer
from inakit.switch.interpret.parser.checksums import checksums_updated
from inakit.switch.interpret.state.context import Context
from inakit.switch.interpret.state.packets.packet import Packet


# {"name": "deparser", "order": ["ethernet", "ipv4"], "primitives": [...]}
def deparser_of(context: Context) -> Callable[[Packet], bytes]:
    """The function that gives the whole packet's bytes, before they are truncated."""
    program, base = context.program, context.places.base
    before = [*checksums_updated(context), *(statement(context, each) for each in program.deparser_statements)]
    headers = [(name, base[name], packer(context, program.headers[name])) for name in program.deparser]
    note, listens = context.trace.note, context.trace.listens

    def deparse(packet: Packet) -> bytes:
        for step in before:
            step(packet)
        if listens:
            for name, valid, _ in headers:
                if packet[valid]:
                    note(f"Deparsing header '{name}'")
        return b"".join([pack(packet) for _, valid, pack in headers if packet[valid]]) + packet.data[packet.parsed :]

    return deparse
