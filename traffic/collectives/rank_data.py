"""The collectives of a plan as arrays: streams, the dataflow of each rank, and the values that ranks hold."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.plan import ACKNOWLEDGED_AT_ONCE, Collective, Connection, Plan, label_of, tree_number, trees_of
from inakit.planner.core.problem import Problem
from inakit.traffic.endpoints.options import Bounds
from inakit.traffic.endpoints.streams import StreamLayout, Streams, TreePart, lay_out, ports_of, tree_arrays, tree_key
from inakit.traffic.sockets.ports import BoolArray, FloatArray, HostPort, IntArray, before, ragged

# -- A plan's collectives as arrays: a stream for each connection, a tree for each rank that receives.
#
# The arrays are those of `inakit.traffic.endpoints.streams`, so that all functions on streams work on connections too.

LEAST_IN_FLIGHT = 4 * ACKNOWLEDGED_AT_ONCE
"""The least number of fragments in flight on a connection; one acknowledgement covers a small part of them."""

QUEUED_SHARE = 0.5
"""A connection's fragments in flight as a part of a PS stream's: connections of several steps can meet on a link."""


@dataclass(frozen=True)
class Sender:
    """A connection of a job's collective that sends `count` fragments."""

    job_index: int
    connection: Connection
    count: int


@dataclass(frozen=True)
class CollectiveLayout(StreamLayout):
    """`collectives` are by job, `senders` by stream."""

    collectives: tuple[Collective, ...]
    senders: tuple[Sender, ...]

    @cached_property
    def first_chunk(self) -> IntArray:
        """The row of each stream's first fragment in arrays over all fragments of streams, (streams,)."""
        return before(self.streams.count)

    @cached_property
    def stream_of_chunk(self) -> IntArray:
        """The stream of each row of these arrays, (rows,)."""
        return np.repeat(np.arange(len(self.streams.count)), self.streams.count)

    @cached_property
    def totals(self) -> list[int]:
        """The number of fragments of each job's gradient."""
        return [self.problem.fragment.count(job.gradient_bytes) for job in self.problem.jobs]

    @cached_property
    def acknowledged_after_s(self) -> FloatArray:
        """The time in which each stream sends the fragments of one acknowledgement, in seconds, (streams,)."""
        at_once: FloatArray = np.minimum(self.streams.count, ACKNOWLEDGED_AT_ONCE) / self.streams.rate_fps
        return at_once


def lay_out_plan(problem: Problem, plan: Plan, hosts: Sequence[HostPort], bounds: Bounds | None = None) -> StreamLayout:
    """Return the arrays of a plan of trees or of collectives. Raises `PlanError` as `lay_out` does."""
    return (
        lay_out_collectives(problem, plan, hosts, bounds) if plan.collectives else lay_out(problem, plan, hosts, bounds)
    )


def lay_out_collectives(
    problem: Problem, plan: Plan, hosts: Sequence[HostPort], bounds: Bounds | None = None
) -> CollectiveLayout:
    """The arrays of a plan in which every job has a collective. Raises `PlanError` for a host that `hosts` lacks."""
    ports = ports_of(problem, hosts)
    index = {host.name: number for number, host in enumerate(ports)}
    by_job = {collective.job: collective for collective in plan.collectives}
    collectives = tuple(by_job[job.number] for job in problem.jobs)
    senders = [
        sender for job_index in range(len(problem.jobs)) for sender in senders_of(problem, job_index, collectives)
    ]
    parts = sorted(tree_parts(problem, collectives, senders), key=lambda p: int(tree_key(p.job.number, p.tree.number)))
    trees = {(part.job_index, part.tree.number): number for number, part in enumerate(parts)}

    def place(sender: Sender) -> tuple[int, int, int]:
        host = collectives[sender.job_index].ranks[sender.connection.source]
        tree = trees[sender.job_index, tree_number(sender.connection.destination)]
        return index[host], tree, label_of(sender.connection)

    placed = sorted((place(sender), number) for number, sender in enumerate(senders))
    ordered = tuple(senders[number] for _, number in placed)
    streams = stream_arrays(problem, ordered, [at for at, _ in placed], bounds or Bounds())
    return CollectiveLayout(problem, ports, tuple(parts), tree_arrays(parts, index), streams, collectives, ordered)


def senders_of(problem: Problem, job_index: int, collectives: Sequence[Collective]) -> Iterator[Sender]:
    """Yield the connections of a job that send fragments."""
    collective = collectives[job_index]
    total = problem.fragment.count(problem.jobs[job_index].gradient_bytes)
    ends = [0, *accumulate(len(part) for part in collective.chunk_fragments(total))]
    for connection in collective.connections:
        count = sum(ends[each.first + each.count] - ends[each.first] for each in connection.transfers)
        if count:
            yield Sender(job_index, connection, count)


