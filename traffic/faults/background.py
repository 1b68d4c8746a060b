"""Background traffic: plain UDP between hosts of the network, at a steady rate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inakit.planner.install.background_entries import Flow
from inakit.traffic.faults.repetition import DISCARD_PORT
from inakit.traffic.sockets.ports import HostPort, RepeatedFrames

HEADERS_BYTES = 14 + 20 + 8
"""Ethernet, IPv4 and UDP."""


def background_traffic(hosts: Sequence[HostPort], flows: Sequence[Flow]) -> Iterator[RepeatedFrames]:
    """What the sources of flows send."""
    port_of = {host.name: host for host in hosts}
    for flow in flows:
        source, destination = port_of[flow.source], port_of[flow.destination]
        yield RepeatedFrames(
            what=f"background traffic from '{flow.source}' to '{flow.destination}'",
            source=source,
            frames=[frame(source, destination, flow)],
            rate_fps=flow.rate_bps / (8 * flow.frame_bytes),
            sink=destination,
        )


def frame(source: HostPort, destination: HostPort, flow: Flow) -> bytes:
    """A UDP packet of the flow's size."""
    from scapy.layers.inet import IP, UDP  # noqa: PLC0415, scapy takes long to import
    from scapy.layers.l2 import Ether  # noqa: PLC0415
    from scapy.packet import Raw  # noqa: PLC0415

    addresses = Ether(src=source.mac, dst=destination.mac) / IP(src=source.ipv4, dst=destination.ipv4)
    return bytes(addresses / UDP(sport=DISCARD_PORT, dport=DISCARD_PORT) / Raw(bytes(flow.frame_bytes - HEADERS_BYTES)))
