"""All endpoints of a run: their records, and the compiled machines that work on them (`endpoints.c`).

A driver, which is a network in virtual time, sockets or a model, gives them packets and time and sends for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.plan import ROOT_LABEL
from inakit.planner.core.problem import Job
from inakit.planner.core.slot_policies import policy_of
from inakit.traffic.endpoints.gradient import Gradients, RandomGradients
from inakit.traffic.endpoints.options import ServerOptions, WorkerOptions
from inakit.traffic.endpoints.records import (
    ALL,
    EXPECTED,
    HOST,
    JOB,
    LABEL,
    NEVER,
    NONE,
    OUTBOX,
    POINTERS,
    ROW,
    STREAM,
    SUM,
    TIMER,
    TREE,
    library,
)  # fmt: skip
from inakit.traffic.endpoints.streams import StreamLayout, answer_heads, gradient_heads, question_heads
from inakit.traffic.endpoints.sum_check import at_hosts, counted, described
from inakit.traffic.endpoints.windows import backoffs, crowds, fair_shares, least_windows, rules_of
from inakit.traffic.sockets.ports import BoolArray, FloatArray, IntArray, before
from inakit.traffic.wire.packet_format import Frames

PS_PER_S = 10**12

ROWS_PER_WINDOW = 2
"""The windows of fragments that a stream remembers: others can still ask for those behind its window."""
SUMS_PER_WINDOW = 4
"""The windows of fragments that a PS remembers: workers are up to a window apart, and packets can be late."""
LEAST_DEPTH = 2.0
"""The least depth of a token bucket in fragments, for slow streams."""
TURNS = 4
"""The part of its window that bounds a worker's wait for its turn to ask for a lost fragment."""
GAP, GAP_AGAIN = 1 / 2, 3 / 32
"""Where aggregators repair losses: the parts of a window after which a worker asks for a late result, and after which
while it cannot send."""
TIMEOUTS_BY_AGGREGATORS = 3
"""After this many first timeouts a fragment goes directly to the PS: an aggregator can have lost its part."""


def ps(seconds: float) -> int:
    """Seconds in picoseconds; `NEVER` for infinity and all that lies beyond it."""
    return NEVER if seconds * PS_PER_S >= NEVER else round(seconds * PS_PER_S)


