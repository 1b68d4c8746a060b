"""A network in memory with its own clock: hosts, and switches that aggregate by the rules of the data plane.

It is a plain model, packet by packet, that shares no code with the P4 program or its targets: packets follow the plan's
branches, and Python adds sums. It loses, repeats and delays packets on request.
"""

from __future__ import annotations

import ctypes
import heapq
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.plan import ROOT_LABEL, Aggregator
from inakit.traffic.endpoints.endpoints import PS_PER_S
from inakit.traffic.endpoints.streams import RESULTS_IPV4, StreamLayout, index_of, tree_key
from inakit.traffic.sockets.ports import Driven
from inakit.traffic.wire.packet_format import FRAME, Flag, Frames, Kind

Key = tuple[str, int, int]


@dataclass(frozen=True)
class Faults:
    """The chances that a hop loses or repeats a packet, and the most, in seconds, by which it delays one."""

    lose: float = 0.0
    repeat: float = 0.0
    delay_s: float = 0.0
    seed: int = 0


@dataclass
class Slot:
    """What a slot holds: the fragment `seq` of the (job, tree) `owner`, and the sum over some of its children."""

    owner: tuple[int, int]
    seq: int
    children: set[int]
    workers: int
    sums: NDArray[np.int64]
    overflow: bool


@dataclass(order=True)
class Arrival:
    """A packet that comes to a host, or, while `host` is -1, to node `position` on the branch of its label."""

    at: float
    order: int
    tree: int = field(compare=False)
    label: int = field(compare=False)
    position: int = field(compare=False)
    frame: Frames = field(compare=False)
    host: int = field(compare=False, default=-1)


