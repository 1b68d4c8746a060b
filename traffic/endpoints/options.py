"""The options of workers and parameter servers, set by a run or its world."""

from __future__ import annotations

from dataclasses import dataclass

IN_FLIGHT_S = 0.04
"""The time, in seconds of a stream's rate, that bounds its fragments in flight: many round trips, but short enough that
all streams through one link never fill its queue with more than this time's packets.
"""


@dataclass(frozen=True)
class Bounds:
    """A world's limits for streams.

    `in_flight_s`: as `IN_FLIGHT_S`. `round_trip_s`: the part of it for the round trip over empty links.
    """

    in_flight_s: float = IN_FLIGHT_S
    round_trip_s: float = 0.0


@dataclass(frozen=True)
class WorkerOptions:
    """Options that hold for all workers of a run. Times are in seconds.

    `paced`: a worker keeps to its planned rate; otherwise only windows and links limit it. `credit_s`: the time of its
    rate that a worker can catch up on after a pause: enough for the jitter of a busy machine, too little to fill the
    queue of a shared link. `first_timeout_s`: the timeout before the first round trip has been measured, and the
    longest timeout that round trips can set; `min_timeout_s` and `max_timeout_s` bound every timeout. `retry_s`: the
    longest timeout of a fragment that has been sent again already. It is short, because that fragment is known to be
    lost and its stream can stall until its result arrives. `first_seq`: the sequence number of a tree's first fragment
    in iteration 0. `direct_after_s`: a fragment without a result this long after its first sending goes directly to the
    PS, past all slots; None: `TIMEOUTS_BY_AGGREGATORS` first timeouts.
    """

    paced: bool = True
    credit_s: float = 0.02
    first_timeout_s: float = 0.25
    min_timeout_s: float = 0.08
    max_timeout_s: float = 2.0
    retry_s: float = 0.03
    first_seq: int = 0
    direct_after_s: float | None = None


@dataclass(frozen=True)
class ServerOptions:
    """Options that hold for all PSs of a run.

    `ask_again_s`: the least time between two requests for a fragment, in seconds.
    """

    ask_again_s: float = 0.05
