"""What a collective computes, as arrays: which values each rank makes of its gradient and of what comes to it.

A *value* is what a rank holds of a chunk after some of the steps, if it is sent or is the result. Its terms are packets
that come, and either the rank's own gradient or the value before it. A value never changes once all of its terms are
there, so that it can be sent again, however far the rank has come. Fragments of values have rows in flat arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.core.collective import Collective
from traffic.collectives.layout import CollectiveLayout
from traffic.sockets.batches import before, ragged
from traffic.sockets.ports import BoolArray, IntArray

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


def dataflow(layout: CollectiveLayout) -> Dataflow:
    """The dataflow of all jobs of a layout."""
    rows = int(layout.streams.count.sum())
    source, target, step = (np.full(rows, NONE, np.int64) for _ in range(3))
    columns: list[tuple[NDArray[Any], ...]] = []
    results, begun = [], 0
    for job_index, collective in enumerate(layout.collectives):
        starts = np.array([part.start for part in collective.chunk_fragments(layout.totals[job_index])])
        sizes = np.array([len(part) for part in collective.chunk_fragments(layout.totals[job_index])])
        sent = sent_by(layout, job_index, sizes)
        values, of_sent, of_arrival = values_of(collective, sent, sizes)
        first = begun + before(values.size)
        places, own_rows = ragged(sent.first_row, sent.size)
        source[own_rows] = first[of_sent][places] + own_rows - sent.first_row[places]
        came = of_arrival[places]
        target[own_rows] = np.where(came >= 0, first[came] + own_rows - sent.first_row[places], NONE)
        step[own_rows] = sent.step[places]
        value, row = ragged(first, values.size)
        rank, chunk = np.divmod(values.place, collective.chunks)
        next_first = np.where(values.following >= 0, first[values.following] - first, 0)
        fragment = starts[chunk][value] + row - first[value]
        columns.append(
            (
                values.terms[value], values.own[value],
                np.where(values.following[value] >= 0, row + next_first[value], NONE),
                values.final[value], np.full(len(row), job_index), rank[value], fragment,
            )
        )  # fmt: skip
        last = values.final[value]
        table = np.full((len(collective.ranks), layout.totals[job_index]), NONE, np.int64)
        table[rank[value][last], fragment[last]] = row[last]
        results.append(table)
        begun += len(row)
    terms, own, following, final, job, rank, fragment = (np.concatenate(each) for each in zip(*columns, strict=True))
    return Dataflow(source, target, step, terms, own, following, final, job, rank, fragment, tuple(results))


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
