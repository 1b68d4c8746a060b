"""What is noted of a run in virtual time beside its counters: links over time, and the way of fragments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inakit.topo.virtual.hops import Hops
from inakit.topo.virtual.series import Series


@dataclass(frozen=True)
class Observation:
    """What is to be noted.

    `interval_s`: the length of an interval of links' series, of which there is room for `points`; where time goes
    beyond them, intervals become longer. `every`: fragments whose sequence number it divides are followed, with at most
    `hops` hops of packets in all.
    """

    interval_s: float
    points: int
    every: int
    hops: int


@dataclass(frozen=True)
class Noted:
    """What has been noted. `links` has the two ends of each link, and `rates_bps` its rate, both by its number."""

    links: Sequence[tuple[str, str]]
    rates_bps: Sequence[float]
    series: Series
    hops: Hops
