"""ATRO by real packets: plans on the emulated network that it designs, planned rate against measured."""

from __future__ import annotations

from rich.console import Console

from experiments.papers.common.figure import Request
from experiments.papers.common.own_planners import own_planners
from experiments.papers.common.planned_measured import Planned, bytes_of, run_plans
from planner.core.problem import Job
from planner.methods.atro.cluster import Cluster
from planner.methods.atro.method import design
from planner.registry import METHODS
from traffic.wire.frames import FRAGMENT

CAPACITY_BPS = 2e6
CLUSTER = Cluster(aggregators=4, common=12, ports=6, workers=32, capacity_bps=CAPACITY_BPS)
"""The switches that ATRO may wire; it uses twelve of them."""


def run(console: Console, request: Request) -> str:
    """Run, on the network that ATRO designs, its own plan, ARO's, and those of your own planners."""
    _, verdict = run_plans("atro-emulated", designed(bytes_of(request)), console, request)
    return verdict


def designed(gradient_bytes: int) -> dict[str, Planned]:
    """The problem on the network that ATRO designs, with all plans, under a name that says its size."""
    found = design(CLUSTER, FRAGMENT, job=Job(1, (), (), gradient_bytes))
    plans = {"atro": found.plan} | {name: METHODS[name].plan(found.problem) for name in ("aro", *own_planners())}
    return {f"{len(found.fabric.switches)} switches": (found.problem, plans)}
