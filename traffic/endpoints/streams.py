"""A plan as arrays: its trees and streams, in the order in which endpoints process them.

A stream is the sequence of fragments that one worker sends along one tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address
from typing import Any

import numpy as np

from inakit.planner.core.plan import ROOT_LABEL, AggregationTree, Plan, fragment_ranges
from inakit.planner.core.problem import FragmentFormat, Job, Problem
from inakit.planner.core.slot_policies import policy_of
from inakit.topo.errors import PlanError
from inakit.traffic.endpoints.options import IN_FLIGHT_S, Bounds
from inakit.traffic.sockets.ports import BoolArray, FloatArray, HostPort, IntArray
from inakit.traffic.wire.packet_format import BARE_FRAME, FRAME, Flag, Frames, Kind, head_of, new_frames

MIN_IN_FLIGHT = 8
"""The least number of fragments in flight of a slow stream."""


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
    """Arrays over trees, (trees,), sorted by `key`.

    `job`: the index of its job. `server`: the host of its PS. `stands_by`: the tree's root is a switch, and the PS sums
    only fragments that the switch cannot. `count`: its fragments. `slots`: the number of its aggregators' slots for it,
    0 without an aggregator. `hashed`: a hash decides a fragment's slot. `counted`: its sums state their number of
    workers. `priority`: that of its packets. `key`: `tree_key` of its job and tree number.
    """

    job: IntArray
    server: IntArray
    stands_by: BoolArray
    count: IntArray
    slots: IntArray
    hashed: BoolArray
    counted: BoolArray
    priority: IntArray
    key: IntArray

    def slot(self, tree: IntArray, seq: IntArray) -> IntArray:
        """The slots, counted from the tree's first, of fragments with these sequence numbers; all are (fragments,)."""
        slots = np.maximum(self.slots[tree], 1)
        return np.where(self.hashed[tree], spread(self.key[tree], seq), seq) % slots


@dataclass(frozen=True)
class Streams:
    """Arrays over streams, (streams,), sorted by host.

    `host`, `tree` and `job` are indices; `worker` counts within the job's workers. `label`: that of its packets.
    `count`: its fragments. `rate_fps`: the planned rate in fragments per second. `in_flight`: the most fragments that
    await results at once.
    """

    host: IntArray
    tree: IntArray
    job: IntArray
    worker: IntArray
    label: IntArray
    count: IntArray
    rate_fps: FloatArray
    in_flight: IntArray


@dataclass(frozen=True)
class StreamLayout:
    """The trees and streams of one run. Indices of hosts refer to `hosts`, those of trees to `parts`."""

    problem: Problem
    hosts: tuple[HostPort, ...]
    parts: tuple[TreePart, ...]
    trees: Trees
    streams: Streams

    def streams_of(self, job_index: int) -> IntArray:
        """The streams of all workers of a job, in ascending order."""
        return np.flatnonzero(self.streams.job == job_index)

    def streams_of_workers(self, job_index: int) -> list[IntArray]:
        """The streams of each worker of a job, in ascending order."""
        of = self.streams_of(job_index)
        order = np.argsort(self.streams.worker[of], kind="stable")
        others = np.arange(1, len(self.problem.jobs[job_index].workers))
        return np.split(of[order], np.searchsorted(self.streams.worker[of[order]], others))

    def trees_of(self, job_index: int) -> IntArray:
        return np.flatnonzero(self.trees.job == job_index)


def spread(key: IntArray, seq: IntArray) -> IntArray:
    """A 32-bit hash of each pair of numbers, (n,): the finalizer of MurmurHash3 over both."""
    mask = 0xFFFFFFFF
    mixed = (seq + key * 0x9E3779B1) & mask
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        mixed = ((mixed ^ mixed >> shift) * factor) & mask
    result: IntArray = mixed ^ mixed >> 16
    return result


def index_of(keys: IntArray, wanted: IntArray) -> IntArray:
    """The place of each wanted number in ascending `keys`; -1 if it is missing."""
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, place, -1)


def tree_key(job: IntArray | int, tree: IntArray | int) -> IntArray:
    """One number for a job number and a tree number that preserves their order."""
    return np.asarray(job, np.int64) << 16 | np.asarray(tree, np.int64)