class Endpoints:
    """The workers and PSs of a layout. `close` frees what they have allocated; all else stays.

    `hosts`, `streams`, `rows`, `trees`, `sums`, `jobs` are the records of `inakit.traffic.endpoints.records`.
    """

    outbox = OUTBOX

    def __init__(
        self,
        layout: StreamLayout,
        worker: WorkerOptions | None = None,
        server: ServerOptions | None = None,
        *,
        whole: bool = False,
    ) -> None:
        """With `whole`, PSs keep the sums of all fragments of an iteration, which then come in any order."""
        self.layout, self.options, self.library = layout, worker or WorkerOptions(), library()
        self.hosts, self.jobs = np.zeros(len(layout.hosts), HOST), np.zeros(len(layout.problem.jobs), JOB)
        self.streams, self.rows = self.stream_records(), np.zeros(0, ROW)
        self.trees = self.tree_records(whole=whole)
        self.labels, self.sets, self.summands = self.memberships()
        self.workers = np.argsort(layout.streams.tree, kind="stable").astype(np.uint32)
        sums = int((self.trees["mask"] + np.uint64(1)).sum())
        self.rows = np.zeros(int((self.streams["mask"] + np.uint64(1)).sum()), ROW)
        self.sums, self.expected = np.zeros(sums, SUM), np.zeros(sums, EXPECTED)
        self.sums["fragment"] = self.expected["fragment"] = -1
        self.covered = np.zeros((sums, self.sets.shape[1]), np.uint64)
        self.place = np.arange(2 * len(self.streams), dtype=np.uint32)
        self.timers = np.zeros(len(self.place), TIMER)
        self.timers["at"], self.timers["stream"] = NEVER, self.place
        self.results: dict[tuple[int, int], NDArray[np.int64]] = {}
        self.held: dict[tuple[int, int], NDArray[np.int32]] = {}
        self.all = self.record(server or ServerOptions())
        self.address: int = self.all.ctypes.data
        self.hosts["all"] = self.address

    def close(self) -> None:
        """Forget waiting answers."""
        self.library.endpoints_close(self.address)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the records

    @cached_property
    def answers(self) -> tuple[Frames, Frames, Frames, Frames]:
        """The heads of all packets of PSs, as `answer_heads` returns them."""
        return answer_heads(self.layout)

    def stream_records(self) -> NDArray[np.void]:
        """The records of all streams, before the first iteration."""
        of = self.layout.streams
        found, rules = np.zeros(len(of.host), STREAM), rules_of(self.layout)
        for name in ("host", "tree", "job", "worker", "label", "count", "in_flight"):
            found[name] = getattr(of, name)
        found["start"] = [self.layout.parts[tree].start for tree in of.tree]
        found["mask"] = rings(np.minimum(ROWS_PER_WINDOW * of.in_flight, of.count)) - 1
        found["first_row"] = before(found["mask"].astype(np.int64) + 1)
        fair = fair_shares(of, self.options.min_timeout_s)
        found["least"] = least_windows(of, fair)
        found["max_backoff"] = backoffs(found["least"], fair)
        found["turns"] = np.clip(of.in_flight // TURNS, 1, crowds(of))
        for name in ("gap", "yields", "returns", "heeds", "keeps"):
            found[name] = [getattr(rule, name) for rule in rules]
        found["repairs"] = repaired = np.array([self.layout.parts[tree].tree.repairs for tree in of.tree], np.bool_)
        for name, part in (("gap", GAP), ("gap_again", GAP_AGAIN)):
            found[name][repaired] = np.maximum(of.in_flight[repaired] * part, 1)
        found["size"] = found["threshold"] = of.in_flight
        found["slower"] = 1
        found["share"], found["smoothed"], found["answered"], found["newest_order"] = 1, -1, -1, -1
        found["again_first"], found["first_sent_at"] = NONE, -1
        found["gradient_values"] = [self.layout.problem.jobs[job].gradient_bytes // 4 for job in of.job]
        set_pace(found, of.rate_fps, self.options)
        to_one, ask_one = self.answers[2:]
        sent = gradient_heads(self.layout)
        for name, heads in (
            ("head", sent),
            ("question", question_heads(self.layout)),
            ("result", to_one),
            ("ask", ask_one),
        ):
            found[name] = as_bytes(heads)
        return found

    def tree_records(self, *, whole: bool) -> NDArray[np.void]:
        """The records of all trees."""
        of, streams, parts = self.layout.trees, self.layout.streams, self.layout.parts
        found = np.zeros(len(parts), TREE)
        for name in ("job", "server", "slots", "count", "stands_by", "hashed", "counted", "key"):
            found[name] = getattr(of, name)
        found["asks"] = of.stands_by
        found["height"] = [part.tree.heights[ROOT_LABEL] if part.tree.repairs else 0 for part in parts]
        found["reach"] = [part.tree.reach if part.tree.repairs else 0 for part in parts]
        found["hides"] = [policy_of(part.tree.policy).keeps_sums for part in parts]
        found["crowd"] = np.bincount(streams.tree, minlength=len(parts))
        found["first_worker"] = before(found["crowd"].astype(np.int64))
        window = np.zeros(len(parts), np.int64)
        np.maximum.at(window, streams.tree, streams.in_flight)
        found["mask"] = rings(of.count if whole else np.minimum(SUMS_PER_WINDOW * window, of.count)) - 1
        found["first_row"] = before(found["mask"].astype(np.int64) + 1)
        to_all, notices = self.answers[:2]
        found["result"], found["notice"] = as_bytes(to_all), as_bytes(notices)
        return found

    def memberships(self) -> tuple[NDArray[np.void], NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the records of all labels, the sets of workers that they represent, and the sets of bitmaps' bits.

        A set is a row of bits; the record of a tree has the place of its first label and of the set of all workers.
        """
        parts, words = self.layout.parts, 1 + max(len(part.job.workers) - 1 for part in self.layout.parts) // 64
        labels: list[tuple[int, ...]] = []
        sets: list[NDArray[np.uint64]] = []
        summands: list[int] = []
        streams = self.layout.streams
        stream_of = {
            (tree, label): number
            for number, (tree, label) in enumerate(zip(streams.tree.tolist(), streams.label.tolist(), strict=True))
        }
        for number, part in enumerate(parts):
            tree, place_of = part.tree, {name: at for at, name in enumerate(part.job.workers)}
            below = {label: under for label, under in tree.workers_below.items() if label != ROOT_LABEL}
            first, aggregators = len(labels), {each.label: each for each in tree.aggregators}
            place = {label: len(sets) + at for at, label in enumerate(below)}
            for under in below.values():
                sets.append(bits((place_of[tree.workers[worker]] for worker in under), words))
            self.trees["first_label"][number] = first
            self.trees["labels"][number] = 1 + max(below)
            self.trees["everyone"][number] = len(sets) * words
            sets.append(bits((place_of[name] for name in tree.workers.values()), words))
            for label in range(1 + max(below)):
                if label not in below:
                    labels.append((0, NONE, 0, 0, 0, 0))
                    continue
                under = tree.summands(aggregators[label]) if label in aggregators else ()
                record = (len(below[label]), stream_of.get((number, label), NONE), len(under), 0)
                labels.append((*record, place[label] * words, len(summands)))
                summands += [place[each] * words for each in under]
        return np.array(labels, LABEL), np.array(sets, np.uint64), np.array([*summands, 0], np.uint64)

    def record(self, server: ServerOptions) -> NDArray[np.void]:
        """The record of all endpoints."""
        found, options = np.zeros(1, ALL), self.options
        streams = self.layout.streams.host
        self.hosts["first_stream"] = np.searchsorted(streams, np.arange(len(self.hosts)))
        self.hosts["streams"] = np.bincount(streams, minlength=len(self.hosts))
        for name in POINTERS:
            array = getattr(self, name, None)
            found[name] = 0 if array is None else array.ctypes.data
        found["host_count"], found["stream_count"] = len(self.hosts), len(self.streams)
        found["timer_count"] = len(self.timers)
        found["tree_count"], found["words"], found["due"] = len(self.trees), self.sets.shape[1], NEVER
        for name in ("first_timeout", "min_timeout", "max_timeout", "retry"):
            found[name] = ps(getattr(options, f"{name}_s"))
        direct_s = options.direct_after_s
        found["direct_after"] = ps(TIMEOUTS_BY_AGGREGATORS * options.first_timeout_s if direct_s is None else direct_s)
        found["ask_again"] = ps(server.ask_again_s)
        return found

    # -- iterations

    def load(self, job_index: int, gradients: Gradients, iteration: int) -> None:
        """Load the gradients of a job's next iteration. Random ones are made when they are sent."""
        job = self.layout.problem.jobs[job_index]
        if isinstance(gradients, RandomGradients):
            of = self.layout.streams_of(job_index)
            keys = np.array([gradients.key(job, worker, iteration) for worker in range(len(job.workers))], np.uint64)
            self.streams["key"][of] = keys[self.streams["worker"][of]]
            self.streams["magnitude"][of] = gradients.magnitude
            self.streams["gradient"][of] = self.streams["results"][of] = 0
            return
        for worker, mine in enumerate(self.layout.streams_of_workers(job_index)):
            own = np.ascontiguousarray(gradients.of(job, worker, iteration), np.int32)
            results = self.results.setdefault((job_index, worker), np.zeros(len(own), np.int64))
            self.held[job_index, worker] = own
            self.streams["gradient"][mine], self.streams["results"][mine] = own.ctypes.data, results.ctypes.data

    def count_from(self, job_index: int, iteration: int) -> None:
        """Set the sequence numbers of an iteration, which go on from the last one, and count its wrong sums from 0."""
        job = self.jobs[job_index : job_index + 1]
        job["wrong_elements"] = job["wrong_fragments"] = 0
        trees, streams = self.layout.trees_of(job_index), self.layout.streams_of(job_index)
        for records, of in ((self.trees, trees), (self.streams, streams)):
            first = self.options.first_seq + iteration * records["count"][of].astype(np.int64)
            records["first_seq"][of] = first & 0xFFFFFFFF

    def begin(self, job_index: int, iteration: int, now_ps: int) -> None:
        """Start sending the loaded gradients."""
        self.count_from(job_index, iteration)
        self.library.endpoints_begin(self.address, job_index, now_ps)

    def listen(self, job_index: int, iteration: int) -> None:
        """Let only the PSs of a job wait for an iteration."""
        self.count_from(job_index, iteration)
        self.library.endpoints_listen(self.address, job_index)

    def end(self, job_index: int) -> None:
        """Stop sending the job's gradients: they can change from now on."""
        self.library.endpoints_end(self.address, job_index)

    def finished(self, job_index: int) -> bool:
        """Whether the iteration of a job is over, that is, all workers have all sums."""
        return not self.jobs["unfinished"][job_index]

    def done(self, streams: IntArray) -> IntArray:
        """The number of fragments up to which each of `streams` has all results of the iteration, (streams,)."""
        return self.streams["base"][streams].astype(np.int64)

    def set_rates(self, streams: IntArray, rate_fps: float, now_ps: int) -> None:
        """Let streams send at another rate, in fragments per second."""
        records = self.streams[streams]
        set_pace(records, np.full(len(streams), rate_fps), self.options)
        for name in ("interval", "depth"):
            self.streams[name][streams] = records[name]
        for host in np.unique(records["host"]).tolist():
            self.resume(host, now_ps)

    def resume(self, host: int, now_ps: int) -> None:
        """Let a host go on that was silent, or whose queue was full."""
        self.library.endpoints_resume(self.address, host, now_ps)

    def restart(self, host: int) -> None:
        """Forget all sums and queued answers of the servers on a host, as a crash does."""
        self.library.endpoints_restart(self.address, host)

    # -- results

    def result(self, job: Job, worker: int) -> NDArray[np.int64]:
        """The summed gradient that a worker, counted from 0 within its job, holds: (values,)."""
        return self.results[self.layout.problem.jobs.index(job), worker]

    def wrong(self, job_index: int) -> str:
        """A text about inexact sums of the job's workers in this iteration; empty if all are exact."""
        job, of = self.jobs[job_index], self.layout.streams_of(job_index)
        if not job["wrong_elements"]:
            return ""
        wrong = of[self.streams["wrong"][of] > 0]
        names = [self.layout.hosts[host].name for host in self.streams["host"][wrong]]
        elements, fragments = int(job["wrong_elements"]), int(job["wrong_fragments"])
        stream = self.streams[job["wrong_stream"]]
        part, host = self.layout.parts[stream["tree"]], self.layout.hosts[stream["host"]]
        width = self.layout.problem.fragment.values
        element = (part.start + int(job["wrong_fragment"])) * width + int(job["wrong_value"])
        return (
            f"{counted(elements, 'element')} in {counted(fragments, 'fragment')} {'is' if elements == 1 else 'are'} "
            f"wrong at {at_hosts(names)}; the first: element {element} (tree {part.tree.number}, fragment "
            f"{job['wrong_fragment']}) at {host.name}, expected {job['wrong_expected']}, got {job['wrong_got']}"
        )

    def take_miscounts(self, job_index: int) -> str:
        """A text about wrong counts in a job's sums since the last call; empty if all are right."""
        of = self.layout.trees_of(job_index)
        number = int(self.trees["miscounts"][of].sum())
        wrong = [tree for tree in of.tolist() if self.trees["miscounts"][tree]]
        self.trees["miscounts"][of] = 0
        if not number:
            return ""
        first, says = self.trees[wrong[0]], "sum says" if number == 1 else "sums say"
        named = (int(first[f"miscounted_{name}"]) for name in ("label", "fragment", "said", "covered"))
        return (
            f"{number:,} {says} a wrong number of workers; the first: {described(self.layout.parts[wrong[0]], *named)}"
        )

    # -- what is measured; times are picoseconds of the driver's records

    def begun_at(self, streams: IntArray) -> int:
        """The time at which the first fragment of streams was sent."""
        times = self.streams["first_sent_at"][streams]
        return int(times[times >= 0].min())

    def ended_at(self, job_index: int) -> int:
        """The arrival time of the iteration's last result."""
        return int(self.streams["last_result_at"][self.layout.streams_of(job_index)].max())

    def frames_of_last(self, streams: NDArray[np.void]) -> int | None:
        """The number of frames of a worker's stream that ended last, of its records; its streams send in parallel."""
        return int(streams["sent"][streams["last_sent_at"].argmax()])

    def late_s(self) -> FloatArray:
        """The sending time, at its rate, that each host could have used and did not, in seconds, (hosts,)."""
        late = np.zeros(len(self.hosts))
        np.maximum.at(late, self.streams["host"].astype(np.int64), self.streams["late"] / PS_PER_S)
        return late

    def take_ingress(self, job_index: int) -> dict[str, int]:
        """Bytes of gradients and questions that each PS of a job received since the last call."""
        found: dict[str, int] = {}
        for tree in self.layout.trees_of(job_index).tolist():
            name = self.layout.hosts[self.layout.trees.server[tree]].name
            found[name] = found.get(name, 0) + int(self.trees["ingress_bytes"][tree])
            self.trees["ingress_bytes"][tree] = 0
        return found

    def sums_of(self, tree: int) -> tuple[NDArray[np.int64], BoolArray]:
        """The PS's sums of a tree, (fragments, values), and which are complete; of `whole` endpoints."""
        first, count = int(self.trees["first_row"][tree]), int(self.trees["count"][tree])
        sums = self.sums[first : first + count]
        return sums["sums"], (sums["done"] > 0) & (sums["fragment"] == np.arange(count))

    # -- who is missing

    def lacking(self, job_index: int) -> str:
        """A text about the first fragment that a worker waits for, and the host that lacks a packet."""
        of = self.layout.streams_of(job_index)
        stream = self.streams[of[self.streams["base"][of] < self.streams["count"][of]][0]]
        part, fragment = self.layout.parts[stream["tree"]], int(stream["base"])
        absent = self.absent(int(stream["tree"]), fragment)
        where = f"tree {part.tree.number}, fragment {fragment}: PS {part.tree.server}"
        if absent:
            others = f" and {len(absent) - NAMED} more" if len(absent) > NAMED else ""
            return f"{where} still lacks {', '.join(absent[:NAMED])}{others}"
        return f"{where} has the sum, worker {self.layout.hosts[stream['host']].name} has not received it"

    def absent(self, tree: int, fragment: int) -> list[str]:
        """The workers that the sum of a fragment does not cover yet."""
        record, part = self.trees[tree], self.layout.parts[tree]
        row = int(record["first_row"]) + (fragment & int(record["mask"]))
        covered = self.covered[row] if self.sums["fragment"][row] == fragment else np.zeros_like(self.covered[row])
        members = set(part.tree.workers.values())
        return [
            name for at, name in enumerate(part.job.workers)
            if name in members and not int(covered[at // 64]) >> at % 64 & 1
        ]  # fmt: skip


NAMED = 5
"""The most missing workers that a message names."""


def rings(least: IntArray) -> IntArray:
    """The lengths of rings, powers of two, that have at least so many rows, (rings,)."""
    lengths: IntArray = 1 << np.ceil(np.log2(np.maximum(least, 1))).astype(np.int64)
    return lengths


def set_pace(streams: NDArray[np.void], rate_fps: FloatArray, options: WorkerOptions) -> None:
    """Set the pace of streams to these rates in fragments per second, (streams,)."""
    with np.errstate(divide="ignore"):
        interval = np.where(options.paced & (rate_fps > 0), PS_PER_S / rate_fps, 0)
    depth = np.maximum(LEAST_DEPTH, options.credit_s * rate_fps)
    streams["interval"], streams["depth"] = np.rint(interval), np.rint(interval * depth)


def as_bytes(heads: NDArray[np.void]) -> NDArray[np.uint8]:
    """Heads of packets as rows of bytes."""
    return np.ascontiguousarray(heads).view(np.uint8).reshape(len(heads), -1)


def bits(members: Iterator[int] | Any, words: int) -> NDArray[np.uint64]:
    """A set of numbers as bits, (words,)."""
    found = np.zeros(words * 64, np.uint8)
    found[list(members)] = 1
    packed: NDArray[np.uint64] = np.packbits(found, bitorder="little").view(np.uint64)
    return packed
