"""What the ranks of collectives hold: the values that they send and end with, and what of them is still missing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.problem import Job
from inakit.traffic.collectives.dataflow import dataflow
from inakit.traffic.collectives.layout import CollectiveLayout
from inakit.traffic.endpoints.gradient import INT32, Gradients
from inakit.traffic.endpoints.streams import TreePart
from inakit.traffic.endpoints.worker_memory import WHOLE, padded
from inakit.traffic.endpoints.wrong_sums import Held, wrong_sums
from inakit.traffic.sockets.ports import BoolArray, IntArray


class CollectiveMemory:
    """Arrays over value rows and over rows of streams (see `inakit.traffic.collectives.dataflow`).

    By value row: `values` (value rows, values of a fragment), `missing`, how many terms have not come. They have 32
    bits where no sum can need more, else 64. By row of a stream: `parts`, which parts of it the receiver has
    acknowledged (`WHOLE`: all), and `came`, which have come to it. By job: `waiting`, how many rows of results are
    missing; `complete_at`, when the last one came; `expected`, (fragments, values).
    """

    def __init__(self, layout: CollectiveLayout) -> None:
        self.layout, self.flow = layout, dataflow(layout)
        rows, jobs = len(self.flow.source), len(layout.problem.jobs)
        width = layout.problem.fragment.values
        self.values: NDArray[np.signedinteger] = np.zeros((len(self.flow.terms), width), np.int32)
        self.missing = self.flow.terms.copy()
        self.parts = np.full(rows, WHOLE, np.uint8)
        self.came = np.full(rows, WHOLE, np.uint8)
        self.waiting = np.zeros(jobs, np.int64)
        self.complete_at = np.zeros(jobs)
        self.expected: dict[int, NDArray[np.int64]] = {}

    # -- gradients

    def load(self, job_index: int, gradients: Gradients, iteration: int) -> None:
        """Take in the gradients of a job's next iteration; the results of the last one are gone."""
        job, ranks = self.layout.problem.jobs[job_index], self.layout.collectives[job_index].ranks
        total, width = self.layout.totals[job_index], self.values.shape[1]
        own = [gradients.of(job, job.workers.index(host), iteration) for host in ranks]
        self.widen(own)
        wholes = np.stack([padded(each, total, width) for each in own])
        rows = np.flatnonzero(self.flow.job == job_index)
        mine = rows[self.flow.own[rows]]
        self.values[rows] = 0
        self.values[mine] = wholes[self.flow.rank[mine], self.flow.fragment[mine]]
        self.missing[rows] = self.flow.terms[rows]
        self.waiting[job_index] = self.layout.totals[job_index] * len(ranks)
        self.expected[job_index] = wholes.sum(axis=0, dtype=np.int64)
        self.came[self.layout.held_rows(self.layout.streams_of(job_index))] = 0
        self.settle(mine[self.missing[mine] == 0], 0.0)

    def widen(self, gradients: list[NDArray[np.int32]]) -> None:
        """Let values have 64 bits if a sum of some of the gradients may leave 32."""
        most = sum(int(np.abs(each.astype(np.int64)).max(initial=0)) for each in gradients)
        if most > INT32.max and self.values.dtype != np.int64:
            self.values = self.values.astype(np.int64)

    def begin(self, job_index: int) -> None:
        """Let nothing of the job's iteration be acknowledged."""
        self.parts[self.layout.held_rows(self.layout.streams_of(job_index))] = 0

    # -- values

    def is_wide(self, rows: IntArray) -> BoolArray:
        """Which rows of streams send values that need more than 32 bits, (rows,)."""
        if self.values.dtype == np.int32:
            return np.zeros(len(rows), np.bool_)
        sums = self.values[self.flow.source[rows]]
        wide: BoolArray = (sums != sums.astype(np.int32)).any(axis=1)
        return wide

    def words(self, rows: IntArray, part: IntArray) -> NDArray[np.int32]:
        """The low (`part` 0) or the high 32 bits of what rows of streams send, big-endian, (rows, values)."""
        sums = self.values[self.flow.source[rows]]
        if part.any():
            sums = np.where(part[:, None] == 0, sums, sums >> 32)
        words: NDArray[np.int32] = sums.astype(np.int32).astype(">i4")
        return words

    def is_known(self, rows: IntArray) -> BoolArray:
        """Which rows of streams have a value to send: all of its terms are there."""
        known: BoolArray = self.missing[self.flow.source[rows]] == 0
        return known

    def take(self, rows: IntArray, words: NDArray[np.int32], part: IntArray, wide: BoolArray, now: float) -> BoolArray:
        """Take in what has come for rows of streams, and return which packets are new; all are (packets,).

        Where a value is `wide`, its low and high words (`part` 0 and 1) come in two packets.
        """
        bits = np.where(wide, 1 << part, WHOLE).astype(np.uint8)
        fresh: BoolArray = first_of_each(2 * rows + np.where(wide, part, 0)) & (self.came[rows] & bits == 0)
        rows, words, part, wide, bits = rows[fresh], words[fresh], part[fresh], wide[fresh], bits[fresh]
        np.bitwise_or.at(self.came, rows, bits)
        target = self.flow.target[rows]
        used = target >= 0
        self.add(target[used], shifted(words[used], part[used], wide[used]))
        whole = used & (self.came[rows] == WHOLE) & first_of_each(rows)
        np.subtract.at(self.missing, target[whole], 1)
        touched = np.unique(target[whole])
        self.settle(touched[self.missing[touched] == 0], now)
        return fresh

    def add(self, target: IntArray, terms: NDArray[np.signedinteger]) -> None:
        """Add terms, (terms, values), to the values of the rows `target`, of which some may be the same."""
        if not target.size:
            return
        if terms.dtype == np.int64 and self.values.dtype != np.int64:
            self.values = self.values.astype(np.int64)
        order = np.argsort(target, kind="stable")
        target, terms = target[order], terms[order]
        starts = np.flatnonzero(np.concatenate(([True], target[1:] != target[:-1])))
        if len(starts) < len(target):
            terms = np.add.reduceat(terms, starts, axis=0, dtype=self.values.dtype)
        self.values[target[starts]] += terms

    def settle(self, rows: IntArray, now: float) -> None:
        """Let values whose terms are all there go on to what they are terms of themselves."""
        while rows.size:
            results = np.bincount(self.flow.job[rows[self.flow.final[rows]]], minlength=len(self.waiting))
            self.waiting -= results
            self.complete_at[results > 0] = now
            rows = rows[self.flow.following[rows] >= 0]
            following = self.flow.following[rows]
            self.values[following] += self.values[rows]
            self.missing[following] -= 1
            rows = following[self.missing[following] == 0]

    # -- results

    def sums(self, job_index: int, rank: int) -> NDArray[np.int64]:
        """The sums that a rank of a job ends with, (fragments, values)."""
        sums: NDArray[np.int64] = self.values[self.flow.results[job_index][rank]].astype(np.int64)
        return sums

    def result(self, job: Job, worker: int) -> NDArray[np.int64]:
        """The summed gradient that a worker, counted from 0 within its job, holds: (values,)."""
        job_index = self.layout.problem.jobs.index(job)
        rank = self.layout.collectives[job_index].ranks.index(job.workers[worker])
        return self.sums(job_index, rank).ravel()[: job.gradient_bytes // 4]

    def wrong(self, job_index: int) -> str:
        """Which sums that ranks of the job hold are not exact; empty where all are. All of them must have come."""
        part = next(part for part in self.layout.parts if part.job_index == job_index)
        return wrong_sums(self.held(job_index, part, rank) for rank in range(len(self.flow.results[job_index])))

    def held(self, job_index: int, part: TreePart, rank: int) -> Held:
        """What a rank of a job holds, and what it should hold."""
        host = self.layout.collectives[job_index].ranks[rank]
        return Held(host, part, self.sums(job_index, rank), self.expected[job_index])

    def first_missing(self, job_index: int) -> tuple[str, int]:
        """The first host without all results, and the first fragment that it lacks."""
        lacking = self.missing[self.flow.results[job_index]] > 0
        rank, fragment = np.argwhere(lacking)[0].tolist()
        return self.layout.collectives[job_index].ranks[rank], fragment


def first_of_each(keys: IntArray) -> BoolArray:
    """Which elements are the first of their value, (keys,)."""
    found = np.zeros(len(keys), np.bool_)
    found[np.unique(keys, return_index=True)[1]] = True
    return found


def shifted(words: NDArray[np.int32], part: IntArray, wide: BoolArray) -> NDArray[np.signedinteger]:
    """The numbers for which words stand, (packets, values): low words of wide values have no sign, high ones are 2**32
    times as much.
    """
    if not wide.any():
        return words
    numbers = words.astype(np.int64)
    numbers[wide & (part == 0)] &= 0xFFFFFFFF
    numbers[wide & (part == 1)] <<= 32
    return numbers
