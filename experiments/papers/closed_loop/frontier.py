"""The frontier: how near every planner of the registry comes to what any method could reach, on the kit's fabrics.

A rate is a job's gradient over its communication time in a closed loop, and of several jobs the least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console

from experiments.papers.closed_loop.bounds import host_bound_bps
from experiments.papers.closed_loop.networks import FRONTIER
from experiments.papers.common.drawing import save
from experiments.papers.common.estimates import exact
from experiments.papers.common.figure import Request
from experiments.papers.common.panels import BARS, Panel
from experiments.papers.common.sweep import Measured, Result, Trial, sweep
from experiments.papers.common.value_tables import table_of
from planner.core.evaluate import evaluate
from planner.core.method import PLANNED, Options
from planner.core.problem import Problem
from planner.methods.aro.variants import VARIANTS
from planner.methods.forest.best_forest import least_bound
from planner.registry import METHODS
from planner.trees.headroom import as_run
from topo.errors import InputError, PlanError, SolverError
from traffic.measure.verdict import VALID, Verdict

TIME_LIMIT_S = 60.0
NEAR = 0.05
"""A planner is at the frontier if it is within this part of the bound."""
WITH_SUMS, WITHOUT = "bound, sums in switches", "bound, sums in hosts"
BOUNDS = {WITH_SUMS: least_bound, WITHOUT: host_bound_bps}
ABSENT = ("aro-unaware", *VARIANTS)
"""Other forms of `aro`, the published models among them: no better, and slow on large fabrics."""
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
    methods = [name for name in METHODS if name not in ABSENT]
    asked = [trial(network, name) for network in networks for name in (*BOUNDS, *methods)]
    rows = in_per_cent(sweep(asked, measure, request.results / "frontier-trials", console), networks, methods)
    console.print(table_of("rates, in per cent of the higher bound", "method", networks, rows))
    shown = {name: [exact(value or 0.0) for value in rows[name]] for name in methods}
    save(request.results / "frontier", Panel(BARS, networks, shown, "", "rate (% of the higher bound)"))
    far = [place for k, place in enumerate(networks) if max(rows[name][k] or 0 for name in methods) < 100 * (1 - NEAR)]
    console.print(f"a planner is within {NEAR:.0%} of the bound on {len(networks) - len(far)} of {len(networks)}")
    return Verdict.DIFFERS if far else VALID


def in_per_cent(
    found: Measured, networks: Sequence[str], methods: Sequence[str]
) -> Mapping[str, Sequence[float | None]]:
    """By bound or planner, its rate on each network in per cent of the higher bound; None for a planner without one."""
    highest = {network: max(rate(found, network, name) for name in BOUNDS) for network in networks}
    return {
        name: [100 * rate(found, network, name) / highest[network] or None for network in networks]
        for name in (*BOUNDS, *methods)
    }


def trial(network: str, method: str) -> Trial:
    """The trial of a planner, or of a bound, on a network."""
    return {"network": network, "method": method}


def rate(found: Measured, network: str, method: str) -> float:
    """The rate of a planner or a bound in bit/s."""
    return float(found.result(trial(network, method))["rate_bps"])
