"""A plan as arrays: its trees, and its streams, in the order in which endpoints work on them.

A stream is what one worker sends along one tree. Its fragments, and those of a tree, have
consecutive rows in flat arrays, so that whole batches of packets of many hosts are one NumPy
operation: fragment i of stream f has the row `streams.first_row[f] + i`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.plan import AggregationTree, Plan
from planner.problem import FragmentFormat, Job, Problem
from planner.shares import fragment_ranges
from topo.errors import PlanError
from traffic.packet import BARE_FRAME, Frames
from traffic.port import BoolArray, FloatArray, HostPort, IntArray

IN_FLIGHT_S = 0.04
"""A stream may have this much of its rate on the way: many round trips, and still few enough that all
streams through one link never fill its queue with more than this time's worth."""
MIN_IN_FLIGHT = 8


@dataclass(frozen=True)
class TreePart:
    """The part of a job's gradient that goes along one tree: `count` fragments from fragment `start` on."""

    job: Job
    job_index: int
    tree: AggregationTree
    start: int
    count: int
    rate_bps: float


@dataclass(frozen=True)
class Trees:
    """Arrays over trees. `window` is the number of slots, 0 without an aggregator; `server` a host."""

    job: IntArray
    server: IntArray
    count: IntArray
    window: IntArray
    first_row: IntArray
    key: IntArray


@dataclass(frozen=True)
class Streams:
    """Arrays over streams, sorted by host. `in_flight` fragments may await results at once."""

    host: IntArray
    tree: IntArray
    job: IntArray
    worker: IntArray
    label: IntArray
    count: IntArray
    first_row: IntArray
    rate_fps: FloatArray
    in_flight: IntArray


@dataclass(frozen=True)
class Layout:
    """Who sends what to whom in one run. `streams.worker` counts within the job's workers."""

    problem: Problem
    hosts: tuple[HostPort, ...]
    parts: tuple[TreePart, ...]
    trees: Trees
    streams: Streams

    @cached_property
    def stream_of(self) -> IntArray:
        """`stream_of[host, tree]`: the stream, or -1."""
        table = np.full((len(self.hosts), len(self.parts)), -1, np.int64)
        table[self.streams.host, self.streams.tree] = np.arange(len(self.streams.host))
        return table

    def streams_of(self, job_index: int) -> IntArray:
        return np.flatnonzero(self.streams.job == job_index)

    def trees_of(self, job_index: int) -> IntArray:
        return np.flatnonzero(self.trees.job == job_index)

    def tree_index(self, job: IntArray, tree: IntArray) -> IntArray:
        """The tree of each (job number, tree number); -1 where the plan has none."""
        keys = tree_key(job, tree)
        index = np.minimum(np.searchsorted(self.trees.key, keys), len(self.trees.key) - 1)
        return np.where(self.trees.key[index] == keys, index, -1)


def tree_key(job: IntArray | int, tree: IntArray | int) -> IntArray:
    return np.asarray(job, np.int64) << 16 | np.asarray(tree, np.int64)


def ragged(starts: IntArray, counts: IntArray) -> tuple[IntArray, IntArray]:
    """For each i, `counts[i]` consecutive integers from `starts[i]`: (i of each, the integers)."""
    owner = np.repeat(np.arange(len(counts)), counts)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return owner, np.arange(total) + np.repeat(starts - ends + counts, counts)


def before(counts: IntArray) -> IntArray:
    """How many come before each, in all: the row of the first."""
    return np.cumsum(counts) - counts


def is_prefix(counts: IntArray, accepted: IntArray) -> BoolArray:
    """Which of `counts[i]` things for every i are among the first `accepted[i]`."""
    return np.arange(int(counts.sum())) - np.repeat(before(counts), counts) < np.repeat(accepted, counts)


def pick(templates: Frames, index: IntArray) -> Frames:
    """`templates[index]`, without NumPy's detour through every field of every packet."""
    whole: Frames = templates.view(np.dtype((np.void, templates.itemsize)))[index].view(templates.dtype)
    return whole


