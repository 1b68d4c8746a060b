"""Round-trip times of all streams, and the timeouts that follow from them (RFC 6298)."""

from __future__ import annotations

import numpy as np

from inakit.traffic.endpoints.worker_options import WorkerOptions
from inakit.traffic.sockets.ports import FloatArray, IntArray


class RoundTrips:
    """Arrays over streams, (streams,), in seconds: `smoothed` round trips, NaN before the first, and `deviation`.

    `held_s`, (streams,): how long a result may be held back until others go with it; a timeout is longer by as much.
    """

    def __init__(self, count: int, options: WorkerOptions, held_s: FloatArray | None = None) -> None:
        self.options = options
        self.held_s = np.zeros(count) if held_s is None else held_s
        self.smoothed = np.full(count, np.nan)
        self.deviation = np.zeros(count)

    def add(self, streams: IntArray, samples: FloatArray) -> None:
        """Take in one measured round trip for each of `streams`, which are all different."""
        smooth = np.where(np.isnan(self.smoothed[streams]), samples, self.smoothed[streams])
        self.deviation[streams] += (np.abs(samples - smooth) - self.deviation[streams]) / 4
        self.smoothed[streams] = smooth + (samples - smooth) / 8

    def timeouts(self) -> FloatArray:
        """How long a fragment of each stream waits for its result, (streams,).

        A round trip contains the wait for other workers, so it may be of any length; `first_timeout_s` bounds it.
        """
        least, longest = (self.held_s + s for s in (self.options.min_timeout_s, self.options.first_timeout_s))
        measured = np.clip(self.smoothed + 4 * self.deviation, least, longest)
        return np.where(np.isnan(self.smoothed), longest, measured)
