"""The frontier: every planner of the registry compared with an upper bound on the rate of any method, by fabric.

A rate is a job's gradient divided by its communication time in a closed loop; for several jobs it is the lowest one.
The bound on sums in hosts counts the gradients that have to leave hosts and racks: hosts that sum n gradients for n
workers receive 2 (n - 1) gradients in all, n - 1 to sum them and n - 1 to give every other worker the sum, even where
switches multicast it (the argument of Patarasuk and Yuan, *Bandwidth optimal all-reduce algorithms for clusters of
workstations*, 2009). At least one gradient leaves every rack that has some, but not all, of a job's workers.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from rich.table import Table

from inakit.experiments.papers.aro.setting import SJMT, SJST
from inakit.experiments.papers.closed_loop import spread_jobs, with_gradients
from inakit.experiments.papers.common.drawing import BARS, Panel
from inakit.experiments.papers.common.estimates import exact
from inakit.experiments.papers.common.figure_engine import Findings, Part, Picture, Rows, SweptFigure, once
from inakit.experiments.papers.common.figure_registry import Request, own_planners
from inakit.experiments.papers.common.statements import Statement, number
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.planner.core.method import PLANNED, Options
from inakit.planner.core.problem import Problem
from inakit.planner.methods.aro.accelerations import VARIANTS
from inakit.planner.methods.forest import least_bound
from inakit.planner.prepared import with_headroom
from inakit.planner.registry import KIT, METHODS, OWN
from inakit.topo.errors import InputError, PlanError, SolverError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import fat_tree, leaf_spine, rail_pods
from inakit.traffic.measure.verdict import VALID, Verdict


def host_bound_bps(problem: Problem) -> float:
    """An upper bound in bit/s on the rate that sums in hosts can give to all jobs.

    Jobs share a rack's uplinks, so their demands add up there. The gradients that hosts receive bound each job alone.
    """
    fabric = problem.fabric
    leaving: Counter[str] = Counter()
    bounds_bps = []
    for job in problem.jobs:
        racks = {fabric.tor_of(worker) for worker in job.workers}
        leaving.update(racks if len(racks) > 1 else ())
        links = [fabric.capacities_bps[fabric.tor_of(host), host] for host in (*job.workers, *job.servers)]
        bounds_bps.append(sum(links) / max(1, 2 * (len(job.workers) - 1)))
    for rack, gradients in leaving.items():
        uplinks = (
            fabric.capacities_bps[rack, peer] for peer in fabric.neighbors[rack] if peer in fabric.switch_by_name
        )
        bounds_bps.append(sum(uplinks) / gradients)
    return min(bounds_bps)


LONG = 20_000
"""The number of fragments of a gradient: large enough that rounding to fragments is negligible. None is sent."""


def jobs_on(fabric: Fabric, jobs: int) -> Problem:
    """`jobs` jobs of equal size, each with one PS, that share all hosts of a fabric; the hosts are drawn once."""
    each = len(fabric.hosts) // jobs
    return with_gradients(spread_jobs(fabric, jobs, lambda: each - 1, random.Random(0)), LONG)


FRONTIER: dict[str, Callable[[], Problem]] = {
    "fat-tree 4": lambda: jobs_on(fat_tree(4), 1),
    "fat-tree 4, 4 jobs": lambda: jobs_on(fat_tree(4), 4),
    "fat-tree 8": lambda: jobs_on(fat_tree(8), 1),
    "fat-tree 8, 4 jobs": lambda: jobs_on(fat_tree(8), 4),
    "leaf-spine 1:1, 4 jobs": lambda: jobs_on(leaf_spine(4, 4, 8, oversubscription=1), 4),
    "leaf-spine 2:1, 4 jobs": lambda: jobs_on(leaf_spine(4, 4, 8, oversubscription=2), 4),
    "leaf-spine 4:1, 4 jobs": lambda: jobs_on(leaf_spine(4, 4, 8, oversubscription=4), 4),
    "rails 2x2x8": lambda: jobs_on(rail_pods(2, 2), 1),
    "rails 2x2x8, 4 jobs": lambda: jobs_on(rail_pods(2, 2), 4),
    "ARO's default": lambda: with_gradients(SJST.problem(0), LONG),
    "ARO's, 1 job, 4 PSs": lambda: with_gradients(replace(SJMT, tasks=4).problem(0), LONG),
    "fat-tree 16": lambda: jobs_on(fat_tree(16), 1),
}
"""The fabrics of the frontier's table."""

TIME_LIMIT_S = 60.0
NEAR = 0.05
"""A planner is at the frontier if its rate is within this fraction of the bound."""
WITH_SUMS, WITHOUT = "sums in switches", "sums in hosts"
BOUNDS = {WITH_SUMS: least_bound, WITHOUT: host_bound_bps}
ABSENT = ("aro-unaware", *VARIANTS)
"""Variants of `aro`, including the published models: their rates are no higher, and they are slow on large fabrics."""
PICTURED = ("aro", "forest", "forest-any", "panama", "aggtree", "grid", "lbmm")
"""The planners in the picture; the table has all planners."""
QUICK_PLANNERS = {
    "fat-tree 16": (
        "aro", "forest", "forest-any", "atp", "geryon", "atp-tor", "random", "aggtree", "panama", "soar", "inarouting",
        "sharp", "ring", "halving-doubling", "double-tree",
    ),
}  # fmt: skip
"""By network that is too large for many planners, the planners that take less than a minute of processor time."""
QUICK = ("fat-tree 4", "fat-tree 4, 4 jobs", "leaf-spine 4:1, 4 jobs", "rails 2x2x8")


