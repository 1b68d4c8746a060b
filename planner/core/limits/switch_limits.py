"""What the switches of a fabric allow their aggregators, with the limits of their chips."""

from __future__ import annotations

from math import inf
from typing import TypeGuard

from inakit.planner.core.plan import MOST_BITS
from inakit.topo.fabric.fabric import Fabric

Inp = tuple[str, int]
"""An input pipeline: the switch and the pipeline's number."""

DirectedLink = tuple[str, str]
Resource = DirectedLink | str | Inp
"""What flows share: a link, the aggregators of a switch, or those of one of its pipelines."""


def is_link(resource: Resource) -> TypeGuard[DirectedLink]:
    """Whether a resource is a link."""
    return isinstance(resource, tuple) and isinstance(resource[1], str)


def resource_bps(fabric: Fabric, resource: Resource) -> float:
    """The capacity of a link, or what a switch or a pipeline sums, infinite where that is not limited."""
    if is_link(resource):
        return fabric.capacities_bps[resource]
    if isinstance(resource, str):
        return fabric.switch_by_name[resource].aggregation_rate_bps or inf
    return fabric.switch_by_name[resource[0]].pipeline_summing_bps


def most_children(fabric: Fabric, switch: str) -> int:
    """The most flows that an aggregator of the switch sums: the bits of a slot's bitmap."""
    chip = fabric.switch_by_name[switch].chip
    return MOST_BITS if chip is None else min(MOST_BITS, chip.children_per_slot)


def limited_pipelines(fabric: Fabric) -> dict[str, float]:
    """By INA switch, the bit/s that each of its pipelines sums, where recirculation limits them."""
    rates = {name: fabric.switch_by_name[name].pipeline_summing_bps for name in fabric.ina_names}
    return {name: rates[name] for name in sorted(rates) if rates[name] < inf}


def limits_summing(fabric: Fabric) -> bool:
    """Whether some INA switch has an aggregation rate, or pipelines whose recirculation limits what they sum."""
    return any(s.aggregation_rate_bps is not None or s.pipeline_summing_bps < inf for s in fabric.switches if s.ina)
