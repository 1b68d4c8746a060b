"""The times of a collective's transfers, and the loads that they put on links.

A transfer begins when its rank has the data and has sent all earlier transfers. A fragment takes the time of
its path: each link sends it whole, after the fragments of the same step that reached the link earlier. Times are
exact where ranks send at the planned rates, and steps do not overlap.

Links send frames in the order of their arrival. A link of a path is a hop: up by tiers, across, and down again by
tiers, so that frames pass all links of one hop before any link of the next.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.loads import sums_by_key
from inakit.planner.core.plan import ACKNOWLEDGED_AT_ONCE, Collective, Connection, Transfer
from inakit.planner.core.problem import FragmentFormat, Problem
from inakit.topo.fabric.fabric import DirectedLink, Fabric

Times = NDArray[np.float64]
Numbers = NDArray[np.int64]
NONE = -1
UP, ACROSS, DOWN = range(3)


@dataclass(frozen=True)
class Hop:
    """A hop as arrays of the shape (connections,).

    `link` is the number of the link that a connection uses, -1 for none; `send_s` the seconds in which it sends a
    frame; `before_s` and `after_s` the seconds in the switch before the link and on the link.
    """

    link: Numbers
    send_s: Times
    before_s: Times
    after_s: Times

    def cross(self, connection: Numbers, at: Times) -> Times:
        """When frames of these connections, which reach the hop at the given times, (frames,), complete it."""
        came, send_s = at + self.before_s[connection], self.send_s[connection]
        return sent_in_turn(self.link[connection], came, send_s) + self.after_s[connection]


class LinkQueues:
    """The hops of all connections on a fabric, for frames of a given number of bits."""

    def __init__(self, fabric: Fabric, bits: int, connections: Sequence[Connection]) -> None:
        self.hops = hops_of(fabric, bits, connections)

    def arrivals(self, connection: Numbers, left: Times) -> Times:
        """The arrival times of frames that leave their sources at the times `left`; all arrays are (frames,)."""
        at = left.copy()
        for hop in self.hops:
            passing = np.flatnonzero(hop.link[connection] != NONE)
            if passing.size:
                at[passing] = hop.cross(connection[passing], at[passing])
        return at


def hops_of(fabric: Fabric, bits: int, connections: Sequence[Connection]) -> list[Hop]:
    """The hops in the order in which frames take them."""
    delays = {end: link.delay_s for link in fabric.links for end in ((link.a, link.b), (link.b, link.a))}
    latencies = {switch.name: switch.latency_s for switch in fabric.switches}
    number = {link: place for place, link in enumerate(fabric.capacities_bps)}
    rows: defaultdict[tuple[int, int], list[tuple[float, ...]]] = defaultdict(list)
    for place, connection in enumerate(connections):
        for a, b in connection.links:
            send_s = bits / fabric.capacities_bps[a, b]
            row = place, number[a, b], send_s, latencies.get(a, 0.0), delays[a, b]
            rows[direction(fabric.tiers[a], fabric.tiers[b])].append(row)
    hops = []
    for table in (np.array(rows[key]) for key in sorted(rows)):
        own, links = table[:, 0].astype(np.int64), np.full(len(connections), NONE, np.int64)
        times = np.zeros((3, len(connections)))
        links[own] = table[:, 1].astype(np.int64)
        times[:, own] = table[:, 2:].T
        hops.append(Hop(links, *times))
    return hops


def direction(tier: int, next_tier: int) -> tuple[int, int]:
    """A sort key for the links of a path: up, across or down, and the tier."""
    if tier == next_tier:
        return ACROSS, 0
    return (UP, tier) if tier < next_tier else (DOWN, -tier)


def sent_in_turn(link: Numbers, came: Times, send_s: Times) -> Times:
    """The times at which links have sent frames, in the order of their arrival; `send_s` is constant for each link.

    Let d be the time at which a frame is sent and a its arrival: d(i) = max(a(i), d(i - 1)) + s, which is the maximum
    over j <= i of a(j) + (i - j + 1) s.
    """
    order = np.lexsort((came, link))
    sorted_link = link[order]
    begins = np.concatenate(([True], sorted_link[1:] != sorted_link[:-1]))
    queue = np.cumsum(begins) - 1
    turn = np.arange(len(order)) - np.flatnonzero(begins)[queue]
    alone = came[order] - turn * send_s[order]
    apart = queue * np.ptp(alone)  # Separates queues: no maximum of one queue reaches the next.
    sent = np.empty(len(order))
    sent[order] = np.maximum.accumulate(alone + apart) - apart + (turn + 1) * send_s[order]
    return sent


Loads = dict[DirectedLink, float]


def acknowledging_share(fragment: FragmentFormat) -> float:
    """The bytes of acknowledgements per byte that is acknowledged: one packet without values for many with values."""
    return (fragment.wire_bytes - 4 * fragment.values) / (ACKNOWLEDGED_AT_ONCE * fragment.wire_bytes)


def chunk_loads_bps(collectives: Iterable[Collective]) -> Loads:
    """The load of every link that chunks use, in bit/s: the sum over jobs of the load in each job's busiest step."""
    return busiest(collectives, lambda connection: connection.path)


