"""Pcap files of gradients, written and read with NumPy: all records at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inakit.topo.errors import writing
from inakit.traffic.sockets.ports import FloatArray
from inakit.traffic.wire.frames import BARE_FRAME, FRAGMENT

PACKET = np.dtype([("head", BARE_FRAME), ("values", ">i4", (FRAGMENT.values,))])
HEADER_BYTES = 24
"""Of the file, before its records."""
RECORD = np.dtype([("seconds", "<u4"), ("micros", "<u4"), ("kept", "<u4"), ("length", "<u4"), ("packet", PACKET)])


def write_pcap(path: Path, packets: NDArray[np.void], due_s: FloatArray) -> None:
    """Write packets (`PACKET`) with the times, in seconds, at which they are due; both are (packets,)."""
    from scapy.utils import RawPcapWriter  # noqa: PLC0415, it takes long to import

    records = np.empty(len(packets), RECORD)
    records["seconds"], records["micros"] = due_s, due_s % 1 * 1e6
    records["kept"] = records["length"] = packets.itemsize
    records["packet"] = packets
    with writing(path), RawPcapWriter(str(path), linktype=1, endianness="<") as writer:
        writer.write_header(None)
        writer.f.write(records.tobytes())


def frames_of_pcap(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """The frames of a file that `write_pcap` has written, (packets, bytes), and their lengths in bytes, (packets,).

    The file is mapped: its bytes are read where they are looked at.
    """
    records = np.memmap(path, RECORD, "r", HEADER_BYTES)
    rows = records.view((np.uint8, RECORD.itemsize))[:, -PACKET.itemsize :]
    return rows, np.full(len(records), PACKET.itemsize, np.uint32)
