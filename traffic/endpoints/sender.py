"""The one sender of a run: when which fragment of which stream is sent, and what answers make of that.

It drives all streams of all hosts at once, over flat arrays (see `inakit.traffic.endpoints.streams`): a step costs the
same for one packet of one worker as for hundreds of packets of dozens of workers. A packet comes (`receive`) or its
time comes (`due`); it sends (`note` hears what was accepted), and says when it wants to be asked again (`next_due`).

What differs between workers and ranks of a collective is handed to it: the `Source` of fragments, the `Decoder` of
answers, and the pace (`TokenBuckets`, or a class derived from it). What papers differ in stands in files of its own:
windows (`windows`), what is sent again (`retransmission`), the pace (`pacing`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from inakit.traffic.endpoints.options import WorkerOptions
from inakit.traffic.endpoints.pacing import TokenBuckets
from inakit.traffic.endpoints.retransmission import Batch, Retransmission, RoundTrips, Sendings, StreamProgress
from inakit.traffic.endpoints.streams import StreamLayout
from inakit.traffic.endpoints.sum_check import Miscounts
from inakit.traffic.endpoints.windows import Windows, fair_shares, least_windows, rules_of
from inakit.traffic.sockets.ports import BoolArray, FloatArray, IntArray, Outgoing, Packets, is_prefix, ragged

NONE = np.zeros(0, np.bool_)


class Source(Protocol):
    """The fragments of all streams. By row, `parts`: which parts of its result have come (`WHOLE`: all)."""

    @property
    def parts(self) -> NDArray[np.uint8]:
        """By row, which parts of the fragment's result have come, or whether it is acknowledged (`WHOLE`)."""

    @property
    def known(self) -> IntArray:
        """Up to which fragment each stream has something to send, (streams,)."""

    def begin(self, job_index: int) -> None:
        """Begin an iteration of a job: nothing of it has been acknowledged."""

    def renew(self, rows: IntArray, progress: StreamProgress) -> None:
        """Note that `rows` hold fragments that have not been sent."""

    def turn(self, progress: StreamProgress) -> Iterator[IntArray]:
        """Take in what answers and other packets have changed. Yields rows that hold other fragments from now on."""

    def end(self, streams: IntArray) -> None:
        """Note that the iteration of `streams` is over."""

    def outgoing(
        self, batch: Batch, rows: IntArray, direct: BoolArray, progress: StreamProgress
    ) -> tuple[Outgoing, IntArray]:
        """The packets of a batch, whose fragments are in `rows`, and by fragment the place of its last packet.

        `direct`: which of those that are sent `again` are to pass all slots.
        """


class Decoder(Protocol):
    """Reads answers. `held_s`: how long an answer may be held back until others go with it, in seconds, (streams,).

    `shared`: one answer goes to all workers of a tree, so that the question of one spares the others theirs.
    """

    held_s: FloatArray
    shared: bool

    def decode(self, packets: Packets, tree: IntArray, stream: IntArray, sender: Sender, now: float) -> None:
        """Tell the sender (`acknowledge`, `slow_down`, `send_directly`) what packets say of streams.

        `tree` and `stream` are (packets,), -1 for none.
        """


class WorkerCounts:
    """Counts and times of all workers; times are seconds of the ports' clock.

    Of the iteration, (streams,): `sent` frames; `first_sent_at`, NaN before; `last_sent_at`; `last_result_at`.
    Over the run: `retransmitted` frames, (streams,); `strangers`, packets that came to a host which has no part in
    their tree; `miscounts` of results.
    """

    def __init__(self, layout: StreamLayout) -> None:
        count = len(layout.streams.host)
        self.sent = np.zeros(count, np.int64)
        self.first_sent_at = np.zeros(count)
        self.last_sent_at = np.zeros(count)
        self.last_result_at = np.zeros(count)
        self.retransmitted = np.zeros(count, np.int64)
        self.strangers = 0
        self.miscounts = Miscounts(layout)

    def begin(self, streams: IntArray) -> None:
        """Count an iteration of `streams` from 0."""
        self.sent[streams] = 0
        self.first_sent_at[streams] = np.nan

    def note_sent(self, frames: IntArray, again: IntArray, now: float) -> None:
        """Note how many `frames` of each stream have left, and how many of them were sent `again`; both (streams,)."""
        self.sent += frames
        self.retransmitted += again
        active = frames > 0
        self.last_sent_at[active] = now
        self.first_sent_at[active & np.isnan(self.first_sent_at)] = now


