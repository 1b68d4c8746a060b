"""Pacing: a token bucket per stream keeps it to its planned rate, and measures how far it falls behind."""

from __future__ import annotations

import numpy as np

from traffic.endpoints.streams import Streams
from traffic.endpoints.worker_options import WorkerOptions
from traffic.sockets.ports import BoolArray, FloatArray, IntArray

LEAST_DEPTH = 2.0
"""The fewest fragments that a bucket holds, however slow its stream is."""


class TokenBuckets:
    """Arrays over streams, (streams,).

    `credit`: how many fragments the stream may send now, with fractions. `refilled_at`: when the credit was last
    raised, in seconds of the ports' clock; NaN until the iteration's first refill. `late_s`: over the run, how many
    seconds' worth of its rate the stream could have sent and did not.
    """

    def __init__(self, streams: Streams, options: WorkerOptions) -> None:
        count = len(streams.host)
        self.streams = streams
        self.depth: FloatArray = np.maximum(LEAST_DEPTH, options.credit_s * streams.rate_fps)
        self.credit = np.zeros(count)
        self.refilled_at = np.zeros(count)
        self.late_s = np.zeros(count)

    def begin(self, streams: IntArray) -> None:
        """Empty the buckets of an iteration's streams; the first refill gives each one fragment."""
        self.refilled_at[streams] = np.nan

    def refill(self, now: float, ready: BoolArray) -> None:
        """Raise all credits by the time that has passed.

        What is beyond a bucket's depth is lost; where the stream was `ready` to send, that counts as lateness.
        """
        rate_fps = self.streams.rate_fps
        started = ~np.isnan(self.refilled_at)
        self.credit = np.where(started, self.credit + (now - self.refilled_at) * rate_fps, 1)
        self.refilled_at[:] = now
        self.late_s += np.where(ready, np.maximum(self.credit - self.depth, 0), 0) / rate_fps
        np.minimum(self.credit, self.depth, out=self.credit)

    def fill(self) -> None:
        """Give every stream credit for all that its window can hold: it is not paced."""
        self.credit = self.streams.in_flight.astype(np.float64)
