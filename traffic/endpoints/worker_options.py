"""The options of workers: pace, timeouts, and when a fragment goes directly to the PS."""

from __future__ import annotations

from dataclasses import dataclass


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
