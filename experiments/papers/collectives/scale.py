"""`inakit reproduce collectives scale`: the time of a short all-reduce over the number of workers, up to 1,024.

Leaf-spines with 32 hosts under a leaf and 8 spines, without oversubscription; all hosts but one, the PS, and those
beyond the number of workers take part, rack by rack. Every run is by packets in virtual time, but the longest rings,
whose 2 (n - 1) steps wait for one another: these are planned only.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.common.drawing import LINES, Panel, save
from inakit.experiments.papers.common.estimates import exact
from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.common.sweep import Measured, Result, Trial, sweep
from inakit.experiments.report.method_styles import MINT, MUSTARD, NAVY, PLUM, RED, SKY, Style
from inakit.experiments.run.planning import plan_to_run
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.problem import Job, Problem
from inakit.planner.prepared import Prepared
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
"""Measured times are near those of plans if they differ by no more than this share."""

PLANNERS = {
    "aro": Style(RED, "o"),
    "ring": Style(NAVY, "s"),
    "halving-doubling": Style(SKY, "D"),
    "double-tree": Style(MINT, "^"),
    "hierarchical": Style(MUSTARD, "v"),
    "ps-sharded": Style(PLUM, "P"),
}


def problem_of(workers: int) -> Problem:
    """One job on the first hosts; the very first is the PS."""
    bare = leaf_spine(workers // HOSTS_PER_LEAF + 1, SPINES, HOSTS_PER_LEAF, capacity_bps=LINK_BPS, oversubscription=1)
    fabric = with_delay(bare, LINK_DELAY_S)
    server, *others = (host.name for host in fabric.hosts)
    return Problem(fabric, (Job(1, tuple(others[:workers]), (server,), MESSAGE_BYTES),), FRAGMENT)


def is_planned_only(planner: str, workers: int) -> bool:
    """Whether a point is not measured."""
    return planner == "ring" and workers > LONGEST_RING


def measure(trial: Trial) -> Result:
    """The time of a planner's plan, planned and measured. Raises `RunError` for wrong sums."""
    problem, planner = problem_of(int(trial["workers"])), str(trial["planner"])
    plan = plan_to_run(problem, planner, 0).plan
    job = evaluate(problem, plan).jobs[1]
    promised_s = job.communication_time_s + (0.0 if plan.collectives else job.way_s)
    if is_planned_only(planner, int(trial["workers"])):
        return {"seconds": promised_s, "promised_s": promised_s, "valid": 1}
    outcome = run_plan(Run(Prepared(problem, plan)), find_world("virtual"))
    if not outcome.measured.exact:
        raise RunError(f"{trial}: sums are not exact: {'; '.join(outcome.measured.wrong)}")
    seconds = outcome.measured.communication_time_s
    return {"seconds": seconds, "promised_s": promised_s, "valid": int(outcome.verdict == VALID)}


def trial_of(planner: str, workers: int) -> Trial:
    return {"planner": planner, "workers": workers}


def run(console: Console, request: Request) -> str:
    """Measure, print and draw the figure; VALID if all runs are, and times are near those of plans."""
    places = QUICK_WORKERS if request.quick else WORKERS
    asked = [trial_of(planner, workers) for workers, planner in product(places, PLANNERS)]
    found = sweep(asked, measure, request.results / "collectives-scale-trials", console)
    console.print(table(found, places))
    save(request.results / "collectives-scale", panel(found, places))
    return VALID if all(holds(found.result(trial)) for trial in asked) else Verdict.DIFFERS


def holds(result: Result) -> bool:
    """Whether a run is VALID, and its time near that of its plan."""
    return bool(result["valid"]) and abs(float(result["seconds"]) / float(result["promised_s"]) - 1) <= NEAR


def table(found: Measured, places: Sequence[int]) -> Table:
    """A row for each planner, a column for each number of workers: the time, and how far it is from the plan's."""
    title = f"time (µs) of {MESSAGE_BYTES >> 10} kB over workers, and how much more than planned"
    shown = Table("", *map(str, places), title=title)
    for planner in PLANNERS:
        shown.add_row(planner, *(cell(planner, workers, found) for workers in places))
    return shown


def cell(planner: str, workers: int, found: Measured) -> str:
    """The time of a planner with so many workers."""
    result = found.result(trial_of(planner, workers))
    seconds, promised_s = float(result["seconds"]), float(result["promised_s"])
    said = "planned" if is_planned_only(planner, workers) else f"{seconds / promised_s - 1:+.1%}"
    return f"{1e6 * seconds:,.1f} ({said})"


def panel(found: Measured, places: Sequence[int]) -> Panel:
    """The times over workers, both logarithmic."""
    series = {
        planner: [exact(1e6 * float(found.result(trial_of(planner, workers))["seconds"])) for workers in places]
        for planner in PLANNERS
    }
    return Panel(
        LINES, places, series, "workers", "time of an all-reduce (µs)", f"{MESSAGE_BYTES >> 10} kB",
        log="xy", styles=PLANNERS,
    )  # fmt: skip
