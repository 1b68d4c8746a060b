"""InArt's Eq. (1) as printed, with a variable for every path: exact for small networks, or relaxed to Eq. (5)."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import pulp

from inakit.planner.core.problem import Problem
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.up_down import up_down_paths

Place = tuple[str, int] | None


def best_rate_bps(problem: Problem, *, relaxed: bool = False) -> float:
    """The highest f of an equal split, or with `relaxed` that of Eq. (5).

    Divided by f, Eq. (1) is linear in 1 / f.
    """
    fabric, job = problem.fabric, problem.jobs[0]
    kind = pulp.LpContinuous if relaxed else pulp.LpBinary
    model = pulp.LpProblem("eq_1", pulp.LpMinimize)
    t = model.add_variable("t", 0)
    model += t, "inverse_rate"
    links: dict[tuple[str, str], list[Any]] = defaultdict(list)
    switches: dict[str, list[Any]] = defaultdict(list)
    for server in job.servers:
        z: dict[Place, Any] = {}
        for worker in job.workers:
            y = places(fabric, worker, server)
            chosen = []
            for place, ways in y.items():
                q = [model.add_variable(f"q{model.numVariables()}", 0, 1, kind) for _ in ways]
                chosen += q
                for path, variable in zip(ways, q, strict=True):
                    for link in pairwise(path):
                        links[link].append(variable)
                if place is not None:
                    if place not in z:
                        z[place] = model.add_variable(f"z{model.numVariables()}", 0, 1, kind)
                        onward(model, fabric, place[0], server, z[place], links, kind)
                    model += pulp.lpSum(q) <= z[place]
                    switches[place[0]] += q
            model += pulp.lpSum(chosen) == 1
    share, unit = 1 / len(job.servers), max(fabric.capacities_bps.values())
    for link, load in links.items():
        model += share * pulp.lpSum(load) <= fabric.capacities_bps[link] / unit * t
    for switch, load in switches.items():
        limit = fabric.switch_by_name[switch].aggregation_rate_bps
        if limit is not None:
            model += share * pulp.lpSum(load) <= limit / unit * t
    model.solve(pulp.HiGHS(msg=False))
    assert model.status == pulp.LpStatusOptimal
    return float(unit / t.varValue)


def places(fabric: Fabric, worker: str, server: str) -> dict[Place, list[tuple[str, ...]]]:
    """Every place that may sum the worker's flow, None for the PS, with the paths to it."""
    found: dict[Place, dict[tuple[str, ...], None]] = defaultdict(dict)
    for path in up_down_paths(fabric, worker, server):
        found[None][path] = None
        for before, switch in pairwise(path[:-1]):
            if fabric.switch_by_name[switch].ina:
                place = switch, fabric.ingress_pipeline(switch, before)
                found[place][path[: path.index(switch) + 1]] = None
    return {place: list(paths) for place, paths in found.items()}


def onward(
    model: Any, fabric: Fabric, switch: str, server: str, z: Any, links: dict[tuple[str, str], list[Any]], kind: str
) -> None:
    """The constraints that the sum of a switch takes one path to the PS."""
    paths = up_down_paths(fabric, switch, server)
    q = [model.add_variable(f"o{model.numVariables()}", 0, 1, kind) for _ in paths]
    model += pulp.lpSum(q) == z
    for path, variable in zip(paths, q, strict=True):
        for link in pairwise(path):
            links[link].append(variable)
