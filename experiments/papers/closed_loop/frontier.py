"""The frontier: how near every planner of the registry comes to what any method could reach, on the kit's fabrics.

A rate is a job's gradient over its communication time in a closed loop, and of several jobs the least. The bound holds
for all ways of summing in hosts, by counting what has to leave hosts and racks: hosts that sum n gradients for n
workers receive 2 (n - 1) of them in all, n - 1 to sum them and n - 1 to give every other worker the sum, even where
switches multicast it (the argument of Patarasuk and Yuan, *Bandwidth optimal all-reduce algorithms for clusters of
workstations*, 2009). At least one gradient leaves every rack that has some of a job's workers, but not all.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.closed_loop.gain import FRONTIER
from inakit.experiments.papers.common.drawing import BARS, Panel, save
from inakit.experiments.papers.common.estimates import exact
from inakit.experiments.papers.common.figure import Request, own_planners
from inakit.experiments.papers.common.statements import number
from inakit.experiments.papers.common.sweep import Measured, Result, Trial, sweep
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.method import PLANNED, Options
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods.aro.variants import VARIANTS
from inakit.planner.methods.forest import least_bound
from inakit.planner.registry import KIT, METHODS, OWN
from inakit.planner.trees.headroom import as_run
from inakit.topo.errors import InputError, PlanError, SolverError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.files.csv_table import write_csv
from inakit.traffic.measure.verdict import VALID, Verdict


def host_bound_bps(problem: Problem) -> float:
    """A rate in bit/s that no way of summing in hosts gives to all jobs.

    Jobs share racks, so that what they need of a rack's uplinks adds up. What its hosts receive bounds a job alone.
    """
    fabric = problem.fabric
    leaving: dict[str, float] = defaultdict(float)
    for job in problem.jobs:
        for rack in racks_left(fabric, job):
            leaving[rack] += 1
    by_racks = [uplinks_bps(fabric, rack) / gradients for rack, gradients in leaving.items()]
    return min([*by_racks, *(by_hosts_bps(fabric, job) for job in problem.jobs)])


def racks_left(fabric: Fabric, job: Job) -> list[str]:
    """The switches that have some of a job's workers, but not all."""
    racks = Counter(fabric.tor_of(worker) for worker in job.workers)
    return list(racks) if len(racks) > 1 else []


def by_hosts_bps(fabric: Fabric, job: Job) -> float:
    """The links to all workers and PSs together over what these hosts receive together."""
    links = [fabric.capacities_bps[fabric.tor_of(host), host] for host in (*job.workers, *job.servers)]
    return sum(links) / max(1, 2 * (len(job.workers) - 1))


def uplinks_bps(fabric: Fabric, switch: str) -> float:
    """The links from a switch to other switches, together."""
    peers = [peer for peer in fabric.neighbors[switch] if peer in fabric.switch_by_name]
    return sum(fabric.capacities_bps[switch, peer] for peer in peers)


TIME_LIMIT_S = 60.0
NEAR = 0.05
"""A planner is at the frontier if it is within this part of the bound."""
WITH_SUMS, WITHOUT = "sums in switches", "sums in hosts"
BOUNDS = {WITH_SUMS: least_bound, WITHOUT: host_bound_bps}
ABSENT = ("aro-unaware", *VARIANTS)
"""Other forms of `aro`, the published models among them: no better, and slow on large fabrics."""
PICTURED = ("aro", "forest", "forest-any", "panama", "aggtree", "grid", "lbmm")
"""The planners in the picture; the table has all."""
QUICK_PLANNERS = {
    "fat-tree 16": (
        "aro", "forest", "forest-any", "atp", "geryon", "atp-tor", "random", "aggtree", "panama", "soar", "inarouting",
        "sharp", "ring", "halving-doubling", "double-tree",
    ),
}  # fmt: skip
"""On a network that is too large for many planners, those that are known to plan within a minute of a processor."""
QUICK = ("fat-tree 4", "fat-tree 4, 4 jobs", "leaf-spine 4:1, 4 jobs", "rails 2x2x8")


