"""When a collective's transfers happen, and how they load links.

A transfer begins when its rank has the data and has sent all earlier transfers. A fragment arrives after the time of
its path: each link sends it whole, after the fragments of the same step that reached the link before it. The times are
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
    """A hop as arrays over connections, (connections,): `link`, the number of the link by which a connection makes it,
    -1 for none; `send_s`, the seconds for a frame to be sent whole; `before_s` and `after_s`, those in the switch
    before the link and on the link.
    """

    link: Numbers
    send_s: Times
    before_s: Times
    after_s: Times

    def cross(self, connection: Numbers, at: Times) -> Times:
        """When frames of these connections that reach the hop at some times have made it, (frames,)."""
        came, send_s = at + self.before_s[connection], self.send_s[connection]
        return sent_in_turn(self.link[connection], came, send_s) + self.after_s[connection]


class LinkQueues:
    """The hops of all connections on a fabric, for frames of so many bits."""

    def __init__(self, fabric: Fabric, bits: int, connections: Sequence[Connection]) -> None:
        self.hops = hops_of(fabric, bits, connections)

    def arrivals(self, connection: Numbers, left: Times) -> Times:
        """When frames arrive that leave their sources at the times `left`; all are (frames,)."""
        at = left.copy()
        for hop in self.hops:
            passing = np.flatnonzero(hop.link[connection] != NONE)
            if passing.size:
                at[passing] = hop.cross(connection[passing], at[passing])
        return at


def hops_of(fabric: Fabric, bits: int, connections: Sequence[Connection]) -> list[Hop]:
    """The hops in the order in which frames make them."""
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
    """Up, across or down, and how far up or down: a key that sorts the links of a path by their order."""
    if tier == next_tier:
        return ACROSS, 0
    return (UP, tier) if tier < next_tier else (DOWN, -tier)


def sent_in_turn(link: Numbers, came: Times, send_s: Times) -> Times:
    """When frames that came to links are sent, the first that came first; `send_s` is the same for all of a link.

    With d the time of a frame's end, a that of its arrival: d(i) = max(a(i), d(i - 1)) + s, that is, the latest over
    j <= i of a(j) + (i - j + 1) s.
    """
    order = np.lexsort((came, link))
    sorted_link = link[order]
    begins = np.concatenate(([True], sorted_link[1:] != sorted_link[:-1]))
    queue = np.cumsum(begins) - 1
    turn = np.arange(len(order)) - np.flatnonzero(begins)[queue]
    alone = came[order] - turn * send_s[order]
    apart = queue * np.ptp(alone)  # So that no queue's latest reaches into the next queue.
    sent = np.empty(len(order))
    sent[order] = np.maximum.accumulate(alone + apart) - apart + (turn + 1) * send_s[order]
    return sent


Loads = dict[DirectedLink, float]


def acknowledging_share(fragment: FragmentFormat) -> float:
    """The bytes of acknowledgements for each byte that is acknowledged: a packet without values for many with."""
    return (fragment.wire_bytes - 4 * fragment.values) / (ACKNOWLEDGED_AT_ONCE * fragment.wire_bytes)


def chunk_loads_bps(collectives: Iterable[Collective]) -> Loads:
    """The greatest load of every link that chunks use: at each job's busiest step, of all jobs together."""
    return busiest(collectives, lambda connection: connection.path)


def acknowledgement_loads_bps(collectives: Iterable[Collective], fragment: FragmentFormat) -> Loads:
    """The same for acknowledgements, which return along the paths of their chunks."""
    share = acknowledging_share(fragment)
    return {link: load * share for link, load in busiest(collectives, lambda c: c.path[::-1]).items()}


