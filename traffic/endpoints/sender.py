"""The sender of a run: it decides the sending time of every fragment, and processes answers.

It drives all streams of all hosts at once, over flat arrays (see `inakit.traffic.endpoints.streams`): a step costs the
same for one packet of one worker as for hundreds of packets of dozens of workers. `receive` processes arrived packets,
`due` returns the packets to send, `note` gets the number of accepted ones, and `next_due` is the time of the next call.

The differences between workers and ranks of a collective are parameters: the `Source` of fragments, the `Decoder` of
answers, and the pace (`TokenBuckets`, or a derived class). The differences between papers are in files of their own:
windows (`windows`), retransmission (`retransmission`), the pace (`pacing`).
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
    """The fragments of all streams. By row, `parts`: the arrived parts of its result (`WHOLE`: all)."""

    @property
    def parts(self) -> NDArray[np.uint8]:
        """The arrived parts of each row's result, or `WHOLE` if it is acknowledged."""

    @property
    def known(self) -> IntArray:
        """The number of fragments up to which each stream can send, (streams,)."""

    def begin(self, job_index: int) -> None:
        """Begin an iteration of a job, with nothing acknowledged."""

    def renew(self, rows: IntArray, progress: StreamProgress) -> None:
        """Note that `rows` hold fragments that have not been sent."""

    def turn(self, progress: StreamProgress) -> Iterator[IntArray]:
        """Apply the changes of answers and other packets. Yields the rows that hold other fragments from now on."""

    def end(self, streams: IntArray) -> None:
        """Note that the iteration of `streams` is over."""

    def outgoing(
        self, batch: Batch, rows: IntArray, direct: BoolArray, progress: StreamProgress
    ) -> tuple[Outgoing, IntArray]:
        """Return the packets of a batch with fragments in `rows`, and the place of each fragment's last packet.

        `direct`: the fragments, among those sent `again`, that pass all slots.
        """


class Decoder(Protocol):
    """Decodes answers.

    `held_s`: the time for which answers can be held back to be sent together, in seconds, (streams,). `shared`: one
    answer goes to all workers of a tree, so that one worker's request serves the others.
    """

    held_s: FloatArray
    shared: bool

    def decode(self, packets: Packets, tree: IntArray, stream: IntArray, sender: Sender, now: float) -> None:
        """Pass the contents of packets to the sender (`acknowledge`, `slow_down`, `send_directly`).

        `tree` and `stream` are (packets,), -1 for none.
        """


class WorkerCounts:
    """Counts and times of all workers; times are seconds of the ports' clock.

    In the iteration, (streams,): `sent` frames; `first_sent_at`, NaN before; `last_sent_at`; `last_result_at`. Over the
    run: `retransmitted` frames, (streams,); `strangers`, packets that came to a host outside their tree; `miscounts` of
    results.
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
        """Note the numbers of `frames` of each stream that have left, and of those sent `again`; both (streams,)."""
        self.sent += frames
        self.retransmitted += again
        active = frames > 0
        self.last_sent_at[active] = now
        self.first_sent_at[active & np.isnan(self.first_sent_at)] = now


class Sender:
    """The state of all streams. Times are seconds of the ports' clock.

    `chosen`: the batch that `due` has returned and `note` will confirm. `last`: the place of each of its fragments'
    last packet.
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
        """Start sending the gradients in the job's memory."""
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
        """Apply the changes of arrived packets, before anything is sent."""
        for rows in self.source.turn(self.progress):
            self.renew(rows)

    def end(self, job_index: int) -> None:
        """Stop sending the job's gradients: they can change from now on."""
        streams = self.layout.streams_of(job_index)
        self.progress.end(streams)
        self.source.end(streams)
        self.retransmission.end()

    # -- sending

    def due(self, now: float) -> Outgoing | None:
        """Return the packets that are due; `note` must be called with the accepted ones."""
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
        """Choose overdue fragments, then new ones, within credits, windows and data."""
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
        """The number of new fragments that each stream's window and data allow, (streams,)."""
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
        """The time, up to rounding, before which `due` returns no packets that are accepted, unless packets arrive.

        Until then it has the effect of `refill_at` only. Packets of each host are accepted from `accepts_from` on,
        (hosts,). -inf: unknown.
        """
        return min(self.retransmission.scan_at, self.pace.next_due(self.room(), accepts_from))

    def refill_at(self, times: FloatArray) -> None:
        """Raise the credits at each of these times, (ticks,), as `due` does first."""
        self.pace.refill_at(times)

    # -- receiving

    def receive(self, packets: Packets, now: float) -> None:
        """Process arrived answers."""
        ina = packets.heads["ina"]
        tree = self.layout.tree_index(ina["job"], ina["tree"])
        stream = np.where(tree >= 0, self.layout.stream_of[packets.hosts, tree], -1)
        self.counts.strangers += int((stream < 0).sum())
        self.decoder.decode(packets, tree, stream, self, now)

    def acknowledge(self, stream: IntArray, fragment: IntArray, rows: IntArray, marked: BoolArray, now: float) -> None:
        """Note that fragments have their results, which `source` has stored. `marked`: whether a result has a mark.

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
        """Halve the windows of congested streams."""
        self.windows.shrink(np.unique(stream), now, self.round_trips.timeouts())

    def send_directly(self, rows: IntArray, asked: BoolArray) -> None:
        """Send fragments past all slots, as a PS requests; those with a result only if it has `asked` for them."""
        self.retransmission.take_notices(rows, asked)

    # -- what is measured

    def late_s(self) -> FloatArray:
        """The sending time, at its rate, that each host could have used and did not, in seconds, (hosts,)."""
        return self.pace.late_s_of(len(self.layout.hosts))
