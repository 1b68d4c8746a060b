"""P4INC-AOI's Figures 6 and 7, simulated: reconfigured connections and total JCT on its testbed of four units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.drawing import Panel
from inakit.experiments.papers.common.figure_engine import Chart, Findings, Part, Picture, Quantity, SweptFigure
from inakit.experiments.papers.common.figure_registry import COMPARES_SCHEDULERS
from inakit.experiments.papers.common.statements import Curves, Statement
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.papers.p4inc_aoi.setting import COMPARED, Claim, reductions, reductions_panel
from inakit.experiments.papers.p4inc_aoi.testbed import MODELS, POLICIES, TESTBED, testbed_jobs
from inakit.planner.methods.p4inc_aoi.optical_system import Scheduling
from inakit.planner.methods.p4inc_aoi.schedule import check, figures
from inakit.planner.methods.p4inc_aoi.schedulers import SlotSimulation

TESTBED_JOBS, SEEDS = (10, 20, 40, 60), (3, 1)
QUANTITIES = {
    "fig6": Quantity("connections", "reconfigured connections"),
    "fig7": Quantity("total_jct_s", "total JCT (s)"),
}
PAIRS = (("INC-FCFS", "noINC-FCFS"), ("INC-TW", "noINC-TW"), ("noINC-TW", "noINC-FCFS"), ("INC-TW", "INC-FCFS"))
"""The pairs of schemes in the text's reductions: the first of each pair has the lower value."""
AOI_REDUCTIONS = (48.8, 48.8, 47.5, 47.5)
JCT_REDUCTIONS = {"ResNet50": (33.57, 46.66, 12.34, 29.62), "VGG16": (43.96, 56.34, 12.7, 32.0)}


def measure(trial: Trial) -> Result:
    """Measure a trial: reconfigured connections, and the sum of all jobs' JCTs."""
    problem = Scheduling(TESTBED, testbed_jobs(MODELS[str(trial["testbed"])], int(trial["jobs"]), int(trial["seed"])))
    schedule = SlotSimulation(problem, POLICIES[str(trial["scheme"])]).run(str(trial["scheme"]))
    check(problem, schedule)
    found = figures(problem, schedule)
    return {"connections": found.connections, "total_jct_s": sum(found.jct_s.values())}


def chart_of(figure: str, model: str) -> Chart:
    """The schemes over the number of jobs, all of one model."""
    quantity = QUANTITIES[figure]
    return Chart(
        quantity, {jobs: {"testbed": model, "jobs": jobs} for jobs in TESTBED_JOBS},
        {scheme: {"scheme": scheme} for scheme in COMPARED}, "jobs", f"{figure}, {model}: {quantity.label}", model,
    )  # fmt: skip


def show(figure: str, found: Findings) -> Iterator[Part]:
    panels: list[Panel] = []
    sentences: list[Statement] = []
    for model in MODELS:
        chart = chart_of(figure, model)
        points, printed = list(chart.points.values()), AOI_REDUCTIONS if figure == "fig6" else JCT_REDUCTIONS[model]
        claims = [Claim(chart.quantity.key, *pair, paper) for pair, paper in zip(PAIRS, printed, strict=True)]
        yield found.table(chart)
        yield reductions(None, claims, found, points)
        given = replace(reductions_panel(claims, found, points), title=f"{model}: values in the text")
        panels += [found.panel(chart), given]
        sentences += said(figure, model, found.curves(chart), chart.places)
    yield Picture(panels)
    yield sentences


def said(figure: str, model: str, curves: Curves, places: Sequence[object]) -> Iterator[Statement]:
    """The text's sentences about Figures 6 and 7; one of them, INC-FCFS's JCT below noINC-TW's, belongs to Figure 8."""
    others = [scheme for scheme in COMPARED if scheme != "INC-TW"]
    yield statements.is_lowest(model, "INC-TW", others, curves, places)
    yield from statements.in_order(model, ("noINC-FCFS", "INC-FCFS"), curves, places)
    order = ("INC-FCFS", "noINC-TW") if figure == "fig6" else ("noINC-FCFS", "noINC-TW", "INC-FCFS")
    yield from statements.in_order(model, order, curves, places)


FIGURES = {
    figure: SweptFigure(
        f"p4inc-aoi-{figure}", "aoi-testbed-trials", measure,
        lambda _: (cell for model in MODELS for cell in chart_of("fig6", model).cells), partial(show, figure), SEEDS,
        leaves_out=COMPARES_SCHEDULERS,
    )
    for figure in QUANTITIES
}  # fmt: skip
