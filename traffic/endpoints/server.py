"""All parameter servers of a run: they sum arriving packets, each worker once, and answer with results.

For each fragment a server keeps the 64-bit sum and the set of workers that it covers. A packet that covers a proper
superset replaces the sum. Any other packet that overlaps the sum is discarded: the missing workers send their gradients
again, one by one. An aggregator that keeps sums would answer each of these with the same sum again, so in this case the
server asks the missing workers to send past all slots. A server that stands by for a root in the network, or that has
been restarted, asks all workers for the missing fragments.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.plan import ROOT_LABEL
from inakit.planner.core.slot_policies import policy_of
from inakit.traffic.endpoints.options import ServerOptions
from inakit.traffic.endpoints.streams import AnswerHeads, StreamLayout
from inakit.traffic.endpoints.sum_check import Miscounts, is_miscounted
from inakit.traffic.sockets.ports import BoolArray, IntArray, Outgoing, Packets, is_prefix
from inakit.traffic.wire.packet_format import Flag, Frames, Kind, pick

# -- The workers that each packet to a parameter server represents.

PARTIAL = int(Flag.PARTIAL)


class Membership:
    """The workers that each label of a tree represents.

    `sets[tree, label]` are booleans over the job's workers, `size[tree, label]` is their number, and `everyone[tree]`
    has all workers of the tree; `width` is the number of workers of the largest job. `summands[tree, label, bit]` is
    the label of a bit in the bitmap of an aggregator's packets. `stream[tree, label]` is the stream of a worker's label
    and `stream_of_worker[tree, worker]` that of a worker, -1 for none. `crowd[tree]` is the number of its workers.
    """

    def __init__(self, layout: StreamLayout) -> None:
        trees, streams = layout.parts, layout.streams
        labels = 1 + max(label for part in trees for label in (*part.tree.branch_of, *part.tree.workers, ROOT_LABEL))
        self.width = max(len(part.job.workers) for part in trees)
        self.sets = np.zeros((len(trees), labels, self.width), np.bool_)
        self.stream = np.full((len(trees), labels), -1, np.int64)
        self.stream[streams.tree, streams.label] = np.arange(len(streams.host))
        self.stream_of_worker = np.full((len(trees), self.width), -1, np.int64)
        self.stream_of_worker[streams.tree, streams.worker] = np.arange(len(streams.host))
        self.summands = np.zeros((len(trees), labels, 64), np.int64)
        for number, part in enumerate(trees):
            for label, below in part.tree.workers_below.items():
                if label != ROOT_LABEL:
                    hosts = (part.tree.workers[worker] for worker in below)
                    self.sets[number, label, [part.job.workers.index(host) for host in hosts]] = True
            for aggregator in part.tree.aggregators:
                summands = part.tree.summands(aggregator)
                self.summands[number, aggregator.label, : len(summands)] = summands
        self.everyone = np.logical_or.reduce(self.sets, axis=1)
        self.size = self.sets.sum(axis=2)
        self.crowd = self.everyone.sum(axis=1)

    def knows(self, tree: IntArray, label: NDArray[np.uint16]) -> BoolArray:
        """Whether each packet has a label of its tree, (packets,)."""
        inside = label < self.size.shape[1]
        known: BoolArray = inside & (self.size[tree, np.where(inside, label, 0)] > 0)
        return known

    def is_whole(self, tree: IntArray, label: IntArray) -> BoolArray:
        """Whether each label represents all workers of its tree; both are (packets,)."""
        whole: BoolArray = self.size[tree, label] == self.crowd[tree]
        return whole

    def streams(self, tree: IntArray, chosen: BoolArray) -> tuple[IntArray, IntArray]:
        """For every chosen worker (`chosen[i, worker]`, of tree `tree[i]`): its i, and its stream."""
        which, worker = np.nonzero(chosen)
        return which, self.stream_of_worker[tree[which], worker]

    def of(self, heads: Frames, tree: IntArray) -> BoolArray:
        """The workers that each packet covers, (packets, workers): those of its label, or of a partial sum's bitmap."""
        ina = heads["ina"]
        label = ina["label"].astype(np.int64)
        members: BoolArray = self.sets[tree, label]
        partial = np.flatnonzero(ina["flags"] & PARTIAL)
        if partial.size:
            bits = ina["bitmap"][partial, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)
            summands = self.summands[tree[partial], label[partial]]
            below = self.sets[tree[partial, None], summands] & bits.astype(np.bool_)[..., None]
            members[partial] = below.any(axis=1)
        return members

    def sizes(self, heads: Frames, tree: IntArray, members: BoolArray) -> IntArray:
        """The number of workers that each packet covers, (packets,); `members` is the result of `of`."""
        ina = heads["ina"]
        sizes: IntArray = self.size[tree, ina["label"]]
        partial = np.flatnonzero(ina["flags"] & PARTIAL)
        if partial.size:
            sizes[partial] = members[partial].sum(axis=1)
        return sizes


