"""When every fragment was sent, how often and in what order: what timeouts and round trips are reckoned from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inakit.traffic.sockets.batches import before
from inakit.traffic.sockets.ports import BoolArray, FloatArray, IntArray

MOST_TRIES = 255
"""Tries are counted up to here."""


@dataclass(frozen=True)
class Batch:
    """Fragments about to be sent, sorted by stream: fragment `fragment[i]` of stream `stream[i]`.

    `again`: whether it has been sent before. All arrays are (fragments,).
    """

    stream: IntArray
    fragment: IntArray
    again: BoolArray

    def where(self, mask: BoolArray) -> Batch:
        """The fragments under a mask."""
        return Batch(self.stream[mask], self.fragment[mask], self.again[mask])


class Sendings:
    """Arrays over rows, the fragments of all streams, and over streams. Times are seconds of the ports' clock.

    By row: `begun_at` and `sent_at`, when it was sent first and last; `tries`, how often; `order`, the place of its
    last sending among all of its stream. By stream: `total`, how many sendings there were; `newest_order`, the greatest
    order of a fragment that was sent once and whose result has come, -1 for none.
    """

    def __init__(self, rows: int, streams: int) -> None:
        self.begun_at = np.zeros(rows)
        self.sent_at = np.zeros(rows)
        self.order = np.zeros(rows, np.int64)
        self.tries = np.zeros(rows, np.uint8)
        self.total = np.zeros(streams, np.int64)
        self.newest_order = np.full(streams, -1, np.int64)

    def begin(self, rows: IntArray) -> None:
        """Note that the fragments of `rows` are new ones, which nobody has sent."""
        self.tries[rows] = 0

    def note(self, batch: Batch, rows: IntArray, per_stream: IntArray, now: float) -> None:
        """Note that a batch has left: `rows[i]` is its fragment i, `per_stream[s]` of them are of stream s."""
        self.begun_at[rows[~batch.again]] = now
        self.sent_at[rows] = now
        self.tries[rows] = np.minimum(self.tries[rows], MOST_TRIES - 1) + 1
        self.order[rows] = self.total[batch.stream] + np.arange(len(rows)) - before(per_stream)[batch.stream]
        self.total += per_stream

    def note_results(self, stream: IntArray, rows: IntArray, now: float) -> tuple[IntArray, IntArray, FloatArray]:
        """Note the results of fragments that were sent once: of any other nobody knows which sending they answer.

        Returns the streams that got any, how many results each got, and its mean round trip in seconds.
        """
        np.maximum.at(self.newest_order, stream, self.order[rows])
        counts = np.bincount(stream, minlength=len(self.total))
        streams = np.flatnonzero(counts)
        totals = np.bincount(stream, now - self.sent_at[rows], minlength=len(self.total))
        return streams, counts[streams], totals[streams] / counts[streams]
