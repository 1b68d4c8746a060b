"""The options of endpoints: what a run, or the world that it is in, tells workers and parameter servers."""

from __future__ import annotations

from dataclasses import dataclass

IN_FLIGHT_S = 0.04
"""A stream may have the fragments of this much time, in seconds, on the way: those of many round trips, and still so
few that all streams through one link never fill its queue with more than this time's worth."""


@dataclass(frozen=True)
class Bounds:
    """What a world lets streams do: `in_flight_s` as `IN_FLIGHT_S`; `round_trip_s`: how much of it packets may take by
    empty links, there and back; `piecewise`: gradients may be held in pieces.
    """

    in_flight_s: float = IN_FLIGHT_S
    round_trip_s: float = 0.0
    piecewise: bool = False


@dataclass(frozen=True)
class WorkerOptions:
    """Options that hold for all workers of a run. Times are in seconds.

    `paced`: a worker keeps to its planned rate; otherwise only windows and links limit it.
    `credit_s`: after a pause a worker may catch up on so much of its rate: enough for the jitter of a busy machine, too
    little to fill the queue of a link that others use too.
    `first_timeout_s`: how long a fragment waits for its result before the first round trip has been measured, which is
    also the longest that round trips make it wait; `min_timeout_s` and `max_timeout_s` bound every timeout.
    `retry_s`: the longest timeout of a fragment that has been sent again already. It is short, because that fragment is
    known to be lost and its stream may stand still until it has come.
    `scan_s`: how often workers look for what is overdue.
    `first_seq`: the sequence number of a tree's first fragment in iteration 0.
    `direct_after_s`: a fragment that has no result this long after it was first sent goes directly to the PS, past all
    slots; None for `TIMEOUTS_BY_AGGREGATORS` first timeouts.
    """

    paced: bool = True
    credit_s: float = 0.02
    first_timeout_s: float = 0.25
    min_timeout_s: float = 0.08
    max_timeout_s: float = 2.0
    retry_s: float = 0.03
    scan_s: float = 0.015
    first_seq: int = 0
    direct_after_s: float | None = None


@dataclass(frozen=True)
class ServerOptions:
    """Options that hold for all PSs of a run.

    `copies_at_once`: the most copies of results that one step puts into the network, of which every worker of a tree
    gets one; None for any number. `ask_again_s`: a fragment is asked for at most once in this time, in seconds.
    """

    copies_at_once: int | None = 4096
    ask_again_s: float = 0.05
