"""The receiving ends of all connections: they accept each fragment once, and acknowledge it.

An acknowledgement is a notice to the sender. Its field `slot` is the sequence number before which all fragments have
arrived; its bitmap marks the arrived ones of 64 fragments from `seq` on. Consecutive fragments are acknowledged
together, a gap at once.
"""

from __future__ import annotations

import numpy as np

from inakit.planner.core.plan import ACKNOWLEDGED_AT_ONCE, ROOT_LABEL
from inakit.traffic.collectives.rank_data import CollectiveLayout, CollectiveMemory
from inakit.traffic.endpoints.options import WorkerOptions
from inakit.traffic.endpoints.retransmission import WHOLE, StreamProgress
from inakit.traffic.endpoints.streams import answer_head
from inakit.traffic.sockets.ports import BoolArray, IntArray, Outgoing, Packets, is_prefix, ragged
from inakit.traffic.wire.packet_format import BARE_FRAME, Flag, Frames, Kind, pick

OVERFLOW, RETRANSMITTED = int(Flag.OVERFLOW), int(Flag.RETRANSMITTED)
BITS = 64
"""The bits of a bitmap."""
PATIENCE = 0.25
"""Fragments are acknowledged after this part of a sender's least timeout even if they are few, or after the time in
which the fragments of one acknowledgement arrive, if that is longer.
"""


