"""Packets of a capture in words: a line for each, as scapy reads it by the layers of the packet format."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from scapy.packet import Packet
from scapy.utils import PcapReader

from inakit.traffic.wire import scapy_layers

LAYERS = (scapy_layers.INA, scapy_layers.Values)
"""What scapy knows by them."""


class Decoded:
    """The packets of a pcap that is still being written."""

    def __init__(self, file: Path) -> None:
        self.reader = PcapReader(str(file))

    def next_line(self) -> str | None:
        """The line of the next packet; None where it is not wholly in the file yet."""
        begin = self.reader.f.tell()
        try:
            packet = self.reader.read_packet()
        except EOFError:
            packet = None
        if packet is None or len(packet.original) < (packet.wirelen or 0):  # the rest is still to be written
            self.reader.f.seek(begin)
            return None
        return line_of(packet)


def line_of(packet: Packet) -> str:
    """When a packet passed, and what its layers say."""
    return f"{datetime.fromtimestamp(float(packet.time)):%H:%M:%S.%f} {packet.summary()}"
