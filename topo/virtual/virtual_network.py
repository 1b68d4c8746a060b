"""A fabric as a network in virtual time: its links are in the engine, its switches are compiled functions."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from inakit.topo.errors import writing
from inakit.topo.fabric.circuits import INTERCONNECT, Interconnect, cables
from inakit.topo.fabric.fabric import DirectedLink, Fabric, Switch
from inakit.topo.virtual.engine import PS_PER_S, SOURCE, Engine, Recirculation

End = tuple[str, int, float]
"""A node, its port, and the rate at which it sends there, in bit/s."""


def ps(time_s: float) -> int:
    """Seconds in picoseconds."""
    return round(time_s * PS_PER_S)


class CompiledSwitch(Protocol):
    """A compiled switch: a C function that receives packets, and its first argument."""

    @property
    def take_packet(self) -> int:
        """The address of the C function, `receive_fn` of engine.c."""
        ...

    @property
    def address(self) -> int:
        """The address that is the function's first argument."""
        ...


class VirtualNetwork:
    """Nodes and directed links by number, in an engine. Hosts come first, in the fabric's order.

    `loops` are the packets that a pipeline takes in again, by switch and pipeline. With an interconnect optical ports
    are joined to one more switch, called `INTERCONNECT`, instead of to each other. `link_at`: a node and its port to
    the number of its outgoing link; `link_of`: a node and its neighbour in the fabric to this number. The two
    directions of a link have the numbers 2n and 2n + 1.
    """

    def __init__(
        self,
        fabric: Fabric,
        switches: Mapping[str, CompiledSwitch],
        frame: np.dtype[np.void],
        queue_packets: int,
        interconnect: Interconnect | None = None,
        recirculations: Mapping[tuple[str, int], Recirculation] | None = None,
    ) -> None:
        """Hosts' queues are unlimited, as hosts never send more than links carry. Switches' queues are in packets."""
        self.fabric, self.queue_packets, self.cables = fabric, queue_packets, cables(fabric, interconnect)
        names = [*fabric.tiers, *([] if interconnect is None else [INTERCONNECT])]
        self.number_of = {name: number for number, name in enumerate(names)}
        ports = dict.fromkeys(names, 0)
        for node, port, _ in (end for link in self.cables for end in link.ends):
            ports[node] = max(ports[node], port + 1)
        self.loops = dict(recirculations or {})
        self.engine = Engine(2 * len(self.cables) + len(self.loops), list(ports.values()), frame)
        self.link_at: dict[tuple[str, int], int] = {}
        for link in self.cables:
            for one, other in (link.ends, link.ends[::-1]):
                self.connect(one, other, link.delay_s)
        for number, (switch, pipeline) in enumerate(self.loops, start=2 * len(self.cables)):
            self.add_loop(number, fabric.switch_by_name[switch], pipeline)
        ends_at = {(node, port): (node, peer) for (node, peer), port in fabric.port_numbers.items()}
        self.link_of = {ends_at[end]: number for end, number in self.link_at.items() if end in ends_at}
        for name, running in switches.items():
            self.engine.run_on(self.number_of[name], running.take_packet, running.address, running)

    @property
    def ends(self) -> Sequence[tuple[str, str]]:
        """The two ends of each link, by its number: nodes of the fabric, or the circuit switch and one of them.

        The last links begin and end at the same switch: by them its pipelines take packets in again.
        """
        fabric_ends = {number: ends for ends, number in self.link_of.items()}
        cables = [
            fabric_ends.get(2 * number + back, (one[0], other[0]))
            for number, cable in enumerate(self.cables)
            for back, (one, other) in enumerate((cable.ends, cable.ends[::-1]))
        ]
        return [*cables, *((switch, switch) for switch, _ in self.loops)]

    def uplink(self, host: str) -> int:
        """The number of the link by which a host sends."""
        return int(self.engine.link_at[self.engine.nodes["first_port"][self.number_of[host]]])

    def connect(self, end: End, peer: End, delay_s: float) -> None:
        """Connect the next link from `end` to `peer`. A circuit switch adds no queue and no time."""
        node, port, rate_bps = end
        number = self.link_at[node, port] = len(self.link_at)
        near, far = ((self.number_of[name], at) for name, at, _ in (end, peer))
        if node not in self.fabric.tiers:
            rate_bps, delay_s = 0.0, 0.0
        switch = self.fabric.switch_by_name.get(node)
        limit, latency_s = (0, 0.0) if switch is None else (self.queue_packets, switch.latency_s)
        self.engine.connect(
            number, near, far, rate_bps=rate_bps, delay_ps=ps(delay_s), limit=limit, latency_ps=ps(latency_s)
        )

    def add_loop(self, number: int, switch: Switch, pipeline: int) -> None:
        """Let the packets of `loops` at a pipeline come in again by link `number`."""
        assert switch.chip is not None
        assert switch.chip.recirculation_bps is not None
        self.engine.recirculate(
            number,
            self.number_of[switch.name],
            [port for port in switch.pipelines[pipeline] if (switch.name, port) in self.link_at],  # others have no link
            self.loops[switch.name, pipeline],
            rate_bps=switch.chip.recirculation_bps,
            limit=self.queue_packets,
        )

    def loop_drops(self) -> dict[tuple[str, int], int]:
        """The number of packets dropped at the recirculation port, by switch and pipeline."""
        dropped = self.engine.links["dropped"][2 * len(self.cables) :]
        return {inp: int(count) for inp, count in zip(self.loops, dropped, strict=True)}

    def lose(self, links: Mapping[DirectedLink, float], *, burst: float, repeats: bool, seed: int) -> None:
        """Let links lose these shares of their packets, as `Engine.lose`. `seed` decides which."""
        draws = np.random.SeedSequence(seed).generate_state(len(self.link_at), np.uint64)
        for link, number in self.link_of.items():
            if links.get(link):
                self.engine.lose(number, links[link], burst=burst, repeats=repeats, draw=int(draws[number]))

    def set_link(self, a: str, b: str, *, up: bool) -> None:
        """Take both directions of a link down or up. Packets in flight on a link that goes down are lost."""
        for direction in ((a, b), (b, a)):
            self.engine.links["up"][self.link_of[direction]] = up


