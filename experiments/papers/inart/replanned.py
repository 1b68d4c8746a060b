"""InArt's second phase by real packets: when background traffic comes, the same split gets new routes (section 4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

from rich.console import Console

from inakit.experiments.emulate import emulate
from inakit.experiments.emulate.emulate import Emulation
from inakit.experiments.faults.fault_plan import FaultPlan
from inakit.experiments.papers.common.drawing import save
from inakit.experiments.papers.common.estimates import exact
from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.common.panels import BARS, Panel
from inakit.experiments.papers.common.planned_measured import is_near
from inakit.experiments.papers.inart.runs import in_iterations
from inakit.experiments.papers.inart.setting import SETTINGS, drawn_problem
from inakit.experiments.run.record import RunRecord
from inakit.experiments.styles.method_styles import categories
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.install.background_entries import Flow
from inakit.planner.methods.inart.residual import background_of_flows, residual
from inakit.planner.registry import find_method
from inakit.planner.replan import rate_left_bps
from inakit.traffic.measure.verdict import VALID, Verdict, worst_of

PLANNER = "inart-forest"
WORKERS, ITERATIONS = 10, 5
BACKGROUND_BPS = 15e6
"""The rate of the background traffic, on links of 20 Mbit/s."""


def run(console: Console, request: Request) -> str:
    """Measure the plan alone, then beside the traffic, then the new plan; VALID if the new one has its planned rate."""
    problem = in_iterations(drawn_problem(SETTINGS["homogeneous"], WORKERS, 0), ITERATIONS)
    flow = worst_flow(problem, find_method(PLANNER).plan(problem))
    console.print(f"background traffic: {flow.rate_bps / 1e6:g} Mbit/s from {flow.source} to {flow.destination}")
    document = {"background": [{"from": flow.source, "to": flow.destination, "rate": flow.rate_bps}]}
    alone = Emulation(problem, (PLANNER,), request.switch, results=request.results)
    beside = replace(alone, faults=FaultPlan(document, background=(flow,)), replan=True)
    records = [emulate.run(emulation, console) for emulation in (alone, beside)]
    old, new = (entry["measured"]["sending_rate_bps"] / 1e6 for entry in records[-1].planners.values())
    planned = records[-1].planners[f"{PLANNER}-replanned"]["planned"]["sending_rate_bps"] / 1e6
    save(request.results / "inart-replan", panel(records))
    console.print(f"beside the traffic old routes carry {old:.2f} Mbit/s, new ones {new:.2f} of {planned:.2f} planned")
    verdict = VALID if is_near(new, planned) and new > old else Verdict.DIFFERS
    return worst_of([*(record.verdict for record in records), verdict])


def panel(records: Sequence[RunRecord]) -> Panel:
    """Bars of the measured rates in the three phases, with the planned ones."""
    alone, beside, again = (entry for record in records for entry in record.planners.values())
    phases = {"alone": alone, "beside traffic, old routes": beside, "beside traffic, new routes": again}
    rates = {name: [exact(entry["measured"]["sending_rate_bps"] / 1e6)] for name, entry in phases.items()}
    planned = {name: [entry["planned"]["sending_rate_bps"] / 1e6] for name, entry in phases.items()}
    return Panel(BARS, [PLANNER], rates, "", "sending rate (Mbit/s)", planned=planned, styles=categories(phases))


def worst_flow(problem: Problem, plan: Plan) -> Flow:
    """The background flow that leaves the plan the smallest rate, between hosts without a job, one in each rack."""
    busy = {host for job in problem.jobs for host in (*job.workers, *job.servers)}
    idle = {problem.fabric.tor_of(host.name): host.name for host in problem.fabric.hosts if host.name not in busy}
    flows = [Flow(source, destination, BACKGROUND_BPS) for source, destination in permutations(idle.values(), 2)]

    def left(flow: Flow) -> float:
        return rate_left_bps(residual(problem.fabric, background_of_flows(problem, plan, [flow])), plan)

    return min(flows, key=left)
