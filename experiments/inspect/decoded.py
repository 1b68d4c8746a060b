"""Packets of a capture in words: a line for each, as scapy reads it by the layers of the packet format."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from scapy.packet import Packet
from scapy.utils import PcapReader

from traffic.wire import scapy_layers

LAYERS = (scapy_layers.INA, scapy_layers.Values)
"""What scapy knows by them."""


class Decoded:
    """The packets of a pcap that is still being written. `printed`: how many lines there were so far."""

    def __init__(self, file: Path) -> None:
        self.reader = PcapReader(str(file))
        self.printed = 0

    def lines(self) -> Iterator[str]:
        """A line for each packet that is in the file by now and had none yet."""
        while True:
            begin = self.reader.f.tell()
            try:
                packet = self.reader.read_packet()
            except EOFError:
                packet = None
            if packet is None or len(packet.original) < (packet.wirelen or 0):  # the rest is still to be written
                self.reader.f.seek(begin)
                return
            self.printed += 1
            yield line_of(packet)


def line_of(packet: Packet) -> str:
    """When a packet passed, and what its layers say."""
    return f"{datetime.fromtimestamp(float(packet.time)):%H:%M:%S.%f} {packet.summary()}"
