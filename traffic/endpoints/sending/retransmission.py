"""Which fragments workers send again, when, and which of them go directly to the PS."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from inakit.traffic.endpoints.sending.round_trips import RoundTrips
from inakit.traffic.endpoints.sending.sendings import Sendings
from inakit.traffic.endpoints.sending.window import Windows, backoffs, crowds, fair_shares, rules_of
from inakit.traffic.endpoints.stream_progress import StreamProgress
from inakit.traffic.endpoints.streams import StreamLayout, spread
from inakit.traffic.endpoints.worker_memory import WHOLE
from inakit.traffic.endpoints.worker_options import WorkerOptions
from inakit.traffic.sockets.batches import before
from inakit.traffic.sockets.ports import BoolArray, FloatArray, IntArray

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
