"""The pace of streams: a token bucket keeps each to its planned rate, and measures how far it falls behind."""

from __future__ import annotations

import numpy as np

from inakit.traffic.endpoints.options import WorkerOptions
from inakit.traffic.endpoints.streams import Streams
from inakit.traffic.sockets.ports import FloatArray, IntArray

LEAST_DEPTH = 2.0
"""The fewest fragments that a bucket holds, however slow its stream is."""

AT_ONCE = 256
"""Refills that one NumPy step does."""


class TokenBuckets:
    """Arrays over streams, (streams,).

    `credit`: how many fragments the stream may send now, with fractions. `refilled_at`: when the credit was last
    raised, in seconds of the ports' clock; NaN until the iteration's first refill. `ready`: the stream had fragments
    left, and room in its window, after what it sent last. `late_s`: over the run, how many seconds' worth of its rate
    the stream could have sent and did not.
    """

    def __init__(self, streams: Streams, options: WorkerOptions) -> None:
        count = len(streams.host)
        self.streams, self.options = streams, options
        self.credit = np.zeros(count)
        self.refilled_at = np.zeros(count)
        self.ready = np.zeros(count, np.bool_)
        self.late_s = np.zeros(count)

    def begin(self, streams: IntArray) -> None:
        """Empty the buckets of an iteration's streams; the first refill gives each one fragment."""
        self.refilled_at[streams] = np.nan

    @property
    def depth(self) -> FloatArray:
        """How many fragments each bucket holds. Rates, and depths with them, may change during a run."""
        depth: FloatArray = np.maximum(LEAST_DEPTH, self.options.credit_s * self.streams.rate_fps)
        return depth

    def refill(self, now: float) -> None:
        """Raise all credits by the time that has passed; without a pace only windows limit how much streams send.

        What is beyond a bucket's depth is lost. It counts as lateness where the stream was `ready` to send all the
        time: one whose window was closed had to wait for results.
        """
        if not self.options.paced:
            self.credit = self.streams.in_flight.astype(np.float64)
            return
        rate_fps, depth = self.streams.rate_fps, self.depth
        started = ~np.isnan(self.refilled_at)
        self.credit = np.where(started, self.credit + (now - self.refilled_at) * rate_fps, 1)
        self.refilled_at[:] = now
        self.late_s += np.where(self.ready, np.maximum(self.credit - depth, 0), 0) / rate_fps
        np.minimum(self.credit, depth, out=self.credit)

    def refill_at(self, times: FloatArray) -> None:
        """Refill at each of these times, (ticks,). All sums are the same, to the last bit, as one refill at a time."""
        if not self.options.paced:
            times = times[:1]
        for first in range(0, len(times), AT_ONCE):
            some = times[first : first + AT_ONCE]
            self.refill(float(some[0]))
            if self.options.paced:
                self.go_on(np.diff(some))
                self.refilled_at[:] = some[-1]

    def go_on(self, passed: FloatArray) -> None:
        """Raise all credits, which have been refilled, again and again: each time by the time `passed`, (times,)."""
        earned, depth = passed[:, None] * self.streams.rate_fps, self.depth
        sums = np.add.accumulate(np.vstack((self.credit, earned)))
        raised = np.minimum(sums[:-1], depth) + earned
        late_s = np.where(self.ready, np.maximum(raised - depth, 0), 0) / self.streams.rate_fps
        self.late_s = np.add.accumulate(np.vstack((self.late_s, late_s)))[-1]
        self.credit = np.minimum(sums[-1], depth)

    def grant(self, wanted: IntArray, following: IntArray) -> IntArray:
        """How many new fragments each stream may send, of those that credits and windows allow: here all `wanted`.

        `following`: the first fragment that each stream has not sent; all are (streams,).
        """
        _ = following
        return wanted

    def note_sent(self, stream: IntArray, rows: IntArray, sent: IntArray) -> None:
        """Take what has been sent from the credits: `rows` of `stream`, (fragments,); `sent[s]` of them of stream s."""
        _ = stream, rows
        self.credit -= sent

    def note_room(self, room: IntArray) -> None:
        """Note how many more fragments windows and data would allow each stream to send, (streams,)."""
        self.ready = room > 0

    def next_due(self, room: IntArray, accepts_from: FloatArray) -> float:
        """When the first stream with `room` has credit, to within roundings; -inf if unknown.

        Packets of each host are accepted from `accepts_from` on, (hosts,).
        """
        ready = room > 0
        if (ready != self.ready).any():  # an iteration has just begun
            return -np.inf
        filled_at = self.filled_at() if self.options.paced else np.full(len(ready), -np.inf)
        return float(np.maximum(filled_at, accepts_from[self.streams.host])[ready].min(initial=np.inf))

    def filled_at(self) -> FloatArray:
        """When each bucket has, or had, credit for a fragment, to within roundings; -inf before the first refill."""
        with np.errstate(divide="ignore", invalid="ignore"):
            at = self.refilled_at + (1 - self.credit) / self.streams.rate_fps
        return np.where(np.isnan(at), -np.inf, at)

    def late_s_of(self, hosts: int) -> FloatArray:
        """How many seconds' worth of its rate each of so many hosts could have sent and did not, (hosts,)."""
        late_s = np.zeros(hosts)
        np.maximum.at(late_s, self.streams.host, self.late_s)
        return late_s
