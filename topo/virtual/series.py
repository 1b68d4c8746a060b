"""What every link of a network in virtual time did over time: how long it sent, and how many packets waited for it.

The engine adds up these figures exactly, in intervals of virtual time (`series.h`). Their number is fixed beforehand:
when a run is longer, two neighbouring intervals become one, again and again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SAMPLE = np.dtype(
    [("sending", np.int64), ("waiting", np.int64), ("most", np.uint32), ("before", np.uint32)], align=True
)
"""One interval of a link, `struct sample` of series.h."""

SERIES = np.dtype(
    [("interval", np.int64), ("links", np.uint32), ("points", np.uint32), ("samples", np.uint64)], align=True
)
"""`struct series` of series.h."""


class Series:
    """The samples of every link, (links, points), which an engine adds to."""

    def __init__(self, links: int, interval_ps: int, points: int) -> None:
        """Room for `points` intervals of each link, an even number, which begin with `interval_ps` each."""
        assert interval_ps > 0
        assert points % 2 == 0
        self.samples = np.zeros((links, points), SAMPLE)
        self.record = np.zeros(1, SERIES)
        self.record[0] = (interval_ps, links, points, self.samples.ctypes.data)

    def until(self, end_ps: int) -> LinkSamples:
        """What has been noted in the intervals that begin before `end_ps`, counted from when the network came up."""
        interval_ps = int(self.record["interval"][0])
        found = self.samples[:, : -(-end_ps // interval_ps)]
        most = np.maximum(found["most"], found["before"])
        return LinkSamples(interval_ps, found["sending"] / interval_ps, found["waiting"] / interval_ps, most)


@dataclass(frozen=True)
class LinkSamples:
    """Arrays (links, points) over intervals of `interval_ps`.

    `utilisation`: the share of the interval in which the link sent. `mean_queue` and `most_queue`: how many packets
    waited for the link, on average over the interval and at most. The packet that is being sent does not wait.
    """

    interval_ps: int
    utilisation: NDArray[np.float64]
    mean_queue: NDArray[np.float64]
    most_queue: NDArray[np.uint32]
