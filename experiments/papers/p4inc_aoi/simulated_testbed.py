"""P4INC-AOI's Figures 6 and 7, simulated: reconfigured connections and total JCT on its testbed of four units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.common import drawing, statements
from inakit.experiments.papers.common.drawing import LINES, Panel
from inakit.experiments.papers.common.estimates import Series, means
from inakit.experiments.papers.common.figure import COMPARES_SCHEDULERS, Request, leave_out
from inakit.experiments.papers.common.statements import Curves, Statement
from inakit.experiments.papers.common.sweep import Measured, Result, Trial, sweep
from inakit.experiments.papers.p4inc_aoi.setting import COMPARED, Claim, reductions_panel
from inakit.experiments.papers.p4inc_aoi.testbed import MODELS, POLICIES, TESTBED, testbed_jobs
from inakit.planner.methods.p4inc_aoi.online import Simulation
from inakit.planner.methods.p4inc_aoi.optical_system import Scheduling
from inakit.planner.methods.p4inc_aoi.schedule import check, figures
from inakit.traffic.measure.verdict import VALID

TESTBED_JOBS, TESTBED_SEEDS = (10, 20, 40, 60), 3
AOI_CLAIMS = (
    Claim("connections", "INC-FCFS", "noINC-FCFS", 48.8),
    Claim("connections", "INC-TW", "noINC-TW", 48.8),
    Claim("connections", "noINC-TW", "noINC-FCFS", 47.5),
    Claim("connections", "INC-TW", "INC-FCFS", 47.5),
)
JCT_CLAIMS = {
    "ResNet50": (33.57, 46.66, 12.34, 29.62),
    "VGG16": (43.96, 56.34, 12.7, 32.0),
}


def testbed_trial(model: str, jobs: float, scheme: str, seed: int) -> Trial:
    return {"testbed": model, "jobs": jobs, "scheme": scheme, "seed": seed}


def measure_testbed(trial: Trial) -> Result:
    """Measure a trial: reconfigured connections, and the JCT of all jobs together."""
    problem = Scheduling(TESTBED, testbed_jobs(MODELS[str(trial["testbed"])], int(trial["jobs"]), int(trial["seed"])))
    schedule = Simulation(problem, POLICIES[str(trial["scheme"])]).run(str(trial["scheme"]))
    check(problem, schedule)
    found = figures(problem, schedule)
    return {"connections": found.connections, "total_jct_s": sum(found.jct_s.values())}


def run(figure: str, console: Console, request: Request) -> str:
    """Measure, print and draw Figure 6, reconfigured connections, or Figure 7, total JCT, for both models."""
    metric, label = {"fig6": ("connections", "reconfigured connections"), "fig7": ("total_jct_s", "total JCT (s)")}[
        figure
    ]
    seeds = range(1 if request.quick else TESTBED_SEEDS)
    trials = [testbed_trial(m, n, s, seed) for m in MODELS for n in TESTBED_JOBS for s in COMPARED for seed in seeds]
    measured = sweep(trials, measure_testbed, request.results / "aoi-testbed-trials", console)
    panels: list[Panel] = []
    sentences: list[Statement] = []
    for model in MODELS:
        curves: Series = {
            scheme: [
                measured.estimate(metric, [testbed_trial(model, n, scheme, s) for s in seeds]) for n in TESTBED_JOBS
            ]
            for scheme in COMPARED
        }
        console.print(statements.value_table(f"{figure}, {model}: {label}", "jobs", TESTBED_JOBS, means(curves)))
        console.print(reductions(figure, model, measured, seeds))
        panels.append(Panel(LINES, TESTBED_JOBS, curves, "jobs", label, model))
        points = [partial(testbed_trial, model, jobs) for jobs in TESTBED_JOBS]
        given = reductions_panel(claims_of(figure, model), measured, points, seeds)
        panels.append(replace(given, title=f"{model}: what the text gives"))
        sentences += said_of_testbed(figure, model, means(curves))
    drawing.save(request.results / f"p4inc-aoi-{figure}", *panels)
    console.print(statements.table_of(sentences))
    leave_out(console, COMPARES_SCHEDULERS)
    return VALID


def said_of_testbed(figure: str, model: str, curves: Curves) -> Iterator[Statement]:
    """The text's sentences about Figures 6 and 7; one of them, INC-FCFS's JCT below noINC-TW's, is at Figure 8."""
    places = TESTBED_JOBS
    others = [scheme for scheme in COMPARED if scheme != "INC-TW"]
    yield statements.is_lowest(model, "INC-TW", others, curves, places)
    yield from statements.in_order(model, ("noINC-FCFS", "INC-FCFS"), curves, places)
    if figure == "fig6":
        yield from statements.in_order(model, ("INC-FCFS", "noINC-TW"), curves, places)
    else:
        yield from statements.in_order(model, ("noINC-FCFS", "noINC-TW", "INC-FCFS"), curves, places)


def claims_of(figure: str, model: str) -> Sequence[Claim]:
    """The reductions that the text gives for Figure 6, or for a model in Figure 7."""
    if figure == "fig6":
        return AOI_CLAIMS
    both = zip(AOI_CLAIMS, JCT_CLAIMS[model], strict=True)
    return [Claim("total_jct_s", claim.better, claim.worse, paper) for claim, paper in both]


def reductions(figure: str, model: str, measured: Measured, seeds: range) -> Table:
    """A table of the reductions that the text gives, and ours."""
    table = Table("reduction (%)", "paper", "ours", "ratio")
    points = [partial(testbed_trial, model, jobs) for jobs in TESTBED_JOBS]
    for claim in claims_of(figure, model):
        ours = claim.ours(measured, points, seeds)
        table.add_row(claim.name, f"{claim.paper:.1f}", f"{ours:.1f}", f"{ours / claim.paper:.2f}")
    return table
