"""Which workers each packet that comes to a parameter server stands for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.plan import ROOT_LABEL
from inakit.traffic.endpoints.streams import StreamLayout
from inakit.traffic.sockets.ports import BoolArray, IntArray
from inakit.traffic.wire.frames import Frames
from inakit.traffic.wire.packet_format import Flag

PARTIAL = int(Flag.PARTIAL)


class Membership:
    """Which workers each label of a tree stands for.

    `sets[tree, label]` are booleans over the job's workers, `size[tree, label]` is their number, and `everyone[tree]`
    has all workers of the tree; `width` is the number of workers of the largest job. `summands[tree, label, bit]` is
    the label that a bit of the bitmap of an aggregator's packets stands for. `stream[tree, label]` is the stream of a
    worker's label and `stream_of_worker[tree, worker]` that of a worker, -1 for none. `crowd[tree]` is the number of
    its workers.
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
        """Which packets have a label that is their tree's, (packets,)."""
        inside = label < self.size.shape[1]
        known: BoolArray = inside & (self.size[tree, np.where(inside, label, 0)] > 0)
        return known

    def is_whole(self, tree: IntArray, label: IntArray) -> BoolArray:
        """Which labels stand for all workers of their tree; both are (packets,)."""
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
        """How many workers each packet covers, (packets,); `members` is what `of` has found."""
        ina = heads["ina"]
        sizes: IntArray = self.size[tree, ina["label"]]
        partial = np.flatnonzero(ina["flags"] & PARTIAL)
        if partial.size:
            sizes[partial] = members[partial].sum(axis=1)
        return sizes