def busiest(collectives: Iterable[Collective], path: Callable[[Connection], tuple[str, ...]]) -> Loads:
    """By link, the sum over jobs of its load in each job's busiest step."""
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

    Where they do not, the rates of connections are for one step after the other.
    """
    loads = sums_by_key((link, each.rate_bps) for each in collective.connections for link in each.links)
    return all(load_bps <= fabric.capacities_bps[link] * (1 + ROUNDING) for link, load_bps in loads.items())


@dataclass(frozen=True)
class CollectiveTimes:
    """Seconds from the first fragment that is sent to the last that is received (`end_s`).

    `begun_s` and `ended_s` are by rank, (ranks,): when it sends its first and its last fragment. `longest_way_s`: the
    longest time of a fragment's path.
    """

    end_s: float
    begun_s: Times
    ended_s: Times
    longest_way_s: float


@dataclass(frozen=True)
class Foreseen:
    """A collective, its times, and the number of fragments that each of its connections sends, (connections,)."""

    collective: Collective
    times: CollectiveTimes
    sent: Numbers

    def counts(self) -> Iterator[tuple[Connection, int]]:
        """Every connection, and how many fragments it sends."""
        return zip(self.collective.connections, self.sent.tolist(), strict=True)

    def rates_bps(self, frame_bytes: int) -> dict[str, float]:
        """By host, the rate from its first frame to its last; 0 for one that sends no more than one."""
        sources = np.array([each.source for each in self.collective.connections], np.int64)
        frames = np.bincount(sources, self.sent, len(self.collective.ranks))
        seconds = self.times.ended_s - self.times.begun_s
        with np.errstate(divide="ignore", invalid="ignore"):
            rates = np.where(seconds > 0, 8 * frame_bytes * (frames - 1) / seconds, 0.0)
        return dict(zip(self.collective.ranks, rates.tolist(), strict=True))


def foresee(problem: Problem, collective: Collective) -> Foreseen:
    """What is foreseen of a collective of the problem's job."""
    job = next(job for job in problem.jobs if job.number == collective.job)
    count = problem.fragment.count(job.gradient_bytes)
    sizes = np.array([len(part) for part in collective.chunk_fragments(count)])
    ends = np.concatenate(([0], np.cumsum(sizes)))
    sent = [sum(int(ends[t.first + t.count] - ends[t.first]) for t in c.transfers) for c in collective.connections]
    times = collective_times(problem.fabric, problem.fragment, collective, count)
    return Foreseen(collective, times, np.array(sent, np.int64))


class Group(NamedTuple):
    """Transfers of one step of the same number of chunks, of different connections: (transfers,), (transfers, chunks).

    `adds` is 1 where chunks are added and 0 where they take a place.
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
    """The transfers of a step in groups; those of one connection come one after another."""
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
    """What has happened up to a step.

    `first` and `last`, (ranks, chunks): when a rank has the first and the last fragment of what it holds of a chunk.
    `free`, (ranks,): when a rank has sent the steps before. `busy`, (connections,): the same of a connection.
    `interval_s`: the time between two frames of a connection, which has the rate `rates_bps`. `overlaps`: whether ranks
    send by all of their connections at the same time, and are always free; `turn_s`: how long a frame of a connection
    then waits at most, until those of the rank's other connections have left.
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
        """Let the transfers of a step happen, all with what was held before the step."""
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
        """Note when each rank has sent its `frames` of a step, from when it was `ready`; both are (ranks,)."""
        connections = np.unique(np.concatenate([group.connection for group in groups]))
        rates_bps = np.bincount(self.source[connections], self.rates_bps[connections], len(self.free))
        sending = frames > 0
        own_s = frames[sending] * self.bits / rates_bps[sending]
        self.free[sending] = np.maximum(self.free, ready)[sending] + own_s

    def leave(self, group: Group) -> tuple[Times, Times]:
        """When the first and the last fragment of each chunk leave, (transfers, chunks); `inf` for empty chunks."""
        connection, source = group.connection, self.source[group.connection, None]
        size, interval_s = self.sizes[group.chunks], self.interval_s[connection, None]
        has, had = self.first[source, group.chunks], self.last[source, group.chunks]
        begin = np.maximum(self.free[source[:, 0]], self.busy[connection])[:, None]
        # When a chunk has left if only its own data is waited for; then all chunks before it are waited for, too.
        alone = np.where(size > 0, np.maximum(has + size * interval_s, had + interval_s), -np.inf)
        work = np.cumsum(size * interval_s, axis=1)
        end = work + np.maximum(np.maximum.accumulate(alone - work, axis=1), begin)
        started = np.maximum(np.concatenate((begin, end[:, :-1]), axis=1), has)
        self.busy[connection] = end[:, -1]
        empty = size == 0
        return np.where(empty, np.inf, started), np.where(empty, np.inf, end - interval_s)

    def ways(self, groups: list[Group], left: list[Times]) -> list[Times]:
        """How long the first fragments of chunks are on their way, (transfers, chunks), for each group of a step.

        `left`: when they leave. The fragments behind them take as long: at the planned rates they meet as the first.
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
        """Note when the chunks of a group have come, and when their ranks have sent them."""
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
