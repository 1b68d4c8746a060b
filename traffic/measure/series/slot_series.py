"""How many fragments each switch holds sums of over time, as the followed fragments of a run show it.

A switch holds a fragment from the first gradient of it that comes there until the sum leaves. A fragment of which no
sum leaves (it was evicted, or forwarded as it came) counts until the last of its packets has arrived anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from inakit.topo.virtual.engine import PS_PER_S
from inakit.traffic.measure.series.fragment_times import NEVER, FollowedFragments
from inakit.traffic.sockets.ports import BoolArray, FloatArray, IntArray
from inakit.traffic.wire.packet_format import Kind


@dataclass(frozen=True)
class SlotSeries:
    """The fragments that each of the aggregating `switches` holds, mean of each interval, (switches, intervals)."""

    switches: tuple[str, ...]
    starts_s: FloatArray
    held: FloatArray

    @property
    def columns(self) -> tuple[str, ...]:
        """The heading of the table: the begin of an interval, and a column for each switch."""
        return "at_s", *self.switches

    def rows(self) -> Iterator[tuple[str, ...]]:
        """A row for each interval."""
        for start, values in zip(self.starts_s.tolist(), self.held.T.tolist(), strict=True):
            yield f"{start:.9g}", *(f"{value:.4g}" for value in values)


def slot_series(
    followed: FollowedFragments, links: Sequence[tuple[str, str]], starts_s: FloatArray, until_ps: int, every: int = 1
) -> SlotSeries:
    """The series of a run until `until_ps`, in intervals of the same length that begin at `starts_s`.

    One of `every` fragments was followed, so that counts are multiplied by it. `links` has the two ends of every link.
    """
    names = list(dict.fromkeys(end for ends in links for end in ends))
    switches = tuple(dict.fromkeys(a.switch for _, tree in followed.trees for a in tree.aggregators))
    switch, taken, left = held_fragments(followed, aggregating(followed, names))
    width_s = starts_s[1] - starts_s[0] if len(starts_s) > 1 else until_ps / PS_PER_S
    edges = np.append(starts_s, starts_s[-1:] + width_s) * PS_PER_S
    held = np.zeros((len(switches), len(starts_s)))
    for row, name in enumerate(switches):
        own = switch == names.index(name)
        held[row] = every * np.diff(time_since(taken[own], edges) - time_since(left[own], edges)) / np.diff(edges)
    return SlotSeries(switches, starts_s, held)


def no_slots(starts_s: FloatArray) -> SlotSeries:
    """The series of a run in which no switch aggregates."""
    return SlotSeries((), starts_s, np.zeros((0, len(starts_s))))


def aggregating(followed: FollowedFragments, names: Sequence[str]) -> BoolArray:
    """Which nodes aggregate in which trees, (trees, nodes)."""
    number = {name: place for place, name in enumerate(names)}
    table = np.zeros((len(followed.trees), len(names)), np.bool_)
    for row, (_, tree) in enumerate(followed.trees):
        table[row, [number[aggregator.switch] for aggregator in tree.aggregators]] = True
    return table


def held_fragments(followed: FollowedFragments, sums: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
    """For each fragment and each switch that sums it: the number of the switch, and from when until when it does."""
    hops, fragment = followed.hops, followed.fragment
    came = np.flatnonzero(followed.arrived & (followed.kind == Kind.GRADIENT) & sums[followed.tree, followed.receiver])
    held, of = np.unique(fragment[came] * followed.nodes + followed.receiver[came], return_inverse=True)
    taken = np.full(len(held), NEVER)
    np.minimum.at(taken, of, hops["arrives"][came])
    group = np.full(len(hops), -1)
    group[came] = of
    cause = np.where(followed.above >= 0, followed.above, followed.turned)
    gone = np.flatnonzero((cause >= 0) & (group[cause] >= 0))
    left = np.full(len(held), NEVER)
    np.minimum.at(left, group[cause[gone]], hops["given"][gone])
    last = np.zeros(followed.count, np.int64)
    np.maximum.at(last, fragment[followed.arrived], hops["arrives"][followed.arrived])
    return held % followed.nodes, taken, np.where(left < NEVER, left, last[held // followed.nodes])


def time_since(moments_ps: IntArray, at_ps: FloatArray) -> FloatArray:
    """At each of `at_ps`, the sum of the times that have passed since those of the moments that are over."""
    ordered = np.sort(moments_ps)
    over = np.searchsorted(ordered, at_ps)
    total = np.concatenate(([0], np.cumsum(ordered)))
    passed: FloatArray = over * at_ps - total[over]
    return passed