class ModelPorts:
    """`Ports` over the model, with a clock of its own.

    `wrong`: what the network adds to a value of a result, by the receiving host, the tree, the fragment and the value.
    `accept`: how many packets of each host wait for the network at once; a host with more is blocked for a moment.
    `counts`: what switches and servers have seen. `sent`: how many packets each host has sent, (hosts,).
    """

    def __init__(self, layout: StreamLayout, faults: Faults, hop_s: float = 0.0002, accept: int = 1 << 30) -> None:
        self.layout, self.faults, self.hop_s, self.accept = layout, faults, hop_s, accept
        self.random = random.Random(faults.seed)
        self.clock = 0.0
        self.events: list[Arrival] = []
        self.order = 0
        self.slots: dict[Key, Slot] = {}
        self.address = {host.ipv4: number for number, host in enumerate(layout.hosts)}
        self.counts = dict.fromkeys(("gradients_at_servers", "completed", "flushed", "collided", "wide"), 0)
        self.sent = np.zeros(len(layout.hosts), np.int64)
        self.lately: Counter[int] = Counter()
        self.unblock_at = inf
        self.wrong: dict[tuple[str, int, int, int], int] = {}

    # -- as `Ports`

    def now(self) -> float:
        """The clock."""
        return self.clock

    def now_ps(self) -> int:
        """The clock in picoseconds."""
        return round(self.clock * PS_PER_S)

    def seconds(self, at_ps: int) -> float:
        """Picoseconds in seconds."""
        return at_ps / PS_PER_S

    def problems(self) -> Mapping[str, int]:
        """None: a model meets no problems."""
        return {}

    def attach(self, endpoints: Driven, *, mute: bool = False) -> None:
        """Let the model give packets and time to endpoints."""
        assert not mute
        self.endpoints = endpoints
        self.function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p, ctypes.c_uint32] * 2)(self.send)
        endpoints.all["send"] = ctypes.cast(self.function, ctypes.c_void_p).value or 0
        endpoints.hosts["way"] = np.arange(len(self.layout.hosts))

    def run(self, until: float) -> None:
        """Let everything happen until `until`, or until an iteration is over."""
        endpoints = self.endpoints
        endpoints.all["halted"] = 0
        while not endpoints.all["halted"][0]:
            due = endpoints.all["due"][0] / PS_PER_S
            at = min(until, due, self.events[0].at if self.events else inf, self.unblock_at)
            self.clock = max(self.clock, at)
            if self.unblock_at <= self.clock:
                self.unblock()
            if self.events and self.events[0].at <= self.clock:
                self.arrive(heapq.heappop(self.events))
            elif due <= self.clock:
                endpoints.library.endpoints_wake(endpoints.address, max(self.now_ps(), int(endpoints.all["due"][0])))
            elif until <= self.clock:
                return

    def unblock(self) -> None:
        """Let hosts send again."""
        self.lately.clear()
        self.unblock_at = inf
        for host in np.flatnonzero(self.endpoints.hosts["blocked"]).tolist():
            self.endpoints.hosts["blocked"][host] = 0
            self.endpoints.library.endpoints_resume(self.endpoints.address, host, self.now_ps())

    def send(self, context: int, host: int, frame: int, length: int) -> None:
        """Put a packet on its way: the function by which endpoints send."""
        del context
        self.sent[host] += 1
        octets = ctypes.string_at(frame, length).ljust(FRAME.itemsize, b"\0")
        self.launch(np.frombuffer(octets, FRAME).copy())
        if self.accept < 1 << 30:
            self.lately[host] += 1
            self.unblock_at = min(self.unblock_at, self.clock + self.hop_s)
            self.endpoints.hosts["blocked"][host] = self.lately[host] >= self.accept

    def arrive(self, arrival: Arrival) -> None:
        """Let a packet come to its host or node."""
        if arrival.host < 0:
            self.at_node(arrival)
        else:
            ina, name = arrival.frame["ina"][0], self.layout.hosts[arrival.host].name
            for (host, tree, fragment, value), more in self.wrong.items():
                if ina["kind"] == Kind.RESULT and (host, tree, fragment) == (name, ina["tree"], ina["seq"]):
                    arrival.frame["values"][0, value] += more
            data = arrival.frame.tobytes()
            self.endpoints.library.endpoints_receive(self.endpoints.address, arrival.host, self.now_ps(), data)

    # -- packets on their way

    def later(self, arrival: Arrival) -> None:
        """Take a packet over one hop, on which faults may lose, repeat or delay it."""
        for _ in range(2 if self.random.random() < self.faults.repeat else 1):
            if self.random.random() >= self.faults.lose:
                self.order += 1
                at = arrival.at + self.hop_s + self.random.random() * self.faults.delay_s
                heapq.heappush(self.events, replace(arrival, at=at, order=self.order, frame=arrival.frame.copy()))

    def launch(self, frame: Frames) -> None:
        """Send a frame, (1,), from its host: a gradient along its branch, anything else to hosts."""
        ina = frame["ina"][0]
        tree = int(index_of(self.layout.trees.key, tree_key(ina["job"], ina["tree"])))
        if ina["kind"] == Kind.GRADIENT:
            self.later(Arrival(self.clock, 0, tree, int(ina["label"]), 0, frame))
            return
        address = ".".join(map(str, int(frame["ipv4"]["dst"][0]).to_bytes(4, "big")))
        to_all = address == RESULTS_IPV4
        assert to_all == (not ina["flags"] & Flag.RETRANSMITTED)
        streams = self.layout.streams
        hosts = streams.host[streams.tree == tree].tolist() if to_all else [self.address[address]]
        for host in hosts:
            self.later(Arrival(self.clock, 0, tree, 0, 0, frame, host))

    def at_node(self, arrival: Arrival) -> None:
        """Let a gradient come to the next node of its label's branch."""
        tree = self.layout.parts[arrival.tree].tree
        path = tree.branch_of[arrival.label].path
        position = arrival.position + 1
        if position < len(path) - 1:
            self.later(Arrival(arrival.at, 0, arrival.tree, arrival.label, position, arrival.frame))
            return
        parent = tree.branch_of[arrival.label].parent
        if parent == ROOT_LABEL:
            self.counts["gradients_at_servers"] += 1
            frame = arrival.frame
            self.later(Arrival(arrival.at, 0, arrival.tree, 0, 0, frame, int(self.layout.trees.server[arrival.tree])))
            return
        for frame in self.aggregate(tree.aggregator_of[parent], arrival):
            self.later(Arrival(arrival.at, 0, arrival.tree, parent, 0, frame))

    def aggregate(self, aggregator: Aggregator, arrival: Arrival) -> list[Frames]:
        """What leaves the aggregator because of a packet. It follows the aggregator's own branch whatever its label."""
        frame = arrival.frame
        ina = frame["ina"]
        flags, label = int(ina["flags"][0]), int(ina["label"][0])
        if flags & (Flag.PARTIAL | Flag.OVERFLOW):
            return [frame]
        key = (aggregator.switch, aggregator.pipeline, aggregator.first_slot + int(ina["slot"][0]))
        assert int(ina["slot"][0]) < aggregator.slots
        owner, seq = (int(ina["job"][0]), int(ina["tree"][0])), int(ina["seq"][0])
        child = label if label in aggregator.children else None
        again = bool(flags & Flag.RETRANSMITTED)
        slot = self.slots.get(key)
        if slot and slot.owner == owner and slot.seq == seq:
            return self.join(key, aggregator, frame, child)
        if child is None or again:
            return [frame]
        if slot and (slot.owner != owner or (seq - slot.seq) % (1 << 32) >= 1 << 31):
            self.counts["collided"] += 1
            ina["flags"] |= np.uint8(Flag.COLLISION)
            return [frame]
        sums = frame["values"][0].astype(np.int64)
        self.slots[key] = Slot(owner, seq, {child}, int(ina["workers"][0]), sums, False)
        return [self.leave(key, aggregator, frame)] if len(aggregator.children) == 1 else []

    def join(self, key: Key, aggregator: Aggregator, frame: Frames, child: int | None) -> list[Frames]:
        """What leaves the aggregator because of a packet of the fragment that the slot holds."""
        slot, again = self.slots[key], bool(frame["ina"]["flags"][0] & Flag.RETRANSMITTED)
        if child is None or child in slot.children:
            if again:
                return [self.leave(key, aggregator, frame)]
            return [frame] if child is None else []
        slot.children.add(child)
        slot.workers += int(frame["ina"]["workers"][0])
        self.add(slot, frame)
        full = len(slot.children) == len(aggregator.children)
        return [self.leave(key, aggregator, frame)] if full or again else []

    def add(self, slot: Slot, frame: Frames) -> None:
        """Add a frame to the sum of a slot, in 32 bits; notes an overflow."""
        exact = slot.sums + frame["values"][0]
        slot.sums = exact.astype(np.int32).astype(np.int64)
        slot.overflow |= bool((slot.sums != exact).any())

    def leave(self, key: Key, aggregator: Aggregator, frame: Frames) -> Frames:
        """The packet with the slot's sum in place of its values; the slot is free."""
        slot = self.slots.pop(key)
        ina = frame["ina"]
        complete = len(slot.children) == len(aggregator.children)
        self.counts["completed" if complete else "flushed"] += 1
        ina["label"], ina["workers"] = aggregator.label, slot.workers
        ina["flags"] |= np.uint8(Flag.OVERFLOW if slot.overflow else 0)
        self.counts["wide"] += slot.overflow
        ina["bitmap"] = 0 if complete else sum(1 << aggregator.children.index(child) for child in slot.children)
        ina["flags"] |= np.uint8(0 if complete else Flag.PARTIAL)
        frame["values"] = slot.sums
        return frame
