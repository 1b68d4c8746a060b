"""What arrives at and leaves each port, in the files that BMv2 writes: eth0_in.pcap and eth0_out.pcap."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

from inakit.topo.errors import writing

HEADER = struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
"""Of a pcap file with microseconds and Ethernet frames."""


FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC


class PcapFiles:
    """The two files of each interface in `folder`. Each packet is in its file at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[tuple[str, str], int] = {}

    def write(self, interface: str, direction: str, packet: bytes) -> None:
        """Add a packet to the file of an interface; `direction` is `in` or `out`."""
        now = time.time_ns() // 1000
        head = struct.pack("=IIII", now // 1_000_000, now % 1_000_000, len(packet), len(packet))
        os.write(self.file(interface, direction), head + packet)

    def file(self, interface: str, direction: str) -> int:
        """The descriptor of a file, begun when it is first asked for."""
        if (interface, direction) not in self.files:
            path = self.folder / f"{interface}_{direction}.pcap"
            with writing(path):
                self.files[interface, direction] = os.open(path, FLAGS, 0o644)
            os.write(self.files[interface, direction], HEADER)
        return self.files[interface, direction]

    def begin(self, interface: str) -> None:
        """Begin both files of an interface."""
        self.file(interface, "in")
        self.file(interface, "out")

    def close(self) -> None:
        """Close all files."""
        for descriptor in self.files.values():
            os.close(descriptor)
        self.files.clear()
