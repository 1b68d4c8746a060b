"""When workers send: options, round trips, pace, windows, and what they send again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from inakit.traffic.endpoints.streams import StreamLayout, Streams, spread
from inakit.traffic.endpoints.worker_memory import WHOLE, StreamProgress
from inakit.traffic.sockets.ports import BoolArray, FloatArray, IntArray, before


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


# -- Round-trip times of all streams, and the timeouts that follow from them (RFC 6298).


class RoundTrips:
    """Arrays over streams, (streams,), in seconds: `smoothed` round trips, NaN before the first, and `deviation`.

    `held_s`, (streams,): how long a result may be held back until others go with it; a timeout is longer by as much.
    """

    def __init__(self, count: int, options: WorkerOptions, held_s: FloatArray | None = None) -> None:
        self.options = options
        self.held_s = np.zeros(count) if held_s is None else held_s
        self.smoothed = np.full(count, np.nan)
        self.deviation = np.zeros(count)

    def add(self, streams: IntArray, samples: FloatArray) -> None:
        """Take in one measured round trip for each of `streams`, which are all different."""
        smooth = np.where(np.isnan(self.smoothed[streams]), samples, self.smoothed[streams])
        self.deviation[streams] += (np.abs(samples - smooth) - self.deviation[streams]) / 4
        self.smoothed[streams] = smooth + (samples - smooth) / 8

    def timeouts(self) -> FloatArray:
        """How long a fragment of each stream waits for its result, (streams,).

        A round trip contains the wait for other workers, so it may be of any length; `first_timeout_s` bounds it.
        """
        least, longest = (self.held_s + s for s in (self.options.min_timeout_s, self.options.first_timeout_s))
        measured = np.clip(self.smoothed + 4 * self.deviation, least, longest)
        return np.where(np.isnan(self.smoothed), longest, measured)


# -- Pacing: a token bucket per stream keeps it to its planned rate, and measures how far it falls behind.

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
        self.streams = streams
        self.credit_s = options.credit_s
        self.credit = np.zeros(count)
        self.refilled_at = np.zeros(count)
        self.ready = np.zeros(count, np.bool_)
        self.late_s = np.zeros(count)

    def begin(self, streams: IntArray) -> None:
        """Empty the buckets of an iteration's streams; the first refill gives each one fragment."""
        self.refilled_at[streams] = np.nan

    def filled_at(self) -> FloatArray:
        """When each bucket has, or had, credit for a fragment, to within roundings; -inf before the first refill."""
        with np.errstate(divide="ignore", invalid="ignore"):
            at = self.refilled_at + (1 - self.credit) / self.streams.rate_fps
        return np.where(np.isnan(at), -np.inf, at)

    @property
    def depth(self) -> FloatArray:
        """How many fragments each bucket holds. Rates, and depths with them, may change during a run."""
        depth: FloatArray = np.maximum(LEAST_DEPTH, self.credit_s * self.streams.rate_fps)
        return depth

    def refill(self, now: float) -> None:
        """Raise all credits by the time that has passed.

        What is beyond a bucket's depth is lost. It counts as lateness where the stream was `ready` to send all the
        time: one whose window was closed had to wait for results.
        """
        rate_fps, depth = self.streams.rate_fps, self.depth
        started = ~np.isnan(self.refilled_at)
        self.credit = np.where(started, self.credit + (now - self.refilled_at) * rate_fps, 1)
        self.refilled_at[:] = now
        self.late_s += np.where(self.ready, np.maximum(self.credit - depth, 0), 0) / rate_fps
        np.minimum(self.credit, depth, out=self.credit)

    def refill_at(self, times: FloatArray) -> None:
        """Refill at each of these times, (ticks,). All sums are the same, to the last bit, as one refill at a time."""
        for first in range(0, len(times), AT_ONCE):
            some = times[first : first + AT_ONCE]
            self.refill(float(some[0]))
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

    def fill(self) -> None:
        """Give every stream credit for all that its window can hold: it is not paced."""
        self.credit = self.streams.in_flight.astype(np.float64)


# -- Sliding windows of senders: additive increase, multiplicative decrease, as the papers give it.
#
# P4INC-AOI (section VI-B) describes one window per worker. It grows by a fragment per result up to a threshold, and
# by a fragment per window beyond it; a notice with ECN halves the window and its threshold. ATP, from which this
# comes, also halves when three results of newer fragments tell of a loss. Where a plan has shared out the links
# already, a window that was halved grows back by a fragment per result all the way.
#
# Where the root is a switch, which answers only who asks, a timeout halves no window: one lost packet times out all
# workers of its tree, and most fragments of many workers lose one. A PS cannot tell who asks for a kept sum and
# answers all; full windows of timeouts would fill its link. PANAMA's windows follow marks of congestion, as DCTCP's
# do (Alizadeh et al., SIGCOMM 2010), and not timeouts.

