"""The pace of streams: a token bucket keeps each at its planned rate, and measures its lateness."""

from __future__ import annotations

import numpy as np

from inakit.traffic.endpoints.options import WorkerOptions
from inakit.traffic.endpoints.streams import Streams
from inakit.traffic.sockets.ports import FloatArray, IntArray

LEAST_DEPTH = 2.0
"""The least depth of a bucket in fragments, for slow streams."""

AT_ONCE = 256
"""The number of refills in one NumPy step."""


class TokenBuckets:
    """Arrays over streams, (streams,).

    `credit`: the number of fragments that the stream can send now, with fractions. `refilled_at`: when the credit was
    last raised, in seconds of the ports' clock; NaN until the iteration's first refill. `ready`: the stream had
    fragments left, and room in its window, after its last sending. `late_s`: over the run, the sending time, at its
    rate, that the stream could have used and did not.
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
        """The depth of each bucket in fragments. Rates, and depths with them, can change during a run."""
        depth: FloatArray = np.maximum(LEAST_DEPTH, self.options.credit_s * self.streams.rate_fps)
        return depth

    def refill(self, now: float) -> None:
        """Raise all credits by the time that has passed; without a pace only windows limit streams.

        Credit beyond a bucket's depth is lost. It counts as lateness if the stream was `ready` to send all the time: a
        stream with a closed window had to wait for results.
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
        """Refill at each of these times, (ticks,). All sums are the same, bit for bit, as with single refills."""
        if not self.options.paced:
            times = times[:1]
        for first in range(0, len(times), AT_ONCE):
            some = times[first : first + AT_ONCE]
            self.refill(float(some[0]))
            if self.options.paced:
                self.go_on(np.diff(some))
                self.refilled_at[:] = some[-1]

    def go_on(self, passed: FloatArray) -> None:
        """Raise all credits repeatedly, by the times `passed`, (times,); all have been refilled before."""
        earned, depth = passed[:, None] * self.streams.rate_fps, self.depth
        sums = np.add.accumulate(np.vstack((self.credit, earned)))
        raised = np.minimum(sums[:-1], depth) + earned
        late_s = np.where(self.ready, np.maximum(raised - depth, 0), 0) / self.streams.rate_fps
        self.late_s = np.add.accumulate(np.vstack((self.late_s, late_s)))[-1]
        self.credit = np.minimum(sums[-1], depth)

    def grant(self, wanted: IntArray, following: IntArray) -> IntArray:
        """The number of new fragments that each stream can send within credits and windows: here all `wanted`.

        `following`: the first fragment that each stream has not sent; all are (streams,).
        """
        _ = following
        return wanted

    def note_sent(self, stream: IntArray, rows: IntArray, sent: IntArray) -> None:
        """Subtract sent fragments from the credits: `rows` of `stream`, (fragments,); `sent[s]` of them of stream s."""
        _ = stream, rows
        self.credit -= sent

    def note_room(self, room: IntArray) -> None:
        """Note the number of further fragments that windows and data allow each stream, (streams,)."""
        self.ready = room > 0

    def next_due(self, room: IntArray, accepts_from: FloatArray) -> float:
        """The time, up to rounding, at which the first stream with `room` has credit; -inf if unknown.

        Packets of each host are accepted from `accepts_from` on, (hosts,).
        """
        ready = room > 0
        if (ready != self.ready).any():  # an iteration has just begun
            return -np.inf
        filled_at = self.filled_at() if self.options.paced else np.full(len(ready), -np.inf)
        return float(np.maximum(filled_at, accepts_from[self.streams.host])[ready].min(initial=np.inf))

    def filled_at(self) -> FloatArray:
        """The time, up to rounding, at which each bucket has credit for a fragment; -inf before the first refill."""
        with np.errstate(divide="ignore", invalid="ignore"):
            at = self.refilled_at + (1 - self.credit) / self.streams.rate_fps
        return np.where(np.isnan(at), -np.inf, at)

    def late_s_of(self, hosts: int) -> FloatArray:
        """The sending time, at its rate, that each host could have used and did not, in seconds, (hosts,)."""
        late_s = np.zeros(hosts)
        np.maximum.at(late_s, self.streams.host, self.late_s)
        return late_s
