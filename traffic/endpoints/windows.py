"""The windows of streams: how many fragments each may have on the way, and what makes that more or less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inakit.traffic.endpoints.streams import StreamLayout, Streams
from inakit.traffic.sockets.ports import FloatArray, IntArray

# -- Sliding windows of senders: additive increase, multiplicative decrease, as the papers give it.
#
# P4INC-AOI (section VI-B) describes one window per worker. It grows by a fragment per result up to a threshold, and
# by a fragment per window beyond it; a notice with ECN halves the window and its threshold. ATP, from which this
# comes, also halves when three results of newer fragments tell of a loss. Where a plan has shared out the links
# already, a window that was halved grows back by a fragment per result all the way.
#
# Where the root is a switch, which answers only the worker that asks, a timeout halves no window: one lost packet times
# out all workers of its tree, and most fragments of many workers lose one. A PS cannot tell who asks for a kept sum and
# answers all; full windows of timeouts would fill its link. PANAMA's windows follow marks of congestion, as DCTCP's
# do (Alizadeh et al., SIGCOMM 2010), and not timeouts.

LEAST_WINDOW = 2
MAX_BACKOFF = 6
"""A timeout is doubled at most this often."""
NEWEST = 1 / 16
"""The part of the newest window in the share of marks that windows follow, DCTCP's g."""


@dataclass(frozen=True)
class WindowRule:
    """How a sender reacts to results that overtake others, and how its window recovers.

    `gap`: a fragment is taken for lost when so many newer ones have their result. `yields`: such a loss is a sign of
    congestion, so it halves the window. `returns`: a halved window keeps its threshold, and so grows by a fragment per
    result all the way. `heeds`: after each window of results it shrinks by half of the share that is marked. `keeps`: a
    timeout is a sign of congestion only for a fragment that goes directly to the PS, past all sums.
    """

    gap: int
    yields: bool
    returns: bool = False
    heeds: bool = False
    keeps: bool = False


PLANNED = WindowRule(gap=3, yields=False, returns=True)
SWITCHML = WindowRule(gap=3, yields=False, returns=True, keeps=True)
P4INC_AOI = WindowRule(gap=1, yields=False)
ATP = WindowRule(gap=3, yields=True)
PANAMA = WindowRule(gap=3, yields=False, heeds=True, keeps=True)
RULE_OF_POLICY = {"switchml": SWITCHML, "atp": ATP, "esa": ATP, "p4inc-aoi": P4INC_AOI, "panama": PANAMA}


def rule_of(policy: str) -> WindowRule:
    """The rule of a slot policy: its paper's, else one for plans that leave no link congested."""
    return RULE_OF_POLICY.get(policy, PLANNED)


def rules_of(layout: StreamLayout) -> list[WindowRule]:
    """The rule of every stream."""
    return [rule_of(layout.parts[tree].tree.policy) for tree in layout.streams.tree]


def crowds(streams: Streams) -> IntArray:
    """How many workers each stream's tree has, (streams,)."""
    crowd: IntArray = np.bincount(streams.tree)[streams.tree]
    return crowd


def fair_shares(streams: Streams, timeout_s: float) -> FloatArray:
    """How many fragments each worker may send in a timeout, (streams,), so that all together keep to their tree's rate.

    That holds even when nothing is summed on the way. The least share is 1 / 2**`MAX_BACKOFF`, since a timeout that is
    doubled so often is the longest there is.
    """
    fair = streams.rate_fps * timeout_s / crowds(streams)
    return np.maximum(fair, 1 / (1 << MAX_BACKOFF))


def least_windows(streams: Streams, fair: FloatArray) -> FloatArray:
    """To how few fragments each stream's window may shrink, (streams,)."""
    return np.minimum(np.maximum(fair, LEAST_WINDOW), streams.in_flight)


def backoffs(least: FloatArray, fair: FloatArray) -> IntArray:
    """How often each stream's timeout may double, (streams,): until its least window sends no more than `fair`."""
    # The exponent is exact; a logarithm is rounded in another way on processors with other vector instructions.
    mantissa, exponent = np.frexp(least / fair)
    doublings: IntArray = np.clip(exponent - (mantissa == 0.5), 1, MAX_BACKOFF).astype(np.int64)
    return doublings


class Windows:
    """The windows of all streams, arrays (streams,) in fragments.

    `size` is between `least` and `limit`, which is what slots and rates allow. `cut_at`: when a window was halved last,
    in seconds of the ports' clock. `share`: the smoothed share of results that are marked, of those `seen` and `marked`
    in the last window.
    """

    def __init__(self, limit: IntArray, least: FloatArray, rules: Sequence[WindowRule]) -> None:
        self.limit, self.least = limit, least
        self.returns = np.array([rule.returns for rule in rules], np.bool_)
        self.size: FloatArray = limit.astype(np.float64)
        self.threshold: FloatArray = limit.astype(np.float64)
        self.cut_at = np.zeros(len(limit))
        self.heeds = np.array([rule.heeds for rule in rules], np.bool_)
        self.share = np.ones(len(limit))
        self.seen, self.marked = np.zeros(len(limit), np.int64), np.zeros(len(limit), np.int64)

    def whole(self) -> IntArray:
        """The windows in whole fragments, (streams,)."""
        return self.size.astype(np.int64)

    def grow(self, streams: IntArray, results: IntArray) -> None:
        """Let windows grow: `results[i]` results have come to `streams[i]`."""
        size, threshold = self.size[streams], self.threshold[streams]
        steady = size >= threshold
        grown = np.where(steady, size + results / size, np.minimum(size + results, threshold))
        self.size[streams] = np.minimum(grown, self.limit[streams])

    def heed(self, streams: IntArray, results: IntArray, marked: IntArray) -> None:
        """Let windows follow marks: `results[i]` results have come to `streams[i]`, of which `marked[i]` are marked."""
        self.seen[streams] += results
        self.marked[streams] += marked
        due = streams[self.heeds[streams] & (self.seen[streams] >= self.size[streams])]
        share = self.marked[due] / self.seen[due]
        self.share[due] += NEWEST * (share - self.share[due])
        cut = due[share > 0]
        self.size[cut] = np.maximum(self.size[cut] * (1 - self.share[cut] / 2), self.least[cut])
        self.threshold[cut] = self.size[cut]
        self.seen[due], self.marked[due] = 0, 0

    def shrink(self, streams: IntArray, now: float, timeouts: FloatArray) -> None:
        """Halve the windows of congested streams, each at most once in its timeout; `timeouts` are those of all."""
        cut = streams[now - self.cut_at[streams] > timeouts[streams]]
        self.cut_at[cut] = now
        self.size[cut] = np.maximum(self.size[cut] / 2, self.least[cut])
        lasting = cut[~self.returns[cut]]
        self.threshold[lasting] = self.size[lasting]
