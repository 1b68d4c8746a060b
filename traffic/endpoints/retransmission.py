"""How far each stream is, when each fragment was sent, which fragments are sent again, and which of them to the PS."""

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

# -- How far each stream is in the fragments of its iteration.

LOOK_AHEAD = 8
"""How many results `advance` looks at in its first NumPy step; each further one looks at four times as many."""


class StreamProgress:
    """Arrays over streams, (streams,). Fragments are counted from the first of the iteration.

    `base`: the first fragment without a result. `next`: the first fragment that has not been sent yet. `held`: the
    first fragment that is still in memory. `newest`: the last fragment with a result, -1 for none. `first_seq`: the
    sequence number of fragment 0. `active`: the iteration goes on, so the gradients in memory are the stream's. An
    iteration that has not begun looks like one that is over.
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
        """Put `streams` at the start of an iteration; sequence numbers go on from the last one."""
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
        """The first of `streams` that lacks a result; one of them must."""
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

        Returns the streams that got any, how many results each got, and its mean round trip in seconds.
        """
        np.maximum.at(self.newest_order, stream, self.order[rows])
        counts = np.bincount(stream, minlength=len(self.total))
        streams = np.flatnonzero(counts)
        totals = np.bincount(stream, now - self.sent_at[rows], minlength=len(self.total))
        return streams, counts[streams], totals[streams] / counts[streams]


# -- Round-trip times of all streams, and the timeouts that follow from them (RFC 6298).


class RoundTrips:
    """Arrays over streams, (streams,), in seconds: `smoothed` round trips, NaN before the first, and `deviation`.

    `held_s`, (streams,): how long a result may be held back until others go with it; a timeout is longer by as much.
    """

    def __init__(self, options: WorkerOptions, held_s: FloatArray) -> None:
        self.options, self.held_s = options, held_s
        self.smoothed = np.full(len(held_s), np.nan)
        self.deviation = np.zeros(len(held_s))

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


# -- Which fragments workers send again, when, and which of them go directly to the PS.

TURNS = 4
"""Workers ask for a lost fragment in turn, so that the first answer spares the others from asking: each waits for
one more result than the one before it, as long as that is no more than this part of its window."""
TIMEOUTS_BY_AGGREGATORS = 3
"""After this many first timeouts a fragment goes directly to the PS: an aggregator may have forgotten its part."""
NONE = np.empty(0, np.int64)


class Acknowledged(Protocol):
    """What is known of sent fragments."""

    @property
    def parts(self) -> NDArray[np.uint8]:
        """By row, which parts of the fragment's result have come (`WHOLE`: all)."""


class Retransmission:
    """Finds overdue fragments: those that have waited for longer than a timeout, or that newer ones have overtaken.

    By row (a fragment of a stream): `noticed`, whether a PS wants it directly; `wanted`, the sorted rows that a PS asks
    for although their result is here. By stream: `gap`, `yields` and `keeps` of its `WindowRule`; `turns`, how many
    places there are in the order in which workers ask (one, unless they ask `in_turn`); `max_backoff`, how often its
    timeout may double. `scan_at`: when to look next, in seconds of the ports' clock.
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
        missing = self.acknowledged.parts[rows] != WHOLE
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
        done = self.acknowledged.parts[rows] == WHOLE
        fresh = rows[~self.noticed[rows] & ~done]
        self.noticed[rows[asked | ~done]] = True
        self.sendings.sent_at[fresh] = -np.inf
        self.wanted = np.union1d(self.wanted, rows[asked & done])
        self.look_now()

    def look_now(self) -> None:
        """Look for overdue fragments at the next step, whenever the last look was."""
        self.scan_at = 0.0
