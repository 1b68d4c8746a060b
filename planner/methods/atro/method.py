"""ATRO's wiring as the kit's own types: fabric, problem and plan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from string import ascii_lowercase, digits

from inakit.planner.core.check import check
from inakit.planner.core.design import Design
from inakit.planner.core.method import Options
from inakit.planner.core.problem import FragmentFormat, Job, Problem
from inakit.planner.core.solving import SolverOutcome
from inakit.planner.methods.atro.cluster import SERVER, Cluster, Link, Wiring, check_wiring
from inakit.planner.methods.atro.optimum import optimise
from inakit.planner.trees.from_paths import plan_from_paths
from inakit.planner.trees.unfolding import Path
from inakit.topo.fabric.clos import Cable, wire
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.variations import with_ina

WHOLE_GRADIENT = Job(1, (), (), 548_000)
"""The job's sizes where none are given; its hosts are filled in."""


def design(
    cluster: Cluster, fragment: FragmentFormat, options: Options | None = None, job: Job = WHOLE_GRADIENT
) -> Design:
    """The network and the routes with the highest rate, as far as `plan.outcome` says so. The plan is checked.

    `job` gives the gradient's size and so on. Raises `SolverError` for a cluster that cannot be wired.
    """
    options = options or Options()
    wiring, outcome = optimise(cluster, options.for_solver)
    return realise(cluster, wiring, outcome, fragment, options, job)


def realise(
    cluster: Cluster,
    wiring: Wiring,
    outcome: SolverOutcome,
    fragment: FragmentFormat,
    options: Options,
    job: Job = WHOLE_GRADIENT,
) -> Design:
    """A wiring as fabric, problem and plan, all checked."""
    check_wiring(cluster, wiring)
    fabric = fabric_of(cluster, wiring)
    placed = replace(job, workers=cluster.worker_names, servers=(SERVER,))
    problem = Problem(fabric, (placed,), fragment)
    paths = {job.number: paths_of(wiring, cluster.worker_names, set(cluster.aggregator_names))}
    aggregate_at = fabric.ina_names
    plan = plan_from_paths(problem, paths, aggregate_at, method="atro", outcome=outcome, window=options.window)
    check(problem, plan)
    return Design(problem, plan)


def fabric_of(cluster: Cluster, wiring: Wiring) -> Fabric:
    """The fabric of a wiring, with all links optical. Switches that carry nothing are left out.

    Layers become tiers upside down: layer 1 is the top tier, so that all routes climb, and only the last hop descends.
    """
    deepest = max(wiring.layer.values())
    used = {node for link in wiring.flows for node in link}
    names = [name for name in cluster.switch_names if name in used]
    tiers = {name: deepest + 1 - wiring.layer[name] for name in names}
    cables = [Cable(*upwards(link), cluster.capacity_bps) for link in sorted(wiring.flows, key=natural)]
    wired = wire(f"atro-{len(names)}", (*cluster.worker_names, SERVER), tiers, cables)
    optical = replace(wired, links=tuple(replace(link, optical=True) for link in wired.links))
    return with_ina(optical, [name for name in names if name in cluster.aggregator_names])


def upwards(link: Link) -> Link:
    """The ends of a link as other fabrics have them, with a host before its switch."""
    return (SERVER, link[0]) if link[1] == SERVER else link


def natural(link: Link) -> tuple[bool, tuple[tuple[str, int], ...]]:
    """A sort key of links: hosts' links first, and w2 before w10."""
    ends = ((node.rstrip(digits), int(node.lstrip(ascii_lowercase) or 0)) for node in link)
    return not link[0].startswith("w"), tuple(ends)


def paths_of(wiring: Wiring, workers: Iterable[str], aggregators: set[str]) -> list[Path]:
    """A path for every worker along the flows, each of which is taken once.

    Flows that meet in an aggregator leave it as one: a later one goes on as the first did (ARO's Algorithm 1).
    """
    left = {node: dict(peers) for node, peers in wiring.next_hops.items()}
    rest: dict[str, Path] = {SERVER: (SERVER,)}
    found = []
    for worker in workers:
        path: Path = (worker,)
        while path[-1] not in rest:
            peers = left[path[-1]]
            following = next(peer for peer, flows in peers.items() if flows > 0)
            peers[following] -= 1
            path = (*path, following)
        path = path[:-1] + rest[path[-1]]
        rest |= {node: path[position:] for position, node in enumerate(path) if node in aggregators}
        found.append(path)
    return found