# -- The servers.

DIRECT, ECN, OVERFLOW = int(Flag.DIRECT), int(Flag.ECN), int(Flag.OVERFLOW)
RETRANSMITTED = int(Flag.RETRANSMITTED)


ANSWER = np.dtype(
    [("row", np.int64), ("tree", np.int64), ("template", np.int64), ("part", np.int64), ("wide", np.bool_)]
)
"""An answer to be sent: the fragment's row, its tree, the index of its head, and its part of the sum, 0 for the low 32
bits and 1 for the high ones. `wide`: the result needs both parts.
"""


class Servers:
    """The sums of all trees, in arrays over rows, the fragments of all trees (see `inakit.traffic.endpoints.streams`).

    By row: `sums` (rows, values); `covered` (rows, workers of the largest job), the workers that a sum covers; `done`,
    whether these are all; `marked`, whether any of its packets met congestion; `asked_at`, the time of the last request
    to workers; `newest`, for `take_whole`. By tree: `asks`, its workers do not send missing fragments unasked; `hides`,
    its aggregators keep their sums; `first_seq`, the sequence number of the iteration's first fragment. Results by
    tree: `ingress_frames`, `last_arrival_at`, `discarded` packets and `notices`; over all, `miscounts` and `strangers`,
    packets that came to a host other than their tree's server.
    """

    def __init__(self, layout: StreamLayout, first_seq: int = 0, options: ServerOptions | None = None) -> None:
        self.options = options or ServerOptions()
        rows, trees = int(layout.trees.count.sum()), len(layout.parts)
        self.layout = layout
        self.start_seq = first_seq
        self.members = Membership(layout)
        self.answer_heads = AnswerHeads(layout)
        self.sums = np.zeros((rows, layout.problem.fragment.values), np.int64)
        self.covered = np.zeros((rows, self.members.width), np.bool_)
        self.done = np.ones(rows, np.bool_)
        self.marked = np.zeros(rows, np.bool_)
        self.newest = np.zeros(rows, np.int64)
        self.asks = layout.trees.stands_by.copy()
        self.hides = np.array([policy_of(part.tree.policy).keeps_sums for part in layout.parts], np.bool_)
        self.asked_at = np.full(rows, -np.inf)
        self.first_seq = np.full(trees, first_seq, np.int64)
        self.waiting: list[NDArray[np.void]] = []
        copies = self.options.copies_at_once
        self.at_once = None if copies is None else max(1, copies // self.members.width)
        self.ingress_frames = np.zeros(trees, np.int64)
        self.ingress_before = np.zeros(trees, np.int64)
        self.last_arrival_at = np.zeros(trees)
        self.discarded = np.zeros(trees, np.int64)
        self.notices = np.zeros(trees, np.int64)
        self.miscounts = Miscounts(layout)
        self.strangers = 0

    def begin(self, job_index: int, iteration: int) -> None:
        """Forget the last iteration of a job and wait for the next one."""
        for tree in self.layout.trees_of(job_index).tolist():
            rows = self.rows(tree)
            self.sums[rows] = 0
            self.covered[rows] = False
            self.done[rows] = False
            self.marked[rows] = False
            self.asks[tree] = self.layout.trees.stands_by[tree]
            self.first_seq[tree] = self.start_seq + iteration * self.layout.trees.count[tree]

    def restart(self, host: int) -> None:
        """Forget all sums and queued answers of the servers on a host, as a crash does."""
        for tree in np.flatnonzero(self.layout.trees.server == host).tolist():
            rows = self.rows(tree)
            self.sums[rows] = 0
            self.covered[rows] = False
            self.done[rows] = False
            self.asks[tree] = True
        kept = (answers[self.layout.trees.server[answers["tree"]] != host] for answers in self.waiting)
        self.waiting = [answers for answers in kept if answers.size]

    def rows(self, tree: int) -> slice:
        """The rows of a tree's fragments."""
        first = int(self.layout.trees.first_row[tree])
        return slice(first, first + int(self.layout.trees.count[tree]))

    # -- receiving

    def receive(self, packets: Packets, now: float) -> None:
        """Process arrived gradients."""
        ina = packets.heads["ina"]
        tree = self.layout.tree_index(ina["job"], ina["tree"])
        here = (tree >= 0) & (self.layout.trees.server[tree] == packets.hosts)
        known: BoolArray = here & self.members.knows(tree, ina["label"])
        self.strangers += int((~known).sum())
        packets, tree = packets.where(known), tree[known]
        self.ingress_frames += np.bincount(tree, minlength=len(self.ingress_frames))
        self.last_arrival_at[tree] = now
        fragment = (packets.heads["ina"]["seq"] - self.first_seq[tree]) & 0xFFFFFFFF
        current = fragment < self.layout.trees.count[tree]  # others are late copies from the last iteration
        if current.any():
            packets, tree, fragment = packets.where(current), tree[current], fragment[current]
            marked: BoolArray = (packets.heads["ina"]["flags"] & ECN) != 0
            if marked.any():
                self.marked[self.layout.trees.first_row[tree[marked]] + fragment[marked]] = True
            self.take(packets, tree, fragment, now)

    def take(self, packets: Packets, tree: IntArray, fragment: IntArray, now: float) -> None:
        """Add new gradients of an iteration to the sums, and queue the resulting answers, notices and requests.

        `tree` and `fragment` are (packets,); fragments are counted from the first of the tree.
        """
        ina = packets.heads["ina"]
        row = self.layout.trees.first_row[tree] + fragment
        label = ina["label"].astype(np.int64)
        if not (ina["flags"] & (0xFF ^ ECN)).any() and self.members.is_whole(tree, label).all():
            self.take_whole(packets, row, tree, fragment)
            return
        done = self.done[row]
        asked: BoolArray = done & ((ina["flags"] & RETRANSMITTED) != 0)
        overflown: BoolArray = ~done & ((ina["flags"] & OVERFLOW) != 0) & (self.members.stream[tree, label] < 0)
        if asked.any():
            self.answer_again(row[asked], tree[asked], label[asked])
        if overflown.any():
            self.give_notice(row[overflown], tree[overflown])
        members = self.members.of(packets.heads, tree)
        # A packet that covers no worker, such as a partial sum with an empty bitmap, is forged.
        use: BoolArray = ~done & ~overflown & np.any(members, axis=1)
        self.discarded += np.bincount(tree[~use], minlength=len(self.discarded))
        self.check_counts(use, packets.heads, tree, fragment, self.members.sizes(packets.heads, tree, members))
        if use.any():
            self.add_up(row[use], tree[use], members[use], packets.where(use).values)
        clashes = self.hides[tree] & self.clashes(row, members)
        asked_for: BoolArray = clashes | (self.asks[tree] & ((ina["flags"] & DIRECT) != 0))
        lacking: BoolArray = asked_for & ~self.done[row]
        if lacking.any():
            self.ask(row[lacking], tree[lacking], now)

    def take_whole(self, packets: Packets, row: IntArray, tree: IntArray, fragment: IntArray) -> None:
        """Process packets that each cover all workers of their tree and have no flag except ECN.

        These are complete aggregates; each replaces the contents of its row.
        """
        number = np.arange(len(row))
        self.newest[row] = number
        use: BoolArray = (self.newest[row] == number) & ~self.done[row]  # one of each row
        if not use.all():
            self.discarded += np.bincount(tree[~use], minlength=len(self.discarded))
        self.check_counts(use, packets.heads, tree, fragment, self.members.crowd[tree])
        row, tree = row[use], tree[use]
        self.sums[row] = packets.where(use).values
        self.covered[row] = self.members.everyone[tree]
        self.done[row] = True
        self.answer_all(row, tree)

    def check_counts(
        self, use: BoolArray, heads: Frames, tree: IntArray, fragment: IntArray, covered: IntArray
    ) -> None:
        """Note the packets under the mask `use` whose stated number of workers differs from the `covered` one."""
        wrong: BoolArray = use & is_miscounted(heads["ina"]["workers"], covered, self.layout.trees.counted[tree])
        if wrong.any():
            self.miscounts.note(wrong, heads, tree, fragment, covered)

    def clashes(self, row: IntArray, members: BoolArray) -> BoolArray:
        """Whether each packet covers missing workers of its row but was not added, because it covers others too."""
        covered = self.covered[row]
        clashes: BoolArray = np.any(members & covered, axis=1) & np.any(members & ~covered, axis=1)
        return clashes

    def add_up(self, row: IntArray, tree: IntArray, members: BoolArray, values: NDArray[np.int32]) -> None:
        """Add packets to their rows, in passes without overlapping packets of a row."""
        order = np.argsort(row, kind="stable")
        row, tree, members, values = row[order], tree[order], members[order], values[order]
        for some in without_overlap(row, members):
            self.give_way(row[some], members[some])
            fresh: BoolArray = some & ~np.any(self.covered[row] & members, axis=1)
            stale: BoolArray = some & ~fresh
            self.discarded += np.bincount(tree[stale], minlength=len(self.discarded))
            if fresh.any():
                self.add_disjoint(row[fresh], tree[fresh], members[fresh], values[fresh])

    def give_way(self, row: IntArray, members: BoolArray) -> None:
        """Clear the rows of packets that cover a proper superset of their row."""
        covered = self.covered[row]
        held, beyond = np.any(covered, axis=1), np.any(members & ~covered, axis=1)
        whole: BoolArray = held & beyond & ~np.any(covered & ~members, axis=1)
        self.sums[row[whole]] = 0
        self.covered[row[whole]] = False

    def add_disjoint(self, row: IntArray, tree: IntArray, members: BoolArray, values: NDArray[np.int32]) -> None:
        """Add packets sorted by row, and answer the rows that are complete now.

        Packets of one row cover different workers, none of which the row covers yet.
        """
        first = np.flatnonzero(starts_group(row))
        row, tree = row[first], tree[first]
        self.sums[row] += np.add.reduceat(values.astype(np.int64), first, axis=0)
        self.covered[row] |= np.logical_or.reduceat(members, first, axis=0)
        complete = np.all(self.covered[row] == self.members.everyone[tree], axis=1)
        self.done[row[complete]] = True
        self.answer_all(row[complete], tree[complete])

    # -- answering

    def answer_all(self, row: IntArray, tree: IntArray) -> None:
        """Queue the results of complete rows: one for all workers of a tree, which the network copies.

        A server that stands by for a root in the network sends one to each worker.
        """
        by_tree = ~self.layout.trees.stands_by[tree]
        self.answer(row[by_tree], tree[by_tree], tree[by_tree])
        row, tree = row[~by_tree], tree[~by_tree]
        which, stream = self.members.streams(tree, self.members.everyone[tree])
        self.answer(row[which], tree[which], self.answer_heads.result_to[stream])

    def answer_again(self, row: IntArray, tree: IntArray, label: IntArray) -> None:
        """Queue results once more: to the worker that asked, or to all if an aggregator's packet hides who asked."""
        stream = self.members.stream[tree, label]
        self.answer(row, tree, np.where(stream >= 0, self.answer_heads.result_to[stream], tree))

    def ask(self, row: IntArray, tree: IntArray, now: float) -> None:
        """Ask the workers that rows do not cover to send directly, past all slots."""
        row, first = np.unique(row, return_index=True)
        due = now - self.asked_at[row] > self.options.ask_again_s
        row, tree = row[due], tree[first][due]
        self.asked_at[row] = now
        which, stream = self.members.streams(tree, self.members.everyone[tree] & ~self.covered[row])
        self.queue(row[which], tree[which], self.answer_heads.ask[stream], 0)

    def give_notice(self, row: IntArray, tree: IntArray) -> None:
        """Tell all workers of the trees that the sums of these rows overflow 32 bits."""
        row, first = np.unique(row, return_index=True)
        tree = tree[first]
        self.notices += np.bincount(tree, minlength=len(self.notices))
        self.queue(row, tree, self.answer_heads.notice[tree], 0)

    def answer(self, row: IntArray, tree: IntArray, template: IntArray) -> None:
        """Queue results: one packet, or two for a sum that needs more than 32 bits."""
        wide = self.wide(row)
        self.queue(row, tree, template, 0, wide)
        if wide.any():
            self.queue(row[wide], tree[wide], template[wide], 1, True)

    def wide(self, row: IntArray) -> BoolArray:
        """Whether each row's sum needs more than 32 bits, (rows,)."""
        sums = self.sums[row]
        differs: BoolArray = (sums != sums.astype(np.int32)).any(axis=1)
        return differs

    def queue(
        self, row: IntArray, tree: IntArray, template: IntArray, part: int, wide: BoolArray | bool = False
    ) -> None:
        """Queue answers for `due`: part `part` of the sums of `row`, with the heads at `template`."""
        if row.size:
            answers = np.empty(len(row), ANSWER)
            answers["row"], answers["tree"], answers["template"], answers["part"] = row, tree, template, part
            answers["wide"] = wide
            self.waiting.append(answers)

    def due(self, now: float) -> Outgoing | None:
        """Return the answers that are due, which is at once; `note` must be called with the accepted ones."""
        _ = now
        if not self.waiting:
            return None
        waiting = np.concatenate(self.waiting)
        some = len(waiting) if self.at_once is None else self.at_once
        first, self.later = waiting[:some], waiting[some:]
        host = self.layout.trees.server[first["tree"]]
        self.chosen = first[np.argsort(host, kind="stable")]
        counts = np.bincount(host, minlength=len(self.layout.hosts))
        rows = np.arange(len(first))
        return Outgoing(self.heads(self.chosen), self.words(self.chosen), rows, counts, self.members.width)

    def next_due(self) -> float:
        """The time of the next answer, unless packets arrive: at once, or never."""
        return -np.inf if self.waiting else np.inf

    def note(self, counts: IntArray, accepted: IntArray) -> None:
        """Note that `accepted` of the `counts` answers of each host that were due have been sent; both are (hosts,)."""
        refused = self.chosen[~is_prefix(counts, accepted)]
        self.waiting = [rest for rest in (refused, self.later) if rest.size]

    def heads(self, answers: NDArray[np.void]) -> Frames:
        """The complete heads of answers, (answers,)."""
        row, tree = answers["row"], answers["tree"]
        heads = pick(self.answer_heads.heads, answers["template"])
        ina = heads["ina"]
        ina["seq"] = (self.first_seq[tree] + row - self.layout.trees.first_row[tree]) & 0xFFFFFFFF
        ina["part"] = answers["part"]
        ina["slot"] = self.layout.trees.slot(tree, ina["seq"].astype(np.int64))
        ina["flags"] |= np.where(answers["wide"], OVERFLOW, 0).astype(np.uint8)
        ina["flags"] |= np.where(self.marked[row] & (ina["kind"] == Kind.RESULT), ECN, 0).astype(np.uint8)
        return heads

    def words(self, answers: NDArray[np.void]) -> NDArray[np.int32]:
        """The low or the high 32 bits of the answers' sums, big-endian, (answers, values)."""
        sums = self.sums[answers["row"]]
        if answers["part"].any():
            sums = np.where(answers["part"][:, None] == 0, sums, sums >> 32)
        words: NDArray[np.int32] = sums.astype(np.int32).astype(">i4")
        return words

    # -- what is measured

    def ingress(self, job_index: int) -> dict[str, int]:
        """Gradient bytes that each PS of a job received since the last call."""
        of, server = self.layout.trees_of(job_index), self.layout.trees.server
        frames = (self.ingress_frames - self.ingress_before)[of]
        self.ingress_before[of] += frames
        totals = np.bincount(server[of], frames * self.layout.problem.fragment.wire_bytes, len(self.layout.hosts))
        return {self.layout.hosts[host].name: int(totals[host]) for host in np.unique(server[of])}

    def take_wrong(self, job_index: int) -> str:
        """A text about packets of a job with a wrong number of workers since the last call; empty if there are none."""
        return self.miscounts.take(job_index)

    # -- missing workers

    def absent(self, tree: int, fragment: int) -> list[str]:
        """The workers that the sum of a fragment does not cover yet."""
        row = int(self.layout.trees.first_row[tree]) + fragment
        absent = self.members.everyone[tree] & ~self.covered[row]
        return [self.layout.parts[tree].job.workers[worker] for worker in np.flatnonzero(absent)]


def starts_group(row: IntArray) -> BoolArray:
    """Whether each element of a sorted array differs from the one before it; the first does."""
    return np.concatenate(([True], row[1:] != row[:-1]))


def without_overlap(row: IntArray, members: BoolArray) -> Iterator[BoolArray]:
    """Yield masks that partition packets sorted by row, so that under one mask a row's packets cover different workers.

    This is nearly always one mask. If packets of a row overlap, the first mask has the first packet of each row, the
    second mask the second, and so on.
    """
    first = starts_group(row)
    times = np.add.reduceat(members.astype(np.int64), np.flatnonzero(first), axis=0)
    if (times <= 1).all():
        yield np.ones(len(row), np.bool_)
        return
    rank = np.arange(len(row)) - np.maximum.accumulate(np.where(first, np.arange(len(row)), 0))
    for turn in range(int(rank.max()) + 1):
        yield rank == turn
