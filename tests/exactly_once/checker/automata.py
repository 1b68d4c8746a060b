"""The nodes of a network as tables, filled in as they are needed: what every packet does to every state.

A step of a real switch or endpoint takes a millisecond. Each node has few states, but together they have very many. So
a step from each (state, channel, packet) is taken once and then looked up, for arrays of states at a time.

A channel is one direction of a link, first in first out, for the packets of one slot. Packets of different slots have
nothing to do with each other, so that they may overtake each other without a fault. The content of a channel is one
64-bit word, a byte per packet, the oldest lowest. Each channel numbers the packets that it has seen, from 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from endpoint_nodes import head_in
from nodes import Node, Step
from numpy.typing import NDArray
from small_networks import Setting

from inakit.experiments.state_explorer import BoolArray, Numbers

Words = NDArray[np.uint64]
"""One word for each state of the network, (states,): a channel's content, or the number of a node's state."""

CAPACITY = 8
"""The most packets that a channel holds."""
LENGTHS = np.array([256**n for n in range(CAPACITY)], np.uint64)
BYTE = np.uint64(8)
CLOCK = "clock"


@dataclass
class Channel:
    """The queue of one slot's packets from a node to a node. Workers also have one from the clock, for timeouts."""

    source: str
    target: str
    in_port: int
    slot: int = 0
    packets: list[bytes] = field(default_factory=lambda: [b""])
    numbers: dict[bytes, int] = field(default_factory=dict)

    def number(self, packet: bytes) -> int:
        """A packet's number; a new packet gets the next one."""
        if packet not in self.numbers:
            self.numbers[packet] = len(self.packets)
            self.packets.append(packet)
            assert len(self.packets) <= 256, f"more than 255 different packets from {self.source} to {self.target}"
        return self.numbers[packet]


def channels_of(setting: Setting, workers: Sequence[str]) -> list[Channel]:
    """A channel per slot for both directions of every link, and one per slot from the clock to every worker."""
    fabric = setting.problem.fabric
    pairs = [pair for link in fabric.links for pair in ((link.a, link.b), (link.b, link.a))]
    links = [Channel(a, b, fabric.port_numbers[b, a], slot) for a, b in pairs for slot in range(setting.slots)]
    return links + [Channel(CLOCK, worker, slot, slot) for worker in workers for slot in range(setting.slots)]


def lengths(content: Words) -> Words:
    """How many packets channels with this content have, (states,)."""
    return np.searchsorted(LENGTHS, content, side="right").astype(np.uint64)


def push(content: Words, burst: Words) -> Words:
    """The content of channels after the packets of `burst` have joined the end of their queues."""
    length = lengths(content)
    if (length + lengths(burst) > CAPACITY).any():
        raise OverflowError(f"a channel has more than {CAPACITY} packets: widen its word")
    # For a full channel the shift is by 64 bits, which is not defined; but then there is nothing to push.
    return content | np.where(burst != 0, burst << (BYTE * length), np.uint64(0))


