"""A run over time, from followed packets: the use of links, the slots of switches, the life of fragments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.plan import Plan
from inakit.topo.virtual.engine import NO_HOP, PS_PER_S, LinkSamples
from inakit.traffic.endpoints.streams import index_of, tree_key
from inakit.traffic.sockets.ports import BoolArray, FloatArray, IntArray
from inakit.traffic.wire.packet_format import Kind

# -- The links of a network over time: their utilisation, and their queues.

NAMED = 5
"""The number of most loaded links, and of deepest queues, in `run.json`."""


@dataclass(frozen=True)
class LinkSeries:
    """Series of all links. `links` has the two ends of each one and `rates_bps` its rate, in the order of `samples`."""

    links: Sequence[tuple[str, str]]
    rates_bps: Sequence[float]
    samples: LinkSamples

    @property
    def interval_s(self) -> float:
        return self.samples.interval_ps / PS_PER_S

    @cached_property
    def starts_s(self) -> NDArray[np.float64]:
        """The begin of each interval, (points,), counted from the start of the network."""
        points = self.samples.utilisation.shape[1]
        return np.arange(points, dtype=np.float64) * self.interval_s

    @cached_property
    def rates(self) -> NDArray[np.float64]:
        """The sending rate of each link in each interval, in bit/s, (links, points)."""
        rates: NDArray[np.float64] = self.samples.utilisation * np.array(self.rates_bps)[:, None]
        return rates

    def most_loaded(self, count: int) -> list[int]:
        """The links with the highest mean utilisation, the highest first."""
        mean = self.samples.utilisation.mean(axis=1)
        return [int(link) for link in np.argsort(-mean, kind="stable")[:count] if mean[link]]

    def deepest(self, count: int) -> list[int]:
        """The links with the longest queues; ties are ordered by the mean queue."""
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
        """The most loaded links and the deepest queues, for `run.json`."""
        return {
            "interval_s": self.interval_s,
            "most_loaded": [self.summary(link) for link in self.most_loaded(NAMED)],
            "deepest_queues": [self.summary(link) for link in self.deepest(NAMED)],
        }

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield the rows of `LINK_COLUMNS` for every link that sent packets, one for each interval."""
        starts = [f"{start:.9g}" for start in self.starts_s]
        texts = lru_cache(1 << 14)(lambda values: tuple([f"{value:.6g}" for value in values]))  # links are often alike
        figures = (self.rates, self.samples.utilisation, self.samples.mean_queue, self.samples.most_queue)
        for link in np.flatnonzero(self.samples.utilisation.any(axis=1)).tolist():
            rows = zip(*(each[link].tolist() for each in figures), strict=True)
            for start, values in zip(starts, map(texts, rows), strict=True):
                yield start, *self.links[link], *values

    def worker_rows(self, workers: Sequence[str]) -> Iterator[tuple[str, ...]]:
        """Yield a row for each interval with its begin and the sending rate of each worker."""
        rates = self.rates[self.uplinks(workers)]
        for start, values in zip(self.starts_s, rates.T.tolist(), strict=True):
            yield f"{start:.9g}", *(f"{value:.6g}" for value in values)

    def uplinks(self, hosts: Sequence[str]) -> list[int]:
        """The number of the link by which each host sends."""
        by_host = {end: number for number, (end, _) in enumerate(self.links)}
        return [by_host[host] for host in hosts]


LINK_COLUMNS = ("at_s", "from", "to", "rate_bps", "utilisation", "queue_mean_packets", "queue_most_packets")


# -- The number of fragments in each switch's slots over time, from the followed fragments of a run.
#
# A switch holds a fragment from the arrival of its first gradient until the sum leaves. A fragment without a leaving
# sum (evicted, or forwarded unsummed) counts until the last of its packets has arrived anywhere.


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
    """Whether each node aggregates in each tree, (trees, nodes)."""
    number = {name: place for place, name in enumerate(names)}
    table = np.zeros((len(followed.trees), len(names)), np.bool_)
    for row, (_, tree) in enumerate(followed.trees):
        table[row, [number[aggregator.switch] for aggregator in tree.aggregators]] = True
    return table


