"""Switches and endpoints as automata: a state, a packet that comes in, the next state and the packets that go out.

They are the real ones: here the P4 program in this process, in `endpoint_nodes` the classes of `traffic`. Between
steps their state is taken out of them, so that a step can start from any state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from small_networks import Setting

from inakit.planner.install.ina_program import EVENTS, PIPELINES, SLOT_BITMAP, SLOTS_PER_PIPELINE
from inakit.switch.fast.load.in_process_switch import InProcessSwitch
from inakit.switch.program.program import Program
from inakit.traffic.wire.packet_format import Event

TIMEOUT = b"timeout"
"""What a worker is given instead of a packet when it has waited long enough for the fragment of a slot. The number of
the slot is given instead of that of an input port."""

SLOTS = PIPELINES * SLOTS_PER_PIPELINE
"""The slots of a switch."""
Sent = tuple[int, bytes]
"""Output port and packet."""


class Step(NamedTuple):
    """What a packet makes of a node: its next state, and what it sends."""

    state: bytes
    sent: list[Sent]


class Node(ABC):
    """A switch, a worker or a PS. Two states are the same bytes only if the node will behave the same in both."""

    @abstractmethod
    def act(self, port: int, packet: bytes) -> list[Sent]:
        """Take in a packet, and return what goes out."""

    @abstractmethod
    def snapshot(self) -> bytes:
        """The state that the node is in."""

    @abstractmethod
    def restore(self, state: bytes) -> None:
        """Put the node into a state."""

    def start(self) -> list[Sent]:
        """Begin, and return what goes out before anything comes in."""
        return []

    def first(self) -> Step:
        """The first state, and what goes out then."""
        sent = self.start()
        return Step(self.snapshot(), sent)

    def step(self, state: bytes, port: int, packet: bytes) -> Step:
        """What a packet at an input port makes of the node in a state."""
        self.restore(state)
        sent = self.act(port, packet)
        return Step(self.snapshot(), sent)

    # -- what is known of a state

    def wrong(self, state: bytes) -> str:
        """What is wrong with the sums that the node took for complete, in words; empty if nothing is."""
        del state
        return ""

    def unfinished(self, state: bytes) -> bool:
        """Whether the node still lacks a sum."""
        del state
        return False

    def awaits(self, state: bytes) -> set[int]:
        """The slots of the fragments that the node has sent and whose sums it lacks."""
        del state
        return set()

    def mute(self, state: bytes) -> bool:
        """Whether the node sends nothing more, whatever comes, unless it times out."""
        del state
        return False

    def forgets(self, packet: bytes) -> bool:
        """Whether a packet that changes nothing now will never change anything."""
        del packet
        return False


class SwitchNode(Node):
    """The P4 program. Its state is what its slots hold.

    What a free slot held before does not matter, unless the setting says that slots remember.
    """

    def __init__(self, program: Program, setting: Setting, name: str) -> None:
        self.switch = InProcessSwitch(program, name)
        self.switch.install(setting.entries[name])
        state = self.switch.state
        cells = program.register(SLOT_BITMAP).size
        self.slots = state.layout.view(state.memory, f"rows_{cells}")
        # The same fields without padding between them.
        self.packed = np.dtype([(field, self.slots.dtype[field]) for field in self.slots.dtype.names or ()])
        # A program of two passes has a cell for each half of a fragment.
        self.used = [slot + half for half in range(0, cells, SLOTS) for slot in slots_of(setting, name)]
        self.remembers = setting.remembers

    def act(self, port: int, packet: bytes) -> list[Sent]:
        return self.switch.inject(port, packet)

    def snapshot(self) -> bytes:
        rows = self.slots[self.used].astype(self.packed)
        if not self.remembers:
            rows[rows[SLOT_BITMAP] == 0] = np.zeros(1, rows.dtype)
        return rows.tobytes()

    def restore(self, state: bytes) -> None:
        self.slots[self.used] = np.frombuffer(state, self.packed)

    def events(self, state: bytes, port: int, packet: bytes) -> list[str]:
        """What the program counts when a packet comes to a state."""
        before = self.counted()
        self.step(state, port, packet)
        return [Event(int(event)).name.lower() for event in np.flatnonzero(self.counted() - before)]

    def counted(self) -> NDArray[np.int64]:
        """How often the program has counted each event so far."""
        return self.switch.read_counter(EVENTS)[0].astype(np.int64)


def slots_of(setting: Setting, switch: str) -> list[int]:
    """The slots of a switch that the plan uses, as indices of the switch's registers."""
    used = [each for _, tree in setting.trees for each in tree.aggregators if each.switch == switch]
    return sorted(
        {SLOTS_PER_PIPELINE * each.pipeline + each.first_slot + slot for each in used for slot in range(each.slots)}
    )
