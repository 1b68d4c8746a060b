"""Packets at ports of a network in virtual time, written to pcap files while time passes (`tap.h`).

A packet that leaves a port has the time at which its last bit has left, and one that arrives the time at which its last
bit has come, in whole nanoseconds since the network came up. What a port's queue drops is not in the file, nor what
still waits in it in the end.
"""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path
from types import TracebackType
from typing import Self

from inakit.topo.errors import writing
from inakit.topo.virtual.network import VirtualNetwork

NANOSECONDS, VERSION, SNAPSHOT_BYTES, ETHERNET = 0xA1B23C4D, (2, 4), 1 << 18, 1
"""Of a pcap's header: the magic number of times in nanoseconds, and what tcpdump writes, too."""
HEADER = struct.pack("<IHHiIII", NANOSECONDS, *VERSION, 0, 0, SNAPSHOT_BYTES, ETHERNET)


class Tap:
    """A capture at the port by which `node` is linked to `peer`, from when it is made until it is closed.

    A port has at most one.
    `packets`: how many are in the file, once it is closed.
    """

    def __init__(self, network: VirtualNetwork, node: str, peer: str, file: Path) -> None:
        self.engine, self.file, self.packets = network.engine, file, 0
        out = network.link_of[node, peer]
        self.links = out, out ^ 1
        assert not self.engine.links["near"][self.links[0]]
        with writing(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(HEADER)
            # The C closes the descriptor.
            descriptor = os.open(file, os.O_WRONLY | os.O_APPEND)
        self.engine.library.engine_tap(self.engine.handle, *self.links, descriptor)
        self.is_open = True

    def close(self) -> None:
        """Write what has passed by now. Raises `OutputError` if a packet could not be written."""
        if not self.is_open:
            return
        packets, self.is_open = ctypes.c_uint64(), False
        error = self.engine.library.engine_untap(self.engine.handle, *self.links, ctypes.byref(packets))
        self.packets = packets.value
        if error:
            with writing(self.file):
                raise OSError(error, os.strerror(error), str(self.file))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