def measure(trial: Trial) -> Result:
    """A bound, or the rate of a planner, in bit/s; 0, and why, for a planner that has no plan for the problem."""
    problem, method = FRONTIER[str(trial["network"])](), str(trial["method"])
    if method in BOUNDS:
        return {"rate_bps": BOUNDS[method](problem), "why": ""}
    try:
        return {"rate_bps": planned_bps(problem, method), "why": ""}
    except (InputError, PlanError, SolverError) as error:
        return {"rate_bps": 0.0, "why": str(error)}


def planned_bps(problem: Problem, method: str) -> float:
    """The least of all jobs' gradients over their communication times, where results are planned too."""
    plan = METHODS[method].plan(problem, Options(headroom=PLANNED, time_limit_s=TIME_LIMIT_S))
    found, wire = evaluate(problem, as_run(problem, plan).plan).jobs, problem.fragment
    bits = {job.number: 8 * wire.wire_bytes * wire.count(job.gradient_bytes) for job in problem.jobs}
    return min(bits[number] / job.communication_time_s for number, job in found.items())


def run(console: Console, request: Request) -> str:
    """Plan every network with every planner; print rates in per cent of the bound, and who is at the frontier."""
    networks = QUICK if request.quick else tuple(FRONTIER)
    methods = tuple(name for name in (*KIT, *own_planners()) if name not in ABSENT)
    asked = [trial(network, name) for network in networks for name in (*BOUNDS, *tried(network, methods))]
    found = sweep(asked, measure, request.results / "frontier-trials", console)
    rows = [row_of(found, network, tried(network, methods)) for network in networks]
    console.print(table(rows))
    pictured = {name: [exact(row.per_cent.get(name, 0.0)) for row in rows] for name in PICTURED}
    save(request.results / "frontier-planners", Panel(BARS, networks, pictured, "", "rate (% of the higher bound)"))
    write_rows(request.results / "frontier-table.csv", rows, (*BOUNDS, *methods))
    reached = [row for row in rows if row.best >= 100 * (1 - NEAR)]
    console.print(f"a planner is within {NEAR:.0%} of the bound on {len(reached)} of {len(rows)} fabrics")
    return VALID if len(reached) == len(rows) else Verdict.DIFFERS


def tried(network: str, methods: Sequence[str]) -> list[str]:
    """Those of the methods that are tried on a network: planners of one's own are tried on all."""
    return [name for name in methods if name in OWN or name in QUICK_PLANNERS.get(network, methods)]


@dataclass(frozen=True)
class Row:
    """A network: the higher bound, and the rate of each bound and of each planner that has a plan in per cent of it."""

    network: str
    bound_bps: float
    per_cent: dict[str, float]

    @property
    def best(self) -> float:
        return max(rate for name, rate in self.per_cent.items() if name not in BOUNDS)


def row_of(found: Measured, network: str, methods: Sequence[str]) -> Row:
    rates = {name: float(found.result(trial(network, name))["rate_bps"]) for name in (*BOUNDS, *methods)}
    bound = max(rates[name] for name in BOUNDS)
    return Row(network, bound, {name: 100 * rate / bound for name, rate in rates.items() if rate > 0})


def trial(network: str, method: str) -> Trial:
    """The trial of a planner, or of a bound, on a network."""
    return {"network": network, "method": method}


def table(rows: Sequence[Row]) -> Table:
    """A row for each network: the bound, the other bound, and all planners from the best to the worst."""
    shown = Table("fabric", "bound (Mbit/s)", *BOUNDS, "planners", title="rates in per cent of the higher bound")
    for row in rows:
        planners = {name: rate for name, rate in row.per_cent.items() if name not in BOUNDS}
        ranked = sorted(planners.items(), key=lambda item: -item[1])
        bounds = (number(row.per_cent[name]) for name in BOUNDS)
        shown.add_row(
            row.network,
            number(row.bound_bps / 1e6),
            *bounds,
            ", ".join(f"{name} {number(rate)}" for name, rate in ranked),
        )
    return shown


def write_rows(path: Path, rows: Sequence[Row], names: Sequence[str]) -> None:
    """Write a line for each network; a planner without a plan has an empty cell."""
    shares = ([row.network, row.bound_bps, *(row.per_cent.get(name, "") for name in names)] for row in rows)
    write_csv(path, ("fabric", "bound_bps", *names), shares)
