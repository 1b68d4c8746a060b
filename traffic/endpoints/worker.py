"""All workers of a run: what they send and when, and what they make of results and notices.

One object for all, over flat arrays (see `inakit.traffic.endpoints.streams`): a Python step costs the same for one
packet of one worker as for hundreds of packets of dozens of workers.
"""

from __future__ import annotations

import numpy as np

from inakit.traffic.endpoints.sending import (
    Batch,
    Retransmission,
    RoundTrips,
    Sendings,
    TokenBuckets,
    Windows,
    WorkerOptions,
    fair_shares,
    least_windows,
    rules_of,
)
from inakit.traffic.endpoints.streams import StreamLayout, gradient_heads, set_sequence
from inakit.traffic.endpoints.worker_memory import WHOLE, StreamProgress, WorkerMemory
from inakit.traffic.endpoints.wrong_sums import WorkerCounts, is_miscounted
from inakit.traffic.sockets.ports import BoolArray, FloatArray, IntArray, Outgoing, Packets, is_prefix, ragged
from inakit.traffic.wire.packet_format import Flag, Kind, pick

ECN, OVERFLOW, RETRANSMITTED = (int(flag) for flag in (Flag.ECN, Flag.OVERFLOW, Flag.RETRANSMITTED))
NOTICE, RESULT = int(Kind.NOTICE), int(Kind.RESULT)