def lay_out(problem: Problem, plan: Plan, hosts: Sequence[HostPort], bounds: Bounds | None = None) -> StreamLayout:
    """Return the arrays of a plan of trees. Raises `PlanError` for a tree without a PS, or a host not in `hosts`."""
    bounds, ports = bounds or Bounds(), ports_of(problem, hosts)
    parts = tuple(sorted(tree_parts(problem, plan), key=lambda part: int(tree_key(part.job.number, part.tree.number))))
    index = {host.name: number for number, host in enumerate(ports)}
    streams = stream_arrays(problem.fragment, parts, index, bounds)
    return StreamLayout(problem, ports, parts, tree_arrays(parts, index), streams)


def ports_of(problem: Problem, hosts: Sequence[HostPort]) -> tuple[HostPort, ...]:
    """Return the ports of hosts that work or serve in a job. Raises `PlanError` for one that `hosts` lacks."""
    used = {host for job in problem.jobs for host in (*job.workers, *job.servers)}
    ports = tuple(host for host in hosts if host.name in used)
    missing = used - {host.name for host in ports}
    if missing:
        raise PlanError(f"host '{min(missing)}' is not in the network: build it from the plan's fabric")
    return ports


def tree_parts(problem: Problem, plan: Plan) -> Iterator[TreePart]:
    """Yield every tree with at least one fragment."""
    ranges = fragment_ranges(problem, plan)
    indices = {job.number: index for index, job in enumerate(problem.jobs)}
    for planned in plan.trees:
        job_index = indices[planned.job]
        job = problem.jobs[job_index]
        tree = planned.tree
        check_server(job, tree)
        carried = ranges[job.number, tree.number]
        if carried:
            yield TreePart(job, job_index, tree, carried.start, len(carried), planned.rate_bps)


def check_server(job: Job, tree: AggregationTree) -> None:
    """Raise `PlanError` unless a tree ends at a parameter server of its job."""
    servers, where = ", ".join(job.servers), f"job {job.number}, tree {tree.number}"
    if tree.server is None:
        raise PlanError(
            f"{where}: no PS stands by for its root '{tree.root}'; let its fallback lead to one of {servers}"
        )
    if tree.server not in job.servers:
        raise PlanError(
            f"{where}: '{tree.server}' is not a parameter server of the job; traffic ends at one of {servers}"
        )


def tree_arrays(parts: Sequence[TreePart], index: dict[str, int]) -> Trees:
    """The arrays over all trees; `index` has the number of each host, by its name."""
    count = np.array([part.count for part in parts], np.int64)
    return Trees(
        job=np.array([part.job_index for part in parts], np.int64),
        server=np.array([index[part.tree.server or ""] for part in parts], np.int64),
        stands_by=np.array([part.tree.in_network_root for part in parts], np.bool_),
        count=count,
        slots=np.array([part.tree.slots or 0 for part in parts], np.int64),
        hashed=np.array([policy_of(part.tree.policy).finds_slots_by_hash for part in parts], np.bool_),
        counted=np.array([part.tree.workers_counted for part in parts], np.bool_),
        priority=np.array([part.tree.priority for part in parts], np.int64),
        key=np.array([tree_key(part.job.number, part.tree.number) for part in parts], np.int64),
    )


def stream_arrays(
    fragment: FragmentFormat, parts: Sequence[TreePart], index: dict[str, int], bounds: Bounds
) -> Streams:
    """The arrays over all streams; `index` has the number of each host, by its name."""
    # One row per stream: host, tree, label. Sorted, so that a host's frames lie side by side.
    rows = sorted(
        (index[host], number, label) for number, part in enumerate(parts) for label, host in part.tree.workers.items()
    )
    host, tree, label = np.array(rows, np.int64).reshape(-1, 3).T.copy()
    of = [parts[number] for number in tree]
    rate_fps = [part.rate_bps / (8 * fragment.wire_bytes) for part in parts]
    at_once = [in_flight(part.tree, rate, bounds.in_flight_s) for part, rate in zip(parts, rate_fps, strict=True)]
    workers = {part.job_index: {host: number for number, host in enumerate(part.job.workers)} for part in parts}
    own = [workers[part.job_index][part.tree.workers[each]] for part, each in zip(of, label.tolist(), strict=True)]
    return Streams(
        host=host,
        tree=tree,
        job=np.array([part.job_index for part in of], np.int64),
        worker=np.array(own, np.int64),
        label=label,
        count=np.array([part.count for part in of], np.int64),
        rate_fps=np.array(rate_fps)[tree],
        in_flight=np.array(at_once, np.int64)[tree],
    )


def in_flight(tree: AggregationTree, rate_fps: float, longest_s: float = IN_FLIGHT_S) -> int:
    """The fragments that a stream can have in flight: as its rate needs, and never more than its slots."""
    needed = max(MIN_IN_FLIGHT, math.ceil(rate_fps * longest_s))
    return needed if tree.window is None else min(needed, tree.window)


