"""ATRO by real packets: plans on the emulated network that it designs, planned rate against measured."""

from __future__ import annotations

from rich.console import Console

from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.common.own_planners import own_planners
from inakit.experiments.papers.common.planned_measured import Planned, bytes_of, run_plans
from inakit.planner.core.problem import Job
from inakit.planner.methods.atro.cluster import Cluster
from inakit.planner.methods.atro.method import design
from inakit.planner.registry import METHODS
from inakit.traffic.wire.frames import FRAGMENT

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