def head_of(frames: Frames) -> Frames:
    """The heads of whole frames."""
    return np.ascontiguousarray(frames.view((np.uint8, frames.itemsize))[:, : BARE_FRAME.itemsize]).view(BARE_FRAME)[
        :, 0
    ]


# ---- from a plan -------------------------------------------------------------------------------


def lay_out(problem: Problem, plan: Plan, hosts: Sequence[HostPort]) -> Layout:
    """The arrays of a plan. Raises `PlanError` for a tree whose root is no parameter server."""
    used = {host for job in problem.jobs for host in (*job.workers, *job.servers)}
    ports = tuple(host for host in hosts if host.name in used)
    missing = used - {host.name for host in ports}
    if missing:
        raise PlanError(f"host '{min(missing)}' is not in the network: build it from the plan's fabric")
    parts = tuple(sorted(tree_parts(problem, plan), key=lambda part: int(tree_key(part.job.number, part.tree.number))))
    index = {host.name: number for number, host in enumerate(ports)}
    return Layout(problem, ports, parts, tree_arrays(parts, index), stream_arrays(problem.fragment, parts, index))


def tree_parts(problem: Problem, plan: Plan) -> Iterator[TreePart]:
    """Every tree that carries at least one fragment."""
    ranges = fragment_ranges(problem, plan)
    indices = {job.number: index for index, job in enumerate(problem.jobs)}
    for shard in plan.shards:
        job_index = indices[shard.job]
        job = problem.jobs[job_index]
        for tree in shard.trees:
            check_root(job, tree)
            carried = ranges[job.number, tree.number]
            if carried:
                rate_bps = shard.rate_bps / len(shard.trees)
                yield TreePart(job, job_index, tree, carried.start, len(carried), rate_bps)


def check_root(job: Job, tree: AggregationTree) -> None:
    if tree.root not in job.servers:
        raise PlanError(
            f"job {job.number}, tree {tree.number}: its root '{tree.root}' is not a parameter server of the job; "
            f"traffic ends at one of {', '.join(job.servers)}"
        )


def tree_arrays(parts: Sequence[TreePart], index: dict[str, int]) -> Trees:
    count = np.array([part.count for part in parts], np.int64)
    return Trees(
        job=np.array([part.job_index for part in parts], np.int64),
        server=np.array([index[part.tree.root] for part in parts], np.int64),
        count=count,
        window=np.array([part.tree.window or 0 for part in parts], np.int64),
        first_row=before(count),
        key=np.array([tree_key(part.job.number, part.tree.number) for part in parts], np.int64),
    )


def stream_arrays(fragment: FragmentFormat, parts: Sequence[TreePart], index: dict[str, int]) -> Streams:
    # One row per stream: host, tree, label. Sorted, so that a host's frames lie side by side.
    rows = sorted(
        (index[host], number, label) for number, part in enumerate(parts) for label, host in part.tree.workers.items()
    )
    host, tree, label = np.array(rows, np.int64).reshape(-1, 3).T.copy()
    of = [parts[number] for number in tree]
    count = np.array([part.count for part in of], np.int64)
    rate_fps = np.array([part.rate_bps / (8 * fragment.wire_bytes) for part in of])
    return Streams(
        host=host,
        tree=tree,
        job=np.array([part.job_index for part in of], np.int64),
        worker=np.array(
            [part.job.workers.index(part.tree.workers[int(own)]) for part, own in zip(of, label, strict=True)], np.int64
        ),
        label=label,
        count=count,
        first_row=before(count),
        rate_fps=rate_fps,
        in_flight=np.array([in_flight(part.tree, rate) for part, rate in zip(of, rate_fps, strict=True)], np.int64),
    )


def in_flight(tree: AggregationTree, rate_fps: float) -> int:
    """Fragments that a stream may have on the way: what its rate needs, and never more than its slots."""
    needed = max(MIN_IN_FLIGHT, math.ceil(rate_fps * IN_FLIGHT_S))
    return needed if tree.window is None else min(needed, tree.window)
