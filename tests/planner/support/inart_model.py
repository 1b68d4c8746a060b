"""InArt's Eq. (1) as printed, with a variable for every path: exact for small networks, or relaxed to Eq. (5)."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import pulp

from inakit.planner.core.problem import Problem
from inakit.topo.fabric.fabric import Fabric, Path
from inakit.topo.fabric.up_down import up_down_paths

Place = tuple[str, int] | None


def best_rate_bps(problem: Problem, *, relaxed: bool = False, split: bool = False) -> float:
    """The highest f of an equal split, or with `split` of any split; with `relaxed` that of Eq. (5).

    Every product f x q of Eq. (1) is a rate, in units of the highest capacity: 0 where q is 0. The rates of a worker's
    flow to a PS sum to f x, and without `relaxed` only one of them is above 0.
    """
    fabric, job = problem.fabric, problem.jobs[0]
    model = pulp.LpProblem("eq_1", pulp.LpMaximize)
    f = model.add_variable("f", 0)
    model += f, "sending_rate"
    unit = max(fabric.capacities_bps.values())
    links: dict[tuple[str, str], list[Any]] = defaultdict(list)
    switches: dict[str, list[Any]] = defaultdict(list)

    def rates(total: Any, paths: list[Path]) -> list[Any]:
        """The rate on each path; without `relaxed` one path has all of them."""
        found = [model.add_variable(f"r{model.numVariables()}", 0, 1) for _ in paths]
        model.addConstraint(pulp.lpSum(found) == total)
        for path, rate in zip(paths, found, strict=True):
            for link in pairwise(path):
                links[link].append(rate)
        if not relaxed:
            taken = [model.add_variable(f"q{model.numVariables()}", cat=pulp.LpBinary) for _ in paths]
            model.addConstraint(pulp.lpSum(taken) == 1)
            for rate, q in zip(found, taken, strict=True):
                model.addConstraint(rate <= q)
        return found

    parts = []
    for server in job.servers:
        part = model.add_variable(f"part_{server}", 0, 1)
        parts.append(part)
        z: dict[Place, Any] = {}
        for worker in job.workers:
            y = places(fabric, worker, server)
            ways = [(place, path) for place, paths in y.items() for path in paths]
            flows = rates(part, [path for _, path in ways])
            for place in filter(None, y):
                own = [rate for (at, _), rate in zip(ways, flows, strict=True) if at == place]
                if place not in z:
                    z[place] = model.add_variable(f"z{model.numVariables()}", 0)
                    rates(z[place], up_down_paths(fabric, place[0], server))
                model += pulp.lpSum(own) <= z[place]
                switches[place[0]] += own
    model += pulp.lpSum(parts) == f
    for part in [] if split else parts:
        model += part * len(parts) == f
    for link, load in links.items():
        model += pulp.lpSum(load) <= fabric.capacities_bps[link] / unit
    for switch, load in switches.items():
        limit = fabric.switch_by_name[switch].aggregation_rate_bps
        if limit is not None:
            model += pulp.lpSum(load) <= limit / unit
    model.solve(pulp.HiGHS(msg=False))
    assert model.status == pulp.LpStatusOptimal
    return float(unit * f.varValue)


def places(fabric: Fabric, worker: str, server: str) -> dict[Place, list[Path]]:
    """Every place that may sum the worker's flow, None for the PS, with the paths to it."""
    found: dict[Place, dict[Path, None]] = defaultdict(dict)
    for path in up_down_paths(fabric, worker, server):
        found[None][path] = None
        for before, switch in pairwise(path[:-1]):
            if fabric.switch_by_name[switch].ina:
                place = switch, fabric.ingress_pipeline(switch, before)
                found[place][path[: path.index(switch) + 1]] = None
    return {place: list(paths) for place, paths in found.items()}