class Sender:
    """The state of all streams. Times are seconds of the ports' clock.

    `chosen`: what `due` has given out and `note` is to hear of, and `last`: by its fragments, the place of the last
    packet of each.
    """

    def __init__(
        self, layout: StreamLayout, source: Source, decoder: Decoder, pace: TokenBuckets, options: WorkerOptions
    ) -> None:
        streams = layout.streams
        self.layout, self.source, self.decoder, self.pace = layout, source, decoder, pace
        self.progress = StreamProgress(layout, options.first_seq)
        least = least_windows(streams, fair_shares(streams, options.min_timeout_s))
        self.windows = Windows(streams.in_flight, least, rules_of(layout))
        self.round_trips = RoundTrips(options, decoder.held_s)
        self.sendings = Sendings(len(source.parts), len(streams.host))
        self.retransmission = Retransmission(
            layout,
            options,
            acknowledged=source,
            progress=self.progress,
            sendings=self.sendings,
            round_trips=self.round_trips,
            windows=self.windows,
            in_turn=decoder.shared,
        )
        self.counts = WorkerCounts(layout)

    # -- iterations

    def begin(self, job_index: int, iteration: int) -> None:
        """Start to send the gradients that the job's memory holds."""
        streams = self.layout.streams_of(job_index)
        self.source.begin(job_index)
        self.progress.begin(streams, iteration)
        self.pace.begin(streams)
        self.counts.begin(streams)
        self.renew(self.layout.held_rows(streams))

    def renew(self, rows: IntArray) -> None:
        """Note that `rows` hold fragments that have not been sent."""
        self.sendings.begin(rows)
        self.retransmission.begin(rows)
        self.source.renew(rows, self.progress)

    def turn(self) -> None:
        """Take in what packets that have come have changed, before anything is sent."""
        for rows in self.source.turn(self.progress):
            self.renew(rows)

    def end(self, job_index: int) -> None:
        """Send nothing more of the job's gradients: they may change from now on."""
        streams = self.layout.streams_of(job_index)
        self.progress.end(streams)
        self.source.end(streams)
        self.retransmission.end()

    # -- sending

    def due(self, now: float) -> Outgoing | None:
        """What is to be sent now; `note` must hear what became of it."""
        self.pace.refill(now)
        batch = self.choose(now)
        self.chosen, self.chosen_at = batch, now
        if not batch.stream.size:
            self.pace.note_room(self.room())
            return None
        rows = self.layout.rows(batch.stream, batch.fragment)
        again = rows[batch.again]
        direct = self.retransmission.goes_directly(again, now) if again.size else NONE
        outgoing, self.last = self.source.outgoing(batch, rows, direct, self.progress)
        return outgoing

    def choose(self, now: float) -> Batch:
        """Overdue fragments first, then new ones, as far as credits, windows and data allow."""
        progress = self.progress
        again_stream, again_fragment, credit = self.retransmission.due(now, self.pace.credit.astype(np.int64))
        granted = self.pace.grant(np.clip(credit, 0, self.room()), progress.next)
        new_stream, new_fragment = ragged(progress.next, granted)
        if not again_stream.size:
            return Batch(new_stream, new_fragment, np.zeros(len(new_stream), np.bool_))
        stream = np.concatenate((again_stream, new_stream))
        order = np.argsort(stream, kind="stable")
        fragment = np.concatenate((again_fragment, new_fragment))
        return Batch(stream[order], fragment[order], order < len(again_stream))

    def room(self) -> IntArray:
        """How many new fragments each stream may send, for all that its window and its data allow, (streams,)."""
        progress = self.progress
        end = np.minimum(self.source.known, progress.base + self.windows.whole())
        room: IntArray = np.maximum(end - progress.next, 0)
        return room

    def note(self, counts: IntArray, accepted: IntArray) -> None:
        """Note that `accepted` of the `counts` packets of each host that were due have been sent; both (hosts,)."""
        batch, now = self.chosen, self.chosen_at
        if (counts != accepted).any():
            batch = batch.where(is_prefix(counts, accepted)[self.last])
        rows = self.layout.rows(batch.stream, batch.fragment)
        sent = np.bincount(batch.stream, minlength=len(self.progress.next))
        again = np.bincount(batch.stream[batch.again], minlength=len(self.progress.next))
        self.sendings.note(batch, rows, sent, now)
        self.progress.next += sent - again
        self.pace.note_sent(batch.stream, rows, sent)
        self.counts.note_sent(sent, again, now)
        self.retransmission.note_sent(rows[batch.again])
        self.pace.note_room(self.room())

    def next_due(self, accepts_from: FloatArray) -> float:
        """Before this time, give or take roundings, `due` has nothing to send that is accepted, unless packets come.

        Until then it does no more than `refill_at`. Packets of each host are accepted from `accepts_from` on, (hosts,).
        -inf: unknown.
        """
        return min(self.retransmission.scan_at, self.pace.next_due(self.room(), accepts_from))

    def refill_at(self, times: FloatArray) -> None:
        """Let credits to send rise at each of these times, (ticks,), as `due` does first."""
        self.pace.refill_at(times)

    # -- receiving

    def receive(self, packets: Packets, now: float) -> None:
        """Take in answers."""
        ina = packets.heads["ina"]
        tree = self.layout.tree_index(ina["job"], ina["tree"])
        stream = np.where(tree >= 0, self.layout.stream_of[packets.hosts, tree], -1)
        self.counts.strangers += int((stream < 0).sum())
        self.decoder.decode(packets, tree, stream, self, now)

    def acknowledge(self, stream: IntArray, fragment: IntArray, rows: IntArray, marked: BoolArray, now: float) -> None:
        """Note that fragments have their results; `source` knows of them. `marked`: whether a result has a mark.

        Round trips and windows follow the results of fragments that were sent once. All arrays are (fragments,).
        """
        progress = self.progress
        once = (self.sendings.tries[rows] == 1) & ~self.retransmission.noticed[rows]
        streams, counts, samples = self.sendings.note_results(stream[once], rows[once], now)
        self.round_trips.add(streams, samples)
        self.windows.grow(streams, counts)
        if self.windows.heeds.any():
            of_marked = np.bincount(stream[once & marked], minlength=len(self.windows.seen))
            self.windows.heed(streams, counts, of_marked[streams])
        touched = np.flatnonzero(np.bincount(stream))
        self.counts.last_result_at[touched] = now
        np.maximum.at(progress.newest, stream, fragment)
        progress.advance(touched, self.source.parts)
        if (progress.newest[touched] > progress.base[touched]).any():
            self.retransmission.look_now()  # there is a gap

    def slow_down(self, stream: IntArray, now: float) -> None:
        """Halve the windows of streams that met with congestion."""
        self.windows.shrink(np.unique(stream), now, self.round_trips.timeouts())

    def send_directly(self, rows: IntArray, asked: BoolArray) -> None:
        """Send fragments past all slots, as a PS wishes; those with a result only where it has `asked` for them."""
        self.retransmission.take_notices(rows, asked)

    # -- what is measured

    def late_s(self) -> FloatArray:
        """How many seconds' worth of its rate each host could have sent and did not, (hosts,)."""
        return self.pace.late_s_of(len(self.layout.hosts))
