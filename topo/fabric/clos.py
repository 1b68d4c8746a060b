"""Clos fabrics by rule: leaf-spine and fat-tree.

Hosts are `h1`, `h2`, ... in the order of their switches. Ports count from 1 in the order of the cables, so
that a switch's hosts come before its uplinks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from inakit.topo.errors import FabricError
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch, contiguous_pipelines

DEFAULT_CAPACITY_BPS = 20e6


@dataclass(frozen=True)
class Cable:
    """A link whose ports are not numbered yet. `down_bps` is the capacity from `b` to `a`, if it differs."""

    a: str
    b: str
    capacity_bps: float
    down_bps: float | None = None


def wire(name: str, hosts: Iterable[str], tiers: dict[str, int], cables: Iterable[Cable]) -> Fabric:
    """The fabric of `cables`: ports numbered in their order, one pipeline and INA on every switch.

    `tiers` gives the switches and their tiers. Raises `FabricError` when a cable ends nowhere.
    """
    known = set(tiers)
    used: Counter[str] = Counter()

    def next_port(node: str) -> int:
        used[node] += node in known
        return used[node]

    links = tuple(
        Link(c.a, c.b, next_port(c.a), next_port(c.b), c.capacity_bps, c.down_bps or c.capacity_bps) for c in cables
    )
    switches = tuple(Switch(switch, tier, contiguous_pipelines(used[switch], 1)) for switch, tier in tiers.items())
    return Fabric(name, tuple(map(Host, hosts)), switches, links)


def leaf_spine(
    leaves: int = 8,
    spines: int = 8,
    hosts_per_leaf: int = 4,
    *,
    capacity_bps: float = DEFAULT_CAPACITY_BPS,
    oversubscription: float | None = None,
) -> Fabric:
    """Every leaf joined to every spine. `oversubscription` is a leaf's host capacity over its uplink capacity.

    Host links have `capacity_bps`. Without `oversubscription` uplinks have it too; with it they have what the ratio
    leaves them.
    """
    require_positive(leaves=leaves, spines=spines, hosts_per_leaf=hosts_per_leaf)
    require_few_links(leaves * (spines + hosts_per_leaf))
    uplink_bps = uplink_capacity(hosts_per_leaf, spines, capacity_bps, oversubscription)
    leaf_names = [f"leaf{i}" for i in range(1, leaves + 1)]
    spine_names = [f"spine{i}" for i in range(1, spines + 1)]
    hosts = [f"h{i}" for i in range(1, leaves * hosts_per_leaf + 1)]
    down = [Cable(host, leaf_names[i // hosts_per_leaf], capacity_bps) for i, host in enumerate(hosts)]
    up = [Cable(leaf, spine, uplink_bps) for leaf in leaf_names for spine in spine_names]
    tiers = dict.fromkeys(leaf_names, 1) | dict.fromkeys(spine_names, 2)
    return wire(f"leafspine-{leaves}x{spines}", hosts, tiers, down + up)


MOST_PORTS = 128
"""The largest k of a fat-tree: a mistyped k must not fill the memory."""


def fat_tree(
    k: int = 4,
    *,
    hosts_per_edge: int | None = None,
    capacity_bps: float = DEFAULT_CAPACITY_BPS,
    oversubscription: float | None = None,
) -> Fabric:
    """A k-ary fat-tree: k pods of k/2 edge and k/2 aggregation switches, (k/2)² core switches.

    Oversubscribe by more than k/2 `hosts_per_edge`, or by slower uplinks: `oversubscription` is an edge
    switch's host capacity over its uplink capacity, and every link above the edge gets that uplink speed.
    """
    require_positive(k=k)
    if k > MOST_PORTS:
        raise FabricError(f"fat-tree with k = {k}: k is at most {MOST_PORTS}, which is {MOST_PORTS**3 // 4:,} hosts")
    if k % 2:
        raise FabricError(f"fat-tree with k = {k}: k must be even, try {k - 1 or 2} or {k + 1}")
    half = k // 2
    per_edge = half if hosts_per_edge is None else hosts_per_edge
    require_positive(hosts_per_edge=per_edge)
    require_few_links(k * half * (per_edge + k))
    uplink_bps = uplink_capacity(per_edge, half, capacity_bps, oversubscription)
    hosts = [f"h{i}" for i in range(1, k * half * per_edge + 1)]
    edges = [f"edge{pod}_{i}" for pod in range(1, k + 1) for i in range(1, half + 1)]
    down = [Cable(host, edges[i // per_edge], capacity_bps) for i, host in enumerate(hosts)]
    up = [Cable(a, b, uplink_bps) for a, b in fat_tree_uplinks(k)]
    return wire(f"fattree-{k}", hosts, fat_tree_tiers(k), down + up)


def fat_tree_tiers(k: int) -> dict[str, int]:
    """The switches of a k-ary fat-tree with their tiers: edge 1, aggregation 2, core 3."""
    pods = [(pod, i) for pod in range(1, k + 1) for i in range(1, k // 2 + 1)]
    edges = {f"edge{pod}_{i}": 1 for pod, i in pods}
    aggregations = {f"agg{pod}_{i}": 2 for pod, i in pods}
    return edges | aggregations | {f"core{i}": 3 for i in range(1, (k // 2) ** 2 + 1)}


def fat_tree_uplinks(k: int) -> Iterator[tuple[str, str]]:
    """The links between switches, lower end first: in every pod, aggregation switch i reaches the i-th k/2 cores."""
    half = k // 2
    for pod in range(1, k + 1):
        for edge in range(1, half + 1):
            yield from ((f"edge{pod}_{edge}", f"agg{pod}_{i}") for i in range(1, half + 1))
        for i in range(1, half + 1):
            yield from ((f"agg{pod}_{i}", f"core{(i - 1) * half + j}") for j in range(1, half + 1))


def uplink_capacity(hosts: int, uplinks: int, capacity_bps: float, oversubscription: float | None) -> float:
    """The capacity of each uplink of a switch whose hosts have `capacity_bps` each."""
    if oversubscription is None:
        return capacity_bps
    if not oversubscription > 0:
        raise FabricError(f"oversubscription {oversubscription:g}: it must be greater than 0; 1 is non-blocking")
    return hosts * capacity_bps / (uplinks * oversubscription)


MOST_LINKS = 2_000_000
"""The most links of a network that is made: a mistyped size must not fill the memory."""


def require_few_links(links: int) -> None:
    """Raise `FabricError` for a network of so many links that it would not fit into memory."""
    if links > MOST_LINKS:
        raise FabricError(f"a network of {links:,} links: at most {MOST_LINKS:,} are made, choose smaller sizes")


def require_positive(**sizes: int) -> None:
    """Raise `FabricError` for a size below 1; the keyword says what it is the size of."""
    for what, size in sizes.items():
        if size < 1:
            raise FabricError(f"{what} = {size}: at least 1 is expected")
