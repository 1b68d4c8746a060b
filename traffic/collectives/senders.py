"""The sending ends of all connections: the fragments of ranks, and the decoding of acknowledgements.

`inakit.traffic.endpoints.sender` decides the times of sending. In addition, a fragment waits until all its terms have
arrived.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from inakit.traffic.collectives.rank_data import CollectiveLayout, CollectiveMemory
from inakit.traffic.collectives.rank_pace import RankPace
from inakit.traffic.endpoints.options import WorkerOptions
from inakit.traffic.endpoints.retransmission import WHOLE, Batch, StreamProgress
from inakit.traffic.endpoints.sender import Sender
from inakit.traffic.endpoints.streams import gradient_heads
from inakit.traffic.sockets.ports import BoolArray, IntArray, Outgoing, Packets, before, ragged
from inakit.traffic.wire.packet_format import Flag, pick

OVERFLOW, RETRANSMITTED = int(Flag.OVERFLOW), int(Flag.RETRANSMITTED)
BITS = np.arange(64, dtype=np.uint64)


def rank_sender(layout: CollectiveLayout, memory: CollectiveMemory, options: WorkerOptions) -> Sender:
    """The sender of all ranks of a run."""
    source, decoder = ChunkSource(layout, memory), AcknowledgementDecoder(layout, memory)
    return Sender(layout, source, decoder, RankPace(layout, memory.flow, options), options)


class ChunkSource:
    """The `Source` of ranks. By stream, (streams,): `known`, the first fragment that still lacks a term."""

    def __init__(self, layout: CollectiveLayout, memory: CollectiveMemory) -> None:
        self.layout, self.memory = layout, memory
        self.heads = gradient_heads(layout)
        self.known = np.zeros(len(layout.streams.host), np.int64)

    @property
    def parts(self) -> NDArray[np.uint8]:
        """The acknowledged parts of each row."""
        return self.memory.parts

    def begin(self, job_index: int) -> None:
        """Mark the job's iteration as unacknowledged, and find the fragments that are known from the start."""
        self.memory.begin(job_index)
        streams = self.layout.streams_of(job_index)
        self.known[streams] = 0
        self.learn(streams)

    def renew(self, rows: IntArray, progress: StreamProgress) -> None:
        """Do nothing: heads are completed when they are sent."""

    def turn(self, progress: StreamProgress) -> Iterator[IntArray]:
        """Find the fragments that arrivals have made ready to be sent. Rows keep their fragments."""
        self.learn(np.flatnonzero(progress.active & (self.known < self.layout.streams.count)))
        return iter(())

    def learn(self, streams: IntArray) -> None:
        """Move `known` of `streams` to their first fragment that lacks a term."""
        ahead = 8
        while streams.size:
            fragment = self.known[streams, None] + np.arange(ahead)
            inside = fragment < self.layout.streams.count[streams, None]
            rows = self.layout.rows(streams[:, None], np.where(inside, fragment, 0))
            known = inside & self.memory.is_known(rows)
            run = np.where(known.all(axis=1), ahead, np.argmin(known, axis=1))
            self.known[streams] += run
            streams, ahead = streams[run == ahead], 4 * ahead

    def end(self, streams: IntArray) -> None:
        """Forget the known fragments of `streams`."""
        self.known[streams] = 0

    def outgoing(
        self, batch: Batch, rows: IntArray, direct: BoolArray, progress: StreamProgress
    ) -> tuple[Outgoing, IntArray]:
        """One packet for each fragment, or two for one that needs more than 32 bits; none uses slots."""
        _ = direct
        wide = self.memory.is_wide(rows)
        packets = 1 + wide.astype(np.int64)
        owner, part = ragged(np.zeros_like(packets), packets)
        stream = batch.stream[owner]
        heads = pick(self.heads, stream)
        ina = heads["ina"]
        ina["seq"] = (progress.first_seq[stream] + batch.fragment[owner]) & 0xFFFFFFFF
        ina["part"] = part
        ina["flags"] = np.where(batch.again[owner], RETRANSMITTED, 0) | np.where(wide[owner], OVERFLOW, 0)
        counts = np.bincount(self.layout.streams.host[stream], minlength=len(self.layout.hosts))
        last = before(packets) + packets - 1
        return Outgoing(heads, self.memory.words(rows[owner], part), np.arange(len(owner)), counts), last


class AcknowledgementDecoder:
    """The `Decoder` of ranks. Each connection has its own acknowledgements, of several fragments together."""

    shared = False

    def __init__(self, layout: CollectiveLayout, memory: CollectiveMemory) -> None:
        self.layout, self.memory, self.held_s = layout, memory, layout.acknowledged_after_s

    def decode(self, packets: Packets, tree: IntArray, stream: IntArray, sender: Sender, now: float) -> None:
        """Decode acknowledgements: all fragments before `slot` have arrived, and those of the bitmap from `seq` on."""
        _ = tree
        ina, progress, parts = packets.heads["ina"], sender.progress, self.memory.parts
        first = progress.first_seq[stream]
        base, block = ((ina[name].astype(np.int64) - first) & 0xFFFFFFFF for name in ("slot", "seq"))
        mine = (stream >= 0) & progress.active[stream] & (base <= progress.next[stream])
        mine &= block <= self.layout.streams.count[stream]
        if not mine.any():
            return
        stream, base, block, bitmap = stream[mine], base[mine], block[mine], ina["bitmap"][mine].astype(np.uint64)
        most = progress.base.copy()
        np.maximum.at(most, stream, base)
        whole_stream, whole = ragged(progress.base, most - progress.base)
        owner, bit = np.nonzero(bitmap[:, None] >> BITS & np.uint64(1))
        single_stream, single = stream[owner], block[owner] + bit
        sent = single < progress.next[single_stream]
        streams = np.concatenate((whole_stream, single_stream[sent]))
        fragments = np.concatenate((whole, single[sent]))
        rows, which = np.unique(self.layout.rows(streams, fragments), return_index=True)
        new = parts[rows] != WHOLE
        rows, streams, fragments = rows[new], streams[which][new], fragments[which][new]
        if rows.size:
            parts[rows] = WHOLE
            sender.acknowledge(streams, fragments, rows, np.zeros(len(rows), np.bool_), now)
