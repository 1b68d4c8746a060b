"""The ranks of collectives as endpoints: their values, their pace, and the check of their results.

The machines are those of `inakit.traffic.endpoints` (`rank.h`, `order.h`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.collective_times import overlaps
from inakit.planner.core.problem import Job
from inakit.traffic.collectives.rank_data import CollectiveLayout, Dataflow, dataflow
from inakit.traffic.endpoints.endpoints import LEAST_DEPTH, PS_PER_S, Endpoints
from inakit.traffic.endpoints.gradient import INT32, Gradients, padded
from inakit.traffic.endpoints.options import WorkerOptions
from inakit.traffic.endpoints.sum_check import Held, wrong_sums
from inakit.traffic.sockets.ports import BoolArray, FloatArray, IntArray

PATIENCE = 0.25
"""Fragments are acknowledged after this part of a sender's least timeout even if they are few, or after the time in
which the fragments of one acknowledgement arrive, if that is longer.
"""


class Ranks(Endpoints):
    """The endpoints of a layout of collectives.

    Over value rows (see `Dataflow`): `values`, (value rows, values of a fragment), of 32 bits if no sum can need more,
    else 64; `missing`, the number of terms that have not arrived. Over rows of streams: `came`, the parts that the
    receiver has received. `expected`: by job, (fragments, values).
    """

    def __init__(self, layout: CollectiveLayout, worker: WorkerOptions | None = None) -> None:
        self.of = layout
        flow = self.flow = dataflow(layout)
        self.source, self.target = flow.source.astype(np.uint64), flow.target.astype(np.int64)
        self.step, self.came = flow.step.astype(np.uint32), np.zeros(len(flow.source), np.uint8)
        self.following, self.is_final = flow.following.astype(np.int64), flow.final.astype(np.uint8)
        self.own, self.job_of = flow.own.astype(np.uint8), flow.job.astype(np.uint32)
        self.missing = flow.terms.astype(np.uint32)
        self.values: NDArray[np.signedinteger] = np.zeros((len(flow.terms), layout.problem.fragment.values), np.int32)
        self.rates_fps, self.cost = rates_and_costs(layout, flow)
        self.expected_of: dict[int, NDArray[np.int64]] = {}
        super().__init__(layout, worker)
        self.prepare()

    def prepare(self) -> None:
        """Complete the records of streams, hosts and jobs."""
        layout, streams, options = self.of, self.streams, self.options
        streams["turns"], streams["first_chunk"] = 1, layout.first_chunk
        streams["held"] = np.rint(layout.acknowledged_after_s * PS_PER_S)
        patience_s = np.maximum(options.min_timeout_s * PATIENCE, layout.acknowledged_after_s)
        streams["patience"] = np.rint(patience_s * PS_PER_S)
        senders = ((each.connection, len(layout.collectives[each.job_index].ranks)) for each in layout.senders)
        streams["distance"] = [(own.destination - own.source) % ranks for own, ranks in senders]
        sends = self.rates_fps > 0
        interval = np.where(options.paced & sends, PS_PER_S / np.where(sends, self.rates_fps, 1), 0)
        self.hosts["interval"] = np.rint(interval)
        self.hosts["depth"] = np.rint(interval * np.maximum(LEAST_DEPTH, options.credit_s * self.rates_fps))
        jobs = np.arange(len(self.jobs))
        self.jobs["first_value"] = np.searchsorted(self.flow.job, jobs)
        self.jobs["values"] = np.bincount(self.flow.job, minlength=len(jobs))

    def tree_records(self, *, whole: bool) -> NDArray[np.void]:
        """The records of all trees; no PS keeps sums."""
        found = super().tree_records(whole=whole)
        found["mask"], found["first_row"] = 0, np.arange(len(found))
        return found

    # -- iterations

    def load(self, job_index: int, gradients: Gradients, iteration: int) -> None:
        """Load the gradients of a job's next iteration; the results of the last one are overwritten."""
        job, ranks = self.of.problem.jobs[job_index], self.of.collectives[job_index].ranks
        total, width = self.of.totals[job_index], self.values.shape[1]
        own = [gradients.of(job, job.workers.index(host), iteration) for host in ranks]
        self.widen(own)
        wholes = np.stack([padded(each, total, width) for each in own])
        rows = np.flatnonzero(self.flow.job == job_index)
        mine = rows[self.flow.own[rows]]
        self.values[rows] = 0
        self.values[mine] = wholes[self.flow.rank[mine], self.flow.fragment[mine]]
        self.missing[rows] = self.flow.terms[rows]
        self.expected_of[job_index] = wholes.sum(axis=0, dtype=np.int64)
        self.came[self.of.streams.job[self.of.stream_of_chunk] == job_index] = 0

    def widen(self, gradients: list[NDArray[np.int32]]) -> None:
        """Widen values to 64 bits if a sum of some of the gradients can overflow 32."""
        most = sum(int(np.abs(each.astype(np.int64)).max(initial=0)) for each in gradients)
        if most > INT32.max and self.values.dtype != np.int64:
            self.values = self.values.astype(np.int64)
            self.all["values"], self.all["is_wide"] = self.values.ctypes.data, 1

    def begin(self, job_index: int, iteration: int, now_ps: int) -> None:
        """Start sending the loaded gradients."""
        self.hosts["earned_at"] = np.where(self.hosts["interval"] > 0, now_ps - self.hosts["interval"], 0)
        super().begin(job_index, iteration, now_ps)

    def done(self, streams: IntArray) -> IntArray:
        """The number of fragments up to which receivers have all, whether acknowledged yet or not, (streams,)."""
        return self.streams["arrived"][streams].astype(np.int64)

    # -- results

    def sums_at(self, job_index: int, rank: int) -> NDArray[np.int64]:
        """The sums that a rank of a job ends with, (fragments, values)."""
        sums: NDArray[np.int64] = self.values[self.flow.results[job_index][rank]].astype(np.int64)
        return sums

    def result(self, job: Job, worker: int) -> NDArray[np.int64]:
        """The summed gradient that a worker, counted from 0 within its job, holds: (values,)."""
        job_index = self.of.problem.jobs.index(job)
        rank = self.of.collectives[job_index].ranks.index(job.workers[worker])
        return self.sums_at(job_index, rank).ravel()[: job.gradient_bytes // 4]

    def wrong(self, job_index: int) -> str:
        """A text about inexact sums of the job's ranks; empty if all are exact. All sums must have arrived."""
        part = next(part for part in self.of.parts if part.job_index == job_index)
        ranks = self.of.collectives[job_index].ranks
        sums = ((host, self.sums_at(job_index, rank)) for rank, host in enumerate(ranks))
        return wrong_sums(Held(host, part, held, self.expected_of[job_index]) for host, held in sums)

    # -- what is measured

    def ended_at(self, job_index: int) -> int:
        """The arrival time of the iteration's last result at its rank."""
        return int(self.jobs["ended_at"][job_index])

    def frames_of_last(self, streams: NDArray[np.void]) -> int | None:
        """None: the connections of a rank send in turn, by the rank's pace."""
        del streams
        return None

    def late_s(self) -> FloatArray:
        """The sending time, at its rate, that each host could have used and did not, in seconds, (hosts,)."""
        late: FloatArray = self.hosts["late"] / PS_PER_S
        return late

    def take_ingress(self, job_index: int) -> dict[str, int]:
        """Empty: nothing goes to a parameter server."""
        del job_index
        return {}

    def lacking(self, job_index: int) -> str:
        """A text about the first fragment that a rank waits for."""
        lacking = self.missing[self.flow.results[job_index]] > 0
        rank, fragment = np.argwhere(lacking)[0].tolist()
        return f"host {self.of.collectives[job_index].ranks[rank]} lacks another rank's chunk for fragment {fragment}"


def rates_and_costs(layout: CollectiveLayout, flow: Dataflow) -> tuple[FloatArray, FloatArray]:
    """Each host's highest total rate in fragments per second, (hosts,), and the costs of all fragments, (rows,).

    A cost is 1 in the steps in which a host sends at that rate.
    """
    streams, steps, hosts = layout.streams, int(flow.step.max()) + 1, len(layout.hosts)
    stream, step = np.divmod(np.unique(layout.stream_of_chunk * steps + flow.step), steps)
    in_step = np.bincount(streams.host[stream] * steps + step, streams.rate_fps[stream], hosts * steps)
    in_step = in_step.reshape(hosts, steps)
    overlap = hosts_that_overlap(layout)
    rates = np.where(overlap, np.bincount(streams.host, streams.rate_fps, hosts), in_step.max(axis=1))
    host = streams.host[layout.stream_of_chunk]
    return rates, np.where(overlap[host], 1.0, rates[host] / in_step[host, flow.step])


def hosts_that_overlap(layout: CollectiveLayout) -> BoolArray:
    """Whether the steps of each host can overlap, (hosts,)."""
    ranks = {
        rank
        for collective in layout.collectives
        if overlaps(layout.problem.fabric, collective)
        for rank in collective.ranks
    }
    return np.array([host.name in ranks for host in layout.hosts], np.bool_)
