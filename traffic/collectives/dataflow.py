"""What a collective computes, as arrays: which values each rank makes of its gradient and of what comes to it.

A *value* is what a rank holds of a chunk after some of the steps, if it is sent or is the result. Its terms are packets
that come, and either the rank's own gradient or the value before it. A value never changes once all of its terms are
there, so that it can be sent again, however far the rank has come. Fragments of values have rows in flat arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from inakit.planner.core.collectives.collective import Collective
from inakit.traffic.collectives.layout import CollectiveLayout
from inakit.traffic.sockets.batches import before, ragged
from inakit.traffic.sockets.ports import BoolArray, IntArray

NONE = -1


@dataclass(frozen=True)
class Dataflow:
    """Arrays over rows of streams, (rows,), and over rows of values, (value rows,).

    By row of a stream: `source`, the value row that it sends; `target`, the value row to which it is added where it
    arrives, -1 for none; `step`. By value row: `terms`, how many other terms it has beside the own gradient; `own`,
    whether the own gradient is one of them; `following`, the value row of which it is a term, -1 for none; `final`,
    whether it is a result; `job`; `rank` and `fragment`, what it is of. `results[job]` is (ranks, fragments), the value
    rows of all results.
    """

    source: IntArray
    target: IntArray
    step: IntArray
    terms: IntArray
    own: BoolArray
    following: IntArray
    final: BoolArray
    job: IntArray
    rank: IntArray
    fragment: IntArray
    results: tuple[IntArray, ...]


class Sent(NamedTuple):
    """Chunks that a job's streams send, in the order of their rows: arrays (sent,). `first_row` is of streams."""

    step: IntArray
    source: IntArray
    destination: IntArray
    chunk: IntArray
    adds: BoolArray
    size: IntArray
    first_row: IntArray


class Values(NamedTuple):
    """The values of a job, (values,), sorted by rank, chunk and how many arrivals they contain.

    `code` is `(rank, chunk, arrivals)` as one number; `size` in fragments; `terms`, `own` and `following` as in
    `Dataflow`, of values instead of rows.
    """

    code: IntArray
    place: IntArray
    size: IntArray
    terms: IntArray
    own: BoolArray
    following: IntArray
    final: BoolArray


class JobRows(NamedTuple):
    """The columns of `Dataflow` for one job: first those by row of a stream, then those by value row."""

    rows: IntArray
    source: IntArray
    target: IntArray
    step: IntArray
    terms: IntArray
    own: BoolArray
    following: IntArray
    final: BoolArray
    rank: IntArray
    fragment: IntArray


def dataflow(layout: CollectiveLayout) -> Dataflow:
    """The dataflow of all jobs of a layout."""
    source, target, step = (np.full(int(layout.streams.count.sum()), NONE, np.int64) for _ in range(3))
    jobs: list[JobRows] = []
    results: list[IntArray] = []
    begun = 0
    for job_index, collective in enumerate(layout.collectives):
        job = job_rows(layout, job_index, begun)
        source[job.rows], target[job.rows], step[job.rows] = job.source, job.target, job.step
        table = np.full((len(collective.ranks), layout.totals[job_index]), NONE, np.int64)
        table[job.rank[job.final], job.fragment[job.final]] = begun + np.flatnonzero(job.final)
        results.append(table)
        jobs.append(job)
        begun += len(job.terms)
    numbers = np.repeat(np.arange(len(jobs)), [len(job.terms) for job in jobs])
    terms, own, following, final, rank, fragment = (np.concatenate(each) for each in list(zip(*jobs, strict=True))[4:])
    return Dataflow(source, target, step, terms, own, following, final, numbers, rank, fragment, tuple(results))


def job_rows(layout: CollectiveLayout, job_index: int, begun: int) -> JobRows:
    """The columns of a job, whose value rows are counted from `begun` on."""
    collective = layout.collectives[job_index]
    parts = collective.chunk_fragments(layout.totals[job_index])
    starts, sizes = np.array([part.start for part in parts]), np.array([len(part) for part in parts])
    sent = sent_by(layout, job_index, sizes)
    values, of_sent, of_arrival = values_of(collective, sent, sizes)
    first = begun + before(values.size)
    place, rows = ragged(sent.first_row, sent.size)
    within, came = rows - sent.first_row[place], of_arrival[place]
    value, row = ragged(first, values.size)
    rank, chunk = np.divmod(values.place, collective.chunks)
    follows = values.following[value]
    return JobRows(
        rows=rows,
        source=first[of_sent][place] + within,
        target=np.where(came >= 0, first[came] + within, NONE),
        step=sent.step[place],
        terms=values.terms[value],
        own=values.own[value],
        following=np.where(follows >= 0, first[follows] + row - first[value], NONE),
        final=values.final[value],
        rank=rank[value],
        fragment=starts[chunk][value] + row - first[value],
    )


def sent_by(layout: CollectiveLayout, job_index: int, sizes: IntArray) -> Sent:
    """What the streams of a job send; chunks without fragments are left out."""
    streams = layout.streams_of(job_index).tolist()
    table = np.array(
        [
            (t.step, each.source, each.destination, chunk, t.adds, stream)
            for stream, each in ((stream, layout.senders[stream].connection) for stream in streams)
            for t in each.transfers
            for chunk in t.chunks
            if sizes[chunk]
        ],
        np.int64,
    )
    step, source, destination, chunk, adds, stream = table.T.copy()
    size = sizes[chunk]
    within = before(size) - np.repeat(before(layout.streams.count[streams]), np.bincount(stream)[streams])
    return Sent(step, source, destination, chunk, adds == 1, size, layout.streams.first_row[stream] + within)


def values_of(collective: Collective, sent: Sent, sizes: IntArray) -> tuple[Values, IntArray, IntArray]:
    """The values of a job; by sent chunk the value that it is, and the value of which it is a term, -1 for none."""
    chunks, steps = collective.chunks, int(sent.step.max()) + 2
    arrival = sent.destination * chunks + sent.chunk
    order = np.argsort(arrival * steps + sent.step, kind="stable")
    when = (arrival * steps + sent.step)[order]
    places = (np.arange(len(collective.ranks))[:, None] * chunks + np.flatnonzero(sizes)).ravel()
    first = np.searchsorted(when, places * steps)
    most = int((np.searchsorted(when, places * steps + steps - 1) - first).max()) + 1
    held = sent.source * chunks + sent.chunk
    known = np.searchsorted(when, held * steps + sent.step) - np.searchsorted(when, held * steps)
    last = places * most + np.searchsorted(when, places * steps + steps - 1) - first
    code = np.unique(np.concatenate((held * most + known, last)))
    place = code // most
    turn = np.arange(len(order)) - np.searchsorted(when, arrival[order] * steps)
    segment = np.searchsorted(code, arrival[order] * most + turn + 1)
    placed = np.full(len(code), NONE, np.int64)
    np.maximum.at(placed, segment[~sent.adds[order]], turn[~sent.adds[order]])
    counts = turn >= placed[segment]
    of_arrival = np.empty(len(order), np.int64)
    of_arrival[order] = np.where(counts, segment, NONE)
    continues = np.concatenate(([False], place[1:] == place[:-1])) & (placed < 0)
    following = np.full(len(code), NONE, np.int64)
    following[np.flatnonzero(continues) - 1] = np.flatnonzero(continues)
    terms = np.bincount(segment[counts], minlength=len(code)) + continues
    begins = np.concatenate(([True], place[1:] != place[:-1]))
    values = Values(code, place, sizes[place % chunks], terms, begins & (placed < 0), following, np.isin(code, last))
    return values, np.searchsorted(code, held * most + known), of_arrival
