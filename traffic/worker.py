"""All workers of a run: what they send and when, and what they make of results and notices.

One object for all, over flat arrays (see `traffic.layout`): a Python step costs the same for one
packet of one worker as for hundreds of packets of dozens of workers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traffic.congestion import Windows, rule_of
from traffic.layout import Layout, before, head_of, is_prefix, pick, ragged, spread
from traffic.memory import WHOLE, Memory
from traffic.mismatches import Miscounts
from traffic.packet import BARE_FRAME, Flag, Frames, Kind, new_frames
from traffic.port import BoolArray, FloatArray, IntArray, Outgoing, Packets

LEAST_WINDOW = 2
MAX_BACKOFF = 6
TURNS = 4
"""Workers ask for a lost fragment in turn, so that what the first one gets spares others the question: one more result
each, as long as that is no more than this part of their window."""
SCAN_S = 0.015
"""How often workers look for what is overdue."""
LOOK_AHEAD = 64
TIMEOUTS_BY_AGGREGATORS = 3
"""What is still missed after so many goes directly to the PS: an aggregator may have forgotten its part."""


@dataclass(frozen=True)
class WorkerOptions:
    """Times in seconds. `paced`: keep to the planned rate, else only windows and links limit a worker.

    `credit_s` of its rate may be made up for after a pause: enough for the jitter of a busy machine,
    too little to fill the queue of a link that others use too. `retry_s` is the time-out of what has been sent
    again: short, for it is known to be lost, and its stream may stand still for it. What is missed for `direct_after_s`
    goes directly to the PS; if not given, that is after so many first time-outs.
    """

    paced: bool = True
    credit_s: float = 0.02
    first_timeout_s: float = 0.25
    min_timeout_s: float = 0.08
    max_timeout_s: float = 2.0
    retry_s: float = 0.03
    first_seq: int = 0
    direct_after_s: float | None = None


@dataclass(frozen=True)
class Batch:
    """Fragments about to be sent, sorted by stream: fragment `fragment` of stream `stream`."""

    stream: IntArray
    fragment: IntArray
    again: BoolArray


class Workers:
    """The state machines of all workers. Times are those of the ports' clock."""

    def __init__(self, layout: Layout, memory: Memory, options: WorkerOptions) -> None:
        streams, rows = layout.streams, len(memory.parts)
        count = len(streams.host)
        self.layout, self.memory, self.options = layout, memory, options
        # of rows; a head is complete when its iteration begins, so that sending it takes no more work
        self.stream_of_row = np.repeat(np.arange(count), streams.count)
        self.heads = pick(gradient_templates(layout), self.stream_of_row)
        self.begun_at = np.zeros(rows)
        self.sent_at = np.zeros(rows)
        self.order = np.zeros(rows, np.int64)  # when it was sent last, counted within its stream
        self.tries = np.zeros(rows, np.uint8)
        self.noticed = np.zeros(rows, np.bool_)  # to go directly to the PS
        # of streams; an iteration that has not begun looks like one that is over
        self.base = streams.count.copy()
        self.next = streams.count.copy()
        self.first_seq = np.full(count, options.first_seq, np.int64)
        self.credit = np.zeros(count)
        self.free_to_go_on = np.zeros(count, np.bool_)  # after what was sent last
        self.refilled_at = np.zeros(count)
        self.newest = np.full(count, -1, np.int64)  # fragment of this iteration with a result
        self.sendings = np.zeros(count, np.int64)
        self.newest_order = np.full(count, -1, np.int64)  # of what was sent once and has come back
        # What each worker may send in the shortest time-out, so that all together keep to their tree's rate
        # even when nothing is summed on the way.
        crowd = np.bincount(streams.tree)[streams.tree]
        fair = streams.rate_fps * options.min_timeout_s / crowd
        fair = np.maximum(fair, 1 / (1 << MAX_BACKOFF))
        least = np.minimum(np.maximum(fair, LEAST_WINDOW), streams.in_flight)
        rules = [rule_of(layout.parts[tree].tree.policy) for tree in streams.tree]
        self.windows = Windows(streams.in_flight, least, np.array([rule.returns for rule in rules], np.bool_))
        self.max_backoff = np.clip(np.ceil(np.log2(least / fair)), 1, MAX_BACKOFF).astype(np.int64)
        self.gap = np.array([rule.gap for rule in rules], np.int64)
        self.turns = np.clip(streams.in_flight // TURNS, 1, crowd)
        self.yields = np.array([rule.yields for rule in rules], np.bool_)
        self.wanted = np.empty(0, np.int64)  # rows that are done here, and that a PS asks for
        self.active = np.zeros(count, np.bool_)
        self.cut_at = np.zeros(count)
        self.round_trip = np.full(count, np.nan)
        self.deviation = np.zeros(count)
        self.scan_at = 0.0
        # of streams, to be read: in this iteration
        self.sent = np.zeros(count, np.int64)
        self.first_sent_at = np.zeros(count)
        self.last_sent_at = np.zeros(count)
        self.last_result_at = np.zeros(count)
        # over the run
        self.retransmitted = np.zeros(count, np.int64)
        self.late_s = np.zeros(count)
        self.refused = np.zeros(len(layout.hosts), np.int64)
        self.strangers = 0
        self.tree_size = np.array([len(part.tree.workers) for part in layout.parts], np.int64)
        self.miscounts = Miscounts(layout)

    # -- iterations

    def begin(self, job_index: int, iteration: int) -> None:
        """Start to send the gradients that the job's memory holds."""
        self.memory.begin(job_index)
        of = self.layout.streams_of(job_index)
        _, rows = ragged(self.layout.streams.first_row[of], self.layout.streams.count[of])
        self.tries[rows] = 0
        self.noticed[rows] = False
        self.base[of] = self.next[of] = self.sent[of] = 0
        self.newest[of] = -1
        self.first_seq[of] = self.options.first_seq + iteration * self.layout.streams.count[of]
        self.complete_heads(rows)
        self.refilled_at[of] = self.first_sent_at[of] = np.nan
        self.active[of] = True

    def end(self, job_index: int) -> None:
        """The job's gradients may change from now on: nothing more is sent of them."""
        self.active[self.layout.streams_of(job_index)] = False
        self.wanted = self.wanted[self.active[self.stream_of_row[self.wanted]]]

    def complete_heads(self, rows: IntArray) -> None:
        """Write what is an iteration's own into the heads of `rows`."""
        stream = self.stream_of_row[rows]
        fragment = rows - self.layout.streams.first_row[stream]
        number(self.layout, self.heads, rows, stream, self.first_seq[stream] + fragment)
        self.heads["ina"]["flags"][rows] = 0

    def finished(self, job_index: int) -> bool:
        """Every worker of the job has every result of the iteration."""
        of = self.layout.streams_of(job_index)
        return bool((self.base[of] == self.layout.streams.count[of]).all())

    def first_waiting(self, job_index: int) -> int:
        """The first stream of an unfinished job that waits for results; it waits for that of its base."""
        of = self.layout.streams_of(job_index)
        return int(of[self.base[of] < self.layout.streams.count[of]][0])

    # -- sending

    def due(self, now: float) -> Outgoing | None:
        """What is to be sent now; `note` must hear what became of it."""
        self.refill(now)
        batch = self.choose(now)
        self.chosen, self.chosen_at = batch, now
        if not batch.stream.size:
            self.free_to_go_on = self.has_room()
            return None
        counts = np.bincount(self.layout.streams.host[batch.stream], minlength=len(self.layout.hosts))
        rows = self.layout.streams.first_row[batch.stream] + batch.fragment
        self.flag(rows, batch.again)
        return Outgoing(self.heads, self.memory.gradients, rows, counts)

    def note(self, counts: IntArray, accepted: IntArray) -> None:
        """So many packets of each host were due, so many were sent."""
        self.refused += counts - accepted
        batch = self.chosen
        if not (counts == accepted).all():
            sent = is_prefix(counts, accepted)
            batch = Batch(batch.stream[sent], batch.fragment[sent], batch.again[sent])
        self.note_sent(batch, self.chosen_at)
        self.free_to_go_on = self.has_room()

    def has_room(self) -> BoolArray:
        """Streams that have fragments left and whose window lets them send the next one."""
        room: BoolArray = (self.next < self.layout.streams.count) & (self.next < self.base + self.windows.whole())
        return room

    def refill(self, now: float) -> None:
        """Token buckets. What a stream that was free to go on has not sent, beyond its bucket, is lateness."""
        streams = self.layout.streams
        if not self.options.paced:
            self.credit = streams.in_flight.astype(np.float64)
            return
        depth = np.maximum(2.0, self.options.credit_s * streams.rate_fps)
        started = ~np.isnan(self.refilled_at)
        self.credit = np.where(started, self.credit + (now - self.refilled_at) * streams.rate_fps, 1)
        self.refilled_at[:] = now
        self.late_s += np.where(self.free_to_go_on, np.maximum(self.credit - depth, 0), 0) / streams.rate_fps
        np.minimum(self.credit, depth, out=self.credit)

    def choose(self, now: float) -> Batch:
        """Overdue fragments first, then new ones, as far as credit and window allow."""
        streams = self.layout.streams
        again_stream, again_fragment, credit = self.overdue(now)
        room = np.minimum(streams.count, self.base + self.windows.whole()) - self.next
        new_stream, new_fragment = ragged(self.next, np.clip(credit, 0, np.maximum(room, 0)))
        stream = np.concatenate((again_stream, new_stream))
        again = np.arange(len(stream)) < len(again_stream)
        if not again_stream.size:
            return Batch(stream, new_fragment, again)
        order = np.argsort(stream, kind="stable")
        return Batch(stream[order], np.concatenate((again_fragment, new_fragment))[order], again[order])

    def overdue(self, now: float) -> tuple[IntArray, IntArray, IntArray]:
        """Fragments to send again (stream and fragment), and the credit that they leave."""
        credit = self.credit.astype(np.int64)
        none = np.empty(0, np.int64)
        if now < self.scan_at:
            return none, none, credit
        self.scan_at = now + SCAN_S
        stream, fragment = ragged(self.base, self.next - self.base)
        rows = self.layout.streams.first_row[stream] + fragment
        late = now - self.sent_at[rows] > self.patience(rows, stream)
        overtaken = self.order[rows] + self.gap[stream] + self.turn(stream, fragment) <= self.newest_order[stream]
        missing = self.memory.parts[rows] != WHOLE
        congested = missing & ~self.noticed[rows] & (late | (overtaken & self.yields[stream]))
        self.shrink_windows(np.unique(stream[congested]), now)
        # No more than a window of them at once: a PS to which all turn again must have time to answer.
        due = missing & (late | overtaken) & (fragment < (self.base + self.windows.whole())[stream])
        stream, fragment = self.with_wanted(stream[due], fragment[due])
        counts = np.bincount(stream, minlength=len(credit))
        allowed = np.arange(len(stream)) - np.repeat(before(counts), counts) < credit[stream]
        return stream[allowed], fragment[allowed], credit - np.minimum(counts, credit)

    def turn(self, stream: IntArray, fragment: IntArray) -> IntArray:
        """How many more results each worker lets overtake a fragment than its rule says, before it asks."""
        seq = self.first_seq[stream] + fragment
        return spread(self.layout.streams.label[stream], seq) % self.turns[stream]

    def patience(self, rows: IntArray, stream: IntArray) -> FloatArray:
        """How long each row waits for its result before it is sent again, twice as long each time."""
        timeouts = self.timeouts()[stream]
        timeouts = np.where(self.tries[rows] > 1, np.minimum(timeouts, self.options.retry_s), timeouts)
        backoff = 1 << np.minimum(self.tries[rows] - 1, self.max_backoff[stream]).astype(np.int64)
        return np.minimum(timeouts * backoff, self.options.max_timeout_s)

    def timeouts(self) -> FloatArray:
        """How long each stream waits for a result. A round trip contains waiting for other workers, hence its bound."""
        longest = self.options.first_timeout_s
        measured = np.clip(self.round_trip + 4 * self.deviation, self.options.min_timeout_s, longest)
        return np.where(np.isnan(self.round_trip), longest, measured)

    def shrink_windows(self, streams: IntArray, now: float) -> None:
        """Halve the window of congested streams, once per timeout."""
        cut = streams[now - self.cut_at[streams] > self.timeouts()[streams]]
        self.cut_at[cut] = now
        self.windows.halve(cut)

    def with_wanted(self, stream: IntArray, fragment: IntArray) -> tuple[IntArray, IntArray]:
        """With what a PS has asked for though its result is here, sorted by stream."""
        if not self.wanted.size:
            return stream, fragment
        more = self.stream_of_row[self.wanted]
        stream = np.concatenate((stream, more))
        fragment = np.concatenate((fragment, self.wanted - self.layout.streams.first_row[more]))
        order = np.argsort(stream, kind="stable")
        return stream[order], fragment[order]

    def flag(self, rows: IntArray, again: BoolArray) -> None:
        """Mark what is sent again, and what is to pass all slots."""
        rows = rows[again]
        if rows.size:
            options = self.options
            by_timeouts = TIMEOUTS_BY_AGGREGATORS * options.first_timeout_s
            patience = by_timeouts if options.direct_after_s is None else options.direct_after_s
            direct = self.noticed[rows] | (self.chosen_at - self.begun_at[rows] > patience)
            self.heads["ina"]["flags"][rows] = Flag.RETRANSMITTED | np.where(direct, Flag.DIRECT, 0)

    def note_sent(self, batch: Batch, now: float) -> None:
        streams, count = self.layout.streams, len(self.next)
        rows = streams.first_row[batch.stream] + batch.fragment
        self.begun_at[rows[~batch.again]] = now
        self.sent_at[rows] = now
        self.tries[rows] = np.minimum(self.tries[rows], 254) + 1
        per_stream = np.bincount(batch.stream, minlength=count)
        again = np.bincount(batch.stream[batch.again], minlength=count)
        self.order[rows] = self.sendings[batch.stream] + np.arange(len(rows)) - before(per_stream)[batch.stream]
        self.sendings += per_stream
        self.next += per_stream - again
        self.credit -= per_stream
        self.sent += per_stream
        self.retransmitted += again
        if self.wanted.size:
            self.wanted = np.setdiff1d(self.wanted, rows[batch.again])
        active = per_stream > 0
        self.last_sent_at[active] = now
        self.first_sent_at[active & np.isnan(self.first_sent_at)] = now

    # -- receiving

    def receive(self, packets: Packets, now: float) -> None:
        """Results and notices."""
        ina = packets.heads["ina"]
        tree = self.layout.tree_index(ina["job"], ina["tree"])
        stream = np.where(tree >= 0, self.layout.stream_of[packets.hosts, tree], -1)
        self.strangers += int((stream < 0).sum())
        fragment = (ina["seq"] - self.first_seq[stream]) & 0xFFFFFFFF
        mine = (stream >= 0) & self.active[stream] & (fragment < self.next[stream])
        rows = self.layout.streams.first_row[stream] + np.where(mine, fragment, 0)
        awaited = mine & (self.memory.parts[rows] != WHOLE)
        result = awaited & (ina["kind"] == Kind.RESULT) & (ina["part"] <= 1)
        notice = mine & (ina["kind"] == Kind.NOTICE)
        early = notice & ((ina["flags"] & Flag.ECN) != 0)
        if early.any():
            self.shrink_windows(np.unique(stream[early]), now)
        notice &= ~early
        if notice.any():
            self.take_notices(rows[notice], (ina["flags"][notice] & Flag.RETRANSMITTED) != 0)
        wrong = result & (ina["workers"] != self.tree_size[tree])
        if wrong.any():
            self.miscounts.note(wrong, packets.heads, tree, fragment, self.tree_size[tree])
        if result.any():
            self.take_results(packets.where(result), stream[result], fragment[result], now)

    def take_notices(self, rows: IntArray, asked: BoolArray) -> None:
        """A PS is to sum these itself: send them again at once, past all slots; if `asked` even what is done here."""
        done = self.memory.parts[rows] == WHOLE
        fresh = rows[~self.noticed[rows] & ~done]
        self.noticed[rows[asked | ~done]] = True
        self.sent_at[fresh] = -np.inf
        self.wanted = np.union1d(self.wanted, rows[asked & done])
        self.scan_at = 0.0

    def take_results(self, packets: Packets, stream: IntArray, fragment: IntArray, now: float) -> None:
        ina = packets.heads["ina"]
        rows = self.layout.streams.first_row[stream] + fragment
        wide = (ina["flags"] & Flag.OVERFLOW) != 0
        self.memory.store(rows, packets.values, ina["part"].astype(np.int64), wide)
        self.measure_round_trips(stream, rows, now)
        touched = np.unique(stream)
        self.last_result_at[touched] = now
        np.maximum.at(self.newest, stream, fragment)
        self.advance(touched)
        if (self.newest[touched] > self.base[touched]).any():
            self.scan_at = 0.0  # there is a gap

    def measure_round_trips(self, stream: IntArray, rows: IntArray, now: float) -> None:
        """Smoothed round-trip times and windows, from results of fragments that were sent once (RFC 6298)."""
        once = (self.tries[rows] == 1) & ~self.noticed[rows]
        np.maximum.at(self.newest_order, stream[once], self.order[rows[once]])
        counts = np.bincount(stream[once], minlength=len(self.next))
        streams = np.flatnonzero(counts)
        totals = np.bincount(stream[once], now - self.sent_at[rows[once]], minlength=len(self.next))
        sample = totals[streams] / counts[streams]
        smooth = np.where(np.isnan(self.round_trip[streams]), sample, self.round_trip[streams])
        self.deviation[streams] += (np.abs(sample - smooth) - self.deviation[streams]) / 4
        self.round_trip[streams] = smooth + (sample - smooth) / 8
        self.windows.grow(streams, counts[streams])

    def advance(self, streams: IntArray) -> None:
        """Move the base of each stream to its first fragment without a result."""
        first_row = self.layout.streams.first_row
        while streams.size:
            ahead = self.base[streams, None] + np.arange(LOOK_AHEAD)
            inside = ahead < self.next[streams, None]
            rows = first_row[streams, None] + np.where(inside, ahead, 0)
            whole = inside & (self.memory.parts[rows] == WHOLE)
            run = np.where(whole.all(axis=1), LOOK_AHEAD, np.argmin(whole, axis=1))
            self.base[streams] += run
            streams = streams[run == LOOK_AHEAD]


def number(layout: Layout, heads: Frames, rows: IntArray, stream: IntArray, seq: IntArray) -> None:
    """Write sequence numbers, and the slots that follow from them, into the heads in `rows`."""
    heads["ina"]["seq"][rows] = seq & 0xFFFFFFFF
    heads["ina"]["slot"][rows] = layout.trees.slot(layout.streams.tree[stream], seq)


def gradient_templates(layout: Layout) -> Frames:
    """One head per stream, complete but for flags, sequence number and slot."""
    streams = layout.streams
    heads = np.zeros(len(streams.host), BARE_FRAME)
    for number, (host, tree, label) in enumerate(zip(streams.host, streams.tree, streams.label, strict=True)):
        source, server = layout.hosts[host], layout.hosts[layout.trees.server[tree]]
        whole = new_frames(1, src_mac=source.mac, dst_mac=server.mac, src_ip=source.ipv4, dst_ip=server.ipv4)
        heads[number] = head_of(whole)[0]
        ina = heads["ina"][number : number + 1]
        ina["kind"], ina["label"], ina["workers"] = Kind.GRADIENT, label, 1
        ina["job"], ina["tree"] = layout.parts[tree].job.number, layout.parts[tree].tree.number
        ina["priority"] = layout.trees.priority[tree]
    return heads
