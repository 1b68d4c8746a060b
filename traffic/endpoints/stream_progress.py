"""How far each stream is in the fragments of its iteration."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inakit.traffic.endpoints.streams import StreamLayout
from inakit.traffic.endpoints.worker_memory import WHOLE
from inakit.traffic.sockets.batches import ragged
from inakit.traffic.sockets.ports import IntArray

LOOK_AHEAD = 8
"""How many results `advance` looks at in its first NumPy step; each further one looks at four times as many."""


class StreamProgress:
    """Arrays over streams, (streams,). Fragments are counted from the first of the iteration.

    `base`: the first fragment without a result. `next`: the first fragment that has not been sent yet. `held`: the
    first fragment that is still in memory. `newest`: the last fragment with a result, -1 for none. `first_seq`: the
    sequence number of fragment 0. `active`: the iteration goes on, so the gradients in memory are the stream's. An
    iteration that has not begun looks like one that is over.
    """

    def __init__(self, layout: StreamLayout, start_seq: int) -> None:
        streams = layout.streams
        count = len(streams.host)
        self.layout, self.streams, self.start_seq = layout, streams, start_seq
        self.held = np.zeros(count, np.int64)
        self.base = streams.count.copy()
        self.next = streams.count.copy()
        self.newest = np.full(count, -1, np.int64)
        self.first_seq = np.full(count, start_seq, np.int64)
        self.active = np.zeros(count, np.bool_)

    def begin(self, streams: IntArray, iteration: int) -> None:
        """Put `streams` at the start of an iteration; sequence numbers go on from the last one."""
        self.held[streams] = self.base[streams] = self.next[streams] = 0
        self.newest[streams] = -1
        self.first_seq[streams] = self.start_seq + iteration * self.streams.count[streams]
        self.active[streams] = True

    def end(self, streams: IntArray) -> None:
        """Note that the iteration of `streams` is over."""
        self.active[streams] = False

    def finished(self, streams: IntArray) -> bool:
        """Whether all of `streams` have every result of the iteration."""
        return bool((self.base[streams] == self.streams.count[streams]).all())

    def first_unfinished(self, streams: IntArray) -> int:
        """The first of `streams` that lacks a result; one of them must."""
        return int(streams[self.base[streams] < self.streams.count[streams]][0])

    def on_the_way(self) -> tuple[IntArray, IntArray]:
        """Stream and number of every fragment from `base` to `next`, sorted; some have their result already."""
        return ragged(self.base, self.next - self.base)

    def fragments_of(self, rows: IntArray) -> IntArray:
        """The number, within its stream, of the fragment that each row holds."""
        stream = self.layout.stream_of_row[rows]
        held = self.held[stream]
        return held + (rows - self.streams.first_row[stream] - held) % self.streams.room[stream]

    def advance(self, streams: IntArray, parts: NDArray[np.uint8]) -> None:
        """Move the base of `streams` to their first fragment without a result.

        `parts`: which parts of each row's result have come, as in `WorkerMemory`.
        """
        ahead = LOOK_AHEAD
        while streams.size:
            fragment = self.base[streams, None] + np.arange(ahead)
            inside = fragment < self.next[streams, None]
            rows = self.layout.rows(streams[:, None], np.where(inside, fragment, 0))
            whole = inside & (parts[rows] == WHOLE)
            run = np.where(whole.all(axis=1), ahead, np.argmin(whole, axis=1))
            self.base[streams] += run
            streams, ahead = streams[run == ahead], 4 * ahead
