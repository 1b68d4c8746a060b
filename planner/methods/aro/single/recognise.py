"""A task whose fabric is a leaf-spine with equal links, read as one; a task that has anything special is not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, product
from math import inf

from inakit.planner.core.limits.switch_limits import most_children
from inakit.planner.methods.aro.single.leafspine import Flow, Leaf, LeafSpine, Spines
from inakit.planner.methods.aro.task import Task
from inakit.topo.fabric.fabric import Fabric

Rack = dict[int, Flow]
"""The workers under a leaf by the pipeline in which they arrive; without INA all are in pipeline 0."""


def leaf_spine(fabric: Fabric, task: Task) -> LeafSpine | None:
    """The task on a leaf-spine; None where the closed form does not hold.

    The closed form needs leaves that reach the PS's by the same spines, links of one capacity between them, INA spines
    with the same leaves in each pipeline, bitmaps of one size, and no limit of what is summed. A pod of a fat-tree that
    has the whole task is one, too.
    """
    tor = fabric.tor_of(task.server)
    racks = racks_of(fabric, task.job.workers)
    local = racks.pop(tor, {})
    spines = shared_spines(fabric, tor, list(racks))
    if spines is None or is_special(fabric, (tor, *racks, *spines), (local, *racks.values())):
        return None
    capacities = spine_capacities(fabric, tor, list(racks), spines) or {fabric.capacities_bps[tor, task.server]}
    pipelines = leaf_pipelines(fabric, list(racks), spines)
    if len(capacities) > 1 or pipelines is None:
        return None
    return LeafSpine(
        task.server,
        tor,
        fabric.switch_by_name[tor].ina,
        tuple(Leaf(leaf, pipeline, flows_of(fabric, leaf, racks[leaf])) for leaf, pipeline in pipelines.items()),
        gates_of(fabric, tor, spines),
        local,
        min(fabric.capacities_bps[worker, fabric.tor_of(worker)] for worker in task.job.workers),
        capacities.pop(),
        fabric.capacities_bps[tor, task.server],
        most_children(fabric, tor),
    )


def racks_of(fabric: Fabric, workers: Iterable[str]) -> dict[str, Rack]:
    """By leaf, its workers by the pipeline by which they enter."""
    found: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for worker in workers:
        leaf = fabric.tor_of(worker)
        found[leaf][gate_of(fabric, leaf, worker)].append(worker)
    return {leaf: {pipeline: tuple(group) for pipeline, group in rack.items()} for leaf, rack in found.items()}


def gate_of(fabric: Fabric, switch: str, peer: str) -> int:
    """The pipeline by which packets from `peer` enter an INA switch; 0 for any other switch."""
    return fabric.ingress_pipeline(switch, peer) if fabric.switch_by_name[switch].ina else 0


def flows_of(fabric: Fabric, leaf: str, rack: Rack) -> tuple[Flow, ...]:
    """What a leaf sends: a flow for each of its pipelines, or of each worker."""
    if fabric.switch_by_name[leaf].ina:
        return tuple(rack.values())
    return tuple((worker,) for worker in chain.from_iterable(rack.values()))


def shared_spines(fabric: Fabric, tor: str, leaves: Sequence[str]) -> tuple[str, ...] | None:
    """The spines between every leaf and the PS's; None if they differ by leaf, or there are other ways."""
    tiers = fabric.tiers
    above = {leaf: [peer for peer in fabric.neighbors[leaf] if tiers[peer] > 0] for leaf in (tor, *leaves)}
    if any(tiers[peer] <= tiers[leaf] for leaf, peers in above.items() for peer in peers):
        return None
    found = [tuple(peer for peer in above[tor] if peer in set(above[leaf])) for leaf in leaves]
    if not found:
        return ()
    return found[0] if found[0] and len(set(found)) == 1 else None


def is_special(fabric: Fabric, switches: Iterable[str], racks: Iterable[Rack]) -> bool:
    """Whether what switches sum is limited, or not by the same number of children, or an INP has too many workers."""
    known = [fabric.switch_by_name[name] for name in switches]
    limited = any(s.aggregation_rate_bps is not None or s.pipeline_summing_bps < inf for s in known)
    children = {most_children(fabric, switch.name) for switch in known}
    crowded = any(len(workers) > min(children) for rack in racks for workers in rack.values())
    return limited or crowded or len(children) > 1


def spine_capacities(fabric: Fabric, tor: str, leaves: Sequence[str], spines: Sequence[str]) -> set[float]:
    """The different capacities in bit/s of the links from leaves to spines and from spines to the PS's leaf."""
    up = {fabric.capacities_bps[link] for link in product(leaves, spines)}
    return up | {fabric.capacities_bps[spine, tor] for spine in spines}


def leaf_pipelines(fabric: Fabric, leaves: Sequence[str], spines: Sequence[str]) -> dict[str, int] | None:
    """The pipeline by which each leaf enters the INA spines; None if spines differ in this."""
    maps = {
        tuple(fabric.ingress_pipeline(spine, leaf) for leaf in leaves)
        for spine in spines
        if fabric.switch_by_name[spine].ina
    } or {(0,) * len(leaves)}
    return dict(zip(leaves, maps.pop(), strict=True)) if len(maps) == 1 else None


def gates_of(fabric: Fabric, tor: str, spines: Iterable[str]) -> Mapping[int, Spines]:
    """The spines behind each pipeline of the PS's leaf."""
    found: dict[int, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for spine in spines:
        found[gate_of(fabric, tor, spine)][not fabric.switch_by_name[spine].ina].append(spine)
    return {gate: Spines(tuple(aggregating), tuple(common)) for gate, (aggregating, common) in found.items()}