class Receivers:
    """Arrays over streams, (streams,).

    `base`: the first fragment that has not arrived; `newest`: the last that has, -1 for none. `fresh`: the number of
    arrivals since the last acknowledgement, the first at `since`. `hurried`: an acknowledgement is due at once.
    Results: `strangers`, packets that came to a host outside their tree. `heads`, by stream, are complete except for
    sequence numbers and bitmap. `stream_of`: the stream of each tree and label, -1 for none.
    """

    def __init__(
        self, layout: CollectiveLayout, memory: CollectiveMemory, progress: StreamProgress, options: WorkerOptions
    ) -> None:
        count = len(layout.streams.host)
        self.layout, self.memory, self.progress = layout, memory, progress
        self.patience_s = np.maximum(options.min_timeout_s * PATIENCE, layout.acknowledged_after_s)
        self.base, self.fresh = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.newest = np.full(count, -1, np.int64)
        self.since = np.zeros(count)
        self.hurried = np.zeros(count, np.bool_)
        self.strangers = 0
        streams = layout.streams
        ends = zip(streams.tree.tolist(), streams.host.tolist(), strict=True)
        acknowledgements = [answer_head(layout, tree, Kind.NOTICE, RETRANSMITTED, host) for tree, host in ends]
        self.heads: Frames = np.concatenate(acknowledgements, dtype=BARE_FRAME)
        self.stream_of = np.full((len(layout.parts), int(streams.label.max()) + 2), -1, np.int64)
        self.stream_of[streams.tree, streams.label] = np.arange(count)
        assert (self.stream_of[:, ROOT_LABEL] == -1).all()
        self.host = layout.trees.server[streams.tree]

    def begin(self, job_index: int, iteration: int) -> None:
        """Wait for the fragments of an iteration."""
        _ = iteration
        streams = self.layout.streams_of(job_index)
        self.base[streams] = self.fresh[streams] = 0
        self.newest[streams] = -1
        self.hurried[streams] = False

    # -- receiving

    def receive(self, packets: Packets, now: float) -> None:
        """Process arrived chunks."""
        ina, progress = packets.heads["ina"], self.progress
        tree = self.layout.tree_index(ina["job"], ina["tree"])
        label = np.minimum(ina["label"].astype(np.int64), self.stream_of.shape[1] - 1)
        stream = np.where(tree >= 0, self.stream_of[tree, label], -1)
        stream = np.where(packets.hosts == self.host[stream], stream, -1)
        self.strangers += int((stream < 0).sum())
        fragment = (ina["seq"] - progress.first_seq[stream]) & 0xFFFFFFFF
        mine = (stream >= 0) & progress.active[stream] & (fragment < self.layout.streams.count[stream])
        mine &= ina["part"] <= 1
        if not mine.any():
            return
        packets, stream, fragment = packets.where(mine), stream[mine], fragment[mine].astype(np.int64)
        ina = packets.heads["ina"]
        rows = self.layout.rows(stream, fragment)
        wide = (ina["flags"] & OVERFLOW) != 0
        fresh = self.memory.take(rows, packets.values, ina["part"].astype(np.int64), wide, now)
        self.mark(stream, fragment, fresh, now)

    def mark(self, stream: IntArray, fragment: IntArray, fresh: BoolArray, now: float) -> None:
        """Note arrived fragments; `fresh`: those that had not arrived before. All are (packets,)."""
        self.hurried[stream[~fresh]] = True
        touched, counts = np.unique(stream[fresh], return_counts=True)
        self.since[touched] = np.where(self.fresh[touched] == 0, now, self.since[touched])
        self.fresh[touched] += counts
        np.maximum.at(self.newest, stream, fragment)
        self.advance(touched)
        over = (self.base[touched] <= self.newest[touched]) | (self.base[touched] == self.layout.streams.count[touched])
        self.hurried[touched[over]] = True

    def advance(self, streams: IntArray) -> None:
        """Move the base of `streams` to their first fragment that has not arrived."""
        ahead = 16
        while streams.size:
            fragment = self.base[streams, None] + np.arange(ahead)
            inside = fragment <= self.newest[streams, None]
            rows = self.layout.rows(streams[:, None], np.where(inside, fragment, 0))
            here = inside & (self.memory.came[rows] == WHOLE)
            run = np.where(here.all(axis=1), ahead, np.argmin(here, axis=1))
            self.base[streams] += run
            streams, ahead = streams[run == ahead], 4 * ahead

    # -- acknowledging

    def due(self, now: float) -> Outgoing | None:
        """Return the acknowledgements that are due; `note` must be called with the accepted ones."""
        waits = (self.fresh > 0) & (now - self.since >= self.patience_s)
        streams = np.flatnonzero(self.hurried | (self.fresh >= ACKNOWLEDGED_AT_ONCE) | waits)
        self.chosen = streams
        if not streams.size:
            return None
        # One bitmap per block of fragments: the block of the newest fragment, and all earlier blocks with gaps.
        first, last = self.base[streams] // BITS, np.maximum(self.newest[streams], self.base[streams]) // BITS
        owner, block = ragged(first, last - first + 1)
        stream = streams[owner]
        order = np.argsort(self.host[stream], kind="stable")
        stream, block = stream[order], block[order]
        heads = pick(self.heads, stream)
        ina, first_seq = heads["ina"], self.progress.first_seq[stream]
        ina["seq"] = (first_seq + block * BITS) & 0xFFFFFFFF
        ina["slot"] = (first_seq + self.base[stream]) & 0xFFFFFFFF
        ina["bitmap"] = self.bitmaps(stream, block)
        self.sent_for = stream
        counts = np.bincount(self.host[stream], minlength=len(self.layout.hosts))
        rows = np.arange(len(stream))
        return Outgoing(heads, np.zeros((len(stream), self.memory.values.shape[1]), ">i4"), rows, counts)

    def next_due(self) -> float:
        """The time, up to rounding, at which acknowledgements are due, unless packets arrive."""
        if self.hurried.any() or (self.fresh >= ACKNOWLEDGED_AT_ONCE).any():
            return -np.inf
        return float((self.since + self.patience_s)[self.fresh > 0].min(initial=np.inf))

    def bitmaps(self, stream: IntArray, block: IntArray) -> IntArray:
        """The arrived fragments of each stream's block as bits, (blocks,)."""
        fragment = block[:, None] * BITS + np.arange(BITS)
        inside = fragment < self.layout.streams.count[stream, None]
        rows = self.layout.rows(stream[:, None], np.where(inside, fragment, 0))
        here = inside & (self.memory.came[rows] == WHOLE)
        bitmaps: IntArray = (here.astype(np.uint64) << np.arange(BITS, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
        return bitmaps

    def note(self, counts: IntArray, accepted: IntArray) -> None:
        """Note that `accepted` of the `counts` acknowledgements of each host have been sent; both are (hosts,)."""
        sent = self.sent_for[is_prefix(counts, accepted)]
        self.fresh[sent] = 0
        self.hurried[sent] = False

    # -- the interface of parameter servers, which a collective does not have

    def restart(self, host: int) -> None:
        """Do nothing: no host sums for others."""

    def ingress(self, job_index: int) -> dict[str, int]:
        """Empty: nothing goes to a parameter server."""
        _ = job_index
        return {}

    def take_wrong(self, job_index: int) -> str:
        """Empty: packets of a collective count no workers."""
        _ = job_index
        return ""
