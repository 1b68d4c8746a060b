"""The progress of streams, the sending times of fragments, and the choice of fragments to send again or to the PS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from inakit.traffic.endpoints.options import WorkerOptions
from inakit.traffic.endpoints.streams import StreamLayout, spread
from inakit.traffic.endpoints.windows import Windows, backoffs, crowds, fair_shares, rules_of
from inakit.traffic.sockets.ports import BoolArray, FloatArray, IntArray, before, ragged

WHOLE = 3
"""Both parts of a result are there: bit 0 for the low words, bit 1 for the high words."""

# -- The progress of streams in the fragments of their iteration.

LOOK_AHEAD = 8
"""The results that `advance` examines in its first NumPy step; each further step examines four times as many."""


class StreamProgress:
    """Arrays over streams, (streams,). Fragments are counted from the first of the iteration.

    `base`: the first fragment without a result. `next`: the first fragment that has not been sent yet. `held`: the
    first fragment that is still in memory. `newest`: the last fragment with a result, -1 for none. `first_seq`: the
    sequence number of fragment 0. `active`: the iteration is running, so the gradients in memory are the stream's. An
    iteration that has not begun looks like a finished one.
    """

    def __init__(self, layout: StreamLayout, start_seq: int) -> None:
        streams = layout.streams
        count = len(streams.host)
        self.layout, self.streams, self.start_seq = layout, streams, start_seq
        self.held = np.zeros(count, np.int64)
        self.base = streams.count.copy()
        self.next = streams.count.copy()
        self.newest = np.full(count, -1, np.int64)
        self.first_seq = np.full(count, start_seq, np.int64)
        self.active = np.zeros(count, np.bool_)

    def begin(self, streams: IntArray, iteration: int) -> None:
        """Put `streams` at the start of an iteration; sequence numbers continue from the last one."""
        self.held[streams] = self.base[streams] = self.next[streams] = 0
        self.newest[streams] = -1
        self.first_seq[streams] = self.start_seq + iteration * self.streams.count[streams]
        self.active[streams] = True

    def end(self, streams: IntArray) -> None:
        """Note that the iteration of `streams` is over."""
        self.active[streams] = False

    def finished(self, streams: IntArray) -> bool:
        """Whether all of `streams` have every result of the iteration."""
        return bool((self.base[streams] == self.streams.count[streams]).all())

    def first_unfinished(self, streams: IntArray) -> int:
        """The first of `streams` that lacks a result; there must be one."""
        return int(streams[self.base[streams] < self.streams.count[streams]][0])

    def on_the_way(self) -> tuple[IntArray, IntArray]:
        """Stream and number of every fragment from `base` to `next`, sorted; some have their result already."""
        return ragged(self.base, self.next - self.base)

    def fragments_of(self, rows: IntArray) -> IntArray:
        """The number, within its stream, of the fragment that each row holds."""
        stream = self.layout.stream_of_row[rows]
        held = self.held[stream]
        return held + (rows - self.streams.first_row[stream] - held) % self.streams.room[stream]

    def advance(self, streams: IntArray, parts: NDArray[np.uint8]) -> None:
        """Move the base of `streams` to their first fragment without a result.

        `parts`: which parts of each row's result have come, as in `WorkerMemory`.
        """
        ahead = LOOK_AHEAD
        while streams.size:
            fragment = self.base[streams, None] + np.arange(ahead)
            inside = fragment < self.next[streams, None]
            rows = self.layout.rows(streams[:, None], np.where(inside, fragment, 0))
            whole = inside & (parts[rows] == WHOLE)
            run = np.where(whole.all(axis=1), ahead, np.argmin(whole, axis=1))
            self.base[streams] += run
            streams, ahead = streams[run == ahead], 4 * ahead


# -- The times, numbers and order of sendings, the basis of timeouts and round trips.

MOST_TRIES = 255
"""The limit of the counter of tries."""


@dataclass(frozen=True)
class Batch:
    """Fragments to be sent, sorted by stream: fragment `fragment[i]` of stream `stream[i]`.

    `again`: whether it has been sent before. All arrays are (fragments,).
    """

    stream: IntArray
    fragment: IntArray
    again: BoolArray

    def where(self, mask: BoolArray) -> Batch:
        return Batch(self.stream[mask], self.fragment[mask], self.again[mask])


class Sendings:
    """Arrays over rows, the fragments of all streams, and over streams. Times are seconds of the ports' clock.

    By row: `begun_at` and `sent_at`, the times of the first and the last sending; `tries`, their number; `order`, the
    place of the last sending among all of its stream. By stream: `total`, the number of sendings; `newest_order`, the
    greatest order of a fragment that was sent once and whose result has come, -1 for none.
    """

    def __init__(self, rows: int, streams: int) -> None:
        self.begun_at = np.zeros(rows)
        self.sent_at = np.zeros(rows)
        self.order = np.zeros(rows, np.int64)
        self.tries = np.zeros(rows, np.uint8)
        self.total = np.zeros(streams, np.int64)
        self.newest_order = np.full(streams, -1, np.int64)

    def begin(self, rows: IntArray) -> None:
        """Note that `rows` hold fragments that have not been sent."""
        self.tries[rows] = 0

    def note(self, batch: Batch, rows: IntArray, per_stream: IntArray, now: float) -> None:
        """Note that a batch has left: `rows[i]` is its fragment i, `per_stream[s]` of them are of stream s."""
        self.begun_at[rows[~batch.again]] = now
        self.sent_at[rows] = now
        self.tries[rows] = np.minimum(self.tries[rows], MOST_TRIES - 1) + 1
        self.order[rows] = self.total[batch.stream] + np.arange(len(rows)) - before(per_stream)[batch.stream]
        self.total += per_stream

    def note_results(self, stream: IntArray, rows: IntArray, now: float) -> tuple[IntArray, IntArray, FloatArray]:
        """Note the results of fragments that were sent once: for others it is unknown which sending a result answers.

        Returns the streams with results, the number of results of each, and its mean round trip in seconds.
        """
        np.maximum.at(self.newest_order, stream, self.order[rows])
        counts = np.bincount(stream, minlength=len(self.total))
        streams = np.flatnonzero(counts)
        totals = np.bincount(stream, now - self.sent_at[rows], minlength=len(self.total))
        return streams, counts[streams], totals[streams] / counts[streams]


# -- Round-trip times of all streams, and the timeouts that follow from them (RFC 6298).


class RoundTrips:
    """Arrays over streams, (streams,), in seconds: `smoothed` round trips, NaN before the first, and `deviation`.

    `held_s`, (streams,): the time for which results can be held back to be sent together; it is added to timeouts.
    """

    def __init__(self, options: WorkerOptions, held_s: FloatArray) -> None:
        self.options, self.held_s = options, held_s
        self.smoothed = np.full(len(held_s), np.nan)
        self.deviation = np.zeros(len(held_s))

    def add(self, streams: IntArray, samples: FloatArray) -> None:
        """Add one measured round trip for each of `streams`, which are all different."""
        smooth = np.where(np.isnan(self.smoothed[streams]), samples, self.smoothed[streams])
        self.deviation[streams] += (np.abs(samples - smooth) - self.deviation[streams]) / 4
        self.smoothed[streams] = smooth + (samples - smooth) / 8

    def timeouts(self) -> FloatArray:
        """The timeout of each stream's fragments, (streams,).

        A round trip includes the wait for other workers, so it can have any length; `first_timeout_s` bounds it.
        """
        least, longest = (self.held_s + s for s in (self.options.min_timeout_s, self.options.first_timeout_s))
        measured = np.clip(self.smoothed + 4 * self.deviation, least, longest)
        return np.where(np.isnan(self.smoothed), longest, measured)


# -- The choice of fragments that workers send again, and of those that go directly to the PS.

TURNS = 4
"""The part of its window that bounds a worker's wait for its turn. Workers ask for a lost fragment in turn, each after
one more result than the worker before it, so that the first answer saves the others from asking.
"""
TIMEOUTS_BY_AGGREGATORS = 3
"""After this many first timeouts a fragment goes directly to the PS: an aggregator can have lost its part."""
NONE = np.empty(0, np.int64)


class Acknowledged(Protocol):
    """The acknowledged parts of sent fragments."""

    @property
    def parts(self) -> NDArray[np.uint8]:
        """The arrived parts of each row's result (`WHOLE`: all)."""


