"""Records all that goes into the network of a virtual run, so that a process on another processor can do it again.

A recording is one file that `replayed_network.c` reads: the engine's records, every switch's memory and tables as they
stand before the run, and every packet that hosts send, with its time. What that gives is compared with what the run
itself gave: every packet that came to a host, the records of links, and the memory of switches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from struct import pack
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from inakit.experiments.worlds.virtual import LiveVirtualNetwork, VirtualWorld
from inakit.experiments.worlds.world import Wiring
from inakit.switch.entries import Entries
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.virtual.engine import LINK, Engine

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
        """Note what the run gave, with the packets that hosts have not taken."""
        network.engine.take()
        self.script += pack("<I", END)
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


def bytes_of(array: NDArray[np.generic], rows: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The bytes of some rows of an array, (rows, bytes)."""
    whole = np.ascontiguousarray(array)
    return whole.view(np.uint8).reshape(len(whole), -1)[rows]


class RecordingEngine:
    """An engine that notes every packet sent, every time that passes, and every packet taken."""

    def __init__(self, engine: Engine, recording: Recording) -> None:
        self.engine, self.recording = engine, recording

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def send_rows(
        self,
        links: NDArray[np.uint32],
        lengths: NDArray[np.uint32],
        rows: NDArray[np.int64],
        heads: NDArray[np.generic],
        bodies: NDArray[np.generic],
    ) -> None:
        """Note the packets, whole, and send them."""
        frames = np.concatenate([bytes_of(array, rows) for array in (heads, bodies)], axis=1)
        self.recording.script += pack("<3I", SEND, *frames.shape)
        for array in (links, lengths, frames):
            self.recording.script += array.tobytes()
        self.engine.send_rows(links, lengths, rows, heads, bodies)

    def run(self, until_ps: int) -> None:
        """Note the time, and let it pass."""
        self.recording.script += pack("<Iq", RUN, until_ps)
        self.engine.run(until_ps)

    def take(self) -> NDArray[np.void]:
        """Note what has come, and return it."""
        found = self.engine.take()
        self.recording.arrivals += found.tobytes()
        return found


@dataclass(frozen=True)
class RecordedWorld(VirtualWorld):
    """Virtual time that records its networks; a test runs one."""

    recording: Recording = field(default_factory=Recording)

    @contextmanager
    def up(
        self, fabric: Fabric, installed: Entries, wiring: Wiring, progress: Callable[[float], None]
    ) -> Iterator[LiveVirtualNetwork]:
        """The network, recorded until the block ends."""
        with super().up(fabric, installed, wiring, progress) as network:
            self.recording.begin(network)
            network.engine = cast(Engine, RecordingEngine(network.engine, self.recording))
            yield network
            self.recording.end(network)