def measure(trial: Trial) -> Result:
    """A bound, or a planner's rate, in bit/s; a planner without a plan for the problem has rate 0 and a reason."""
    problem, method = FRONTIER[str(trial["network"])](), str(trial["method"])
    if method in BOUNDS:
        return {"rate_bps": BOUNDS[method](problem), "why": ""}
    try:
        return {"rate_bps": planned_bps(problem, method), "why": ""}
    except (InputError, PlanError, SolverError) as error:
        return {"rate_bps": 0.0, "why": str(error)}


def planned_bps(problem: Problem, method: str) -> float:
    """The lowest rate of all jobs (gradient over communication time) when the plan reserves bandwidth for results."""
    plan = METHODS[method].plan(problem, Options(headroom=PLANNED, time_limit_s=TIME_LIMIT_S))
    found, wire = with_headroom(problem, plan).prediction.jobs, problem.fragment
    bits = {job.number: 8 * wire.wire_bytes * wire.count(job.gradient_bytes) for job in problem.jobs}
    return min(bits[number] / job.communication_time_s for number, job in found.items())


def networks_of(request: Request) -> tuple[str, ...]:
    return QUICK if request.quick else tuple(FRONTIER)


def methods_on(network: str) -> list[str]:
    """The planners that are tried on a network; user-defined planners are tried on every network."""
    every = [name for name in (*KIT, *own_planners()) if name not in ABSENT]
    return [name for name in every if name in OWN or name in QUICK_PLANNERS.get(network, every)]


def cells(request: Request) -> list[Trial]:
    return [trial(network, name) for network in networks_of(request) for name in (*BOUNDS, *methods_on(network))]


def trial(network: str, method: str) -> Trial:
    return {"network": network, "method": method}


@dataclass(frozen=True)
class Row:
    """A network: the higher bound, and each bound's and planner's rate in per cent of it."""

    network: str
    bound_bps: float
    per_cent: dict[str, float]

    @property
    def ranked(self) -> dict[str, float]:
        planners = ((name, rate) for name, rate in self.per_cent.items() if name not in BOUNDS)
        return dict(sorted(planners, key=lambda item: -item[1]))

    @property
    def at_the_frontier(self) -> bool:
        """Whether a planner is within `NEAR` of the bound."""
        return max(self.ranked.values()) >= 100 * (1 - NEAR)


def rows_of(found: Findings) -> list[Row]:
    rows = []
    for network in networks_of(found.request):
        results = {name: found.result(trial(network, name)) for name in (*BOUNDS, *methods_on(network))}
        rates = {name: float(result["rate_bps"]) for name, result in results.items()}
        bound = max(rates[name] for name in BOUNDS)
        rows.append(Row(network, bound, {name: 100 * rate / bound for name, rate in rates.items() if rate > 0}))
    return rows


def show(found: Findings) -> Iterator[Part]:
    """Rates in per cent of the bound, planners from the best to the worst, and the planners at the frontier."""
    rows = rows_of(found)
    table = Table("fabric", "bound (Mbit/s)", *BOUNDS, "planners", title="rates in per cent of the higher bound")
    for row in rows:
        bounds = (number(row.per_cent[name]) for name in BOUNDS)
        ranked = ", ".join(f"{name} {number(rate)}" for name, rate in row.ranked.items())
        table.add_row(row.network, number(row.bound_bps / 1e6), *bounds, ranked)
    yield table
    networks = [row.network for row in rows]
    pictured = {name: [exact(row.per_cent.get(name, 0.0)) for row in rows] for name in PICTURED}
    yield Picture([Panel(BARS, networks, pictured, "", "rate (% of the higher bound)")])
    names = (*BOUNDS, *dict.fromkeys(name for network in FRONTIER for name in methods_on(network)))
    shares = ([row.network, row.bound_bps, *(row.per_cent.get(name, "") for name in names)] for row in rows)
    yield Rows("frontier-table.csv", ("fabric", "bound_bps", *names), shares)
    reached = sum(row.at_the_frontier for row in rows)
    yield f"a planner is within {NEAR:.0%} of the bound on {reached} of {len(rows)} fabrics"


def verdict(found: Findings, _: list[Statement]) -> str:
    """VALID if a planner is at the frontier on every network."""
    return VALID if all(row.at_the_frontier for row in rows_of(found)) else Verdict.DIFFERS


FIGURES = {
    "planners": SweptFigure("frontier-planners", "frontier-trials", measure, cells, show, draws=once, verdict=verdict)
}
