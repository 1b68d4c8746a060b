"""Generators of fabrics: Clos networks, pods on rails, the papers' testbeds; and `FABRICS`, their registry by name."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from inakit.topo.errors import FabricError, unknown_name
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch, contiguous_pipelines
from inakit.topo.fabric.variations import with_aggregators, with_ina, with_switches

# -- Clos fabrics: leaf-spine and fat-tree.
#
# Hosts are `h1`, `h2`, ... in the order of their switches. Ports count from 1 in the order of the cables, so that a
# switch's hosts come before its uplinks.

DEFAULT_CAPACITY_BPS = 20e6


@dataclass(frozen=True)
class Cable:
    """A link whose ports are not numbered yet. `down_bps` is the capacity from `b` to `a`, if it differs."""

    a: str
    b: str
    capacity_bps: float
    down_bps: float | None = None


def wire(name: str, hosts: Iterable[str], tiers: dict[str, int], cables: Iterable[Cable]) -> Fabric:
    """Return the fabric of `cables`: ports are numbered in their order, every switch has one pipeline and INA.

    `tiers` gives the switches and their tiers. Raises `FabricError` for a cable to an unknown node.
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
    """Return a fabric where every leaf is joined to every spine.

    `oversubscription` is a leaf's host capacity over its uplink capacity. Hosts' links have `capacity_bps`. Without
    `oversubscription` uplinks have the same capacity; otherwise the ratio sets it.
    """
    require_positive(leaves=leaves, spines=spines, hosts_per_leaf=hosts_per_leaf)
    require_few_links(leaves * (spines + hosts_per_leaf))
    uplink_bps = uplink_capacity(hosts_per_leaf, spines, capacity_bps, oversubscription)
    leaf_names, spine_names = numbered("leaf", leaves), numbered("spine", spines)
    hosts = numbered("h", leaves * hosts_per_leaf)
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
    hosts = numbered("h", k * half * per_edge)
    edges = [numbered(f"edge{pod}_", half) for pod in range(1, k + 1)]
    aggregations = [numbered(f"agg{pod}_", half) for pod in range(1, k + 1)]
    cores = numbered("core", half**2)
    every_edge = [edge for pod in edges for edge in pod]
    cables = [Cable(host, every_edge[i // per_edge], capacity_bps) for i, host in enumerate(hosts)]
    for lower, upper in zip(edges, aggregations, strict=True):
        cables += [Cable(edge, aggregation, uplink_bps) for edge in lower for aggregation in upper]
        # In every pod, aggregation switch i reaches the i-th k/2 cores.
        cables += [
            Cable(aggregation, core, uplink_bps)
            for i, aggregation in enumerate(upper)
            for core in cores[i * half : (i + 1) * half]
        ]
    tiers = dict.fromkeys(every_edge, 1) | {name: 2 for pod in aggregations for name in pod} | dict.fromkeys(cores, 3)
    return wire(f"fattree-{k}", hosts, tiers, cables)


def numbered(prefix: str, count: int) -> list[str]:
    """`count` names that begin with `prefix` and end with a number from 1."""
    return [f"{prefix}{number}" for number in range(1, count + 1)]


def uplink_capacity(hosts: int, uplinks: int, capacity_bps: float, oversubscription: float | None) -> float:
    """The capacity of each uplink of a switch whose hosts have `capacity_bps` each."""
    if oversubscription is None:
        return capacity_bps
    if not oversubscription > 0:
        raise FabricError(f"oversubscription {oversubscription:g}: it must be greater than 0; 1 is non-blocking")
    return hosts * capacity_bps / (uplinks * oversubscription)


MOST_LINKS = 2_000_000
"""The highest number of links of a generated network: a mistyped size must not fill the memory."""


def require_few_links(links: int) -> None:
    """Raise `FabricError` for a network with too many links for the memory."""
    if links > MOST_LINKS:
        raise FabricError(f"a network of {links:,} links: at most {MOST_LINKS:,} are made, choose smaller sizes")


def require_positive(**sizes: int) -> None:
    """Raise `FabricError` for a size below 1; the keyword is the size's name in the message."""
    for what, size in sizes.items():
        if size < 1:
            raise FabricError(f"{what} = {size}: at least 1 is expected")


# -- Pods of GPU servers on rails, as in DGX SuperPODs: NIC i of every server of a pod is joined to rail switch i.

NVLINK_SHARE = 9
"""The ratio of a GPU's NVLink to its NIC: 3.6 Tbit/s per direction to 400 Gbit/s, as in a DGX H100."""


def rail_pods(
    pods: int = 2,
    servers: int = 2,
    gpus: int = 8,
    spines: int | None = None,
    *,
    capacity_bps: float = DEFAULT_CAPACITY_BPS,
    nvlink_bps: float | None = None,
) -> Fabric:
    """Each pod has `servers` with `gpus` each, and `gpus` rail switches; every rail switch is joined to every spine.

    A GPU is a host under its server's NVLink switch, through which it reaches the server's NICs, one per rail. NICs
    have `capacity_bps`. By default there are as many `spines` as servers in a pod, which is non-blocking.
    """
    spines = servers if spines is None else spines
    require_positive(pods=pods, servers=servers, gpus=gpus, spines=spines)
    require_few_links(pods * gpus * (2 * servers + spines))
    nvlink = capacity_bps * NVLINK_SHARE if nvlink_bps is None else nvlink_bps
    tops = numbered("spine", spines)
    rails = {pod: numbered(f"rail{pod}_", gpus) for pod in range(1, pods + 1)}
    nvswitches = [(pod, name) for pod in rails for name in numbered(f"nvswitch{pod}_", servers)]
    hosts = numbered("h", len(nvswitches) * gpus)
    inside = [Cable(host, nvswitches[i // gpus][1], nvlink) for i, host in enumerate(hosts)]
    nics = [Cable(nvswitch, rail, capacity_bps) for pod, nvswitch in nvswitches for rail in rails[pod]]
    above = [Cable(rail, top, capacity_bps) for own in rails.values() for rail in own for top in tops]
    tiers = {name: 1 for _, name in nvswitches} | {rail: 2 for own in rails.values() for rail in own}
    name = f"rails-{pods}x{servers}x{gpus}"
    return wire(name, hosts, tiers | dict.fromkeys(tops, 3), inside + nics + above)


# -- The fabrics of the papers' testbeds and figures.


def inart_testbed(capacity_bps: float = DEFAULT_CAPACITY_BPS) -> Fabric:
    """InArt's testbed (section 5.2.1, Fig. 1): switches v1, v2; workers w1..w6; `ps1`, `ps2` are its S1, S2.

    The placement follows from section 2.1. ATP aggregates at a worker's own ToR and sums W1..W4 on V1 and W5, W6 on V2,
    so those are their racks. V1 sums for S1, and W4's gradient reaches V2 on its way to S2, so S1 is under V1 and S2
    under V2. Links and switches process 6 units and a PS 4; here the PS's limit is the capacity of the link into it,
    two thirds of the others'. On this network LBMM reaches 4/3 units, ATP 2 and InArt 2.5.
    """
    workers = {"v1": ("w1", "w2", "w3", "w4"), "v2": ("w5", "w6")}
    cables = [Cable(worker, switch, capacity_bps) for switch, rack in workers.items() for worker in rack]
    cables += [Cable(ps, switch, capacity_bps, capacity_bps * 4 / 6) for ps, switch in (("ps1", "v1"), ("ps2", "v2"))]
    cables.append(Cable("v1", "v2", capacity_bps))
    hosts = (*workers["v1"], *workers["v2"], "ps1", "ps2")
    fabric = wire("inart-testbed", hosts, {"v1": 1, "v2": 1}, cables)
    return with_aggregators(fabric, rate_bps=capacity_bps)


def goat_testbed(workers_per_switch: int = 4, capacity_bps: float = DEFAULT_CAPACITY_BPS) -> Fabric:
    """GOAT's testbed (section V-B, Fig. 2a): workers under s1 and s2, the PS under s3.

    The three switches form a triangle, which follows from the overhead in the paper's example: GOAT's 13
    transmissions are five from S1, five from S2 and three from S3, so S1 and S2 exchange A3, A4, B1 and B2 directly,
    not through S3. Fig. 2a has two workers per switch, the testbed four.
    """
    names = numbered("w", 2 * workers_per_switch)
    cables = [Cable(name, "s1" if i < workers_per_switch else "s2", capacity_bps) for i, name in enumerate(names)]
    pairs = (("ps", "s3"), ("s1", "s3"), ("s2", "s3"), ("s1", "s2"))
    cables += [Cable(a, b, capacity_bps) for a, b in pairs]
    return wire("goat-testbed", [*names, "ps"], {"s1": 1, "s2": 1, "s3": 1}, cables)


def aro_figure1(capacity_bps: float = DEFAULT_CAPACITY_BPS) -> Fabric:
    """ARO's Figure 1: leaves l0..l3, spines s0, s1, workers w0..w4, `ps` under l0; INA on l1, l2 and s1.

    The placement follows from section II. GRID brings all flows to L1, for which "W2, W3, and W4" must climb a spine
    (Fig. 3b), so W0 and W1 are under L1. In Fig. 1b W0..W3 pass several aggregators, and of those only L1, L2
    and S1 exist, so W2 and W3 are under L2, and W4, which passes S1 only, is under L3. Rates in parts of a link's:

    - without INA five flows share l0-ps: 1/5;
    - in Fig. 1b all leaves send through s1, which sums the sums of l1 and l2 and the flow of w4: 1;
    - in Fig. 3c (AggTree) l1 and l3 send through s0, and l2 through s1: three flows share l0-ps: 1/3.
    """
    racks = {"l0": ("ps",), "l1": ("w0", "w1"), "l2": ("w2", "w3"), "l3": ("w4",)}
    cables = [Cable(host, leaf, capacity_bps) for leaf, rack in racks.items() for host in rack]
    cables += [Cable(leaf, spine, capacity_bps) for leaf in racks for spine in ("s0", "s1")]
    tiers = dict.fromkeys(racks, 1) | {"s0": 2, "s1": 2}
    fabric = wire("aro-figure1", (*(f"w{i}" for i in range(5)), "ps"), tiers, cables)
    return with_ina(fabric, ("l1", "l2", "s1"))


def aro_figure3a(capacity_bps: float = DEFAULT_CAPACITY_BPS) -> Fabric:
    """ARO's Figure 3a: the network of Figure 1 with INA on the four leaves, as ATP places it.

    With l1 through s0, and l2 and l3 through s1, the sum of l2 and the flow of w4 share the link s1-l0, so that the
    rate is 1/2 of a link's, although l0 then sums all three flows. No plan does better, because three flows into l0
    share two spines.
    """
    fabric = with_ina(aro_figure1(capacity_bps), ("l0", "l1", "l2", "l3"))
    return replace(fabric, name="aro-figure3a")


def pipelines_trap(capacity_bps: float = DEFAULT_CAPACITY_BPS) -> Fabric:
    """A leaf-spine fabric where the faster spine's uplinks arrive in different pipelines.

    `ps` is under leaf1; leaf2, leaf3 and leaf4 have two workers each and sum their gradients. spine1 has the full
    capacity but receives each of those leaves in a pipeline of its own; spine2 has 4/5 of the capacity and receives all
    of them in one pipeline. A planner that ignores pipelines sums at spine1 and expects the rate 1 of a link, but the
    three sums stay apart and share leaf1-ps: 1/3. The best plan sums at spine2: 4/5. leaf1 has no INA, so that no
    switch repairs a wrong choice.
    """
    leaves = ("leaf1", "leaf2", "leaf3", "leaf4")
    racks = {"leaf1": ("ps",), "leaf2": ("w1", "w2"), "leaf3": ("w3", "w4"), "leaf4": ("w5", "w6")}
    cables = [Cable(host, leaf, capacity_bps) for leaf in leaves for host in racks[leaf]]
    for spine, share in (("spine1", 1.0), ("spine2", 0.8)):
        cables += [Cable(leaf, spine, capacity_bps * share) for leaf in leaves]
    tiers = dict.fromkeys(leaves, 1) | {"spine1": 2, "spine2": 2}
    fabric = wire("pipelines", (*numbered("w", 6), "ps"), tiers, cables)
    groups = {"spine1": ((1, 2), (3,), (4,)), "spine2": ((1,), (2, 3, 4))}
    return with_switches(fabric, lambda s: {"pipelines": groups.get(s.name, s.pipelines), "ina": s.name != "leaf1"})


def units(
    units: int = 4,
    servers: int = 4,
    ports: int | None = None,
    capacity_bps: float = DEFAULT_CAPACITY_BPS,
    port_bps: float | None = None,
) -> Fabric:
    """P4INC-AOI's data centre (section III): units `u1`, ..., each a switch and its servers `u1h1`, ...

    Units are joined by optical links of `port_bps`, which are circuits that never change. Each unit has at most `ports`
    of them, to the nearest units on a ring first: with 2 they form a ring, and by default every two units are joined.
    `inakit.topo.fabric.circuits` gives the units an interconnect, whose circuits change.
    """
    require_positive(units=units, servers=servers, ports=1 if ports is None else ports)
    most = units - 1 if ports is None else ports
    require_few_links(units * (servers + min(most, units - 1) // 2))
    pools = {name: Pool(servers, capacity_bps) for name in numbered("u", units)}
    return joined_units(f"units-{units}", pools, nearest_pairs(list(pools), most), port_bps or capacity_bps)


@dataclass(frozen=True)
class Pool:
    """A unit's servers, and the capacity of each server's link.

    With `spines` it is a pod, in which the unit's own switch is at the egress: its `leaves` with their part of the
    servers have a link of `uplink_bps` to each spine, and a spine has one of `egress_bps` to the egress.
    """

    servers: int
    capacity_bps: float
    leaves: int = 1
    spines: int = 0
    uplink_bps: float = 0.0
    egress_bps: float = 0.0

    def tiers(self, unit: str) -> dict[str, int]:
        """The names and tiers of its switches, the unit's own last."""
        if not self.spines:
            return {unit: 1}
        inside = dict.fromkeys(numbered(f"{unit}l", self.leaves), 1) | dict.fromkeys(
            numbered(f"{unit}s", self.spines), 2
        )
        return inside | {unit: 3}

    def cables(self, unit: str) -> Iterator[Cable]:
        """Its links inside."""
        leaves = numbered(f"{unit}l", self.leaves) if self.spines else [unit]
        for number, host in enumerate(numbered(f"{unit}h", self.servers)):
            yield Cable(host, leaves[number * len(leaves) // self.servers], self.capacity_bps)
        for spine in numbered(f"{unit}s", self.spines):
            yield from (Cable(leaf, spine, self.uplink_bps) for leaf in leaves)
            yield Cable(spine, unit, self.egress_bps)


def joined_units(name: str, pools: Mapping[str, Pool], pairs: Iterable[tuple[str, str]], port_bps: float) -> Fabric:
    """Units by name, with their servers `<unit>h1`, ..., and an optical link for each pair.

    A pod's leaves are `<unit>l1`, ..., its spines `<unit>s1`, ....
    """
    inside = [cable for unit, pool in pools.items() for cable in pool.cables(unit)]
    circuits = [Cable(a, b, port_bps) for a, b in pairs]
    hosts = [host for unit, pool in pools.items() for host in numbered(f"{unit}h", pool.servers)]
    tiers = {switch: tier for unit, pool in pools.items() for switch, tier in pool.tiers(unit).items()}
    fabric = wire(name, hosts, tiers, inside + circuits)
    return replace(fabric, links=tuple(replace(link, optical=link.a in pools) for link in fabric.links))


def nearest_pairs(names: Sequence[str], most: int) -> list[tuple[str, str]]:
    """Pairs of names on a ring, nearer ones first, none of them in more than `most`."""
    left = dict.fromkeys(names, most)
    found: list[tuple[str, str]] = []
    for step in range(1, len(names) // 2 + 1):
        for place, a in enumerate(names):
            b = names[(place + step) % len(names)]
            if left[a] and left[b] and (b, a) not in found:
                found.append((a, b))
                left[a], left[b] = left[a] - 1, left[b] - 1
    return found


FABRICS: dict[str, Callable[..., Fabric]] = {
    "fattree": fat_tree,
    "leafspine": leaf_spine,
    "inart-testbed": inart_testbed,
    "goat-testbed": goat_testbed,
    "aro-figure1": aro_figure1,
    "aro-figure3a": aro_figure3a,
    "pipelines": pipelines_trap,
    "units": units,
    "rails": rail_pods,
}


def named_fabric(name: str, **options: Any) -> Fabric:
    """The fabric `name` of the registry. Raises `InputError` for an unknown name or option."""
    if name not in FABRICS:
        raise unknown_name("fabric", name, FABRICS)
    known = inspect.signature(FABRICS[name]).parameters
    for option in options:
        if option not in known:
            raise unknown_name(f"option of fabric '{name}'", option, known)
    return FABRICS[name](**options)
