"""`inakit reproduce collectives scale`: the time of a short all-reduce over the number of workers, up to 1,024.

Leaf-spines with 32 hosts under a leaf and 8 spines, without oversubscription; all hosts but one, the PS, and those
beyond the number of workers take part, rack by rack. Runs are simulated packet by packet in virtual time, except the
longest rings: their 2 (n - 1) steps depend on each other, so only their plans are evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rich.table import Table

from inakit.experiments.papers.common.drawing import Place
from inakit.experiments.papers.common.figure_engine import Chart, Findings, Part, Picture, Quantity, SweptFigure, once
from inakit.experiments.papers.common.figure_registry import Request
from inakit.experiments.papers.common.statements import Statement
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.report.method_styles import MINT, MUSTARD, NAVY, PLUM, RED, SKY, Style
from inakit.experiments.run.planning import plan_to_run
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.problem import Job, Problem
from inakit.topo.errors import RunError
from inakit.topo.fabric.generators import leaf_spine
from inakit.topo.fabric.variations import with_delay
from inakit.traffic.measure.verdict import VALID, Verdict
from inakit.traffic.wire.packet_format import FRAGMENT

MESSAGE_BYTES = 4096
WORKERS, QUICK_WORKERS = (16, 64, 256, 1024), (16, 64)
HOSTS_PER_LEAF, SPINES = 32, 8
LINK_BPS, LINK_DELAY_S = 100e9, 1e-6
LONGEST_RING = 256
"""Rings of more workers are planned only: with 1,024 workers a ring has 2,046 steps."""
NEAR = 0.05
"""A measured time agrees with its plan if it differs by at most this fraction of it."""

PLANNERS = {
    "aro": Style(RED, "o"),
    "ring": Style(NAVY, "s"),
    "halving-doubling": Style(SKY, "D"),
    "double-tree": Style(MINT, "^"),
    "hierarchical": Style(MUSTARD, "v"),
    "ps-sharded": Style(PLUM, "P"),
}


def problem_of(workers: int) -> Problem:
    """One job on the first hosts; the first host is the PS."""
    bare = leaf_spine(workers // HOSTS_PER_LEAF + 1, SPINES, HOSTS_PER_LEAF, capacity_bps=LINK_BPS, oversubscription=1)
    fabric = with_delay(bare, LINK_DELAY_S)
    server, *others = (host.name for host in fabric.hosts)
    return Problem(fabric, (Job(1, tuple(others[:workers]), (server,), MESSAGE_BYTES),), FRAGMENT)


def is_planned_only(planner: str, workers: int) -> bool:
    """Whether a point is planned only, without a measurement."""
    return planner == "ring" and workers > LONGEST_RING


def measure(trial: Trial) -> Result:
    """The time of a planner's plan, planned and measured. Raises `RunError` for wrong sums."""
    problem, planner = problem_of(int(trial["workers"])), str(trial["planner"])
    prepared = plan_to_run(problem, planner, 0)
    job = prepared.prediction.jobs[1]
    promised_s = job.communication_time_s + (0.0 if prepared.plan.collectives else job.way_s)
    if is_planned_only(planner, int(trial["workers"])):
        return {"seconds": promised_s, "promised_s": promised_s, "valid": 1}
    outcome = run_plan(Run(prepared), find_world("virtual"))
    if not outcome.measured.exact:
        raise RunError(f"{trial}: sums are not exact: {'; '.join(outcome.measured.wrong)}")
    seconds = outcome.measured.communication_time_s
    return {"seconds": seconds, "promised_s": promised_s, "valid": int(outcome.verdict == VALID)}


CHART = Chart(
    Quantity("seconds", "time of an all-reduce (µs)", of_mean=lambda seconds, _: 1e6 * seconds),
    {workers: {"workers": workers} for workers in WORKERS}, {planner: {"planner": planner} for planner in PLANNERS},
    "workers", title=f"{MESSAGE_BYTES >> 10} kB", log="xy", styles=PLANNERS,
)  # fmt: skip


def chart_of(request: Request) -> Chart:
    wanted = QUICK_WORKERS if request.quick else WORKERS
    return replace(CHART, points={workers: CHART.points[workers] for workers in wanted})


def show(found: Findings) -> Iterator[Part]:
    chart = chart_of(found.request)
    title = f"time (µs) of {MESSAGE_BYTES >> 10} kB over workers, and how much more than planned"
    table = Table("", *map(str, chart.places), title=title)
    for planner in PLANNERS:
        table.add_row(planner, *(time_of(found.result(chart.cell(planner, at)), planner, at) for at in chart.places))
    yield table
    yield Picture([found.panel(chart)])


def time_of(result: Result, planner: str, workers: Place) -> str:
    """The time of a planner for this number of workers, and its difference from the planned time."""
    seconds, promised_s = float(result["seconds"]), float(result["promised_s"])
    said = "planned" if is_planned_only(planner, int(workers)) else f"{seconds / promised_s - 1:+.1%}"
    return f"{1e6 * seconds:,.1f} ({said})"


def holds(result: Result) -> bool:
    """Whether a run is VALID and its time agrees with its plan."""
    return bool(result["valid"]) and abs(float(result["seconds"]) / float(result["promised_s"]) - 1) <= NEAR


def verdict(found: Findings, _: list[Statement]) -> str:
    """VALID if all runs are VALID and their times agree with the plans."""
    return VALID if all(map(holds, found.results.values())) else Verdict.DIFFERS


FIGURES = {
    "scale": SweptFigure(
        "collectives-scale", "collectives-scale-trials", measure, lambda request: chart_of(request).cells, show,
        draws=once, verdict=verdict,
    )
}  # fmt: skip
