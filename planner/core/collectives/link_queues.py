"""When frames of connections that send in the same step arrive: they wait for one another at links that they share.

Links send what comes first first. A link of a path is a hop: up by tiers, across, and down again by tiers, so that
frames pass all links of one hop before any link of the next.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.collectives.collective import Connection
from inakit.topo.fabric.fabric import Fabric

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
    return [hop_of(np.array(rows[key]), len(connections)) for key in sorted(rows)]


def direction(tier: int, next_tier: int) -> tuple[int, int]:
    """Up, across or down, and how far up or down: a key that sorts the links of a path by their order."""
    if tier == next_tier:
        return ACROSS, 0
    return (UP, tier) if tier < next_tier else (DOWN, -tier)


def hop_of(rows: Times, connections: int) -> Hop:
    """The hop of rows (connection, link, send_s, before_s, after_s)."""
    place = rows[:, 0].astype(np.int64)
    link, (send_s, before_s, after_s) = np.full(connections, NONE, np.int64), np.zeros((3, connections))
    link[place] = rows[:, 1].astype(np.int64)
    send_s[place], before_s[place], after_s[place] = rows[:, 2:].T
    return Hop(link, send_s, before_s, after_s)


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