def acknowledgement_loads_bps(collectives: Iterable[Collective], fragment: FragmentFormat) -> Loads:
    """The loads of acknowledgements, which return along the paths of their chunks, in bit/s."""
    share = acknowledging_share(fragment)
    return {link: load * share for link, load in busiest(collectives, lambda c: c.path[::-1]).items()}


def busiest(collectives: Iterable[Collective], path: Callable[[Connection], tuple[str, ...]]) -> Loads:
    """For each link, the sum over jobs of its load in each job's busiest step."""
    most: list[Loads] = []
    for collective in collectives:
        most.append({})
        for members in collective.concurrent:
            sending = [collective.connections[number] for number, _ in members]
            loads = sums_by_key((link, each.rate_bps) for each in sending for link in pairwise(path(each)))
            most[-1] |= {link: max(most[-1].get(link, 0.0), load) for link, load in loads.items()}
    return sums_by_key(each for loads in most for each in loads.items())


ROUNDING = 1e-9


def overlaps(fabric: Fabric, collective: Collective) -> bool:
    """Whether links carry all connections at the same time, so that the steps of a rank may overlap.

    Otherwise the rates of connections hold only for steps that follow one another.
    """
    loads = sums_by_key((link, each.rate_bps) for each in collective.connections for link in each.links)
    return all(load_bps <= fabric.capacities_bps[link] * (1 + ROUNDING) for link, load_bps in loads.items())


@dataclass(frozen=True)
class CollectiveTimes:
    """Times of a collective, in seconds; `end_s` is the time from the first fragment sent to the last one received.

    `begun_s` and `ended_s`, (ranks,): when each rank sends its first and its last fragment. `longest_way_s`: the
    longest time of a fragment on its path.
    """

    end_s: float
    begun_s: Times
    ended_s: Times
    longest_way_s: float


@dataclass(frozen=True)
class Foreseen:
    """A collective, its times, and the number of fragments that each connection sends, (connections,)."""

    collective: Collective
    times: CollectiveTimes
    sent: Numbers

    def counts(self) -> Iterator[tuple[Connection, int]]:
        """Every connection with the number of fragments that it sends."""
        return zip(self.collective.connections, self.sent.tolist(), strict=True)

    def rates_bps(self, frame_bytes: int) -> dict[str, float]:
        """For each host, the mean rate from its first frame to its last; 0 for a host that sends at most one frame."""
        sources = np.array([each.source for each in self.collective.connections], np.int64)
        frames = np.bincount(sources, self.sent, len(self.collective.ranks))
        seconds = self.times.ended_s - self.times.begun_s
        with np.errstate(divide="ignore", invalid="ignore"):
            rates = np.where(seconds > 0, 8 * frame_bytes * (frames - 1) / seconds, 0.0)
        return dict(zip(self.collective.ranks, rates.tolist(), strict=True))


