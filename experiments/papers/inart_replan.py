"""InArt's second phase by real packets: background traffic comes, and the same split gets new routes (section 4.1)."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

from rich.console import Console

from experiments.emulate import Emulation
from experiments.emulate import run as emulate
from experiments.faults import FaultPlan
from experiments.papers import Request
from experiments.papers.inart import SETTINGS, drawn_problem
from experiments.papers.statements import Statement, is_above, table_of
from experiments.report import VALID
from planner.background import Flow
from planner.methods import find_method
from planner.plan import Plan
from planner.problem import Problem
from planner.replan import rate_left_bps
from planner.residual import background_of_flows, residual

PLANNER = "inart-forest"
WORKERS, QUICK_WORKERS = 40, 10
BACKGROUND_BPS = 15e6
"""Of a link's 20 Mbit/s."""
NEAR = 0.05
DIFFERS = "DIFFERS"


def run(console: Console, request: Request) -> str:
    """Measure the plan alone, then beside the traffic, then the plan made again; VALID if this has its rate."""
    problem = drawn_problem(SETTINGS["homogeneous"], QUICK_WORKERS if request.quick else WORKERS, 0)
    flow = worst_flow(problem, find_method(PLANNER).plan(problem))
    document = {"background": [{"from": flow.source, "to": flow.destination, "rate": flow.rate_bps}]}
    faults = FaultPlan(document, background=(flow,))
    alone = Emulation(problem, (PLANNER,), request.switch, results=request.results)
    beside = replace(alone, faults=faults, replan=True)
    console.print(f"background traffic: {flow.rate_bps / 1e6:g} Mbit/s from {flow.source} to {flow.destination}")
    first, second = (emulate(emulation, console) for emulation in (alone, beside))
    rates = {name: entry["measured"]["sending_rate_bps"] / 1e6 for name, entry in second.planners.items()}
    old, new = rates.values()
    planned = second.planners[f"{PLANNER}-replanned"]["planned"]["sending_rate_bps"] / 1e6
    found = [
        Statement("new routes have their planned rate", f"{new:.3g} of {planned:.3g}", abs(new / planned - 1) <= NEAR),
        is_above("they carry more than the old ones beside the traffic", new / old, 1.0),
    ]
    console.print(table_of(found))
    verdicts = [first.verdict, second.verdict]
    return next((each for each in verdicts if each != VALID), VALID if all(each.holds for each in found) else DIFFERS)


def worst_flow(problem: Problem, plan: Plan) -> Flow:
    """Between hosts of no job, the one that leaves the plan the least rate."""
    busy = {host for job in problem.jobs for host in (*job.workers, *job.servers)}
    idle = [host.name for host in problem.fabric.hosts if host.name not in busy]
    flows = [Flow(source, destination, BACKGROUND_BPS) for source, destination in permutations(idle, 2)]

    def left(flow: Flow) -> float:
        return rate_left_bps(residual(problem.fabric, background_of_flows(problem, plan, [flow])), plan)

    return min(flows, key=left)
