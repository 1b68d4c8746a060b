"""Sequences of packets for a switch, and what it makes of them."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from inakit.switch.entries import SwitchEntries, TableEntry
from inakit.traffic.wire.packet_format import BARE_FRAME, new_frames

PORTS = tuple(range(1, 9))
# The last packets of every sequence go to these addresses, one per port. A port sends in the order of its
# queue, so whoever sees them has seen all that the port sends.
LAST_ADDRESS = 0xF0000000


class Step(NamedTuple):
    """A packet that arrives at a port."""

    port: int
    packet: bytes


class Seen(NamedTuple):
    """What a switch made of a sequence of packets: packets per port, registers, counters (packets, bytes)."""

    sent: dict[int, list[bytes]]
    registers: dict[str, NDArray[np.uint64]]
    counters: dict[str, tuple[NDArray[np.uint64], NDArray[np.uint64]]]


COUNTERS = (
    "InaIngress.events",
    "InaIngress.received",
    "InaIngress.rejected",
    "InaEgress.sent",
    "InaEgress.replicated",
    "InaEgress.lost",
)


@cache
def last_packets() -> dict[int, bytes]:
    """A packet for each port that leaves by that port and looks like no other."""
    frames = {port: new_frames(1, src_mac="02:00:00:00:00:0f", dst_mac="02:00:00:00:00:ff", src_ip="0.0.0.0",
                               dst_ip=socket.inet_ntoa((LAST_ADDRESS + port).to_bytes(4, "big")), dtype=BARE_FRAME)
              for port in PORTS}  # fmt: skip
    for frame in frames.values():
        frame["udp"]["dst_port"] = 9
    return {port: frame.tobytes() for port, frame in frames.items()}


def with_last_packets(entries: SwitchEntries, steps: Sequence[Step]) -> tuple[SwitchEntries, list[Step]]:
    """Entries and packets, extended so that the sequence ends with a packet out of every port."""
    routes = tuple(TableEntry("InaIngress.ipv4_route", (LAST_ADDRESS + p,), "InaIngress.send", (p,)) for p in PORTS)
    complete = SwitchEntries(entries.switch, entries.tables + routes, entries.groups, entries.registers)
    return complete, [*steps, *(Step(PORTS[0], packet) for packet in last_packets().values())]


class PacketSwitch(Protocol):
    """A switch that starts afresh for every sequence."""

    def run(self, entries: SwitchEntries, steps: Sequence[Step], registers: Sequence[str]) -> Seen:
        """What the switch with `entries` makes of `steps`, which arrive one after the other."""
        ...
