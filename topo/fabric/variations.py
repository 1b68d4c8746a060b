"""Variations of a fabric: pure functions that return a changed copy. They compose.

`with_ina(with_pipelines(fat_tree(4), 2), share=0.5, seed=1)` has two pipelines per switch and INA on ten of twenty.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from inakit.topo.errors import FabricError, unknown_name
from inakit.topo.fabric.fabric import Chip, Fabric, Link, Switch, contiguous_pipelines


def with_links(fabric: Fabric, change: Callable[[Link], dict[str, Any]]) -> Fabric:
    """Return the fabric with the fields that `change` returns for each link."""
    return replace(fabric, links=tuple(replace(link, **change(link)) for link in fabric.links))


def with_switches(fabric: Fabric, change: Callable[[Switch], dict[str, Any]]) -> Fabric:
    """Return the fabric with the fields that `change` returns for each switch."""
    return replace(fabric, switches=tuple(replace(switch, **change(switch)) for switch in fabric.switches))


def with_name(fabric: Fabric, name: str) -> Fabric:
    return replace(fabric, name=name)


def with_capacity(fabric: Fabric, capacity_bps: float) -> Fabric:
    """Every link with the same capacity in both directions."""
    return with_links(fabric, lambda _: {"capacity_ab_bps": capacity_bps, "capacity_ba_bps": capacity_bps})


def with_capacities(fabric: Fabric, low_bps: float, high_bps: float, seed: int) -> Fabric:
    """Heterogeneous capacities: each link's is drawn uniformly from [low, high] and holds in both directions."""
    if not 0 < low_bps <= high_bps:
        raise FabricError(f"capacities from {low_bps:g} to {high_bps:g} bit/s: 0 < low <= high is expected")
    draw = random.Random(seed)

    def drawn(_: Link) -> dict[str, Any]:
        bps = draw.uniform(low_bps, high_bps)
        return {"capacity_ab_bps": bps, "capacity_ba_bps": bps}

    return with_links(fabric, drawn)


def with_scale(fabric: Fabric, factor: float) -> Fabric:
    """Every rate multiplied by `factor`: 1/5000 turns 100 Gbit/s into 20 Mbit/s."""
    if not factor > 0:
        raise FabricError(f"scale {factor:g}: it must be greater than 0")
    links = (
        replace(link, capacity_ab_bps=link.capacity_ab_bps * factor, capacity_ba_bps=link.capacity_ba_bps * factor)
        for link in fabric.links
    )
    switches = (
        replace(
            s,
            aggregation_rate_bps=s.aggregation_rate_bps and s.aggregation_rate_bps * factor,
            chip=s.chip and s.chip.at_scale(factor),
        )
        for s in fabric.switches
    )
    return replace(fabric, links=tuple(links), switches=tuple(switches))


def with_delay(fabric: Fabric, delay_s: float) -> Fabric:
    return with_links(fabric, lambda _: {"delay_s": delay_s})


def with_ina(
    fabric: Fabric, names: Collection[str] | None = None, *, share: float | None = None, seed: int = 0
) -> Fabric:
    """INA on the switches in `names` only, or on a random `share` of all switches, which `seed` decides.

    With both, all of `names` are among the chosen switches, even if they exceed the share. `names=()` alone disables
    INA everywhere; without both arguments it is enabled everywhere. Raises `FabricError`.
    """
    if share is not None and not 0 <= share <= 1:
        raise FabricError(f"INA on a share of {share:g} of the switches: 0 to 1 is expected")
    known = fabric.switch_by_name
    chosen = set(names or ())
    if names is None or share is not None:
        others = [name for name in known if name not in chosen]
        drawn = max(0, round(len(known) * (1 if share is None else share)) - len(chosen))
        chosen |= set(random.Random(seed).sample(others, min(drawn, len(others))))
    for name in sorted(chosen - set(known)):
        raise FabricError(str(unknown_name("switch", name, known)))
    return with_switches(fabric, lambda switch: {"ina": switch.name in chosen})


def with_pipelines(fabric: Fabric, pipelines: int) -> Fabric:
    """The ports of every switch in 1 to 8 contiguous groups; a small switch leaves some pipelines empty."""
    return with_switches(fabric, lambda s: {"pipelines": contiguous_pipelines(max(s.ports, default=0), pipelines)})


