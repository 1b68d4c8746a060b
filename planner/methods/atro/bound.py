"""How many workers a cluster can carry at most when links have at most t flows: an upper bound, by counting.

Let u be an aggregator with eta ports. It sends one flow over one of them; K_u of the others lead to common switches and
bring up to t flows each, the rest bring one flow each, because workers and aggregators send no more. With p flows at
the PS, n workers need n - p = sum of (in_u - 1): what is not summed arrives. So, with K links from common switches to
aggregators, and F flows over them,

    n <= p + A (eta - 2) + F - K.

Common switches must take those F flows in, one per port. m of them that are joined by at least m - 1 links of their own
have m eta - 2 (m - 1) other ports, for K links and F entries; F <= t K, and K <= A m, because two switches have at most
one link. A PS at a common switch takes one more port, and p <= t of the entries; that switch is in layer 1 and sends to
nobody else, so K <= A (m - 1). A PS at an aggregator has p = 1. Dynamic programming finds the best division of the
common switches into such groups, and of the aggregators' ports among them.

Only clusters of one or two layers have their layers counted, and nothing says that flows must not run in circles. So
the bound may lie above what can be wired.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from inakit.planner.methods.atro.cluster import Cluster

Gains = NDArray[np.int64]
"""`gains[K]`: the most that F - K and the PS's flows add up to with K links to aggregators."""

IMPOSSIBLE = -(1 << 40)
"""The gain of what cannot be wired, low enough to stay lowest in sums."""


def most_workers_bound(cluster: Cluster, t: int) -> float:
    """A number of workers that no wiring with at most `t` flows on every link exceeds."""
    # Aggregators of one port lower the bound, so it is also tried without any.
    most = max(with_aggregators(cluster, t, number) for number in {0, cluster.aggregators})
    hosts = (cluster.aggregators + cluster.common) * cluster.ports - 1
    return max(0, min(most, hosts, few_layers(cluster, t)))


def few_layers(cluster: Cluster, t: int) -> float:
    """The most workers of a cluster with one or two layers; infinite with more layers.

    Two layers are the PS's switch, and under it switches with nothing but workers. An aggregator under the PS's switch
    brings `full` workers for one flow, a common switch no more than its link holds.
    """
    full = cluster.ports - 1
    if cluster.layers == 1:
        return max(full if cluster.aggregators else 0, min(t, full) if cluster.common else 0)
    if cluster.layers > 2:
        return inf
    at_aggregator = under(full, [full] * (cluster.aggregators - 1) + [min(t, full)] * cluster.common)
    feeders = [min(t, full)] * (cluster.common - 1)
    most = min(cluster.aggregators, t, full)
    at_common = (sums * full + min(t - sums, under(full - sums, feeders)) for sums in range(most + 1))
    return max(at_aggregator if cluster.aggregators else 0, max(at_common) if cluster.common else 0)


def under(ports: int, brought: list[int]) -> int:
    """The most workers that so many ports bring: a port brings one worker, or a switch with `brought` of them."""
    best = sorted(brought, reverse=True)[: max(0, ports)]
    return sum(max(1, workers) for workers in best) + max(0, ports - len(best))


def with_aggregators(cluster: Cluster, t: int, aggregators: int) -> int:
    """The bound where so many aggregators are in use."""
    width = aggregators * max(0, cluster.ports - 1) + 1
    free = [group(cluster, t, aggregators, m, width) for m in range(cluster.common + 1)]
    top = [group(cluster, t, aggregators, m, width, has_server=True) for m in range(cluster.common + 1)]
    best = divide(free)
    found = IMPOSSIBLE
    if aggregators:
        found = 1 + int(best[-1].max())
    for m in range(1, cluster.common + 1):
        found = max(found, int(combine(top[m], best[cluster.common - m]).max()))
    return found + aggregators * (cluster.ports - 2)


def group(cluster: Cluster, t: int, aggregators: int, m: int, width: int, *, has_server: bool = False) -> Gains:
    """The gains of m joined common switches, with or without the PS at one of them."""
    links = np.arange(width, dtype=np.int64)
    feeders = m - has_server
    if feeders < 0:
        return np.full(width, IMPOSSIBLE, dtype=np.int64)
    entries = m * cluster.ports - 2 * max(0, m - 1) - has_server - links
    gains = np.minimum(t * (links + has_server), entries) - links
    impossible = (entries < 0) | (links > aggregators * feeders)
    return np.where(impossible, IMPOSSIBLE, gains)


def divide(free: list[Gains]) -> list[Gains]:
    """`best[m]`: the gains of m common switches in the best division into groups."""
    best = [free[0]]
    for m in range(1, len(free)):
        best.append(np.max([free[m], *(combine(free[size], best[m - size]) for size in range(1, m))], axis=0))
    return best


def combine(first: Gains, second: Gains) -> Gains:
    """The best gains of two groups that together have K links."""
    width = len(first)
    sums = np.full(width, IMPOSSIBLE, dtype=np.int64)
    for links, gain in enumerate(first):
        if gain > IMPOSSIBLE // 2:
            sums[links:] = np.maximum(sums[links:], second[: width - links] + gain)
    return np.maximum(sums, IMPOSSIBLE)