class Automaton:
    """One node as tables.

    `outcome` gives the row of a step in the arrays `following`, the number of the next state, and `bursts[channel]`,
    the packets that the step adds to an output channel. The arrays `wrong`, `unfinished`, `awaiting` and `mute` have a
    row for each state: what the node's methods `wrong`, `unfinished`, `awaits` and `mute` say of it.
    """

    def __init__(self, name: str, node: Node, channels: Sequence[Channel], outputs: Mapping[int, list[int]]) -> None:
        self.name, self.node, self.channels = name, node, channels
        self.outputs = outputs  # port -> channel of each slot
        self.slots = 1 + max(channel.slot for channel in channels)
        self.first = node.first()
        self.states: list[bytes] = []
        self.numbers: dict[bytes, int] = {}
        self.complaints: list[str] = []
        self.lacks: list[bool] = []
        self.waits: list[list[bool]] = []  # for each state, for each slot
        self.mutes: list[bool] = []
        self.tables: dict[int, NDArray[np.int32]] = {}
        self.outcomes: list[tuple[int, ...]] = []
        self.index: dict[tuple[int, ...], int] = {}
        self.bursts = {number: np.zeros(0, np.uint64) for numbers in outputs.values() for number in numbers}

    def start(self) -> tuple[int, dict[int, int]]:
        """The number of the first state, and what each output channel carries then, as a word."""
        first = self.number(self.first.state), self.pack(self.first)
        self.refresh()
        return first

    def number(self, state: bytes) -> int:
        """A state's number. A new state gets the next one, and what the node says of it is stored."""
        if state not in self.numbers:
            self.numbers[state] = len(self.states)
            self.states.append(state)
            self.complaints.append(self.node.wrong(state))
            self.lacks.append(self.node.unfinished(state))
            awaited = self.node.awaits(state)
            self.waits.append([slot in awaited for slot in range(self.slots)])
            self.mutes.append(self.node.mute(state))
        return self.numbers[state]

    def pack(self, step: Step) -> dict[int, int]:
        """What a step adds to each output channel, as a word."""
        bursts = dict.fromkeys(self.bursts, 0)
        for port, packet in step.sent:
            channel = self.output(port, packet)
            before = -(-bursts[channel].bit_length() // 8)
            bursts[channel] |= self.channels[channel].number(packet) << 8 * before
        return bursts

    def output(self, port: int, packet: bytes) -> int:
        """The number of the channel by which a packet leaves through a port."""
        of_slots = self.outputs[port]
        return of_slots[int(head_in(packet)["seq"]) % len(of_slots)]

    def outcome(self, channel: int, states: Words, packets: Words) -> Numbers:
        """The numbers of the outcomes, (states,), when `packets[i]` comes by a channel to the node in `states[i]`."""
        table = self.table(channel)
        found = table[states, packets]
        if (found < 0).any():
            unknown = np.unique(states[found < 0] << BYTE | packets[found < 0])
            for both in unknown.tolist():
                self.fill(channel, both >> 8, both & 0xFF)
            self.refresh()
            found = self.table(channel)[states, packets]
        return found.astype(np.int64)

    def useless(self, channel: int, states: Words, packets: Words) -> BoolArray:
        """Whether each packet changes nothing, now and whenever it comes, (states,)."""
        outcome = self.outcome(channel, states, packets)
        forgets = np.array([self.node.forgets(packet) for packet in self.channels[channel].packets[1:]])
        useless: BoolArray = (self.following[outcome] == states) & self.quiet[outcome]
        useless &= forgets[packets - np.uint64(1)]
        return useless

    def table(self, channel: int) -> NDArray[np.int32]:
        """The outcome's number by state and packet of a channel, (states, 256); -1 where it is not known yet."""
        table = self.tables.get(channel, np.full((0, 256), -1, np.int32))
        if len(table) < len(self.states):
            more = np.full((2 * len(self.states) - len(table), 256), -1, np.int32)
            self.tables[channel] = table = np.concatenate((table, more))
        return table

    def fill(self, channel: int, state: int, packet: int) -> None:
        """Step the real node, and note the outcome in the table."""
        arrived = self.channels[channel].packets[packet]
        step = self.node.step(self.states[state], self.channels[channel].in_port, arrived)
        outcome = (self.number(step.state), *self.pack(step).values())
        self.table(channel)[state, packet] = self.index.setdefault(outcome, len(self.outcomes))
        if self.index[outcome] == len(self.outcomes):
            self.outcomes.append(outcome)

    def refresh(self) -> None:
        """Make arrays of the lists of states and outcomes."""
        self.wrong = np.array([bool(complaint) for complaint in self.complaints])
        self.unfinished = np.array(self.lacks)
        self.awaiting = np.array(self.waits)
        self.mute = np.array(self.mutes)
        following, *bursts = np.array(self.outcomes, np.uint64).reshape(-1, 1 + len(self.bursts)).T
        self.following = following
        self.quiet = ~np.any(bursts, axis=0)
        self.bursts = dict(zip(self.bursts, bursts, strict=True))
