"""Sliding windows of senders: additive increase, multiplicative decrease, as the papers give it.

P4INC-AOI (section VI-B) describes one window per worker, which grows by a fragment per result up to a threshold,
and halves, threshold included, when a notice with ECN comes; beyond the threshold it grows by a fragment per window.
ATP, from which it comes, takes three results of newer fragments for a loss and halves then too.
Where a plan has shared out the links already, a window that was halved grows back as fast as it can.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traffic.sockets.ports import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class WindowRule:
    """`gap`: so many newer results say that a fragment is lost. `yields`: a loss is a sign of congestion.

    `returns`: a halved window grows by a fragment per result all the way, its threshold stays.
    """

    gap: int
    yields: bool
    returns: bool = False


PLANNED = WindowRule(gap=3, yields=False, returns=True)
P4INC_AOI = WindowRule(gap=1, yields=False)
ATP = WindowRule(gap=3, yields=True)
RULE_OF_POLICY = {"atp": ATP, "esa": ATP, "p4inc-aoi": P4INC_AOI}


def rule_of(policy: str) -> WindowRule:
    """The rule of a slot policy: its paper's, else one for plans that leave no link congested."""
    return RULE_OF_POLICY.get(policy, PLANNED)


class Windows:
    """The windows of all streams, in fragments: from `least` to `limit`, which is what slots and rates allow."""

    def __init__(self, limit: IntArray, least: FloatArray, returns: BoolArray) -> None:
        self.limit, self.least, self.returns = limit, least, returns
        self.size: FloatArray = limit.astype(np.float64)
        self.threshold: FloatArray = limit.astype(np.float64)

    def whole(self) -> IntArray:
        return self.size.astype(np.int64)

    def grow(self, streams: IntArray, results: IntArray) -> None:
        """`results[i]` results have come to `streams[i]`."""
        size, threshold = self.size[streams], self.threshold[streams]
        steady = size >= threshold
        grown = np.where(steady, size + results / size, np.minimum(size + results, threshold))
        self.size[streams] = np.minimum(grown, self.limit[streams])

    def halve(self, streams: IntArray) -> None:
        self.size[streams] = np.maximum(self.size[streams] / 2, self.least[streams])
        lasting = streams[~self.returns[streams]]
        self.threshold[lasting] = self.size[lasting]