def foresee(problem: Problem, collective: Collective) -> Foreseen:
    """Predict the times of a collective of the problem's job."""
    job = next(job for job in problem.jobs if job.number == collective.job)
    count = problem.fragment.count(job.gradient_bytes)
    sizes = np.array([len(part) for part in collective.chunk_fragments(count)])
    ends = np.concatenate(([0], np.cumsum(sizes)))
    sent = [sum(int(ends[t.first + t.count] - ends[t.first]) for t in c.transfers) for c in collective.connections]
    times = collective_times(problem.fabric, problem.fragment, collective, count)
    return Foreseen(collective, times, np.array(sent, np.int64))


class Group(NamedTuple):
    """Transfers of one step over different connections that have the same number of chunks: (transfers,), (transfers,
    chunks).

    `adds` is 1 where chunks are added and 0 where they replace.
    """

    connection: Numbers
    chunks: Numbers
    adds: Numbers


def collective_times(fabric: Fabric, fragment: FragmentFormat, collective: Collective, count: int) -> CollectiveTimes:
    """The times of a collective that sums a gradient of `count` fragments."""
    clock = Clock(fabric, fragment, collective, count)
    for sent in collective.steps.values():
        clock.do(groups_of(sent))
    return CollectiveTimes(float(clock.last.max()), clock.begun, clock.ended, clock.longest_way_s)


def groups_of(sent: tuple[tuple[int, Transfer], ...]) -> list[Group]:
    """The transfers of a step in groups; transfers of one connection are in successive groups."""
    found: defaultdict[tuple[int, int], list[tuple[int, Transfer]]] = defaultdict(list)
    seen: Counter[int] = Counter()
    for number, transfer in sent:
        found[seen[number], transfer.count].append((number, transfer))
        seen[number] += 1
    return [group_of(found[key], key[1]) for key in sorted(found)]


def group_of(sent: list[tuple[int, Transfer]], count: int) -> Group:
    """The group of transfers of `count` chunks each."""
    table = np.array([(number, transfer.first, transfer.adds) for number, transfer in sent], np.int64)
    return Group(table[:, 0], table[:, 1, None] + np.arange(count), table[:, 2])


