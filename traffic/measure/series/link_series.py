"""The links of a network over time: how much of its capacity each one uses, and how many packets wait for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inakit.topo.virtual.engine import PS_PER_S
from inakit.topo.virtual.series import LinkSamples

NAMED = 5
"""How many of the most loaded links, and of the deepest queues, are named in `run.json`."""


@dataclass(frozen=True)
class LinkSeries:
    """Series of all links. `links` has the two ends of each one and `rates_bps` its rate, in the order of `samples`."""

    links: Sequence[tuple[str, str]]
    rates_bps: Sequence[float]
    samples: LinkSamples

    @property
    def interval_s(self) -> float:
        """The length of an interval."""
        return self.samples.interval_ps / PS_PER_S

    @cached_property
    def starts_s(self) -> NDArray[np.float64]:
        """When each interval begins, (points,), from when the network came up."""
        points = self.samples.utilisation.shape[1]
        return np.arange(points, dtype=np.float64) * self.interval_s

    @cached_property
    def rates(self) -> NDArray[np.float64]:
        """At what rate each link sends in each interval, in bit/s, (links, points)."""
        rates: NDArray[np.float64] = self.samples.utilisation * np.array(self.rates_bps)[:, None]
        return rates

    def most_loaded(self, count: int) -> list[int]:
        """The links with the highest utilisation on average, the highest first."""
        mean = self.samples.utilisation.mean(axis=1)
        return [int(link) for link in np.argsort(-mean, kind="stable")[:count] if mean[link]]

    def deepest(self, count: int) -> list[int]:
        """The links for which the most packets waited at once, and of those with as many the longest, in that order."""
        most, mean = self.samples.most_queue.max(axis=1), self.samples.mean_queue.mean(axis=1)
        return [int(link) for link in np.lexsort((-mean, -most.astype(np.int64)))[:count] if most[link]]

    def summary(self, link: int) -> dict[str, Any]:
        """Peak and mean of a link's utilisation and queue; the utilisation's peak is that of one interval."""
        samples = self.samples
        used, mean, most = samples.utilisation[link], samples.mean_queue[link], samples.most_queue[link]
        return {
            "link": " → ".join(self.links[link]),
            "utilisation_mean": float(used.mean()),
            "utilisation_peak": float(used.max()),
            "queue_mean_packets": float(mean.mean()),
            "queue_peak_packets": int(most.max()),
        }

    def as_json(self) -> dict[str, Any]:
        """The most loaded links and the deepest queues, as `run.json` has them."""
        return {
            "interval_s": self.interval_s,
            "most_loaded": [self.summary(link) for link in self.most_loaded(NAMED)],
            "deepest_queues": [self.summary(link) for link in self.deepest(NAMED)],
        }

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The rows of `LINK_COLUMNS` for every link that sent anything, one for each interval."""
        starts = [f"{start:.9g}" for start in self.starts_s]
        for link in np.flatnonzero(self.samples.utilisation.any(axis=1)).tolist():
            figures = (self.rates, self.samples.utilisation, self.samples.mean_queue, self.samples.most_queue)
            for start, *values in zip(starts, *(each[link].tolist() for each in figures), strict=True):
                yield start, *self.links[link], *(f"{value:.6g}" for value in values)

    def worker_rows(self, workers: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """For each interval a row with its begin, and the rate at which each worker sends."""
        rates = self.rates[self.uplinks(workers)]
        for start, values in zip(self.starts_s, rates.T.tolist(), strict=True):
            yield f"{start:.9g}", *(f"{value:.6g}" for value in values)

    def uplinks(self, hosts: Sequence[str]) -> list[int]:
        """The number of the link by which each host sends."""
        by_host = {end: number for number, (end, _) in enumerate(self.links)}
        return [by_host[host] for host in hosts]


LINK_COLUMNS = ("at_s", "from", "to", "rate_bps", "utilisation", "queue_mean_packets", "queue_most_packets")
