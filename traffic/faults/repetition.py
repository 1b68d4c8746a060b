"""Frames that real hosts send over and over: tcpreplay in their namespaces, and sinks for what nobody listens to."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from math import ceil
from pathlib import Path

from inakit.topo.live.namespaces import network_namespace
from inakit.traffic.measure.counters import interfaces
from inakit.traffic.sockets.packet_sockets import open_sink
from inakit.traffic.sockets.ports import HostPort, RepeatedFrames
from inakit.traffic.sockets.tcpreplay import check_tcpreplay, end, repeat_without_end

DISCARD_PORT = 9
"""UDP's port for what is to be thrown away."""
FRAMES_PER_LOOP = 100
"""tcpreplay sends a pcap of at least so many frames again and again: to begin anew takes it time."""
QUIET_S, MOST_WAITS = 0.05, 40
"""A host to which nothing has come for so long is drained; it is looked at no more often than that."""


@contextmanager
def repeating(traffic: Sequence[RepeatedFrames]) -> Iterator[None]:
    """Send all of the traffic until the end of the block.

    Raises `MachineError` without tcpreplay, `RunError` if some of it has ended by itself.
    """
    if traffic:
        check_tcpreplay()
    sinks = {each.sink.name: each.sink for each in traffic if each.sink is not None}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="inakit-")))
        for host in sinks.values():
            with network_namespace(host.pid):
                stack.enter_context(open_sink(DISCARD_PORT))
            stack.callback(drain, host)
        for number, each in enumerate(traffic):
            pcap = folder / f"{number}.pcap"
            write_loop(pcap, each.frames)
            stack.callback(end, each.what, repeat_without_end(each.source, pcap, each.rate_fps))
        yield


def write_loop(pcap: Path, frames: Sequence[bytes]) -> None:
    """Write frames to a pcap, again and again until these are enough for a loop."""
    from scapy.utils import RawPcapWriter  # noqa: PLC0415, it takes long to import

    with RawPcapWriter(str(pcap), linktype=1) as writer:
        for frame in list(frames) * ceil(FRAMES_PER_LOOP / len(frames)):
            writer.write(frame)


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