def with_aggregators(fabric: Fabric, *, slots: int | None = None, rate_bps: float | None = None) -> Fabric:
    """Every switch with `slots` aggregator slots per pipeline, and an aggregation rate of `rate_bps`."""
    given = {"aggregator_slots": slots, "aggregation_rate_bps": rate_bps}
    return with_switches(fabric, lambda _: {name: value for name, value in given.items() if value is not None})


def with_chip(fabric: Fabric, chip: Chip) -> Fabric:
    """Every switch with this chip; ports fill its pipelines one after the other. Raises `FabricError`."""
    return with_switches(fabric, lambda s: {"chip": chip, "pipelines": chip.fill(fabric.port_rates_bps[s.name])})


def with_chip_as_wired(fabric: Fabric, chip: Chip | None) -> Fabric:
    """Every switch with this chip, or without one; ports stay in their pipelines. Raises `FabricError`."""
    return with_switches(fabric, lambda _: {"chip": chip})


@dataclass
class Folding:
    """A fabric in which nodes that a drawing need not tell apart are one, which has the name of the first.

    `of`: the name in the folded fabric of every node.
    """

    whole: Fabric
    of: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.of = self.of or {node: node for node in self.whole.tiers}

    def fold(self, kinds: Mapping[str, Hashable]) -> None:
        """Make nodes of the same kind one."""
        first: dict[Hashable, str] = {}
        for node, kind in kinds.items():
            self.of[node] = first.setdefault(kind, node)

    def members(self, name: str) -> list[str]:
        """The nodes that are one under this name."""
        return [node for node, one in self.of.items() if one == name]

    def fabric(self) -> Fabric:
        """The folded fabric: a link between two nodes has the capacity of all links between their members.

        A switch that stands for several has one pipeline.
        """
        kept = set(self.of.values())
        several = {name for name in kept & {*self.whole.switch_by_name} if len(self.members(name)) > 1}
        ports: dict[str, list[int]] = defaultdict(list)

        def port(node: str, given: int) -> int:
            ports[self.of[node]].append(len(ports[self.of[node]]) + 1 if self.of[node] in several else given)
            return ports[self.of[node]][-1]

        links: dict[frozenset[str], Link] = {}
        for link in self.whole.links:
            a, b = self.of[link.a], self.of[link.b]
            known = links.get(frozenset((a, b)))
            if known is None:
                (_, a_port, _), (_, b_port, _) = link.ends
                new = Link(a, b, port(link.a, a_port), port(link.b, b_port), link.capacity_ab_bps, link.capacity_ba_bps)
                links[frozenset((a, b))] = replace(new, optical=link.optical)
                continue
            ab, ba = link.capacity_ab_bps, link.capacity_ba_bps
            ab, ba = (ab, ba) if known.a == a else (ba, ab)
            links[frozenset((a, b))] = replace(
                known, capacity_ab_bps=known.capacity_ab_bps + ab, capacity_ba_bps=known.capacity_ba_bps + ba
            )
        switches = (
            replace(switch, pipelines=(tuple(ports[switch.name]),)) if switch.name in several else switch
            for switch in self.whole.switches
            if switch.name in kept
        )
        hosts = tuple(host for host in self.whole.hosts if host.name in kept)
        return replace(self.whole, hosts=hosts, switches=tuple(switches), links=tuple(links.values()))


def folded(fabric: Fabric, used: Collection[str], kinds: Mapping[str, Hashable], most: int) -> Folding:
    """Fold the hosts of a rack that are of the same kind and, if a tier has more than `most` switches, unused switches.

    Of unused switches those are one that have the same neighbours: in the lowest tier above them, else below them.
    """
    found = Folding(fabric)
    tiers: dict[int, list[str]] = defaultdict(list)
    for switch in fabric.switches:
        tiers[switch.tier].append(switch.name)
    for tier in sorted(tiers) if max(map(len, tiers.values()), default=0) > most else ():
        unused = [switch for switch in tiers[tier] if switch not in used]
        peers = {
            switch: frozenset(
                found.of[peer]
                for peer in fabric.neighbors[switch]
                if (fabric.tiers[peer] > tier) == (tier == min(tiers))
            )
            for switch in unused
        }
        found.fold({switch: (peers[switch], fabric.switch_by_name[switch].ina) for switch in unused})
    racks = {host.name: tuple(found.of[peer] for peer in fabric.neighbors[host.name]) for host in fabric.hosts}
    found.fold({host: (rack, kinds.get(host)) for host, rack in racks.items()})
    return found
