"""The workers of a run: their gradients in fragments, the sums that came back, and the decoding of results and notices.

Large gradients are held and checked in pieces: when a worker has the sums of a piece, the next piece replaces an older
one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from copy import deepcopy

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.problem import Job
from inakit.traffic.endpoints.gradient import Gradients, HeldGradients, Parts, Piecewise
from inakit.traffic.endpoints.options import WorkerOptions
from inakit.traffic.endpoints.pacing import TokenBuckets
from inakit.traffic.endpoints.retransmission import WHOLE, Batch, StreamProgress
from inakit.traffic.endpoints.sender import Sender
from inakit.traffic.endpoints.streams import StreamLayout, gradient_heads, set_sequence
from inakit.traffic.endpoints.sum_check import Held, WrongSums, is_miscounted
from inakit.traffic.sockets.ports import BoolArray, IntArray, Outgoing, Packets
from inakit.traffic.wire.packet_format import Flag, Kind, pick

NEVER = np.iinfo(np.int64).max
"""A base for streams that never turn."""


class Expected:
    """The exact sums of a piece of a tree, (fragments, values), and the number of streams still to be compared."""

    def __init__(self, shape: tuple[int, int], streams: int) -> None:
        self.sums = np.zeros(shape, np.int64)
        self.open = streams


class WorkerMemory:
    """Arrays over rows, the fragments of all streams that are held at once.

    `gradients` (rows, values) are big-endian, as they are sent. Of results, `low` and `high` (rows, values) are the low
    and high 32 bits, `parts` the arrived ones of these (`WHOLE`: both), and `wide` whether a sum needs more than 32
    bits. By stream: `loaded`, the number of its fragments loaded in this iteration, and `checked`, the number of its
    results compared with the exact sums; `turn_at`, the base at which the next piece replaces its oldest one. Between
    two iterations of a job its gradients belong to the thread that loads the next ones.
    """

    def __init__(self, layout: StreamLayout) -> None:
        rows = int(layout.streams.room.sum())
        values = layout.problem.fragment.values
        self.layout = layout
        self.gradients = np.zeros((rows, values), ">i4")
        # `full` writes to the memory, so that the first result does not wait for the kernel to find some.
        self.low = np.full((rows, values), 0, np.int32)
        self.high: NDArray[np.int32] | None = None
        self.parts = np.full(rows, WHOLE, np.uint8)
        self.wide = np.zeros(rows, np.bool_)
        self.loaded = np.zeros(len(layout.streams.host), np.int64)
        self.checked = np.zeros(len(layout.streams.host), np.int64)
        self.turn_at = np.full(len(layout.streams.host), NEVER)
        self.crowd = np.bincount(layout.streams.tree, minlength=len(layout.parts))
        self.sources: dict[int, tuple[Parts, int]] = {}
        self.expected: dict[tuple[int, int], Expected] = {}
        self.wrong_sums: defaultdict[int, WrongSums] = defaultdict(WrongSums)

    # -- gradients

    def load(self, job_index: int, gradients: Gradients, iteration: int) -> None:
        """Load the gradients of a job's next iteration. The results of the last one stay until `begin`."""
        job, of = self.layout.problem.jobs[job_index], self.layout.streams_of(job_index)
        source: Parts = (
            gradients if isinstance(gradients, Piecewise) else HeldGradients.of_all(gradients, job, iteration)
        )
        self.sources[job_index] = source, iteration
        self.wrong_sums[job_index] = WrongSums()
        self.expected = {at: kept for at, kept in self.expected.items() if self.layout.trees.job[at[0]] != job_index}
        self.loaded[of] = self.checked[of] = 0
        streams = self.layout.streams
        self.turn_at[of] = np.where(streams.room < streams.count, 2 * streams.piece, NEVER)[of]
        for stream in of.tolist():
            while self.loaded[stream] < streams.room[stream]:
                self.load_piece(stream)

    def load_piece(self, stream: int) -> slice:
        """Load the next piece of a stream's gradient, and return its rows."""
        streams, first = self.layout.streams, int(self.loaded[stream])
        tree = int(streams.tree[stream])
        part, width = self.layout.parts[tree], self.gradients.shape[1]
        count = min(int(streams.piece[stream]), part.count - first)
        rows = self.layout.rows_from(stream, first, count)
        source, iteration = self.sources[part.job_index]
        begin, end = (part.start + first) * width, (part.start + first + count) * width
        end = min(end, part.job.gradient_bytes // 4)
        values = source.part(part.job, int(streams.worker[stream]), iteration, begin, end - begin)
        whole = padded(values, count, width)
        self.gradients[rows] = whole
        key = tree, first
        if key not in self.expected:
            self.expected[key] = Expected(whole.shape, int(self.crowd[tree]))
        self.expected[key].sums += whole
        self.loaded[stream] += count
        return rows

    def turn(self, stream: int) -> slice:
        """Check a stream's oldest piece, replace it by the next one, and return the next one's rows."""
        self.give_up_piece(stream)
        rows = self.load_piece(stream)
        self.parts[rows], self.wide[rows] = 0, False
        more = self.loaded[stream] < self.layout.streams.count[stream]
        self.turn_at[stream] = self.turn_at[stream] + self.layout.streams.piece[stream] if more else NEVER
        return rows

    def give_up_piece(self, stream: int) -> None:
        """Compare the results of a stream's oldest piece, which are no longer needed."""
        place = int(self.layout.streams.tree[stream]), int(self.checked[stream])
        self.wrong_sums[int(self.layout.streams.job[stream])].note(self.held(stream, place[1]))
        self.checked[stream] += self.layout.streams.piece[stream]
        self.expected[place].open -= 1
        if not self.expected[place].open:
            del self.expected[place]

    def begin(self, job_index: int) -> None:
        """Forget the results of the job's last iteration."""
        rows = self.layout.held_rows(self.layout.streams_of(job_index))
        self.parts[rows] = 0
        self.wide[rows] = False

    # -- results

    def store(self, rows: IntArray, values: NDArray[np.int32], part: IntArray, wide: BoolArray) -> None:
        """Store results, (rows, values), for `rows`.

        A `wide` result comes in two parts: `part` 0 has the low words, 1 the high words.
        """
        if not wide.any():
            self.low[rows] = values
            self.parts[rows] = WHOLE
            return
        low = part == 0
        self.low[rows[low]] = values[low]
        self.store_wide(rows[wide], values[wide], part[wide])
        np.bitwise_or.at(self.parts, rows, np.where(wide, 1 << part, WHOLE).astype(np.uint8))

    def store_wide(self, rows: IntArray, values: NDArray[np.int32], part: IntArray) -> None:
        """Store the high words of wide results, where `part` is 1."""
        if self.high is None:
            self.high = np.zeros(self.low.shape, np.int32)
        self.wide[rows] = True
        self.high[rows[part == 1]] = values[part == 1]

    def sums(self, rows: slice) -> NDArray[np.int64]:
        """The results of `rows` as 64-bit integers, (rows, values)."""
        sums = self.low[rows].astype(np.int64)
        wide = np.flatnonzero(self.wide[rows])
        if self.high is not None and wide.size:
            sums[wide] = (sums[wide] & 0xFFFFFFFF) | self.high[rows][wide].astype(np.int64) << 32
        return sums

    def results(self, stream: int) -> NDArray[np.int64]:
        """The results of all fragments of a stream that are held whole, (fragments, values)."""
        return self.sums(self.layout.rows_from(stream, 0, int(self.layout.streams.count[stream])))

    # -- the check of sums

    def wrong(self, job_index: int) -> str:
        """A text about inexact sums of the job's workers; empty if all are exact. All results must have arrived."""
        found, streams = deepcopy(self.wrong_sums[job_index]), self.layout.streams
        for stream in self.layout.streams_of(job_index).tolist():
            for first in range(self.checked[stream], streams.count[stream], streams.piece[stream]):
                found.note(self.held(stream, first))
        return found.text()

    def held(self, stream: int, first: int) -> Held:
        """The results of the piece of a stream that begins with fragment `first`; all of them must have arrived."""
        streams, tree = self.layout.streams, int(self.layout.streams.tree[stream])
        rows = self.layout.rows_from(stream, first, min(int(streams.piece[stream]), int(streams.count[stream]) - first))
        assert (self.parts[rows] == WHOLE).all(), "sums are compared when all results are there"
        host = self.layout.hosts[streams.host[stream]].name
        return Held(host, self.layout.parts[tree], self.sums(rows), self.expected[tree, first].sums, first)

    def expected_of(self, tree: int) -> NDArray[np.int64]:
        """The exact sums of all fragments of a tree that is held whole, (count, values)."""
        return self.expected[tree, 0].sums

    def result(self, job: Job, worker: int) -> NDArray[np.int64]:
        """The summed gradient that a worker, counted from 0 within its job, holds whole: (values,)."""
        streams = self.layout.streams
        job_index = self.layout.problem.jobs.index(job)
        mine = [stream for stream in self.layout.streams_of(job_index).tolist() if streams.worker[stream] == worker]
        mine.sort(key=lambda stream: self.layout.parts[streams.tree[stream]].start)
        return np.concatenate([self.results(stream).ravel() for stream in mine])[: job.gradient_bytes // 4]


def padded(values: NDArray[np.integer], count: int, width: int) -> NDArray[np.integer]:
    """Values as fragments, (count, width); the last one is filled up with zeros."""
    if len(values) == count * width:
        return values.reshape(count, width)
    return np.pad(values, (0, count * width - len(values))).reshape(count, width)


# -- The workers' parts of a run's sender.

ECN, OVERFLOW, RETRANSMITTED = (int(flag) for flag in (Flag.ECN, Flag.OVERFLOW, Flag.RETRANSMITTED))
NOTICE, RESULT = int(Kind.NOTICE), int(Kind.RESULT)


def worker_sender(layout: StreamLayout, memory: WorkerMemory, options: WorkerOptions) -> Sender:
    """The sender of all workers of a run."""
    pace = TokenBuckets(layout.streams, options)
    return Sender(layout, GradientSource(layout, memory), ResultDecoder(layout, memory), pace, options)


class GradientSource:
    """The `Source` of workers: gradients that a `WorkerMemory` holds.

    `heads`: by row, the head of a fragment. A head is completed when its iteration begins, so that sending needs no
    more work.
    """

    def __init__(self, layout: StreamLayout, memory: WorkerMemory) -> None:
        self.layout, self.memory = layout, memory
        self.known = layout.streams.count
        self.heads = pick(gradient_heads(layout), layout.stream_of_row)

    @property
    def parts(self) -> NDArray[np.uint8]:
        """The arrived parts of each row's result."""
        return self.memory.parts

    def begin(self, job_index: int) -> None:
        """Forget the results of the job's last iteration."""
        self.memory.begin(job_index)

    def renew(self, rows: IntArray, progress: StreamProgress) -> None:
        """Complete the heads of `rows`."""
        stream = self.layout.stream_of_row[rows]
        seq = progress.first_seq[stream] + progress.fragments_of(rows)
        set_sequence(self.layout, self.heads, rows, stream, seq)
        self.heads["ina"]["flags"][rows] = 0

    def turn(self, progress: StreamProgress) -> Iterator[IntArray]:
        """Replace pieces of gradients that are no longer needed by new ones.

        A stream whose next iteration is loaded but not begun still has the base of its last one: it waits.
        """
        while (due := progress.active & (progress.base >= self.memory.turn_at)).any():
            for stream in np.flatnonzero(due).tolist():
                rows = self.memory.turn(stream)
                progress.held[stream] += self.layout.streams.piece[stream]
                yield np.arange(rows.start, rows.stop)

    def end(self, streams: IntArray) -> None:
        """Do nothing: all fragments of the iteration have been sent."""

    def outgoing(
        self, batch: Batch, rows: IntArray, direct: BoolArray, progress: StreamProgress
    ) -> tuple[Outgoing, IntArray]:
        """One packet for each fragment."""
        _ = progress
        if direct.size:
            flags = RETRANSMITTED | np.where(direct, int(Flag.DIRECT), 0)
            self.heads["ina"]["flags"][rows[batch.again]] = flags
        counts = np.bincount(self.layout.streams.host[batch.stream], minlength=len(self.layout.hosts))
        return Outgoing(self.heads, self.memory.gradients, rows, counts), np.arange(len(rows))


class ResultDecoder:
    """The `Decoder` of workers. Results are stored and acknowledged; notices report congestion or ask for fragments.

    One result goes to all workers of a tree.
    """

    shared = True

    def __init__(self, layout: StreamLayout, memory: WorkerMemory) -> None:
        self.layout, self.memory = layout, memory
        self.held_s = np.zeros(len(layout.streams.host))
        self.tree_size = np.array([len(part.tree.workers) for part in layout.parts], np.int64)

    def decode(self, packets: Packets, tree: IntArray, stream: IntArray, sender: Sender, now: float) -> None:
        """Decode results and notices."""
        ina, progress = packets.heads["ina"], sender.progress
        fragment = (ina["seq"] - progress.first_seq[stream]) & 0xFFFFFFFF
        sent = (progress.held[stream] <= fragment) & (fragment < progress.next[stream])
        mine = (stream >= 0) & progress.active[stream] & sent
        rows = self.layout.rows(stream, np.where(mine, fragment, 0))
        notice = mine & (ina["kind"] == NOTICE)
        if notice.any():
            early = notice & ((ina["flags"] & ECN) != 0)
            asking = notice & ~early
            if early.any():
                sender.slow_down(stream[early], now)
            if asking.any():
                sender.send_directly(rows[asking], (ina["flags"][asking] & RETRANSMITTED) != 0)
        result = mine & (self.memory.parts[rows] != WHOLE) & (ina["kind"] == RESULT) & (ina["part"] <= 1)
        wrong = result & is_miscounted(ina["workers"], self.tree_size[tree], self.layout.trees.counted[tree])
        if wrong.any():
            sender.counts.miscounts.note(wrong, packets.heads, tree, fragment, self.tree_size[tree])
        if result.any():
            packets, stream, fragment, rows = packets.where(result), stream[result], fragment[result], rows[result]
            ina = packets.heads["ina"]
            wide = (ina["flags"] & OVERFLOW) != 0
            self.memory.store(rows, packets.values, ina["part"].astype(np.int64), wide)
            sender.acknowledge(stream, fragment, rows, (ina["flags"] & ECN) != 0, now)
