"""A gradient that workers send at rates of their own, through switches whose slots all trees share.

Fragment i finds slot i mod N in every switch. A simulation takes some of the slots (`shared_slots`) and goes through
their packets in the order of time. Links take no time: at 10 Gbit/s a gradient is on its way for 0.2 s, a packet for
microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inakit.planner.methods.goat.shared_slots import Counts, FloatArray, IntArray, Sharing, Slots, SlotTree
from inakit.topo.errors import InputError


@dataclass(frozen=True)
class Gradient:
    """`fragments` of every worker, at switches with `slots` slots, of which `lanes`, evenly spread, are simulated."""

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
        """The slot of each lane."""
        return (np.arange(self.lanes) * self.slots) // self.lanes

    @property
    def rounds(self) -> int:
        """The most fragments that find the same slot."""
        return -(-self.fragments // self.slots)

    def times(self, rates: FloatArray) -> FloatArray:
        """`[worker, round, lane]`: when a fragment is sent, in s; infinite where a round has no fragment.

        `rates` are those of the workers, in fragments per second.
        """
        number = self.slot_of + self.slots * np.arange(self.rounds)[:, None]
        sent = (number + 1) / rates[:, None, None]
        return np.where(number < self.fragments, sent, np.inf)


def simulate(tree: SlotTree, sharing: Sharing, rates: FloatArray, gradient: Gradient) -> Counts:
    """What happens to a gradient that workers send at `rates`, in fragments/s: of all slots, by those simulated.

    Raises `InputError` for a policy whose slots are not shared.
    """
    if not sharing.rules.shared:
        raise InputError(f"slot policy '{sharing.policy}': its slots are not shared, so nothing meets in them")
    times = gradient.times(rates)
    slots = Slots.of(tree, sharing, gradient.lanes, gradient.rounds)
    flat = times.reshape(-1, gradient.lanes)
    for event in np.argsort(flat, axis=0, kind="stable"):
        lane = np.flatnonzero(np.isfinite(flat[event, np.arange(gradient.lanes)]))
        worker, fragment = np.divmod(event[lane], gradient.rounds)
        slots.send(worker, lane, fragment)
    slots.drain()
    return slots.counts.scaled(gradient.slots / gradient.lanes)