def tree_parts(problem: Problem, collectives: Sequence[Collective], senders: Sequence[Sender]) -> Iterator[TreePart]:
    """Yield every tree by which fragments reach a rank."""
    counts: dict[tuple[int, int], int] = {}
    for sender in senders:
        at = sender.job_index, tree_number(sender.connection.destination)
        counts[at] = counts.get(at, 0) + sender.count
    for job_index, collective in enumerate(collectives):
        for tree in trees_of(collective):
            if (job_index, tree.number) in counts:
                yield TreePart(problem.jobs[job_index], job_index, tree, 0, counts[job_index, tree.number], 0.0)


def stream_arrays(
    problem: Problem, senders: Sequence[Sender], places: Sequence[tuple[int, int, int]], bounds: Bounds
) -> Streams:
    """The arrays over all streams, whose hosts, trees and labels are `places`."""
    host, tree, label = np.array(places, np.int64).reshape(-1, 3).T.copy()
    count = np.array([sender.count for sender in senders], np.int64)
    rate_fps = np.array([each.connection.rate_bps / (8 * problem.fragment.wire_bytes) for each in senders])
    longest_s = bounds.round_trip_s + (bounds.in_flight_s - bounds.round_trip_s) * QUEUED_SHARE
    at_once = [max(LEAST_IN_FLIGHT, math.ceil(rate * longest_s)) for rate in rate_fps]
    workers = [{name: n for n, name in enumerate(job.workers)} for job in problem.jobs]
    return Streams(
        host=host,
        tree=tree,
        job=np.array([sender.job_index for sender in senders], np.int64),
        worker=np.array([workers[each.job_index][each.connection.path[0]] for each in senders], np.int64),
        label=label,
        count=count,
        rate_fps=rate_fps,
        in_flight=np.array(at_once, np.int64),
    )


# -- The computation of a collective as arrays: the values that each rank computes from its gradient and from packets.
#
# A *value* is a rank's partial sum of a chunk after some of the steps that is sent or is the result. Its terms are
# arriving packets, and either the rank's own gradient or the preceding value. A value never changes once all of its
# terms are there, so that it can be sent again at any later time. Fragments of values have rows in flat arrays.

NONE = -1


@dataclass(frozen=True)
class Dataflow:
    """Arrays over rows of streams, (rows,), and over rows of values, (value rows,).

    By row of a stream: `source`, the value row that it sends; `target`, the value row to which the receiver adds it, -1
    for none; `step`. By value row: `terms`, the number of its terms besides the own gradient; `own`, whether the own
    gradient is a term; `following`, the value row of which it is a term, -1 for none; `final`, whether it is a result;
    its `job`, `rank` and `fragment`. `results[job]` is (ranks, fragments), the value rows of all results.
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
    """Chunks that a job's streams send, in the order of their rows: arrays (sent,). `first_row` is a stream's."""

    step: IntArray
    source: IntArray
    destination: IntArray
    chunk: IntArray
    adds: BoolArray
    size: IntArray
    first_row: IntArray


class Values(NamedTuple):
    """The values of a job, (values,), sorted by rank, chunk and number of contained arrivals.

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
    source, target, step = (np.full(int(layout.streams.count.sum()), NONE, np.int64) for _ in range(3))
    columns: list[tuple[NDArray[Any], ...]] = []
    results: list[IntArray] = []
    begun = 0  # the value rows of the jobs so far
    for job_index, collective in enumerate(layout.collectives):
        parts = collective.chunk_fragments(layout.totals[job_index])
        starts, sizes = np.array([part.start for part in parts]), np.array([len(part) for part in parts])
        sent = sent_by(layout, job_index, sizes)
        values, of_sent, of_arrival = values_of(collective, sent, sizes)
        first = begun + before(values.size)
        place, rows = ragged(sent.first_row, sent.size)
        within, came = rows - sent.first_row[place], of_arrival[place]
        source[rows] = first[of_sent][place] + within
        target[rows] = np.where(came >= 0, first[came] + within, NONE)
        step[rows] = sent.step[place]
        value, row = ragged(first, values.size)
        rank, chunk = np.divmod(values.place, collective.chunks)
        rank, fragment = rank[value], starts[chunk][value] + row - first[value]
        follows, final = values.following[value], values.final[value]
        following = np.where(follows >= 0, first[follows] + row - first[value], NONE)
        job = np.full(len(value), job_index)
        columns.append((values.terms[value], values.own[value], following, final, job, rank, fragment))
        table = np.full((len(collective.ranks), layout.totals[job_index]), NONE, np.int64)
        table[rank[final], fragment[final]] = begun + np.flatnonzero(final)
        results.append(table)
        begun += len(value)
    terms, own, following, final, job, rank, fragment = (np.concatenate(each) for each in zip(*columns, strict=True))
    return Dataflow(source, target, step, terms, own, following, final, job, rank, fragment, tuple(results))


def sent_by(layout: CollectiveLayout, job_index: int, sizes: IntArray) -> Sent:
    """The chunks that the streams of a job send, without empty ones."""
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
    return Sent(step, source, destination, chunk, adds == 1, size, layout.first_chunk[stream] + within)


def values_of(collective: Collective, sent: Sent, sizes: IntArray) -> tuple[Values, IntArray, IntArray]:
    """Return the values of a job; for each sent chunk its value, and the value of which it is a term, -1 for none."""
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
