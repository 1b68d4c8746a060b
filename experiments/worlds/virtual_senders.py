"""Hosts in virtual time that send pcaps, or the same frames over and over: sources in the engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

from inakit.topo.virtual.engine import PS_PER_S, Engine
from inakit.topo.virtual.network import VirtualNetwork
from inakit.topo.virtual.sources import Source, as_rows
from inakit.traffic.runs.gradient_pcap import frames_of_pcap
from inakit.traffic.runs.replayer import Recording, Senders
from inakit.traffic.sockets.packet_sockets import SEND_BUFFER_FRAMES
from inakit.traffic.sockets.ports import HostPort, Ports, RepeatedFrames

DRAIN_S = 2.0
"""What is still under way when traffic ends has at most so long to arrive, in seconds."""


@contextmanager
def repeating(network: VirtualNetwork, traffic: Sequence[RepeatedFrames]) -> Iterator[None]:
    """Send all of the traffic until the end of the block, and let arrive what is then under way."""
    sources = []
    for each in traffic:
        link, frames = network.uplink(each.source.name), as_rows(each.frames)
        sources.append(Source(network.engine, link, *frames, rate_fps=each.rate_fps, room=SEND_BUFFER_FRAMES))
    try:
        yield
    finally:
        for source in sources:
            source.stop()
        if sources:
            drain(network.engine)


def drain(engine: Engine) -> None:
    """Let time pass until nothing is under way any more, for at most `DRAIN_S`."""
    until = engine.now_ps + round(DRAIN_S * PS_PER_S)
    while (at := engine.next_ps()) is not None and at <= until:
        engine.run(at)


@dataclass(frozen=True)
class VirtualReplayer:
    """The `Replayer` of hosts in virtual time: a source for each pcap."""

    ports: Ports
    network: VirtualNetwork

    def prepare(self, recordings: Sequence[Recording]) -> Senders:
        """Sources that are made when they are to send."""
        return SourcesOfPcaps(self.network, recordings)

    def sent_bytes(self, host: HostPort) -> int:
        """What the host has given to its link."""
        return int(self.network.engine.links["sent_bytes"][self.network.uplink(host.name)])


class SourcesOfPcaps:
    """The `Senders` of hosts in virtual time. Frames are read from the pcaps when they are sent, by no program."""

    commands: Mapping[str, str] = MappingProxyType({})

    def __init__(self, network: VirtualNetwork, recordings: Sequence[Recording]) -> None:
        self.network, self.recordings = network, recordings
        self.sources: list[Source] = []

    def go(self) -> None:
        """Let all hosts begin to send."""
        for host, pcap, rate_fps in self.recordings:
            frames, lengths = frames_of_pcap(pcap)
            link, limits = self.network.uplink(host.name), {"room": SEND_BUFFER_FRAMES, "count": len(frames)}
            self.sources.append(Source(self.network.engine, link, frames, lengths, rate_fps=rate_fps, **limits))

    def over(self) -> bool:
        """Whether all frames have been sent."""
        return not any(source.left for source in self.sources)

    def end(self) -> None:
        """Send nothing more."""
        for source in self.sources:
            source.stop()
