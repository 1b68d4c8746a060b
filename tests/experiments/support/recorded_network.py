"""Records all that goes into the network of a virtual run, so that a process on another processor can do it again.

A recording is one file that `replayed_network.c` reads: the engine's records, every switch's memory and tables as they
stand before the run, and every packet that hosts send, with its time. What that gives is compared with what the run
itself gave: every packet that came to a host, the records of links, and the memory of switches.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from struct import pack

import numpy as np

from inakit.experiments.worlds.virtual import LiveVirtualNetwork, VirtualWorld
from inakit.experiments.worlds.world import Wiring
from inakit.switch.entries import Entries
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.virtual.engine import LINK
from inakit.traffic.sockets.ports import Driven
from inakit.traffic.wire.packet_format import FRAME

ADDRESSES = ["first", "last", "starting"]
"""Fields of a link's record that are addresses, which are others in every process."""
END, RUN, SEND = 0, 1, 2
"""The commands of a script."""


@dataclass
class Recording:
    """`script`: what the driver reads. `arrivals`, `links`, `memory`: what the run gave, as the driver writes it."""

    script: bytearray = field(default_factory=bytearray)
    arrivals: bytearray = field(default_factory=bytearray)
    links: bytes = b""
    memory: bytes = b""

    def begin(self, network: LiveVirtualNetwork) -> None:
        """Note the network as it stands."""
        engine, switches = network.engine, network.switches
        counts = (len(engine.links), len(engine.nodes), len(engine.link_at), engine.arrival.itemsize, len(switches))
        self.script += pack("<5I", *counts)
        nodes = engine.nodes.copy()
        nodes["filter"] = 0  # it is an address, and refuses nothing that this run sends
        for records in (engine.links, nodes, engine.link_at):
            self.script += records.tobytes()
        for name, switch in switches.items():
            self.script += pack("<I", network.network.number_of[name]) + state_of(switch)

    def end(self, network: LiveVirtualNetwork) -> None:
        """Note what the run gave."""
        self.script += pack("<IqI", RUN, network.engine.now_ps, END)
        self.links = without_addresses(network.engine.links.tobytes())
        self.memory = b"".join(switch.state.memory.tobytes() for switch in network.switches.values())

    @property
    def results(self) -> bytes:
        """What the driver is to write."""
        return bytes(self.arrivals) + self.links + self.memory


def state_of(switch: InProcessSwitch) -> bytes:
    """The memory of a switch with its size, then for each table by its number: sizes, count, and pairs."""
    sizes = sorted((number, symbol) for symbol, (number, _, _) in switch.library.sizes.items())
    memory = switch.state.memory.tobytes()
    found = bytearray(pack("<2I", len(memory), len(sizes)) + memory)
    for _, symbol in sizes:
        _, key_bytes, entry_bytes = switch.library.sizes[symbol]
        pairs = list(switch.state.readable.items(symbol))
        found += pack("<3I", key_bytes, entry_bytes, len(pairs)) + b"".join(key + entry for key, entry in pairs)
    return bytes(found)


def without_addresses(links: bytes) -> bytes:
    """The records of links with zeros for addresses."""
    records = np.frombuffer(links, LINK).copy()
    for name in ADDRESSES:
        records[name] = 0
    return records.tobytes()


GIVE = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p, ctypes.c_uint32] * 2)
ARRIVE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32)


class RecordingNetwork(LiveVirtualNetwork):
    """A network that notes every packet that its endpoints send and get, with its time."""

    recording: Recording

    def attach(self, endpoints: Driven, *, mute: bool = False) -> None:
        """Let the engine give packets and time to endpoints, by functions that take notes."""
        super().attach(endpoints, mute=mute)
        engine, library = self.engine, endpoints.library
        host_of = {
            endpoints.hosts.ctypes.data + at * endpoints.hosts.itemsize: host.name
            for at, host in enumerate(self.listening)
        }

        def give(_: int, link: int, frame: int, length: int) -> None:
            self.recording.script += pack("<Iq3I2I", RUN, engine.now_ps, SEND, 1, length, link, length)
            self.recording.script += ctypes.string_at(frame, length)
            engine.library.engine_give(engine.handle, link, frame, length)

        def arrive(host: int, now: int, port: int, frame: int, length: int) -> None:
            arrived = np.zeros(1, engine.arrival)
            arrived["at"], arrived["length"] = now, length
            arrived["node"] = self.network.number_of[host_of[host]]
            arrived["frame"] = np.frombuffer(ctypes.string_at(frame, length).ljust(FRAME.itemsize, b"\0"), FRAME)
            self.recording.arrivals += arrived.tobytes()
            library.endpoints_arrive(ctypes.c_void_p(host), ctypes.c_int64(now), port, ctypes.c_void_p(frame))

        engine.kept += [given := GIVE(give), arriving := ARRIVE(arrive)]
        endpoints.all["send"] = ctypes.cast(given, ctypes.c_void_p).value or 0
        for host in self.listening:
            number = self.network.number_of[host.name]
            engine.nodes["receive"][number] = ctypes.cast(arriving, ctypes.c_void_p).value or 0


@dataclass(frozen=True)
class RecordedWorld(VirtualWorld):
    """Virtual time that records its networks; a test runs one."""

    recording: Recording = field(default_factory=Recording)

    @contextmanager
    def up(
        self, fabric: Fabric, installed: Entries, wiring: Wiring, progress: Callable[[float], None]
    ) -> Iterator[LiveVirtualNetwork]:
        """The network, recorded until the block ends."""
        network = RecordingNetwork(fabric, installed, wiring, progress, self.program)
        network.recording = self.recording
        with network.engine:
            self.recording.begin(network)
            yield network
            self.recording.end(network)
