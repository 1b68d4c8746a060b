"""SPAR: aggregator placement and routing together, greedily, at top-of-rack (ToR) switches (ATRO's section IV-A).

Racks send to the nearest aggregator, and the PS's own rack to the PS if its ToR is not an aggregator; aggregators send
to the PS. Aggregators are placed one at a time, where the rate becomes highest. The network selects among the shortest
paths between two elements, not SPAR, so SPAR evaluates a place with paths that it draws itself.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from inakit.planner.core.method import Design
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Job, Problem
from inakit.planner.trees.overlay import Overlay, OverlayOptions, aggregating, plan_of, single_task
from inakit.topo.fabric.variations import with_ina

GUESS = 7919
"""Added to the seed, so that the paths of SPAR's evaluation are drawn independently of the final ones."""


@dataclass(frozen=True)
class SparOptions(OverlayOptions):
    """`foresees`: whether SPAR evaluates places with the paths that the network draws."""

    foresees: bool = False


def plan(problem: Problem, options: OverlayOptions) -> Plan:
    """SPAR's routes for given aggregators. Aggregators that are not at a ToR are not used."""
    tors = {problem.fabric.tor_of(host) for host in problem.fabric.host_names}
    chosen = [name for name in aggregating(problem.fabric) if name in tors]

    def grow(job: Job, overlay: Overlay) -> None:
        for name in chosen:
            overlay.attach(name, ())
        for worker in job.workers:
            overlay.attach(worker, candidates(overlay, problem.fabric.tor_of(worker), chosen))

    return plan_of("spar", problem, options, grow)


def design(problem: Problem, options: SparOptions) -> Design:
    """SPAR's aggregators, as many ToRs as the fabric has aggregators, and its routes."""
    placed = place(problem, options)
    return Design(placed, plan(placed, options))


def place(problem: Problem, options: SparOptions) -> Problem:
    """The problem with its aggregators at other ToRs, each where the load of the busiest link becomes least.

    Among equally good ToRs, the one with most workers is taken.
    """
    job, fabric = single_task("spar", problem), problem.fabric
    seed = options.seed if options.foresees else options.seed + GUESS
    overlay = Overlay(fabric, job.servers[0], replace(options, seed=seed))
    racks = Counter(map(fabric.tor_of, job.workers))
    tors = list(dict.fromkeys(fabric.tor_of(host.name) for host in fabric.hosts))
    chosen: list[str] = []
    for _ in range(min(len(tors), len(aggregating(fabric)))):
        left = [tor for tor in tors if tor not in chosen]
        chosen.append(min(left, key=lambda tor: (busiest_s(overlay, racks, [*chosen, tor]), -racks[tor])))
    return replace(problem, fabric=with_ina(fabric, chosen))


def candidates(overlay: Overlay, rack: str, chosen: Collection[str]) -> list[str]:
    """The aggregators for a rack's workers, in an order drawn by seed that decides between equally near ones."""
    if rack == overlay.fabric.tor_of(overlay.server) and rack not in chosen:
        return []
    return sorted(chosen, key=lambda name: random.Random(f"{overlay.options.seed} {rack} {name}").random())


def busiest_s(overlay: Overlay, racks: Mapping[str, int], chosen: Collection[str]) -> float:
    """The seconds that the busiest link takes for one bit of every flow on it: the inverse of the rate."""
    flows: Counter[tuple[str, str]] = Counter()
    routes = [(overlay.path(name, overlay.server), 1) for name in chosen]
    for rack, workers in racks.items():
        routes.append((overlay.path(rack, overlay.nearest(rack, candidates(overlay, rack, chosen))), workers))
    for path, count in routes:
        for link in pairwise(path):
            flows[link] += count
    return max(count / overlay.fabric.capacities_bps[link] for link, count in flows.items())
