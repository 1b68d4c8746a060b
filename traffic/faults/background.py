"""Background traffic: plain UDP between hosts of the network, sent by tcpreplay at a steady rate."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import wrpcap

from planner.install.background_entries import Flow
from topo.live.namespaces import network_namespace
from traffic.measure.kernel_counters import interfaces
from traffic.sockets.packet_sockets import open_sink
from traffic.sockets.ports import HostPort
from traffic.sockets.tcpreplay import check_tcpreplay, end, repeat_without_end

DISCARD_PORT = 9
"""UDP's port for what is to be thrown away."""
HEADERS_BYTES = 14 + 20 + 8
"""Ethernet, IPv4 and UDP."""
FRAMES_PER_LOOP = 100
QUIET_S, MOST_WAITS = 0.05, 40
"""A host to which nothing has come for so long is drained; it is looked at no more often than that."""


@contextmanager
def background(hosts: Sequence[HostPort], flows: Sequence[Flow]) -> Iterator[None]:
    """Send all flows until the end of the block.

    Raises `MachineError` without tcpreplay, `RunError` if a flow has ended by itself.
    """
    if flows:
        check_tcpreplay()
    port_of = {host.name: host for host in hosts}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="inakit-")))
        for destination in dict.fromkeys(flow.destination for flow in flows):
            with network_namespace(port_of[destination].pid):
                stack.enter_context(open_sink(DISCARD_PORT))
            stack.callback(drain, port_of[destination])
        for number, flow in enumerate(flows):
            pcap = folder / f"{number}.pcap"
            wrpcap(str(pcap), [frame(port_of[flow.source], port_of[flow.destination], flow)] * FRAMES_PER_LOOP)
            what = f"background traffic from '{flow.source}' to '{flow.destination}'"
            rate_fps = flow.rate_bps / (8 * flow.frame_bytes)
            stack.callback(end, what, repeat_without_end(port_of[flow.source], pcap, rate_fps))
        yield


def drain(host: HostPort) -> None:
    """Wait until nothing more arrives at a host, for about two seconds at most.

    Queues of full links may still hold packets. Those would find no sink at the host, whose kernel would answer them.
    """
    before = -1
    for _ in range(MOST_WAITS):
        received = interfaces(host.pid)[host.interface].received_packets
        if received == before:
            break
        before = received
        time.sleep(QUIET_S)


def frame(source: HostPort, destination: HostPort, flow: Flow) -> Packet:
    """A UDP packet of the flow's size."""
    addresses = Ether(src=source.mac, dst=destination.mac) / IP(src=source.ipv4, dst=destination.ipv4)
    return addresses / UDP(sport=DISCARD_PORT, dport=DISCARD_PORT) / Raw(bytes(flow.frame_bytes - HEADERS_BYTES))
