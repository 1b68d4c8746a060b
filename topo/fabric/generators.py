"""The fabrics of the papers' testbeds and figures, and `FABRICS`, the registry of all fabrics by name.

The generators of other modules can be imported from here too: `leaf_spine`, `fat_tree`, and the `with_...` variations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from inakit.topo.errors import unknown_name
from inakit.topo.fabric.clos import (
    DEFAULT_CAPACITY_BPS,
    Cable,
    fat_tree,
    leaf_spine,
    require_few_links,
    require_positive,
    wire,
)
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.rails import rail_pods
from inakit.topo.fabric.variations import (
    with_aggregators,
    with_capacities,
    with_capacity,
    with_delay,
    with_ina,
    with_name,
    with_pipelines,
    with_scale,
)

__all__ = [
    "FABRICS",
    "aro_figure1",
    "aro_figure3a",
    "fat_tree",
    "goat_testbed",
    "inart_testbed",
    "leaf_spine",
    "named_fabric",
    "pipelines_trap",
    "rail_pods",
    "units",
    "with_aggregators",
    "with_capacities",
    "with_capacity",
    "with_delay",
    "with_ina",
    "with_name",
    "with_pipelines",
    "with_scale",
]


def inart_testbed(capacity_bps: float = DEFAULT_CAPACITY_BPS) -> Fabric:
    """InArt's testbed (section 5.2.1, Fig. 1): switches v1, v2; workers w1..w6; `ps1`, `ps2` are its S1, S2.

    The placement follows from section 2.1. ATP aggregates at a worker's own ToR and sums W1..W4 on V1 and W5, W6 on
    V2, so those are their racks. V1 sums for S1, and W4's gradient reaches V2 on its way to S2, so S1 is under
    V1 and S2 under V2. Links and switches process 6 units and a PS 4; the PS's limit is here the capacity of the link
    into it, two thirds of the others'. With that LBMM reaches 4/3 units, ATP 2 and InArt 2.5.
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
    names = [f"w{i}" for i in range(1, 2 * workers_per_switch + 1)]
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
    """ARO's Figure 3a: the network of Figure 1 with INA on the four leaves, where ATP has it.

    With l1 through s0, and l2 and l3 through s1, the sum of l2 and the flow of w4 share the link s1-l0, so that the
    rate is 1/2 of a link's, although l0 then sums all three flows. No plan does better, because three flows into l0
    share two spines.
    """
    fabric = with_ina(aro_figure1(capacity_bps), ("l0", "l1", "l2", "l3"))
    return replace(fabric, name="aro-figure3a")


def pipelines_trap(capacity_bps: float = DEFAULT_CAPACITY_BPS) -> Fabric:
    """A leaf-spine where the faster spine's uplinks arrive in different pipelines.

    `ps` is under leaf1; leaf2, leaf3 and leaf4 have two workers each and sum their gradients. spine1 has the full
    capacity but receives each of those leaves in a pipeline of its own; spine2 has 4/5 of the capacity and receives
    all of them in one pipeline. A planner that ignores pipelines sums at spine1 and expects the rate 1 of a link, but
    the three sums stay apart and share leaf1-ps: 1/3. The best plan sums at spine2: 4/5. leaf1 has no INA, so that no
    switch repairs a wrong choice.
    """
    leaves = ("leaf1", "leaf2", "leaf3", "leaf4")
    racks = {"leaf1": ("ps",), "leaf2": ("w1", "w2"), "leaf3": ("w3", "w4"), "leaf4": ("w5", "w6")}
    cables = [Cable(host, leaf, capacity_bps) for leaf in leaves for host in racks[leaf]]
    for spine, share in (("spine1", 1.0), ("spine2", 0.8)):
        cables += [Cable(leaf, spine, capacity_bps * share) for leaf in leaves]
    tiers = dict.fromkeys(leaves, 1) | {"spine1": 2, "spine2": 2}
    fabric = wire("pipelines", (*(f"w{i}" for i in range(1, 7)), "ps"), tiers, cables)
    return with_port_groups(fabric, {"spine1": ((1, 2), (3,), (4,)), "spine2": ((1,), (2, 3, 4))})


def units(
    units: int = 4,
    servers: int = 4,
    ports: int | None = None,
    capacity_bps: float = DEFAULT_CAPACITY_BPS,
    port_bps: float | None = None,
) -> Fabric:
    """P4INC-AOI's data centre (section III): units `u1`, ..., each a switch and its servers `u1h1`, ...

    Units are joined by optical links of `port_bps`, that is by circuits that never change. Each unit has at most
    `ports` of them, to the nearest units on a ring first: 2 make a ring, and by default every two units are joined.
    `inakit.topo.fabric.optical_links` gives them an interconnect, whose circuits change.
    """
    require_positive(units=units, servers=servers, ports=1 if ports is None else ports)
    require_few_links(units * (servers + (units - 1 if ports is None else min(ports, units - 1)) // 2))
    names = [f"u{number}" for number in range(1, units + 1)]
    pairs = nearest_pairs(names, units - 1 if ports is None else ports)
    pools = {name: Pool(servers, capacity_bps) for name in names}
    return joined_units(f"units-{units}", pools, pairs, port_bps or capacity_bps)


@dataclass(frozen=True)
class Pool:
    """How many servers a unit has, and the capacity of each one's link."""

    servers: int
    capacity_bps: float


def joined_units(name: str, pools: Mapping[str, Pool], pairs: Iterable[tuple[str, str]], port_bps: float) -> Fabric:
    """Units by name, with their servers `<unit>h1`, ..., and an optical link for each pair."""
    inside = [
        Cable(f"{unit}h{n}", unit, pool.capacity_bps)
        for unit, pool in pools.items()
        for n in range(1, pool.servers + 1)
    ]
    circuits = [Cable(a, b, port_bps) for a, b in pairs]
    fabric = wire(name, [cable.a for cable in inside], dict.fromkeys(pools, 1), inside + circuits)
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


def with_port_groups(fabric: Fabric, groups: dict[str, tuple[tuple[int, ...], ...]]) -> Fabric:
    """The fabric with these ports in the pipelines of the named switches, and without INA on leaf1."""
    switches = (replace(s, pipelines=groups.get(s.name, s.pipelines), ina=s.name != "leaf1") for s in fabric.switches)
    return replace(fabric, switches=tuple(switches))


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
