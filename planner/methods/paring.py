"""PARING: task placement and routing together, over a Steiner tree of hops (as ATRO's section IV-A describes it).

The overlay's nodes are workers, aggregators and the PS, an edge costs the hops of the shortest path, and workers are
leaves. A Steiner tree joins all workers to the PS through the aggregators that make it cheaper: the aggregator that
saves most is added, one at a time. PARING ignores capacities and loads of links, for which ATRO criticises it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from math import inf

from inakit.planner.core.method import Design
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Job, Problem
from inakit.planner.trees.overlay import Overlay, OverlayOptions, aggregating, plan_of, single_task
from inakit.topo.fabric.fabric import Fabric

Cost = Callable[[Collection[str]], float]
"""The cost in hops of the tree that passes these aggregators."""


@dataclass(frozen=True)
class ParingOptions(OverlayOptions):
    """`aggregators`: the maximum number of aggregators in the tree."""

    aggregators: float = inf


def plan(problem: Problem, options: ParingOptions) -> Plan:
    """PARING's routes for given hosts."""

    def grow(job: Job, overlay: Overlay) -> None:
        racks = Counter(map(problem.fabric.tor_of, job.workers))
        chosen = steiner_nodes(overlay, options, lambda chosen: tree_cost(overlay, chosen, racks))
        for name in nearest_first(overlay, chosen):
            overlay.attach(name, [*overlay.parents, overlay.server])
        for worker in job.workers:
            overlay.attach(worker, [*chosen, overlay.server])

    return plan_of("paring", problem, options, grow)


def design(problem: Problem, options: ParingOptions) -> Design:
    """PARING's hosts for the tasks of the job, as many as it has, and its routes between them."""
    placed = place(problem, options)
    return Design(placed, plan(placed, options))


def place(problem: Problem, options: ParingOptions) -> Problem:
    """The problem with the job on the hosts that give the cheapest Steiner tree. Racks are filled one by one."""
    job, fabric = single_task("paring", problem), problem.fabric
    first_of_rack = {fabric.tor_of(host.name): host.name for host in reversed(fabric.hosts)}
    choices = [best_for(fabric, server, len(job.workers), options) for server in first_of_rack.values()]
    _, server, workers = min(choices, key=lambda choice: choice[0])
    return replace(problem, jobs=(replace(job, servers=(server,), workers=workers),))


def best_for(fabric: Fabric, server: str, count: int, options: ParingOptions) -> tuple[float, str, tuple[str, ...]]:
    """For a PS and a number of workers: the cost in hops of the cheapest tree, the PS, and the workers' hosts."""
    overlay = Overlay(fabric, server, options)
    free = Counter(fabric.tor_of(host.name) for host in fabric.hosts if host.name != server)

    def nearest_racks(chosen: Collection[str]) -> dict[str, int]:
        """The workers of each rack; racks that reach the tree in the fewest hops come first."""
        left, taken = count, {}
        for rack in sorted(free, key=lambda rack: overlay.reach(rack, chosen)):
            taken[rack] = min(left, free[rack])
            left -= taken[rack]
        return taken

    def cost(chosen: Collection[str]) -> float:
        return tree_cost(overlay, chosen, nearest_racks(chosen))

    chosen = steiner_nodes(overlay, options, cost)
    hosts: dict[str, list[str]] = {}
    for host in fabric.hosts:
        if host.name != server:
            hosts.setdefault(fabric.tor_of(host.name), []).append(host.name)
    workers = (host for rack, number in nearest_racks(chosen).items() for host in hosts[rack][:number])
    return cost(chosen), server, tuple(workers)


def tree_cost(overlay: Overlay, chosen: Collection[str], racks: Mapping[str, int]) -> float:
    """The tree's hops: between aggregators and to the PS, and from each rack's workers to the nearest of these."""
    joining = sum(nearest_first(overlay, chosen).values())
    return joining + sum(workers * (1 + overlay.reach(rack, chosen)) for rack, workers in racks.items() if workers)


def steiner_nodes(overlay: Overlay, options: ParingOptions, cost: Cost) -> list[str]:
    """The aggregators of the tree. Each round adds the one that makes it cheapest, as long as one does."""
    chosen: list[str] = []
    least = cost(chosen)
    while len(chosen) < options.aggregators:
        trials = {name: cost([*chosen, name]) for name in aggregating(overlay.fabric) if name not in chosen}
        name = min(trials, key=lambda name: trials[name], default=None)
        if name is None or trials[name] >= least:
            break
        chosen, least = [*chosen, name], trials[name]
    return chosen


def nearest_first(overlay: Overlay, chosen: Collection[str]) -> dict[str, float]:
    """The aggregators in Prim's order, each the nearest to the PS and those before it, and its hops to them."""
    joined: dict[str, float] = {}
    while len(joined) < len(chosen):
        hops = {name: overlay.reach(name, joined) for name in chosen if name not in joined}
        name = min(hops, key=hops.__getitem__)
        joined[name] = hops[name]
    return joined
