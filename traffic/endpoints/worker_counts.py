"""What workers count: frames sent and sent again, when, and what was wrong with what they received."""

from __future__ import annotations

import numpy as np

from inakit.traffic.endpoints.streams import StreamLayout
from inakit.traffic.endpoints.wrong_sums import Miscounts
from inakit.traffic.sockets.ports import IntArray


class WorkerCounts:
    """Counts and times of all workers; times are seconds of the ports' clock.

    Of the iteration, (streams,): `sent` frames; `first_sent_at`, NaN before; `last_sent_at`; `last_result_at`.
    Over the run: `retransmitted` frames, (streams,); `strangers`, packets that came to a host which has no part in
    their tree; `miscounts` of results.
    """

    def __init__(self, layout: StreamLayout) -> None:
        count = len(layout.streams.host)
        self.sent = np.zeros(count, np.int64)
        self.first_sent_at = np.zeros(count)
        self.last_sent_at = np.zeros(count)
        self.last_result_at = np.zeros(count)
        self.retransmitted = np.zeros(count, np.int64)
        self.strangers = 0
        self.miscounts = Miscounts(layout)

    def begin(self, streams: IntArray) -> None:
        """Count an iteration of `streams` from 0."""
        self.sent[streams] = 0
        self.first_sent_at[streams] = np.nan

    def note_sent(self, frames: IntArray, again: IntArray, now: float) -> None:
        """Note how many `frames` of each stream have left, and how many of them were sent `again`; both (streams,)."""
        self.sent += frames
        self.retransmitted += again
        active = frames > 0
        self.last_sent_at[active] = now
        self.first_sent_at[active & np.isnan(self.first_sent_at)] = now