class Clock:
    """The state of a collective up to a step.

    `first` and `last`, (ranks, chunks): when a rank has the first and the last fragment of its current value of a
    chunk. `free`, (ranks,): when a rank has sent the steps before. `busy`, (connections,): when a connection has.
    `interval_s`: the time between two frames of a connection, which has the rate `rates_bps`. `overlaps`: ranks send
    over all of their connections at the same time and are always free; `turn_s`: the longest time that a frame of a
    connection then waits for frames of the rank's other connections.
    """

    def __init__(self, fabric: Fabric, fragment: FragmentFormat, collective: Collective, count: int) -> None:
        ranks, connections, bits = len(collective.ranks), collective.connections, 8 * fragment.wire_bytes
        self.first, self.last = np.zeros((2, ranks, collective.chunks))
        self.free, self.busy = np.zeros(ranks), np.zeros(len(connections))
        self.begun, self.ended = np.full(ranks, np.inf), np.zeros(ranks)
        self.sizes = np.array([len(part) for part in collective.chunk_fragments(count)])
        self.source = np.array([each.source for each in connections], np.int64)
        self.destination = np.array([each.destination for each in connections], np.int64)
        self.rates_bps = np.array([each.rate_bps for each in connections])
        self.interval_s = bits / self.rates_bps
        self.bits, self.overlaps = bits, overlaps(fabric, collective)
        together_bps = np.bincount(self.source, self.rates_bps, ranks)
        self.turn_s = (self.interval_s - bits / together_bps[self.source]) * self.overlaps
        self.queues = LinkQueues(fabric, bits, connections)
        self.longest_way_s = 0.0

    def do(self, groups: list[Group]) -> None:
        """Execute the transfers of a step, all with the values from before the step."""
        ready, frames = np.full(len(self.free), np.inf), np.zeros(len(self.free))
        for group in groups:
            source, sizes = self.source[group.connection], self.sizes[group.chunks]
            has = np.where(sizes > 0, self.first[source[:, None], group.chunks], np.inf)
            np.minimum.at(ready, source, has.min(axis=1))
            np.add.at(frames, source, sizes.sum(axis=1))
        left = [self.leave(group) for group in groups]
        ways_s = self.ways(groups, [first for first, _ in left])
        for group, (first, last), way_s in zip(groups, left, ways_s, strict=True):
            self.arrive(group, first, last, way_s)
        if not self.overlaps:
            self.keep_busy(groups, ready, frames)

    def keep_busy(self, groups: list[Group], ready: Times, frames: Times) -> None:
        """Add the time that each rank's `frames` of a step take from when it was `ready`; both are (ranks,)."""
        connections = np.unique(np.concatenate([group.connection for group in groups]))
        rates_bps = np.bincount(self.source[connections], self.rates_bps[connections], len(self.free))
        sending = frames > 0
        own_s = frames[sending] * self.bits / rates_bps[sending]
        self.free[sending] = np.maximum(self.free, ready)[sending] + own_s

    def leave(self, group: Group) -> tuple[Times, Times]:
        """When each chunk's first and last fragment leave, (transfers, chunks); `inf` for empty chunks."""
        connection, source = group.connection, self.source[group.connection, None]
        size, interval_s = self.sizes[group.chunks], self.interval_s[connection, None]
        has, had = self.first[source, group.chunks], self.last[source, group.chunks]
        begin = np.maximum(self.free[source[:, 0]], self.busy[connection])[:, None]
        # First each chunk waits only for its own data, then for all chunks before it.
        alone = np.where(size > 0, np.maximum(has + size * interval_s, had + interval_s), -np.inf)
        work = np.cumsum(size * interval_s, axis=1)
        end = work + np.maximum(np.maximum.accumulate(alone - work, axis=1), begin)
        started = np.maximum(np.concatenate((begin, end[:, :-1]), axis=1), has)
        self.busy[connection] = end[:, -1]
        empty = size == 0
        return np.where(empty, np.inf, started), np.where(empty, np.inf, end - interval_s)

    def ways(self, groups: list[Group], left: list[Times]) -> list[Times]:
        """For each group of a step, the travel times of the first fragments of chunks, (transfers, chunks).

        `left` is when they leave. The fragments behind them take as long: at the planned rates they meet the same
        queues.
        """
        connection = np.concatenate([np.broadcast_to(g.connection[:, None], g.chunks.shape).ravel() for g in groups])
        times = np.concatenate([each.ravel() for each in left])
        sent = np.isfinite(times)
        way_s = np.zeros(len(times))
        way_s[sent] = self.queues.arrivals(connection[sent], times[sent]) - times[sent]
        self.longest_way_s = max(self.longest_way_s, float(way_s.max(initial=0.0)))
        bounds = np.cumsum([each.size for each in left])[:-1]
        return [own.reshape(each.shape) for own, each in zip(np.split(way_s, bounds), left, strict=True)]

    def arrive(self, group: Group, left_first: Times, left_last: Times, way_s: Times) -> None:
        """Record the times at which the chunks of a group arrive and at which their ranks have sent them."""
        source, full = self.source[group.connection], np.isfinite(left_last)
        np.minimum.at(self.begun, source, left_first.min(axis=1))
        last = np.where(full, left_last + self.turn_s[group.connection, None], 0.0)
        np.maximum.at(self.ended, source, last.max(axis=1))
        rank = np.broadcast_to(self.destination[group.connection, None], full.shape)
        adds = np.broadcast_to(group.adds[:, None] == 1, full.shape)
        for held, left in ((self.first, left_first), (self.last, left_last)):
            came = left + way_s
            placed = full & ~adds
            held[rank[placed], group.chunks[placed]] = came[placed]
            np.maximum.at(held, (rank[full & adds], group.chunks[full & adds]), came[full & adds])