def held_fragments(followed: FollowedFragments, sums: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
    """For each fragment and each switch that sums it: the number of the switch, and the begin and end of summing."""
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
    """The sum, at each of `at_ps`, of the times since all earlier moments."""
    ordered = np.sort(moments_ps)
    over = np.searchsorted(ordered, at_ps)
    total = np.concatenate(([0], np.cumsum(ordered)))
    passed: FloatArray = over * at_ps - total[over]
    return passed


# -- The times of fragments: the parts of each fragment's life, which add up to it exactly.
#
# A fragment's life begins when the first of its workers sends its gradient, and ends when the last of them has the
# result. It is divided along the critical path:
#
# - `slots`: from the first worker's sending to the sending of the worker whose packet completed the sum. Until that
#   packet comes, slots (or the PS) hold the sums of the quicker workers. A lost packet that is sent again counts
#   here.
# - `sending`, `queues`, `delay`: the way of that packet, and of the sums that its arrivals made aggregators send, to
#   the root: the time that links need for its bits, that it waits for a link, and the delays of links and switches.
# - `server`: from the arrival that completed the sum to the sending of the result; in a switch that is the root,
#   none.
# - `result_sending`, `result_queues`, `result_delay`: the way of the result to the worker that gets it last.
#
# Where a packet left a switch because of a packet of another fragment (it was evicted, or held back as a fault on
# demand), the time before it left is part of `slots`. All times are whole picoseconds.

PARTS = ("slots", "sending", "queues", "delay", "server", "result_sending", "result_queues", "result_delay")
RESULT_PARTS = PARTS[5:]
FRAGMENT_COLUMNS = ("job", "tree", "seq", "started_ps", "waited_for", *(f"{part}_ps" for part in PARTS), "total_ps")
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class FragmentTimes:
    """The followed fragments of a run whose result reached every worker.

    `job`, `tree`, `seq` and `started_ps` are (fragments,), `parts_ps` is (fragments, parts). `waited_for`: the sender
    of the packet that completed the sum. `incomplete`: the number of followed fragments that did not end.
    """

    job: IntArray
    tree: IntArray
    seq: IntArray
    started_ps: IntArray
    parts_ps: IntArray
    waited_for: tuple[str, ...]
    incomplete: int

    @property
    def total_ps(self) -> IntArray:
        """The duration of each fragment, (fragments,)."""
        total: IntArray = self.parts_ps.sum(axis=1)
        return total

    def as_json(self) -> dict[str, Any]:
        """The figures of each part, of the total, and of the result's way, in seconds, for `run.json`."""
        parts = dict(zip(PARTS, self.parts_ps.T, strict=True))
        parts |= {"result": sum(parts[name] for name in RESULT_PARTS), "total": self.total_ps}
        return {
            "followed": len(self.seq),
            "incomplete": self.incomplete,
            "seconds": {name: figures(part) for name, part in parts.items()} if len(self.seq) else {},
        }

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of `FRAGMENT_COLUMNS`, one for each fragment."""
        names = (each.tolist() for each in (self.job, self.tree, self.seq, self.started_ps))
        for *name, waited_for, parts, total in zip(
            *names, self.waited_for, self.parts_ps.tolist(), self.total_ps.tolist(), strict=True
        ):
            yield *name, waited_for, *parts, total


def figures(part_ps: IntArray) -> dict[str, float]:
    """Mean, median, 99th percentile and maximum of times, in seconds."""
    return {
        "mean": float(part_ps.mean()) / PS_PER_S,
        "median": float(np.median(part_ps)) / PS_PER_S,
        "p99": float(np.percentile(part_ps, 99)) / PS_PER_S,
        "max": float(part_ps.max()) / PS_PER_S,
    }


NO_FRAGMENTS = np.zeros(0, np.int64)
NO_TIMES = FragmentTimes(
    *(NO_FRAGMENTS, NO_FRAGMENTS, NO_FRAGMENTS, NO_FRAGMENTS), np.zeros((0, len(PARTS)), np.int64), (), 0
)
"""The times of an empty set of fragments."""


def times_of(followed: FollowedFragments, links: Sequence[tuple[str, str]]) -> FragmentTimes:
    """The times of fragments that were followed. `links` has the two ends of every link."""
    hops = followed.hops
    last = followed.last_results()
    first_hop, result = followed.way_of(last)
    completing = followed.completing(first_hop)
    ended = completing >= 0
    last, first_hop, result, completing = last[ended], first_hop[ended], result[ended], completing[ended]
    sender, gradient = followed.way_of(completing)
    fragment, given = followed.fragment[last], hops["given"]
    started = followed.first_given(followed.is_sent_gradient)[fragment]
    waits, server = given[sender] - started, given[first_hop] - hops["arrives"][completing]
    job, tree, seq = (hops["noted"][name][last].astype(np.int64) for name in ("job", "tree", "seq"))
    return FragmentTimes(
        *(job, tree, seq, started),
        parts_ps=np.column_stack((waits, gradient, server, result)),
        waited_for=tuple(links[link][0] for link in hops["link"][sender].tolist()),
        incomplete=followed.count - len(last),
    )


class FollowedFragments:
    """Hops (`inakit.topo.virtual.engine`) as arrays (hops,), and their fragments in a plan of trees.

    The recorded bytes of each packet are its INA header.

    `fragment`: the number of each hop's fragment, -1 for a packet outside the plan's trees. `above`: the hop whose
    arrival made a node send this packet of the same fragment and kind; -1 if there is none. `turned`: the same for a
    result that a gradient's arrival made a switch send. `parts`: a hop's times of sending, in a queue, and of delay,
    (hops, 3). `workers` and `servers`: a tree's workers, (trees, nodes), and its PS, (trees,).
    """

    def __init__(self, hops: NDArray[np.void], links: Sequence[tuple[str, str]], plan: Plan, until_ps: int) -> None:
        self.hops, ina = hops, hops["noted"]
        nodes = {name: number for number, name in enumerate(dict.fromkeys(end for ends in links for end in ends))}
        ends = np.array([[nodes[end] for end in link] for link in links], np.int64).reshape(-1, 2)
        self.sender, self.receiver = ends[hops["link"]].T
        self.nodes = len(nodes)
        trees = [(int(tree_key(planned.job, planned.tree.number)), planned.tree) for planned in plan.trees]
        self.trees = sorted(trees, key=lambda each: each[0])
        self.tree = index_of(
            np.array([key for key, _ in self.trees]), tree_key(ina["job"].astype(np.int64), ina["tree"])
        )
        self.fragment, self.count = numbered(self.tree << 32 | ina["seq"].astype(np.int64), self.tree >= 0)
        self.kind = ina["kind"].astype(np.int64)
        self.arrived: BoolArray = (hops["arrives"] >= 0) & (hops["arrives"] <= until_ps) & (self.fragment >= 0)
        cause = np.where(hops["cause"] == NO_HOP, -1, hops["cause"].astype(np.int64))
        cause[self.fragment[cause] != self.fragment] = -1
        turned = (self.kind == Kind.RESULT) & (self.kind[cause] == Kind.GRADIENT)
        self.above, self.turned = np.where(self.kind[cause] == self.kind, cause, -1), np.where(turned, cause, -1)
        # The time for which a node kept the packet before it gave it to the link is a part of the delay.
        given, starts, left, arrives = (hops[name] for name in ("given", "starts", "left", "arrives"))
        kept = np.where(self.above >= 0, given - arrives[self.above], 0)
        self.parts = np.column_stack((left - starts, starts - given, arrives - left + kept))
        self.workers = np.zeros((len(self.trees), len(nodes)), np.bool_)
        for number, (_, tree) in enumerate(self.trees):
            self.workers[number, [nodes[worker] for worker in tree.workers.values()]] = True
        self.servers = np.array([nodes[tree.server] if tree.server else -1 for _, tree in self.trees])

    @property
    def is_sent_gradient(self) -> BoolArray:
        """Whether each hop is a gradient sent by a worker of its tree."""
        own = self.workers[self.tree, self.sender]
        sent: BoolArray = (self.kind == Kind.GRADIENT) & (self.fragment >= 0) & (self.above < 0) & own
        return sent

    @property
    def is_sent_result(self) -> BoolArray:
        """Whether each hop is a result sent by a PS."""
        sent: BoolArray = (self.kind == Kind.RESULT) & (self.fragment >= 0) & (self.above < 0) & (self.turned < 0)
        return sent

    def first_given(self, which: BoolArray) -> IntArray:
        """The time at which a link got the first of some hops of each fragment, (fragments,); `NEVER` without one."""
        first = np.full(self.count, NEVER)
        np.minimum.at(first, self.fragment[which], self.hops["given"][which])
        return first

    def last_results(self) -> IntArray:
        """The hop that brings the last result, for each fragment whose result reached every worker.

        A worker's duplicates do not count; a sum of more than 32 bits comes in two parts.
        """
        arrives, part = self.hops["arrives"], self.hops["noted"]["part"]
        mine = np.flatnonzero(self.arrived & (self.kind == Kind.RESULT) & self.workers[self.tree, self.receiver])
        key = (self.fragment[mine] * self.nodes + self.receiver[mine]) << 8 | part[mine]
        got = ends_of_groups(mine, key, arrives[mine])[0]
        by_fragment = self.fragment[got]
        workers = np.bincount(by_fragment[part[got] == 0], minlength=self.count)
        last = ends_of_groups(got, by_fragment, arrives[got])[1]
        sizes = np.array([len(tree.workers) for _, tree in self.trees])
        complete: IntArray = last[workers[self.fragment[last]] == sizes[self.tree[last]]]
        return complete

    def way_of(self, last: IntArray) -> tuple[IntArray, IntArray]:
        """For each hop, the first hop of the path that ends with it, and the parts of that path, (hops, 3)."""
        first, parts, going = last.copy(), np.zeros((len(last), 3), np.int64), np.arange(len(last))
        while going.size:
            parts[going] += self.parts[first[going]]
            above = self.above[first[going]]
            going = going[above >= 0]
            first[going] = above[above >= 0]
        return first, parts

    def completing(self, results: IntArray) -> IntArray:
        """The hop of the gradient that completed the sum of each result, given by its first hop; -1 if none is known.

        At a PS this is the last gradient that arrived before it first sent the result.
        """
        answered = self.first_given(self.is_sent_result)
        came = self.arrived & (self.kind == Kind.GRADIENT) & (self.receiver == self.servers[self.tree])
        came &= self.hops["arrives"] <= answered[self.fragment]
        some = np.flatnonzero(came)
        last = ends_of_groups(some, self.fragment[some], self.hops["arrives"][some])[1]
        found = np.full(self.count, -1)
        found[self.fragment[last]] = last
        turned = self.turned[results]
        return np.where(turned >= 0, turned, found[self.fragment[results]])


def numbered(keys: IntArray, known: BoolArray) -> tuple[IntArray, int]:
    """A number from 0 for each distinct key under the mask `known`, -1 for the others; and their count."""
    numbers = np.full(len(keys), -1)
    different, numbers[known] = np.unique(keys[known], return_inverse=True)
    return numbers, len(different)


def ends_of_groups(items: IntArray, group: IntArray, value: IntArray) -> tuple[IntArray, IntArray]:
    """The items with the least and with the greatest value of each group, in the groups' order."""
    order = np.lexsort((value, group))
    sorted_group = group[order]
    changes = sorted_group[1:] != sorted_group[:-1]
    edge = np.ones(min(1, len(order)), np.bool_)
    return items[order[np.concatenate((edge, changes))]], items[order[np.concatenate((changes, edge))]]
