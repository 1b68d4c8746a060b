"""A simulation of switch slots that all trees share, as under ATP and ESA, packet by packet.

The rules of a slot are those of `p4/ina.p4`. Slots are independent of one another: each is a lane of the arrays, and
packets of several lanes are processed at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.slot_policies import SlotPolicy, policy_of
from inakit.topo.errors import InputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

PS = -1
"""The place of the PS where switches have numbers from 0."""

FREE = -1
"""The fragment number of a free slot."""


@dataclass(frozen=True)
class SlotTree:
    """The destinations of packets: for each worker and each switch that sums, the next such switch or `PS`.

    `entry` and `onward` are the next switches by worker and by switch; `entry_links` and `onward_links` count the
    links.
    """

    entry: IntArray
    entry_links: IntArray
    onward: IntArray
    onward_links: IntArray

    @property
    def below(self) -> IntArray:
        """For each switch, the number of workers whose packets pass it."""
        counts = np.zeros(len(self.onward), np.int64)
        for first in self.entry.tolist():
            switch = first
            while switch != PS:
                counts[switch] += 1
                switch = int(self.onward[switch])
        return counts


@dataclass(frozen=True)
class Sharing:
    """The rules by which slots are shared: a name of `inakit.planner.core.slot_policies`, and the fragments' priority.

    `flushed`: the last packet of a fragment that passes a switch sends its partial sum on, like a retransmitted packet.
    Without it, a sum whose other parts went to the PS stays in its slot forever.
    """

    policy: str
    priority: int = 16
    flushed: bool = True

    @property
    def rules(self) -> SlotPolicy:
        return policy_of(self.policy)


@dataclass
class SlotCounts:
    """Counts in fragments: `transfers` over links, `ingress` at the PS, and events of `p4/ina.p4`."""

    transfers: float = 0
    ingress: float = 0
    added: float = 0
    completed: float = 0
    collided: float = 0
    evicted: float = 0
    flushed: float = 0

    def scaled(self, factor: float) -> SlotCounts:
        return SlotCounts(**{name: count * factor for name, count in vars(self).items()})


@dataclass
class LanePackets:
    """Packets of different lanes: for each the switch at which it arrives, its fragment, and the workers summed in it.

    `partial` marks sums of a part of the workers below, which pass by without being summed again.
    """

    at: IntArray
    lane: IntArray
    fragment: IntArray
    workers: IntArray
    partial: BoolArray

    def only(self, chosen: BoolArray) -> LanePackets:
        if chosen.all():
            return self
        where = np.flatnonzero(chosen)
        return LanePackets(
            self.at[where], self.lane[where], self.fragment[where], self.workers[where], self.partial[where]
        )  # fmt: skip


@dataclass
class Slots:
    """The state of all lanes. `holds[s, lane]` is the fragment in switch s, or `FREE`.

    `workers` and `priority`, of the same shape, belong to that fragment. `below` is that of the tree.
    """

    tree: SlotTree
    sharing: Sharing
    holds: IntArray
    workers: IntArray
    priority: IntArray
    passed: IntArray
    """`[s, lane, fragment]`: workers whose part has passed the switch."""
    received: IntArray
    """`[lane, fragment]`: workers whose part has reached the PS."""
    below: IntArray
    counts: SlotCounts = field(default_factory=SlotCounts)

    @classmethod
    def of(cls, tree: SlotTree, sharing: Sharing, lanes: int, fragments: int) -> Slots:
        """Free slots for a number of lanes, each with the given number of fragments."""
        shape = len(tree.onward), lanes
        return cls(
            tree,
            sharing,
            np.full(shape, FREE),
            np.zeros(shape, np.int64),
            np.zeros(shape, np.int64),
            np.zeros((*shape, fragments), np.int64),
            np.zeros((lanes, fragments), np.int64),
            tree.below,
        )

    def send(self, worker: IntArray, lane: IntArray, fragment: IntArray) -> None:
        """Send one worker's fragment in each of some lanes, and forward all packets that it releases."""
        self.counts.transfers += int(self.tree.entry_links[worker].sum())
        ones = np.ones(len(lane), np.int64)
        packets = LanePackets(self.tree.entry[worker], lane, fragment, ones, np.zeros(len(lane), bool))
        while len(packets.lane):
            self.arrive(packets.only(packets.at == PS))
            packets = self.onward(self.through(packets.only(packets.at != PS)))

    def onward(self, packets: LanePackets) -> LanePackets:
        """Move packets over the links to the next switch that sums."""
        self.counts.transfers += int(self.tree.onward_links[packets.at].sum())
        return replace(packets, at=self.tree.onward[packets.at])

    def arrive(self, packets: LanePackets) -> None:
        """Count packets at the PS. When all of a fragment has arrived, the result frees the slots that wait for it."""
        self.counts.ingress += len(packets.lane)
        np.add.at(self.received, (packets.lane, packets.fragment), packets.workers)
        if self.sharing.rules.until_result:
            whole = packets.only(self.received[packets.lane, packets.fragment] == len(self.tree.entry))
            held = self.holds[:, whole.lane]
            self.holds[:, whole.lane] = np.where(held == whole.fragment, FREE, held)

    def through(self, packets: LanePackets) -> LanePackets:
        """The packets that leave the switches at which these arrive, by the cases of the P4 program in its order."""
        here = packets.at, packets.lane
        np.add.at(self.passed, (*here, packets.fragment), packets.workers)
        last = (self.passed[*here, packets.fragment] == self.below[packets.at]) & self.sharing.flushed
        held = self.holds[here]
        joins = ~packets.partial & (held == packets.fragment)
        claims = ~packets.partial & ~last & (held == FREE)
        contests = ~packets.partial & ~last & ~joins & ~claims
        stranded = packets.partial & last & (held == packets.fragment)
        self.claim(packets.only(claims))
        self.join(packets.only(joins))
        return together(
            self.sums(packets.only(claims | joins), last[claims | joins]),
            self.contest(packets.only(contests)),
            self.take_out(packets.only(stranded)),
            packets.only(~(claims | joins | contests)),
        )

    def claim(self, packets: LanePackets) -> None:
        """Put each packet into its slot, which must be free."""
        here = packets.at, packets.lane
        self.counts.added += len(packets.lane)
        self.holds[here] = packets.fragment
        self.workers[here] = packets.workers
        self.priority[here] = self.sharing.priority

    def join(self, packets: LanePackets) -> None:
        """Add each packet to the sum of its fragment in its slot."""
        self.counts.added += len(packets.lane)
        self.workers[packets.at, packets.lane] += packets.workers

    def sums(self, packets: LanePackets, hurries: BoolArray) -> LanePackets:
        """The sums that leave: complete ones, and partial ones whose last packet has passed."""
        whole = self.workers[packets.at, packets.lane] == self.below[packets.at]
        self.counts.completed += int(whole.sum())
        partial = self.take_out(packets.only(hurries & ~whole))
        done = packets.only(whole)
        if not self.sharing.rules.until_result:
            self.holds[done.at, done.lane] = FREE
        return together(partial, replace(done, workers=self.below[done.at]))

    def take_out(self, packets: LanePackets) -> LanePackets:
        """Remove the partial sums from these packets' slots, which become free."""
        here = packets.at, packets.lane
        self.counts.flushed += len(packets.lane)
        leaving = self.held(packets)
        self.holds[here] = FREE
        return leaving

    def held(self, packets: LanePackets) -> LanePackets:
        """The contents of these packets' slots, as partial sums."""
        here = packets.at, packets.lane
        everything = np.ones(len(packets.lane), bool)
        return LanePackets(packets.at, packets.lane, self.holds[here], self.workers[here], everything)

    def contest(self, packets: LanePackets) -> LanePackets:
        """The packets that leave when a packet finds its slot busy.

        This is the packet itself, or the slot's contents if the packet has a higher priority. Contents that keep their
        slot against a packet lose half of their priority.
        """
        preempts = self.priority[packets.at, packets.lane] < self.sharing.priority
        preempts &= self.sharing.rules.evicts
        refused, winners = packets.only(~preempts), packets.only(preempts)
        self.counts.collided += len(refused.lane)
        self.priority[refused.at, refused.lane] >>= 1
        evicted = self.held(winners)
        self.counts.evicted += len(winners.lane)
        self.claim(winners)
        return together(refused, evicted)

    def drain(self) -> None:
        """Send the remaining partial sums to the PS at the end."""
        at, lane = np.nonzero((self.holds != FREE) & (self.workers < self.below[:, None]))
        nothing = np.zeros(len(at), np.int64)
        packets = self.take_out(LanePackets(at, lane, nothing, nothing, np.ones(len(at), bool)))
        while len(packets.lane):
            packets = self.onward(packets)
            self.arrive(packets.only(packets.at == PS))
            packets = packets.only(packets.at != PS)