LEAST_WINDOW = 2
MAX_BACKOFF = 6
"""A timeout is doubled at most this often."""
NEWEST = 1 / 16
"""The part of the newest window in the share of marks that windows follow, DCTCP's g."""


@dataclass(frozen=True)
class WindowRule:
    """What a sender makes of results that overtake others, and how its window recovers.

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


# -- When every fragment was sent, how often and in what order: what timeouts and round trips are reckoned from.

MOST_TRIES = 255
"""Tries are counted up to here."""


@dataclass(frozen=True)
class Batch:
    """Fragments about to be sent, sorted by stream: fragment `fragment[i]` of stream `stream[i]`.

    `again`: whether it has been sent before. All arrays are (fragments,).
    """

    stream: IntArray
    fragment: IntArray
    again: BoolArray

    def where(self, mask: BoolArray) -> Batch:
        """The fragments under a mask."""
        return Batch(self.stream[mask], self.fragment[mask], self.again[mask])


class Sendings:
    """Arrays over rows, the fragments of all streams, and over streams. Times are seconds of the ports' clock.

    By row: `begun_at` and `sent_at`, when it was sent first and last; `tries`, how often; `order`, the place of its
    last sending among all of its stream. By stream: `total`, how many sendings there were; `newest_order`, the greatest
    order of a fragment that was sent once and whose result has come, -1 for none.
    """

    def __init__(self, rows: int, streams: int) -> None:
        self.begun_at = np.zeros(rows)
        self.sent_at = np.zeros(rows)
        self.order = np.zeros(rows, np.int64)
        self.tries = np.zeros(rows, np.uint8)
        self.total = np.zeros(streams, np.int64)
        self.newest_order = np.full(streams, -1, np.int64)

    def begin(self, rows: IntArray) -> None:
        """Note that the fragments of `rows` are new ones, which nobody has sent."""
        self.tries[rows] = 0

    def note(self, batch: Batch, rows: IntArray, per_stream: IntArray, now: float) -> None:
        """Note that a batch has left: `rows[i]` is its fragment i, `per_stream[s]` of them are of stream s."""
        self.begun_at[rows[~batch.again]] = now
        self.sent_at[rows] = now
        self.tries[rows] = np.minimum(self.tries[rows], MOST_TRIES - 1) + 1
        self.order[rows] = self.total[batch.stream] + np.arange(len(rows)) - before(per_stream)[batch.stream]
        self.total += per_stream

    def note_results(self, stream: IntArray, rows: IntArray, now: float) -> tuple[IntArray, IntArray, FloatArray]:
        """Note the results of fragments that were sent once: of any other nobody knows which sending they answer.

        Returns the streams that got any, how many results each got, and its mean round trip in seconds.
        """
        np.maximum.at(self.newest_order, stream, self.order[rows])
        counts = np.bincount(stream, minlength=len(self.total))
        streams = np.flatnonzero(counts)
        totals = np.bincount(stream, now - self.sent_at[rows], minlength=len(self.total))
        return streams, counts[streams], totals[streams] / counts[streams]


# -- Which fragments workers send again, when, and which of them go directly to the PS.

TURNS = 4
"""Workers ask for a lost fragment in turn, so that what the first one gets spares others the question: each waits for
one more result than the one before it, as long as that is no more than this part of its window."""
TIMEOUTS_BY_AGGREGATORS = 3
"""After this many first timeouts a fragment goes directly to the PS: an aggregator may have forgotten its part."""
NONE = np.empty(0, np.int64)


class Acknowledged(Protocol):
    """What is known of sent fragments: by row, which parts of their results have come (`WHOLE`: all)."""

    parts: NDArray[np.uint8]


class Retransmission:
    """Finds overdue fragments: those that have waited for longer than a timeout, or that newer ones have overtaken.

    By row (a fragment of a stream): `noticed`, whether a PS wants it directly; `wanted`, the sorted rows that a PS asks
    for although their result is here. By stream: `gap`, `yields` and `keeps` of its `WindowRule`; `turns`, how many
    places there are in the order in which workers ask; `max_backoff`, how often its timeout may double. `scan_at`: when
    to look next, in seconds of the ports' clock.
    """

    def __init__(
        self,
        layout: StreamLayout,
        options: WorkerOptions,
        *,
        memory: Acknowledged,
        progress: StreamProgress,
        sendings: Sendings,
        round_trips: RoundTrips,
        windows: Windows,
    ) -> None:
        streams, rules = layout.streams, rules_of(layout)
        self.layout, self.options = layout, options
        self.memory, self.progress, self.sendings = memory, progress, sendings
        self.round_trips, self.windows = round_trips, windows
        self.noticed = np.zeros(len(memory.parts), np.bool_)
        self.wanted = NONE
        self.gap = np.array([rule.gap for rule in rules], np.int64)
        self.yields = np.array([rule.yields for rule in rules], np.bool_)
        self.keeps = np.array([rule.keeps for rule in rules], np.bool_)
        self.turns: IntArray = np.clip(streams.in_flight // TURNS, 1, crowds(streams))
        self.max_backoff = backoffs(windows.least, fair_shares(streams, options.min_timeout_s))
        self.scan_at = 0.0

    def begin(self, rows: IntArray) -> None:
        """Forget what a PS said of the fragments that `rows` held in the last iteration."""
        self.noticed[rows] = False

    def end(self) -> None:
        """Forget what a PS asks for of streams whose iteration is over: their gradients may change."""
        self.wanted = self.wanted[self.progress.active[self.layout.stream_of_row[self.wanted]]]

    def due(self, now: float, credit: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Stream and number of the fragments to send again now, sorted by stream, and the credit that they leave.

        `credit`: how many fragments each stream may send, (streams,).
        """
        if now < self.scan_at:
            return NONE, NONE, credit
        self.scan_at = now + self.options.scan_s
        stream, fragment = self.with_wanted(*self.overdue(now))
        counts = np.bincount(stream, minlength=len(credit))
        allowed = np.arange(len(stream)) - np.repeat(before(counts), counts) < credit[stream]
        return stream[allowed], fragment[allowed], credit - np.minimum(counts, credit)

    def overdue(self, now: float) -> tuple[IntArray, IntArray]:
        """Stream and number of all overdue fragments, sorted; windows of streams that these show congested shrink."""
        stream, fragment = self.progress.on_the_way()
        rows = self.layout.rows(stream, fragment)
        timeouts = self.round_trips.timeouts()
        late = now - self.sendings.sent_at[rows] > self.patience(rows, timeouts[stream], self.max_backoff[stream])
        passed = self.sendings.newest_order[stream] - self.sendings.order[rows]
        overtaken = passed >= self.gap[stream] + self.turn(stream, fragment)
        missing = self.memory.parts[rows] != WHOLE
        costly = late & (~self.keeps[stream] | self.goes_directly(rows, now))
        congested = missing & ~self.noticed[rows] & (costly | (overtaken & self.yields[stream]))
        if congested.any():
            self.windows.shrink(np.unique(stream[congested]), now, timeouts)
        # No more than a window of them at once: a PS to which all turn again must have time to answer.
        due = missing & (late | overtaken) & (fragment < (self.progress.base + self.windows.whole())[stream])
        return stream[due], fragment[due]

    def turn(self, stream: IntArray, fragment: IntArray) -> IntArray:
        """How many more results each worker lets overtake a fragment than its rule says, before it asks."""
        seq = self.progress.first_seq[stream] + fragment
        return spread(self.layout.streams.label[stream], seq) % self.turns[stream]

    def patience(self, rows: IntArray, timeouts: FloatArray, max_backoff: IntArray) -> FloatArray:
        """How long each of `rows` waits for its result before it is sent again, in seconds: twice as long each time.

        `timeouts` and `max_backoff` are those of the rows' streams, (rows,).
        """
        tries = self.sendings.tries[rows]
        timeouts = np.where(tries > 1, np.minimum(timeouts, self.options.retry_s), timeouts)
        backoff = 1 << np.minimum(tries - 1, max_backoff).astype(np.int64)
        return np.minimum(timeouts * backoff, self.options.max_timeout_s)

    def with_wanted(self, stream: IntArray, fragment: IntArray) -> tuple[IntArray, IntArray]:
        """The same fragments and those that a PS has asked for though their result is here, sorted by stream."""
        if not self.wanted.size:
            return stream, fragment
        more = self.layout.stream_of_row[self.wanted]
        stream = np.concatenate((stream, more))
        fragment = np.concatenate((fragment, self.progress.fragments_of(self.wanted)))
        order = np.argsort(stream, kind="stable")
        return stream[order], fragment[order]

    def goes_directly(self, rows: IntArray, now: float) -> BoolArray:
        """Which of `rows` pass all slots if they are sent again now: a PS wants them, or they have waited too long."""
        options = self.options
        by_timeouts = TIMEOUTS_BY_AGGREGATORS * options.first_timeout_s
        patience = by_timeouts if options.direct_after_s is None else options.direct_after_s
        return self.noticed[rows] | (now - self.sendings.begun_at[rows] > patience)

    def note_sent(self, rows: IntArray) -> None:
        """Note that `rows` have been sent again: what a PS asked for among them it gets."""
        if self.wanted.size:
            self.wanted = np.setdiff1d(self.wanted, rows)

    def take_notices(self, rows: IntArray, asked: BoolArray) -> None:
        """Note that a PS is to sum `rows` itself: they are sent again at once, past all slots.

        Rows whose result is here already are sent again only where the PS has `asked` for them.
        """
        done = self.memory.parts[rows] == WHOLE
        fresh = rows[~self.noticed[rows] & ~done]
        self.noticed[rows[asked | ~done]] = True
        self.sendings.sent_at[fresh] = -np.inf
        self.wanted = np.union1d(self.wanted, rows[asked & done])
        self.look_now()

    def look_now(self) -> None:
        """Look for overdue fragments at the next step, whenever the last look was."""
        self.scan_at = 0.0
