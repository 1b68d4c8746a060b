"""The windows of streams: the limits of their fragments in flight, and the rules that change them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inakit.traffic.endpoints.streams import StreamLayout, Streams
from inakit.traffic.sockets.ports import FloatArray, IntArray

# -- Sliding windows of senders: additive increase, multiplicative decrease, as in the papers.
#
# P4INC-AOI (section VI-B) describes one window per worker. It grows by a fragment per result up to a threshold, and by
# a fragment per window beyond it; a notice with ECN halves the window and its threshold. ATP, on which this is
# modelled, also halves when three results of newer fragments indicate a loss. If a plan has divided the links already,
# a window that was halved grows back by a fragment per result all the way.
#
# If the root is a switch, which answers only the worker that asks, a timeout halves no window: one lost packet causes
# timeouts of all workers of its tree, and with many workers most fragments lose a packet. A PS cannot tell who asks for
# a kept sum and answers all; full windows of timeouts would fill its link. PANAMA's windows follow marks of congestion,
# as DCTCP's do (Alizadeh et al., SIGCOMM 2010), and not timeouts.

LEAST_WINDOW = 2
MAX_BACKOFF = 6
"""The most doublings of a timeout."""
NEWEST = 1 / 16
"""The weight of the newest window in the smoothed share of marks, DCTCP's g."""


@dataclass(frozen=True)
class WindowRule:
    """A sender's reaction to overtaking results, and the recovery of its window.

    `gap`: a fragment counts as lost when this many newer ones have their result. `yields`: such a loss is a sign of
    congestion, so it halves the window. `returns`: a halved window keeps its threshold, and so grows by a fragment per
    result all the way. `heeds`: after each window of results it shrinks by half of the marked share. `keeps`: a timeout
    is a sign of congestion only for a fragment that goes directly to the PS, past all sums.
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
RULE_OF_POLICY = {
    "switchml": SWITCHML,
    "atp": ATP,
    "esa": ATP,
    "p4inc-aoi": P4INC_AOI,
    "p4inc-aoi-hash": P4INC_AOI,
    "panama": PANAMA,
}


def rule_of(policy: str) -> WindowRule:
    """The rule of a slot policy: its paper's, else the rule for plans without congested links."""
    return RULE_OF_POLICY.get(policy, PLANNED)


def rules_of(layout: StreamLayout) -> list[WindowRule]:
    """The rule of every stream."""
    return [rule_of(layout.parts[tree].tree.policy) for tree in layout.streams.tree]


def crowds(streams: Streams) -> IntArray:
    """The number of workers of each stream's tree, (streams,)."""
    crowd: IntArray = np.bincount(streams.tree)[streams.tree]
    return crowd


def fair_shares(streams: Streams, timeout_s: float) -> FloatArray:
    """The fragments that each worker can send in a timeout, (streams,), so that all together keep their tree's rate.

    This holds even if no switch sums. The least share is 1 / 2**`MAX_BACKOFF`, as timeouts are doubled at most this
    often.
    """
    fair = streams.rate_fps * timeout_s / crowds(streams)
    return np.maximum(fair, 1 / (1 << MAX_BACKOFF))


def least_windows(streams: Streams, fair: FloatArray) -> FloatArray:
    """The least window of each stream in fragments, (streams,)."""
    return np.minimum(np.maximum(fair, LEAST_WINDOW), streams.in_flight)


def backoffs(least: FloatArray, fair: FloatArray) -> IntArray:
    """The most doublings of each stream's timeout, (streams,), with which its least window sends at most `fair`."""
    # The exponent is exact; the rounding of a logarithm depends on the processor's vector instructions.
    mantissa, exponent = np.frexp(least / fair)
    doublings: IntArray = np.clip(exponent - (mantissa == 0.5), 1, MAX_BACKOFF).astype(np.int64)
    return doublings


class Windows:
    """The windows of all streams, arrays (streams,) in fragments.

    `size` is between `least` and `limit`, which slots and rates set. `cut_at`: the time of the last halving, in seconds
    of the ports' clock; `cuts`: the number of halvings. `share`: the smoothed share of results that are marked, of
    those `seen` and `marked` in the last window.
    """

    def __init__(self, limit: IntArray, least: FloatArray, rules: Sequence[WindowRule]) -> None:
        self.limit, self.least = limit, least
        self.returns = np.array([rule.returns for rule in rules], np.bool_)
        self.size: FloatArray = limit.astype(np.float64)
        self.threshold: FloatArray = limit.astype(np.float64)
        self.cut_at = np.zeros(len(limit))
        self.cuts = np.zeros(len(limit), np.int64)
        self.heeds = np.array([rule.heeds for rule in rules], np.bool_)
        self.share = np.ones(len(limit))
        self.seen, self.marked = np.zeros(len(limit), np.int64), np.zeros(len(limit), np.int64)

    def whole(self) -> IntArray:
        """The windows in whole fragments, (streams,)."""
        return self.size.astype(np.int64)

    def grow(self, streams: IntArray, results: IntArray) -> None:
        """Grow windows: `streams[i]` got `results[i]` results."""
        size, threshold = self.size[streams], self.threshold[streams]
        steady = size >= threshold
        grown = np.where(steady, size + results / size, np.minimum(size + results, threshold))
        self.size[streams] = np.minimum(grown, self.limit[streams])

    def heed(self, streams: IntArray, results: IntArray, marked: IntArray) -> None:
        """Adapt windows to marks: `streams[i]` got `results[i]` results, of which `marked[i]` are marked."""
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
        self.cuts[cut] += 1
        self.size[cut] = np.maximum(self.size[cut] / 2, self.least[cut])
        lasting = cut[~self.returns[cut]]
        self.threshold[lasting] = self.size[lasting]
