"""What the workers hold: their gradients, cut into fragments, and the sums that came back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from planner.core.problem import Job
from traffic.endpoints.gradient import Gradients, exact_sum
from traffic.endpoints.streams import StreamLayout
from traffic.endpoints.wrong_sums import Held, wrong_sums
from traffic.sockets.ports import BoolArray, IntArray

WHOLE = 3
"""Both parts of a result are there: bit 0 for the low words, bit 1 for the high words."""


class WorkerMemory:
    """Arrays over rows, the fragments of all streams.

    `gradients` (rows, values) are big-endian, as they are sent. Of results, `low` and `high` (rows, values) are the low
    and high 32 bits, `parts` says which of these have come (`WHOLE`: both), and `wide` whether a sum needs more than 32
    bits. `expected[job_index]` is the exact sum of a job's gradients. Between two iterations of a job its gradients
    belong to the thread that loads the next ones.
    """

    def __init__(self, layout: StreamLayout) -> None:
        rows = int(layout.streams.count.sum())
        values = layout.problem.fragment.values
        self.layout = layout
        self.gradients = np.zeros((rows, values), ">i4")
        # `full` writes to the memory, so that the first result does not wait for the kernel to find some.
        self.low = np.full((rows, values), 0, np.int32)
        self.high: NDArray[np.int32] | None = None
        self.parts = np.full(rows, WHOLE, np.uint8)
        self.wide = np.zeros(rows, np.bool_)
        self.expected: dict[int, NDArray[np.int64]] = {}

    def load(self, job_index: int, gradients: Gradients, iteration: int) -> None:
        """Take in the gradients of a job's next iteration. The results of the last one stay until `begin`."""
        job, streams = self.layout.problem.jobs[job_index], self.layout.streams
        of_workers = [gradients.of(job, worker, iteration) for worker in range(len(job.workers))]
        for stream in self.layout.streams_of(job_index).tolist():
            rows = self.rows(stream)
            self.gradients[rows] = self.cut(of_workers[streams.worker[stream]], streams.tree[stream])
        self.expected[job_index] = exact_sum(of_workers)

    def begin(self, job_index: int) -> None:
        """Forget the results of the job's last iteration."""
        for stream in self.layout.streams_of(job_index).tolist():
            self.parts[self.rows(stream)] = 0
            self.wide[self.rows(stream)] = False

    def rows(self, stream: int) -> slice:
        """The rows of a stream's fragments."""
        first = int(self.layout.streams.first_row[stream])
        return slice(first, first + int(self.layout.streams.count[stream]))

    def cut(self, gradient: NDArray[np.integer], tree: int) -> NDArray[np.integer]:
        """The fragments of a tree, (count, values), of a whole gradient; the last one of it is padded with zeros."""
        part = self.layout.parts[tree]
        values = self.gradients.shape[1]
        piece = gradient[part.start * values : (part.start + part.count) * values]
        return np.pad(piece, (0, part.count * values - len(piece))).reshape(-1, values)

    def store(self, rows: IntArray, values: NDArray[np.int32], part: IntArray, wide: BoolArray) -> None:
        """Keep results, (rows, values), for `rows`.

        Where `wide`, a result comes in two parts, of which this is `part`: 0 has the low words, 1 the high words.
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
        """Keep those parts of wide results that have the high words; `part` is 1 for these."""
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

    def wrong(self, job_index: int) -> str:
        """Which sums that workers of the job hold are not exact; empty where all are. All results must have come."""
        return wrong_sums(self.held(job_index))

    def held(self, job_index: int) -> Iterator[Held]:
        """What every worker holds of every tree."""
        for stream in self.layout.streams_of(job_index).tolist():
            rows, tree = self.rows(stream), int(self.layout.streams.tree[stream])
            assert (self.parts[rows] == WHOLE).all(), "an iteration ends when all results are there"
            host = self.layout.hosts[self.layout.streams.host[stream]].name
            yield Held(host, self.layout.parts[tree], self.sums(rows), self.expected_of(tree))

    def expected_of(self, tree: int) -> NDArray[np.integer]:
        """The exact sums of all fragments of a tree, (count, values)."""
        return self.cut(self.expected[self.layout.parts[tree].job_index], tree)

    def result(self, job: Job, worker: int) -> NDArray[np.int64]:
        """The summed gradient that a worker, counted from 0 within its job, holds: (values,)."""
        streams = self.layout.streams
        job_index = self.layout.problem.jobs.index(job)
        mine = [stream for stream in self.layout.streams_of(job_index).tolist() if streams.worker[stream] == worker]
        mine.sort(key=lambda stream: self.layout.parts[streams.tree[stream]].start)
        return np.concatenate([self.sums(self.rows(stream)).ravel() for stream in mine])[: job.gradient_bytes // 4]
