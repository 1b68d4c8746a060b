"""The aggregator slots of each tree: exclusive segments in every pipeline, within the limits of its chip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import TypeGuard

from inakit.planner.core.plan import MOST_BITS, AggregationTree
from inakit.planner.core.slot_policies import policy_of
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import DirectedLink, Fabric, Switch

Inp = tuple[str, int]
"""An input pipeline: the switch and the pipeline's number."""

Resource = DirectedLink | str | Inp
"""A resource that flows share: a link, the aggregators of a switch, or those of one of its pipelines."""


def is_link(resource: Resource) -> TypeGuard[DirectedLink]:
    return isinstance(resource, tuple) and isinstance(resource[1], str)


def resource_bps(fabric: Fabric, resource: Resource) -> float:
    """The capacity of a link, or the summing rate of a switch or pipeline, in bit/s; infinite where unlimited."""
    if is_link(resource):
        return fabric.capacities_bps[resource]
    if isinstance(resource, str):
        return fabric.switch_by_name[resource].aggregation_rate_bps or inf
    return fabric.switch_by_name[resource[0]].pipeline_summing_bps


def slot_bits(switch: Switch) -> int:
    """The maximum number of flows that an aggregator of the switch sums: the bits of a slot's bitmap."""
    return MOST_BITS if switch.chip is None else min(MOST_BITS, switch.chip.children_per_slot)


def most_children(fabric: Fabric, switch: str) -> int:
    """The `slot_bits` of a fabric's switch."""
    return slot_bits(fabric.switch_by_name[switch])


def limited_pipelines(fabric: Fabric) -> dict[str, float]:
    """For each INA switch, the bit/s that each of its pipelines sums, where recirculation limits them."""
    rates = {name: fabric.switch_by_name[name].pipeline_summing_bps for name in fabric.ina_names}
    return {name: rates[name] for name in sorted(rates) if rates[name] < inf}


def limits_summing(fabric: Fabric) -> bool:
    """Whether an INA switch has an aggregation rate, or pipelines whose recirculation limits their sums."""
    return any(s.aggregation_rate_bps is not None or s.pipeline_summing_bps < inf for s in fabric.switches if s.ina)


DEFAULT_WINDOW = 256
"""The number of fragments in flight. At 20 Mbit/s and 326 B a packet these are 33 ms of data, more than any round trip
of an emulated network.
"""


def assign_slots(
    fabric: Fabric, trees: Sequence[AggregationTree], window: int = DEFAULT_WINDOW
) -> tuple[AggregationTree, ...]:
    """The trees with slot segments that do not overlap; in each pipeline the segments follow one another.

    All aggregators of a tree get the same number of slots, since the tree can use only as many as its smallest
    aggregator has: the least of its equal shares of the pipelines that it passes, and at most `window` for each
    version. Trees whose policy shares slots all get every slot that the segments leave. Raises `InputError` when a
    pipeline has fewer slots than its trees need.
    """
    exclusive = [tree for tree in trees if not policy_of(tree.policy).shared]
    sharing = {a.inp for tree in trees if policy_of(tree.policy).shared for a in tree.aggregators}
    users = Counter(aggregator.inp for tree in exclusive for aggregator in tree.aggregators)
    shares = {inp: fair_share(fabric, inp, count + (inp in sharing)) for inp, count in users.items()}
    taken: Counter[Inp] = Counter()
    assigned = {}
    for tree in exclusive:
        versions = policy_of(tree.policy).versions
        share = min((shares[aggregator.inp] for aggregator in tree.aggregators), default=0)
        slots = min(share, window * versions) // versions * versions
        if tree.aggregators and not slots:
            raise too_few(fabric, tree, versions)
        segments = []
        for aggregator in tree.aggregators:
            segments.append(replace(aggregator, first_slot=taken[aggregator.inp], slots=slots))
            taken[aggregator.inp] += slots
        assigned[id(tree)] = tuple(segments)
    for tree in trees:
        if id(tree) not in assigned:
            assigned[id(tree)] = tuple(
                replace(a, first_slot=taken[a.inp], slots=slots_of(fabric, a.switch) - taken[a.inp])
                for a in tree.aggregators
            )
    return tuple(replace(tree, aggregators=assigned[id(tree)]) for tree in trees)


def slots_of(fabric: Fabric, switch: str) -> int:
    return fabric.switch_by_name[switch].slots_per_pipeline


def too_few(fabric: Fabric, tree: AggregationTree, versions: int) -> InputError:
    """Build the error for a tree whose share of a pipeline has fewer slots than its policy has versions."""
    switch = min((a.switch for a in tree.aggregators), key=lambda name: slots_of(fabric, name))
    return InputError(
        f"switch '{switch}': its {slots_of(fabric, switch)} aggregator slots leave tree {tree.number} none, and slot "
        f"policy '{tree.policy}' needs {versions}; raise aggregator_slots"
    )


def fair_share(fabric: Fabric, inp: Inp, users: int) -> int:
    """The slots of each user of a pipeline. Raises `InputError` where there are more users than slots."""
    available = slots_of(fabric, inp[0])
    if available < users:
        raise InputError(
            f"switch '{inp[0]}': {users} trees aggregate in pipeline {inp[1]}, which has {available} aggregator "
            "slots; raise aggregator_slots to at least one per tree"
        )
    return available // users
