"""Background traffic: plain UDP between hosts of the network, at a steady rate."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from math import ceil
from pathlib import Path

from inakit.planner.install.fault_entries import Flow
from inakit.topo.live.netlink import network_namespace
from inakit.traffic.measure.counters import interfaces
from inakit.traffic.sockets.packet_sockets import open_sink
from inakit.traffic.sockets.ports import HostPort, RepeatedFrames
from inakit.traffic.sockets.tcpreplay import check_tcpreplay, end, repeat_without_end

# -- Frames that real hosts send repeatedly: tcpreplay in their namespaces, and sinks for them.

DISCARD_PORT = 9
"""UDP's discard port."""
FRAMES_PER_LOOP = 100
"""The least number of frames in a pcap that tcpreplay repeats: starting over takes it time."""
QUIET_S, MOST_WAITS = 0.05, 40
"""The interval of looking at a host; it is drained if nothing has arrived in an interval."""


@contextmanager
def repeating(traffic: Sequence[RepeatedFrames]) -> Iterator[Callable[[], None]]:
    """Send all of the traffic until the end of the block, or until the yielded function is called.

    Raises `MachineError` without tcpreplay, `RunError` if a sender has ended by itself.
    """
    from scapy.utils import RawPcapWriter  # noqa: PLC0415, it takes long to import

    if traffic:
        check_tcpreplay()
    sinks = {each.sink.name: each.sink for each in traffic if each.sink is not None}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="inakit-")))
        for host in sinks.values():
            with network_namespace(host.pid):
                stack.enter_context(open_sink(DISCARD_PORT))
            stack.callback(drain, host)
        senders = stack.enter_context(ExitStack())
        for number, each in enumerate(traffic):
            pcap = folder / f"{number}.pcap"
            with RawPcapWriter(str(pcap), linktype=1) as writer:
                for frame_bytes in list(each.frames) * ceil(FRAMES_PER_LOOP / len(each.frames)):
                    writer.write(frame_bytes)
            senders.callback(end, each.what, repeat_without_end(each.source, pcap, each.rate_fps))
        yield senders.close


def drain(host: HostPort) -> None:
    """Wait until nothing more arrives at a host, for about two seconds at most.

    Queues of full links can still hold packets. Without a sink at the host its kernel would answer them.
    """
    before = -1
    for _ in range(MOST_WAITS):
        received = interfaces(host.pid)[host.interface].received_packets
        if received == before:
            break
        before = received
        time.sleep(QUIET_S)


# -- The traffic.

HEADERS_BYTES = 14 + 20 + 8
"""Ethernet, IPv4 and UDP."""


def background_traffic(hosts: Sequence[HostPort], flows: Sequence[Flow]) -> Iterator[RepeatedFrames]:
    """Yield the frames of the flows' sources."""
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
