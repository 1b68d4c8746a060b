"""Other readings of P4INC-AOI's text: the reductions of Figure 8 under each meaning of FCFS, TW and arrivals."""

from __future__ import annotations

from functools import partial

from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.common import drawing
from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.common.own_planners import COMPARES_SCHEDULERS, leave_out
from inakit.experiments.papers.common.panels import BARS, Panel, Place
from inakit.experiments.papers.common.sweep import Measured, Trial, sweep
from inakit.experiments.papers.p4inc_aoi.claims import FIGURE_8, NAMES
from inakit.experiments.papers.p4inc_aoi.schemes import READINGS, measure
from inakit.experiments.papers.p4inc_aoi.setting import ARRIVALS, COMPARED, DEFAULTS, RESULTS
from inakit.experiments.styles.method_styles import categories
from inakit.traffic.measure.verdict import VALID

SEEDS, QUICK_SEEDS, READING_SEEDS = 3, 1, 2


def reading_trial(reading: str, per_s: float, scheme: str, seed: int) -> Trial:
    """The trial of a scheme under a reading, with `per_s` arrivals per second."""
    return {**DEFAULTS, "reading": reading, "per_s": per_s, "scheme": scheme, "seed": seed}


def run(console: Console, request: Request) -> str:
    """Measure, print and draw the reductions that the text gives under each reading and each way to arrive."""
    seeds = range(QUICK_SEEDS if request.quick else READING_SEEDS)
    cases = [(reading, per_s) for reading in READINGS for per_s in ARRIVALS]
    trials = [reading_trial(*case, scheme, seed) for case in cases for scheme in COMPARED for seed in seeds]
    measured = sweep(trials, measure, request.results / RESULTS, console)
    columns = (f"{claim.better}\nto {claim.worse}\n{NAMES[claim.metric]}" for claim in FIGURE_8)
    table = Table("FCFS, TW", "arrivals", *columns, title="reductions (%)")
    table.add_row("the paper's text", "", *(f"{claim.paper:.1f}" for claim in FIGURE_8), end_section=True)
    for reading, per_s in cases:
        points = [partial(reading_trial, reading, per_s)]
        ours = (f"{claim.ours(measured, points, seeds):.1f}" for claim in FIGURE_8)
        table.add_row(reading, ARRIVALS[per_s], *ours)
    console.print(table)
    panels = [readings_panel(measured, per_s, seeds) for per_s in ARRIVALS]
    drawing.save(request.results / "p4inc-aoi-readings", *panels)
    leave_out(console, COMPARES_SCHEDULERS)
    return VALID


def readings_panel(measured: Measured, per_s: float, seeds: range) -> Panel:
    """Bars of Figure 8's reductions for one way to arrive, under each reading."""
    names = [claim.name for claim in FIGURE_8]
    series = {
        reading: [claim.estimate(measured, [partial(reading_trial, reading, per_s)], seeds) for claim in FIGURE_8]
        for reading in READINGS
    }
    printed: dict[Place, float] = {name: claim.paper for name, claim in zip(names, FIGURE_8, strict=True)}
    paper = dict.fromkeys(READINGS, printed)
    return Panel(BARS, names, series, "", "reduction (%)", ARRIVALS[per_s], paper, styles=categories(READINGS))