# -- The heads of all packets that endpoints send: a gradient's for each stream, and those of results and notices.

RESULTS_MAC, RESULTS_IPV4 = "01:00:5e:4e:41:01", "239.78.65.1"
"""The address of results and notices to all workers of a tree."""


def gradient_heads(layout: StreamLayout, made: Callable[..., Frames] = new_frames) -> Frames:
    """One head per stream, (streams,): complete except for flags, sequence number and slot.

    `made` makes each frame, with the parameters of `new_frames`.
    """
    streams = layout.streams
    heads = np.zeros(len(streams.host), BARE_FRAME)
    for stream, (host, tree, label) in enumerate(zip(streams.host, streams.tree, streams.label, strict=True)):
        source, server, part = layout.hosts[host], layout.hosts[layout.trees.server[tree]], layout.parts[tree]
        fields = {"label": int(label), "workers": 1, "priority": int(layout.trees.priority[tree])}
        fields |= {"kind": Kind.GRADIENT, "job": part.job.number, "tree": part.tree.number}
        if part.tree.repairs:
            fields["bitmap"] = int(IPv4Address(source.ipv4))
        ways = {"src_mac": source.mac, "dst_mac": server.mac, "src_ip": source.ipv4, "dst_ip": server.ipv4}
        frame = made(1, **ways, ina=fields, capable=policy_of(part.tree.policy).marks)
        heads[stream] = head_of(frame)[0]
    return heads


def question_heads(layout: StreamLayout) -> Frames:
    """The heads of packets by which workers ask for results, (streams,). They have no values."""
    heads = gradient_heads(layout, partial(new_frames, dtype=BARE_FRAME))
    heads["ina"]["kind"], heads["ina"]["bitmap"] = Kind.QUESTION, 0
    return heads


def set_sequence(layout: StreamLayout, heads: Frames, rows: IntArray, stream: IntArray, seq: IntArray) -> None:
    """Write sequence numbers, and the slots that follow from them, into `heads[rows]`; all arrays are (rows,)."""
    heads["ina"]["seq"][rows] = seq & 0xFFFFFFFF
    heads["ina"]["slot"][rows] = layout.trees.slot(layout.streams.tree[stream], seq)


def answer_heads(layout: StreamLayout) -> tuple[Frames, Frames, Frames, Frames]:
    """The heads of all packets of servers: results and notices to all workers of each tree, (trees,), then results and
    requests to the worker of each stream alone, (streams,).

    They are complete except for sequence number, slot, part and the flags OVERFLOW and ECN of results.
    """
    of = layout.streams
    to_one = [(tree, host) for host, tree in zip(of.host.tolist(), of.tree.tolist(), strict=True)]
    to_all = [(tree, None) for tree in range(len(layout.parts))]
    kinds: tuple[tuple[Kind, Flag | int, list[Any]], ...] = (
        (Kind.RESULT, 0, to_all),
        (Kind.NOTICE, Flag.OVERFLOW, to_all),
        (Kind.RESULT, Flag.RETRANSMITTED, to_one),
        (Kind.NOTICE, Flag.RETRANSMITTED, to_one),
    )
    # Without an explicit type NumPy would convert the fields to this machine's byte order.
    results, notices, to_worker, asking = (
        np.concatenate([answer_head(layout, tree, kind, int(flags), host) for tree, host in ways], dtype=BARE_FRAME)
        for kind, flags, ways in kinds
    )
    return results, notices, to_worker, asking


def answer_head(layout: StreamLayout, tree: int, kind: Kind, flags: int, host: int | None) -> Frames:
    """The head, (1,), of a packet from a tree's server to a host, or to all its workers. A notice has no values."""
    server, part = layout.hosts[layout.trees.server[tree]], layout.parts[tree]
    mac, ipv4 = (RESULTS_MAC, RESULTS_IPV4) if host is None else (layout.hosts[host].mac, layout.hosts[host].ipv4)
    dtype = BARE_FRAME if kind is Kind.NOTICE else FRAME
    fields = {"kind": kind, "flags": flags, "label": ROOT_LABEL, "workers": len(part.tree.workers)}
    fields |= {"job": part.job.number, "tree": part.tree.number}
    capable = kind is Kind.RESULT and policy_of(part.tree.policy).marks
    ways = {"src_mac": server.mac, "dst_mac": mac, "src_ip": server.ipv4, "dst_ip": ipv4}
    return head_of(new_frames(1, **ways, ina=fields, dtype=dtype, capable=capable))
