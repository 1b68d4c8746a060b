"""SPAR: aggregator placement and routing together, greedily, at top-of-rack (ToR) switches (ATRO's section IV-A).

Workers under the PS's ToR send to the PS, all others to the nearest aggregator, of those equally near to the one with
fewest workers; aggregators send to the PS. They are placed one by one at the ToR from which most flows climb, which is
the pressure they relieve. From the PS's own ToR none climbs: it is never chosen, and its workers' flows stay apart.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from planner.design import Design
from planner.methods.overlay import Overlay, OverlayOptions, aggregating, plan_of, single_task
from planner.plan import Plan
from planner.problem import Problem
from topo.variations import with_ina


def plan(problem: Problem, options: OverlayOptions) -> Plan:
    """SPAR's routes for aggregators that are placed already; those that are not at a ToR are not used."""
    job = single_task("spar", problem)
    fabric, server = problem.fabric, job.servers[0]
    overlay = Overlay(fabric, server, options)
    tors = {fabric.tor_of(host) for host in fabric.host_names}
    chosen = [name for name in aggregating(fabric) if name in tors]
    for name in chosen:
        overlay.attach(name, ())
    for worker in job.workers:
        own = fabric.tor_of(worker)
        apart = own == fabric.tor_of(server) and own not in chosen
        overlay.attach(worker, () if apart else sorted(chosen, key=lambda name: overlay.children[name]))
    return plan_of("spar", problem, overlay)


def design(problem: Problem, options: OverlayOptions) -> Design:
    """The ToRs that SPAR makes aggregators, as many as the fabric has, and its routes."""
    placed = place(problem)
    return Design(placed, plan(placed, options))


def place(problem: Problem) -> Problem:
    """The problem with its aggregators at the ToRs that have most workers; the PS's are not counted."""
    job = single_task("spar", problem)
    fabric = problem.fabric
    climbing = Counter(map(fabric.tor_of, job.workers))
    del climbing[fabric.tor_of(job.servers[0])]
    chosen = [tor for tor, _ in climbing.most_common(len(aggregating(fabric)))]
    return replace(problem, fabric=with_ina(fabric, chosen))
