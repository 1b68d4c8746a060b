"""The windows of streams: the limits of their fragments in flight, and the rules that change them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from inakit.planner.core.slot_policies import paper_of, policy_of
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
# as DCTCP's do (Alizadeh et al., SIGCOMM 2010), and not timeouts. Where aggregators repair losses, others follow queues
# (`asking.h`).

LEAST_WINDOW = 2
MAX_BACKOFF = 6
"""The most doublings of a timeout."""


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
RULE_OF_PAPER = {
    "switchml": SWITCHML,
    "atp": ATP,
    "esa": ATP,
    "p4inc-aoi": P4INC_AOI,
    "p4inc-aoi-hash": P4INC_AOI,
    "panama": PANAMA,
}


def rule_of(policy: str) -> WindowRule:
    """The rule of a slot policy: its paper's, else the rule for plans without congested links."""
    rule = RULE_OF_PAPER.get(paper_of(policy), PLANNED)
    return replace(rule, heeds=rule.heeds or policy_of(policy).marks)


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
