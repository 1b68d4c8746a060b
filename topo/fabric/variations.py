"""Variations of a fabric: pure functions that return a changed copy. They compose.

`with_ina(with_pipelines(fat_tree(4), 2), share=0.5, seed=1)` has two pipelines per switch and INA on ten of twenty.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from dataclasses import replace
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