class Workers:
    """The state machines of all workers. Times are seconds of the ports' clock.

    `heads`: by row (a fragment of a stream), the head that it is sent with. A head is complete when its iteration
    begins, so that sending it takes no more work. `chosen`: what `due` has given out and `note` is to hear of.
    """

    def __init__(self, layout: StreamLayout, memory: WorkerMemory, options: WorkerOptions) -> None:
        streams, rows = layout.streams, len(memory.parts)
        self.layout, self.memory, self.options = layout, memory, options
        self.heads = pick(gradient_heads(layout), layout.stream_of_row)
        self.tree_size = np.array([len(part.tree.workers) for part in layout.parts], np.int64)
        self.progress = StreamProgress(layout, options.first_seq)
        self.buckets = TokenBuckets(streams, options)
        least = least_windows(streams, fair_shares(streams, options.min_timeout_s))
        self.windows = Windows(streams.in_flight, least, rules_of(layout))
        self.round_trips = RoundTrips(len(streams.host), options)
        self.sendings = Sendings(rows, len(streams.host))
        self.retransmission = Retransmission(
            layout,
            options,
            memory=memory,
            progress=self.progress,
            sendings=self.sendings,
            round_trips=self.round_trips,
            windows=self.windows,
        )
        self.counts = WorkerCounts(layout)

    # -- iterations

    def begin(self, job_index: int, iteration: int) -> None:
        """Start to send the gradients that the job's memory holds."""
        self.memory.begin(job_index)
        streams = self.layout.streams_of(job_index)
        self.progress.begin(streams, iteration)
        self.buckets.begin(streams)
        self.counts.begin(streams)
        self.begin_rows(self.layout.held_rows(streams))

    def end(self, job_index: int) -> None:
        """Send nothing more of the job's gradients: they may change from now on."""
        self.progress.end(self.layout.streams_of(job_index))
        self.retransmission.end()

    def begin_rows(self, rows: IntArray) -> None:
        """Note that `rows` hold fragments which nobody has sent, and complete their heads."""
        self.sendings.begin(rows)
        self.retransmission.begin(rows)
        stream = self.layout.stream_of_row[rows]
        seq = self.progress.first_seq[stream] + self.progress.fragments_of(rows)
        set_sequence(self.layout, self.heads, rows, stream, seq)
        self.heads["ina"]["flags"][rows] = 0

    def turn(self) -> None:
        """Where gradients are held in pieces, put new pieces in the place of those that nobody needs any more.

        A stream whose next iteration has been loaded and not begun still has the base of its last one: it waits.
        """
        due = self.due_pieces()
        while due.any():
            for stream in np.flatnonzero(due).tolist():
                rows = self.memory.turn(stream)
                self.progress.held[stream] += self.layout.streams.piece[stream]
                self.begin_rows(np.arange(rows.start, rows.stop))
            due = self.due_pieces()

    def due_pieces(self) -> BoolArray:
        """The streams whose oldest piece nobody needs any more, (streams,)."""
        due: BoolArray = self.progress.active & (self.progress.base >= self.memory.turn_at)
        return due

    def finished(self, job_index: int) -> bool:
        """Whether every worker of the job has every result of the iteration."""
        return self.progress.finished(self.layout.streams_of(job_index))

    def first_waiting(self, job_index: int) -> int:
        """The first stream of an unfinished job that lacks results; the first that it lacks is that of its base."""
        return self.progress.first_unfinished(self.layout.streams_of(job_index))

    # -- sending

    def due(self, now: float) -> Outgoing | None:
        """What is to be sent now; `note` must hear what became of it."""
        self.refill(now)
        batch = self.choose(now)
        self.chosen, self.chosen_at = batch, now
        if not batch.stream.size:
            self.buckets.ready = self.ready()
            return None
        counts = np.bincount(self.layout.streams.host[batch.stream], minlength=len(self.layout.hosts))
        rows = self.layout.rows(batch.stream, batch.fragment)
        self.flag(rows[batch.again], now)
        return Outgoing(self.heads, self.memory.gradients, rows, counts)

    def note(self, counts: IntArray, accepted: IntArray) -> None:
        """Note that `accepted` of the `counts` packets of each host that were due have been sent; both (hosts,)."""
        all_sent = (counts == accepted).all()
        self.note_sent(self.chosen if all_sent else self.chosen.where(is_prefix(counts, accepted)), self.chosen_at)
        self.buckets.ready = self.ready()

    def ready(self) -> BoolArray:
        """Which streams have fragments left, and room for the next one in their window."""
        progress = self.progress
        room: BoolArray = progress.next < np.minimum(self.layout.streams.count, progress.base + self.windows.whole())
        return room

    def next_due(self, accepts_from: FloatArray) -> float:
        """Before this time `due` gives out nothing that is accepted, and changes only credits, unless packets come.

        Packets of each host are accepted from `accepts_from` on, (hosts,).
        """
        ready = self.ready()
        if (ready != self.buckets.ready).any():  # an iteration has just begun
            return -np.inf
        filled_at = self.buckets.filled_at() if self.options.paced else np.full(len(ready), -np.inf)
        at = np.maximum(filled_at, accepts_from[self.layout.streams.host])[ready]
        return min(self.retransmission.scan_at, float(at.min(initial=np.inf)))

    def refill(self, now: float) -> None:
        """Raise every stream's credit; of unpaced workers only windows limit how much they send."""
        if self.options.paced:
            self.buckets.refill(now)
        else:
            self.buckets.fill()

    def refill_at(self, times: FloatArray) -> None:
        """Raise every stream's credit at each of these times, (ticks,)."""
        if self.options.paced:
            self.buckets.refill_at(times)
        elif times.size:
            self.buckets.fill()

    def choose(self, now: float) -> Batch:
        """Overdue fragments first, then new ones, as far as credit and window allow."""
        streams, progress = self.layout.streams, self.progress
        again_stream, again_fragment, credit = self.retransmission.due(now, self.buckets.credit.astype(np.int64))
        room = np.minimum(streams.count, progress.base + self.windows.whole()) - progress.next
        new_stream, new_fragment = ragged(progress.next, np.clip(credit, 0, np.maximum(room, 0)))
        if not again_stream.size:
            return Batch(new_stream, new_fragment, np.zeros(len(new_stream), np.bool_))
        stream = np.concatenate((again_stream, new_stream))
        order = np.argsort(stream, kind="stable")
        fragment = np.concatenate((again_fragment, new_fragment))
        return Batch(stream[order], fragment[order], order < len(again_stream))

    def flag(self, rows: IntArray, now: float) -> None:
        """Mark the heads of `rows`, which are sent again, and those among them that are to pass all slots."""
        if rows.size:
            direct = np.where(self.retransmission.goes_directly(rows, now), Flag.DIRECT, 0)
            self.heads["ina"]["flags"][rows] = Flag.RETRANSMITTED | direct

    def note_sent(self, batch: Batch, now: float) -> None:
        """Note that a batch has left at `now`."""
        rows = self.layout.rows(batch.stream, batch.fragment)
        sent = np.bincount(batch.stream, minlength=len(self.progress.next))
        again = np.bincount(batch.stream[batch.again], minlength=len(self.progress.next))
        self.sendings.note(batch, rows, sent, now)
        self.progress.next += sent - again
        self.buckets.credit -= sent
        self.counts.note_sent(sent, again, now)
        self.retransmission.note_sent(rows[batch.again])

    # -- receiving

    def receive(self, packets: Packets, now: float) -> None:
        """Take in results and notices."""
        ina, progress = packets.heads["ina"], self.progress
        tree = self.layout.tree_index(ina["job"], ina["tree"])
        stream = np.where(tree >= 0, self.layout.stream_of[packets.hosts, tree], -1)
        self.counts.strangers += int((stream < 0).sum())
        fragment = (ina["seq"] - progress.first_seq[stream]) & 0xFFFFFFFF
        sent = (progress.held[stream] <= fragment) & (fragment < progress.next[stream])
        mine = (stream >= 0) & progress.active[stream] & sent
        rows = self.layout.rows(stream, np.where(mine, fragment, 0))
        notice = mine & (ina["kind"] == NOTICE)
        if notice.any():
            self.take_notices(ina["flags"][notice], stream[notice], rows[notice], now)
        awaited = mine & (self.memory.parts[rows] != WHOLE)
        result = awaited & (ina["kind"] == RESULT) & (ina["part"] <= 1)
        wrong = result & is_miscounted(ina["workers"], self.tree_size[tree], self.layout.trees.counted[tree])
        if wrong.any():
            self.counts.miscounts.note(wrong, packets.heads, tree, fragment, self.tree_size[tree])
        if result.any():
            self.take_results(packets.where(result), stream[result], fragment[result], rows[result], now)

    def take_notices(self, flags: IntArray, stream: IntArray, rows: IntArray, now: float) -> None:
        """Take in notices: with ECN they tell of congestion, others ask for fragments that a PS sums itself."""
        early = (flags & ECN) != 0
        if early.any():
            self.windows.shrink(np.unique(stream[early]), now, self.round_trips.timeouts())
        if not early.all():
            self.retransmission.take_notices(rows[~early], (flags[~early] & RETRANSMITTED) != 0)

    def take_results(self, packets: Packets, stream: IntArray, fragment: IntArray, rows: IntArray, now: float) -> None:
        """Take in the results of `rows`, which hold the fragments `fragment` of the streams `stream`."""
        ina, progress = packets.heads["ina"], self.progress
        wide = (ina["flags"] & OVERFLOW) != 0
        self.memory.store(rows, packets.values, ina["part"].astype(np.int64), wide)
        self.measure_round_trips(stream, rows, (ina["flags"] & ECN) != 0, now)
        touched = np.flatnonzero(np.bincount(stream))
        self.counts.last_result_at[touched] = now
        np.maximum.at(progress.newest, stream, fragment)
        progress.advance(touched, self.memory.parts)
        if (progress.newest[touched] > progress.base[touched]).any():
            self.retransmission.look_now()  # there is a gap

    def measure_round_trips(self, stream: IntArray, rows: IntArray, marked: BoolArray, now: float) -> None:
        """Adjust round trips and windows to the results of `rows` that were sent once, and to the marks of these."""
        once = (self.sendings.tries[rows] == 1) & ~self.retransmission.noticed[rows]
        streams, counts, samples = self.sendings.note_results(stream[once], rows[once], now)
        self.round_trips.add(streams, samples)
        self.windows.grow(streams, counts)
        of_marked = np.bincount(stream[once & marked], minlength=len(self.windows.seen))
        self.windows.heed(streams, counts, of_marked[streams])

    # -- what is measured

    def late_s(self) -> FloatArray:
        """How many seconds' worth of its rate each host could have sent and did not, (hosts,)."""
        late = np.zeros(len(self.layout.hosts))
        np.maximum.at(late, self.layout.streams.host, self.buckets.late_s)
        return late

    def ended_at(self, job_index: int) -> float:
        """When the last result of the iteration came."""
        return float(self.counts.last_result_at[self.layout.streams_of(job_index)].max())