def together(*packets: LanePackets) -> LanePackets:
    """These packets as one group."""
    some = [each for each in packets if len(each.lane)]
    if len(some) < 2:
        return (some or packets)[0]
    return LanePackets(*(np.concatenate(columns) for columns in zip(*(vars(p).values() for p in some), strict=True)))


# -- A gradient that workers send at their own rates, through switches whose slots all trees share.
#
# Fragment i finds slot i mod N in every switch. A simulation takes some of the slots (`shared_slots`) and processes
# their packets in the order of time. Links take no time: at 10 Gbit/s a gradient is in flight for 0.2 s, a packet for
# microseconds.


@dataclass(frozen=True)
class LanedGradient:
    """`fragments` of every worker, at switches with `slots` slots; `lanes` of these, evenly spread, are simulated."""

    fragments: int
    slots: int
    lanes: int

    def __post_init__(self) -> None:
        if not 1 <= self.lanes <= self.slots <= self.fragments:
            raise InputError(
                f"{self.lanes} lanes, {self.slots} slots, {self.fragments} fragments: 1 <= lanes <= slots <= fragments "
                "is expected"
            )

    @property
    def slot_of(self) -> IntArray:
        return (np.arange(self.lanes) * self.slots) // self.lanes

    @property
    def rounds(self) -> int:
        """The maximum number of fragments that find the same slot."""
        return -(-self.fragments // self.slots)

    def times(self, rates: FloatArray) -> FloatArray:
        """`[worker, round, lane]`: the time in s at which a fragment is sent; infinite if a round has no fragment.

        `rates` are those of the workers, in fragments per second.
        """
        number = self.slot_of + self.slots * np.arange(self.rounds)[:, None]
        sent = (number + 1) / rates[:, None, None]
        return np.where(number < self.fragments, sent, np.inf)


def simulate(tree: SlotTree, sharing: Sharing, rates: FloatArray, gradient: LanedGradient) -> SlotCounts:
    """Count the events of a gradient that workers send at `rates`, in fragments/s, scaled from the lanes to all slots.

    Raises `InputError` for a policy whose slots are not shared.
    """
    if not sharing.rules.shared:
        raise InputError(f"slot policy '{sharing.policy}': its slots are not shared: choose a policy with shared slots")
    times = gradient.times(rates)
    slots = Slots.of(tree, sharing, gradient.lanes, gradient.rounds)
    flat = times.reshape(-1, gradient.lanes)
    for event in np.argsort(flat, axis=0, kind="stable"):
        lane = np.flatnonzero(np.isfinite(flat[event, np.arange(gradient.lanes)]))
        worker, fragment = np.divmod(event[lane], gradient.rounds)
        slots.send(worker, lane, fragment)
    slots.drain()
    return slots.counts.scaled(gradient.slots / gradient.lanes)