class Retransmission:
    """Finds overdue fragments: those past their timeout, or overtaken by newer ones.

    By row (a fragment of a stream): `noticed`, whether a PS wants it directly; `wanted`, the sorted rows that a PS asks
    for although their result is here. By stream: `gap`, `yields` and `keeps` of its `WindowRule`; `turns`, the number
    of places in the order in which workers ask (one, unless they ask `in_turn`); `max_backoff`, the most doublings of
    its timeout. `scan_at`: the time of the next scan, in seconds of the ports' clock.
    """

    def __init__(
        self,
        layout: StreamLayout,
        options: WorkerOptions,
        *,
        acknowledged: Acknowledged,
        progress: StreamProgress,
        sendings: Sendings,
        round_trips: RoundTrips,
        windows: Windows,
        in_turn: bool = True,
    ) -> None:
        streams, rules = layout.streams, rules_of(layout)
        self.layout, self.options = layout, options
        self.acknowledged, self.progress, self.sendings = acknowledged, progress, sendings
        self.round_trips, self.windows = round_trips, windows
        self.noticed = np.zeros(len(acknowledged.parts), np.bool_)
        self.wanted = NONE
        self.gap = np.array([rule.gap for rule in rules], np.int64)
        self.yields = np.array([rule.yields for rule in rules], np.bool_)
        self.keeps = np.array([rule.keeps for rule in rules], np.bool_)
        self.turns: IntArray = np.clip(streams.in_flight // TURNS, 1, crowds(streams) if in_turn else 1)
        self.max_backoff = backoffs(windows.least, fair_shares(streams, options.min_timeout_s))
        self.scan_at = 0.0

    def begin(self, rows: IntArray) -> None:
        """Forget a PS's requests for the fragments that `rows` held in the last iteration."""
        self.noticed[rows] = False

    def end(self) -> None:
        """Forget a PS's requests to streams whose iteration is over: their gradients can change."""
        self.wanted = self.wanted[self.progress.active[self.layout.stream_of_row[self.wanted]]]

    def due(self, now: float, credit: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return stream and number of the fragments to send again now, sorted by stream, and the remaining credit.

        `credit`: the number of fragments that each stream can send, (streams,).
        """
        if now < self.scan_at:
            return NONE, NONE, credit
        self.scan_at = now + self.options.scan_s
        stream, fragment = self.with_wanted(*self.overdue(now))
        counts = np.bincount(stream, minlength=len(credit))
        allowed = np.arange(len(stream)) - np.repeat(before(counts), counts) < credit[stream]
        return stream[allowed], fragment[allowed], credit - np.minimum(counts, credit)

    def overdue(self, now: float) -> tuple[IntArray, IntArray]:
        """Return stream and number of all overdue fragments, sorted, and shrink the windows of congested streams."""
        stream, fragment = self.progress.on_the_way()
        rows = self.layout.rows(stream, fragment)
        timeouts = self.round_trips.timeouts()
        late = now - self.sendings.sent_at[rows] > self.patience(rows, timeouts[stream], self.max_backoff[stream])
        passed = self.sendings.newest_order[stream] - self.sendings.order[rows]
        overtaken = passed >= self.gap[stream] + self.turn(stream, fragment)
        missing = self.acknowledged.parts[rows] != WHOLE
        costly = late & (~self.keeps[stream] | self.goes_directly(rows, now))
        congested = missing & ~self.noticed[rows] & (costly | (overtaken & self.yields[stream]))
        if congested.any():
            self.windows.shrink(np.unique(stream[congested]), now, timeouts)
        # At most a window of them at once: the PS that all workers ask again must have time to answer.
        due = missing & (late | overtaken) & (fragment < (self.progress.base + self.windows.whole())[stream])
        return stream[due], fragment[due]

    def turn(self, stream: IntArray, fragment: IntArray) -> IntArray:
        """The number of results, beyond its rule's, that each worker lets overtake a fragment before it asks."""
        seq = self.progress.first_seq[stream] + fragment
        return spread(self.layout.streams.label[stream], seq) % self.turns[stream]

    def patience(self, rows: IntArray, timeouts: FloatArray, max_backoff: IntArray) -> FloatArray:
        """The timeout of each of `rows` in seconds, doubled at each try.

        `timeouts` and `max_backoff` are those of the rows' streams, (rows,).
        """
        tries = self.sendings.tries[rows]
        timeouts = np.where(tries > 1, np.minimum(timeouts, self.options.retry_s), timeouts)
        backoff = 1 << np.minimum(tries - 1, max_backoff).astype(np.int64)
        return np.minimum(timeouts * backoff, self.options.max_timeout_s)

    def with_wanted(self, stream: IntArray, fragment: IntArray) -> tuple[IntArray, IntArray]:
        """Add the fragments that a PS has asked for although their result is here; sorted by stream."""
        if not self.wanted.size:
            return stream, fragment
        more = self.layout.stream_of_row[self.wanted]
        stream = np.concatenate((stream, more))
        fragment = np.concatenate((fragment, self.progress.fragments_of(self.wanted)))
        order = np.argsort(stream, kind="stable")
        return stream[order], fragment[order]

    def goes_directly(self, rows: IntArray, now: float) -> BoolArray:
        """Whether each of `rows`, if sent again now, passes all slots: a PS wants it, or it has waited too long."""
        options = self.options
        by_timeouts = TIMEOUTS_BY_AGGREGATORS * options.first_timeout_s
        patience = by_timeouts if options.direct_after_s is None else options.direct_after_s
        return self.noticed[rows] | (now - self.sendings.begun_at[rows] > patience)

    def note_sent(self, rows: IntArray) -> None:
        """Note that `rows` have been sent again, which fulfils a PS's requests for them."""
        if self.wanted.size:
            self.wanted = np.setdiff1d(self.wanted, rows)

    def take_notices(self, rows: IntArray, asked: BoolArray) -> None:
        """Note that a PS sums `rows` itself: they are sent again at once, past all slots.

        Rows whose result is here already are sent again only if the PS has `asked` for them.
        """
        done = self.acknowledged.parts[rows] == WHOLE
        fresh = rows[~self.noticed[rows] & ~done]
        self.noticed[rows[asked | ~done]] = True
        self.sendings.sent_at[fresh] = -np.inf
        self.wanted = np.union1d(self.wanted, rows[asked & done])
        self.look_now()

    def look_now(self) -> None:
        """Scan for overdue fragments at the next step, regardless of the last scan."""
        self.scan_at = 0.0
