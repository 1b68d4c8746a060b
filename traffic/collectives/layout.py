"""A plan's collectives as arrays: a stream for each connection, a tree for each rank that receives.

The arrays are those of `inakit.traffic.endpoints.streams`, so that whatever works on streams works on connections too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np

from inakit.planner.core.collectives.collective import ACKNOWLEDGED_AT_ONCE, Collective, Connection
from inakit.planner.core.collectives.collective_trees import label_of, tree_number, trees_of
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.traffic.endpoints.streams import (
    Bounds,
    StreamLayout,
    Streams,
    TreePart,
    lay_out,
    ports_of,
    tree_arrays,
    tree_key,
)
from inakit.traffic.sockets.batches import before
from inakit.traffic.sockets.ports import FloatArray, HostPort

LEAST_IN_FLIGHT = 4 * ACKNOWLEDGED_AT_ONCE
"""A connection may have at least so many fragments on the way: what is acknowledged at once is a small part of them."""


QUEUED_SHARE = 0.5
"""A connection may have this part of what a stream to a PS may have in queues: connections of several steps may meet on
a link.
"""


@dataclass(frozen=True)
class Sender:
    """A connection of a job's collective that has something to send: `count` fragments."""

    job_index: int
    connection: Connection
    count: int


@dataclass(frozen=True)
class CollectiveLayout(StreamLayout):
    """`collectives` are by job, `senders` by stream."""

    collectives: tuple[Collective, ...]
    senders: tuple[Sender, ...]

    @cached_property
    def totals(self) -> list[int]:
        """How many fragments each job's gradient has."""
        return [self.problem.fragment.count(job.gradient_bytes) for job in self.problem.jobs]

    @cached_property
    def acknowledged_after_s(self) -> FloatArray:
        """How long each stream takes to send what is acknowledged at once, in seconds, (streams,)."""
        at_once: FloatArray = np.minimum(self.streams.count, ACKNOWLEDGED_AT_ONCE) / self.streams.rate_fps
        return at_once


def lay_out_plan(problem: Problem, plan: Plan, hosts: Sequence[HostPort], bounds: Bounds | None = None) -> StreamLayout:
    """The arrays of a plan, of trees or of collectives. Raises `PlanError` as `lay_out` does."""
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
    """The connections of a job that have something to send."""
    collective = collectives[job_index]
    total = problem.fragment.count(problem.jobs[job_index].gradient_bytes)
    ends = [0, *accumulate(len(part) for part in collective.chunk_fragments(total))]
    for connection in collective.connections:
        count = sum(ends[each.first + each.count] - ends[each.first] for each in connection.transfers)
        if count:
            yield Sender(job_index, connection, count)


def tree_parts(problem: Problem, collectives: Sequence[Collective], senders: Sequence[Sender]) -> Iterator[TreePart]:
    """Every tree by which something comes to a rank."""
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
        piece=count,
        room=count,
        first_row=before(count),
        rate_fps=rate_fps,
        in_flight=np.array(at_once, np.int64),
    )