# -- Sources in virtual time: frames sent at a steady rate by the C code (`source.h`).

WITHOUT_END = (1 << 64) - 1
"""A count of frames for a source without an end."""


class Source:
    """A cyclic sequence of frames sent to a link, the first one now.

    While `room` packets wait before the link the source waits, like a sender with a full socket; afterwards it sends
    faster until it has caught up.
    """

    def __init__(
        self,
        engine: Engine,
        link: int,
        frames: NDArray[np.uint8],
        lengths: NDArray[np.uint32],
        *,
        rate_fps: float,
        room: int,
        count: int = WITHOUT_END,
    ) -> None:
        """Send `count` frames at a steady rate per second. Frames are (frames, bytes), each with its length."""
        assert room > 0
        assert frames.strides[1] == 1
        self.engine, self.kept = engine, (frames, lengths)
        at, interval_ps = (frames.ctypes.data, lengths.ctypes.data, frames.strides[0]), round(PS_PER_S / rate_fps)
        record = np.array([(*at, link, len(frames), 0, room, count, interval_ps, engine.now_ps)], SOURCE)
        self.number = engine.library.engine_add_source(engine.handle, record.ctypes.data)
        engine.sources[self.number] = self

    @property
    def left(self) -> int:
        """The number of frames that are still to be sent."""
        return int(self.engine.library.engine_source_left(self.engine.handle, self.number))

    def stop(self) -> None:
        """Stop sending, and release the frames."""
        self.engine.library.engine_stop_source(self.engine.handle, self.number)
        self.engine.sources.pop(self.number, None)


def as_rows(frames: Sequence[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
    """Frames of any lengths as rows of equally many bytes, (frames, bytes of the longest), and their lengths."""
    lengths = np.array([len(frame) for frame in frames], np.uint32)
    rows = np.zeros((len(frames), int(lengths.max())), np.uint8)
    for row, frame in zip(rows, frames, strict=True):
        row[: len(frame)] = np.frombuffer(frame, np.uint8)
    return rows, lengths


# -- Captures at ports of a network in virtual time, written to pcap files during the run (`tap.h`).
#
# A packet has the time at which its last bit leaves or reaches the port, in whole nanoseconds since the start of the
# network. Packets that the port's queue drops, or that still wait in it at the end, are not in the file.

NANOSECONDS, VERSION, SNAPSHOT_BYTES, ETHERNET = 0xA1B23C4D, (2, 4), 1 << 18, 1
"""Fields of a pcap header: the magic number for nanoseconds, and tcpdump's values."""
HEADER = struct.pack("<IHHiIII", NANOSECONDS, *VERSION, 0, 0, SNAPSHOT_BYTES, ETHERNET)


class Tap:
    """A capture at the port of `node` to `peer`, from its construction until `close`.

    A port has at most one. `packets`: the number of packets in the file after `close`.
    """

    def __init__(self, network: VirtualNetwork, node: str, peer: str, file: Path) -> None:
        self.engine, self.file, self.packets = network.engine, file, 0
        out = network.link_of[node, peer]
        self.links = out, out ^ 1
        assert not self.engine.links["near"][self.links[0]]
        with writing(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(HEADER)
            # The C code closes the descriptor.
            descriptor = os.open(file, os.O_WRONLY | os.O_APPEND)
        self.engine.library.engine_tap(self.engine.handle, *self.links, descriptor)
        self.is_open = True

    def close(self) -> None:
        """Write the remaining packets. Raises `OutputError` if a packet could not be written."""
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

    def __exit__(self, *_: object) -> None:
        self.close()
