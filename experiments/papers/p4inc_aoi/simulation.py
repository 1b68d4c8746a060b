"""P4INC-AOI's Figures 8 to 12: 64 units of 64 servers, up to 1,400 jobs; reconfigured connections and CT-BTI.

What the paper leaves open is chosen as `NOTES.md` in this folder explains; `readings` measures Figure 8's reductions
under each meaning of FCFS, TW and arrivals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.common import drawing, statements
from inakit.experiments.papers.common.drawing import BARS, LINES, Panel, Place
from inakit.experiments.papers.common.estimates import Series, means
from inakit.experiments.papers.common.figure import COMPARES_SCHEDULERS, Request, leave_out
from inakit.experiments.papers.common.statements import Curves, Statement
from inakit.experiments.papers.common.sweep import Measured, Trial, sweep
from inakit.experiments.papers.p4inc_aoi.setting import (
    ARRIVALS,
    ARRIVALS_PER_S,
    COMPARED,
    DEFAULTS,
    FIGURE_8,
    FIGURE_9,
    NAMES,
    OURS,
    READINGS,
    RESULTS,
    Claim,
    measure,
    reductions_panel,
)
from inakit.experiments.report.method_styles import categories
from inakit.traffic.measure.verdict import VALID

SEEDS, QUICK_SEEDS, READING_SEEDS = 3, 1, 2


def reading_trial(reading: str, per_s: float, scheme: str, seed: int) -> Trial:
    """The trial of a scheme under a reading, with `per_s` arrivals per second."""
    return {**DEFAULTS, "reading": reading, "per_s": per_s, "scheme": scheme, "seed": seed}


def readings(console: Console, request: Request) -> str:
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


LOGARITHMIC = {"connections": "y", "ct_bti_s": ""}
METRICS = {"connections": "reconfigured connections", "ct_bti_s": "CT-BTI (s)"}


@dataclass(frozen=True)
class SchedulerChart:
    """A figure over one key of its trials. `claims` are the text's reductions, `trends` makes its other statements.

    `arrivals` are the ways to arrive under which the figure is measured.
    """

    name: str
    title: str
    key: str
    points: Sequence[float]
    claims: tuple[Claim, ...] = ()
    setting: Trial = field(default_factory=dict)
    arrivals: Sequence[float] = (ARRIVALS_PER_S,)
    trends: Callable[[Curves, Curves, Sequence[object]], Iterator[Statement]] | None = None

    def trial(self, per_s: float, at: float, scheme: str, seed: int) -> Trial:
        """The trial of a scheme at a place, with `per_s` arrivals per second."""
        return {**DEFAULTS, **self.setting, "per_s": per_s, self.key: at, "scheme": scheme, "seed": seed}


def both(connections: Curves, ends: Curves) -> dict[str, Curves]:
    """The curves of both metrics by the names that statements have."""
    return {"AOI": connections, "CT-BTI": ends}


def least(connections: Curves, ends: Curves, places: Sequence[object]) -> Iterator[Statement]:
    """The statements that INC-TW reconfigures the fewest connections and has the shortest CT-BTI."""
    for name, curves in both(connections, ends).items():
        yield statements.is_lowest(
            name, "INC-TW", [scheme for scheme in COMPARED if scheme != "INC-TW"], curves, places
        )


def order(connections: Curves, ends: Curves, places: Sequence[object]) -> Iterator[Statement]:
    """The text's sentences about Figure 8: orders of the schemes."""
    yield from least(connections, ends, places)
    for policy in ("FCFS", "TW"):
        yield from statements.in_order("AOI", (f"noINC-{policy}", f"INC-{policy}"), connections, places)
    for inc in ("noINC", "INC"):
        for name, curves in both(connections, ends).items():
            yield from statements.in_order(name, (f"{inc}-FCFS", f"{inc}-TW"), curves, places)
    yield from statements.in_order("CT-BTI", ("INC-FCFS", "noINC-TW"), ends, places)


def over_units(connections: Curves, ends: Curves, places: Sequence[object]) -> Iterator[Statement]:
    """The text's sentences about Figure 10."""
    for name, curves in both(connections, ends).items():
        yield from (statements.falls(f"{name}: {scheme} falls with units", curves[scheme]) for scheme in COMPARED)
        yield from statements.in_order(name, ("INC-FCFS", "noINC-TW"), curves, places)
    yield from list(least(connections, ends, places))[:1]


def over_capacity(connections: Curves, ends: Curves, places: Sequence[object]) -> Iterator[Statement]:
    """The text's sentences about Figure 11: beyond an INC capacity of 8 hardly anything is gained."""
    for name, curves in both(connections, ends).items():
        for scheme in ("INC-FCFS", "INC-TW"):
            yield statements.falls(f"{name}: {scheme} falls with INC capacity", curves[scheme])
            yield statements.is_level(f"{name}: {scheme} is level beyond {places[-2]}", curves[scheme][-2:])
        for scheme in ("noINC-FCFS", "noINC-TW"):
            yield statements.is_level(f"{name}: {scheme} does not mind INC capacity", curves[scheme])


def over_slots(connections: Curves, ends: Curves, places: Sequence[object]) -> Iterator[Statement]:
    """The text's sentences about Figure 12."""
    yield from (statements.falls(f"AOI: {scheme} falls with the slot", connections[scheme]) for scheme in COMPARED)
    yield from (statements.rises(f"CT-BTI: {scheme} rises with the slot", ends[scheme]) for scheme in COMPARED)
    growth = {scheme: [ends[scheme][-1] - ends[scheme][0]] for scheme in COMPARED}
    for inc in ("noINC", "INC"):
        where = [f"{places[0]} to {places[-1]} s"]
        yield from statements.in_order("CT-BTI's rise", (f"{inc}-FCFS", f"{inc}-TW"), growth, where)


CHARTS = {
    chart.name: chart
    for chart in (
        SchedulerChart(
            "fig8", "over training jobs", "jobs", (800, 1000, 1200, 1400), FIGURE_8, {}, tuple(ARRIVALS), order
        ),
        SchedulerChart(
            "fig9", "over MapReduce jobs", "jobs", (200, 300, 400, 500), FIGURE_9, {"kind": "mapreduce"}, trends=least
        ),
        SchedulerChart(
            "fig10",
            "over units, 1,000 jobs",
            "units",
            (16, 32, 48, 64),
            arrivals=(ARRIVALS_PER_S, 0.0),
            trends=over_units,
        ),
        SchedulerChart(
            "fig11",
            "over INC capacity, 1,000 jobs",
            "inc",
            (2, 4, 8, 16),
            arrivals=(ARRIVALS_PER_S, 0.0),
            trends=over_capacity,
        ),
        SchedulerChart("fig12", "over the slot (s), 1,000 jobs", "slot_s", (0.5, 1.0, 1.5, 2.0), trends=over_slots),
    )
}


def run(figure: str, console: Console, request: Request) -> str:
    """Measure a figure; for each way to arrive print its tables and statements, and write its picture."""
    chart, seeds = CHARTS[figure], range(QUICK_SEEDS if request.quick else SEEDS)
    trials = [
        chart.trial(per_s, at, scheme, seed)
        for per_s in chart.arrivals for at in chart.points for scheme in (*COMPARED, OURS) for seed in seeds
    ]  # fmt: skip
    measured = sweep(trials, measure, request.results / RESULTS, console)
    for per_s in chart.arrivals:
        show(chart, per_s, measured, seeds, console)
        plot(chart, per_s, measured, seeds, request.results)
    leave_out(console, COMPARES_SCHEDULERS)
    return VALID


def show(chart: SchedulerChart, per_s: float, measured: Measured, seeds: range, console: Console) -> None:
    """Print the tables and statements for one way to arrive."""
    curves = {metric: means(curves_of(chart, per_s, measured, metric, seeds)) for metric in METRICS}
    for metric, label in METRICS.items():
        title = f"{chart.name}, {chart.title}, {ARRIVALS[per_s]}: {label}"
        console.print(statements.value_table(title, chart.key, chart.points, curves[metric]))
    if chart.claims:
        console.print(comparison(chart, per_s, measured, seeds))
    if chart.trends:
        console.print(statements.table_of(chart.trends(curves["connections"], curves["ct_bti_s"], chart.points)))


def plot(chart: SchedulerChart, per_s: float, measured: Measured, seeds: range, folder: Path) -> None:
    """Write the picture for one way to arrive: both metrics, and the text's reductions beside ours."""
    panels = []
    for metric, label in METRICS.items():
        curves = curves_of(chart, per_s, measured, metric, seeds)
        title = f"{chart.title}, {ARRIVALS[per_s]}"
        panels.append(Panel(LINES, chart.points, curves, chart.key, label, title, log=LOGARITHMIC[metric]))
    if chart.claims:
        panels.append(
            reductions_panel(chart.claims, measured, [partial(chart.trial, per_s, p) for p in chart.points], seeds)
        )
    suffix = "" if per_s == ARRIVALS_PER_S else f"-{ARRIVALS[per_s].replace(' ', '-').replace('/', '-per-')}"
    drawing.save(folder / f"p4inc-aoi-{chart.name}{suffix}", *panels)


def curves_of(chart: SchedulerChart, per_s: float, measured: Measured, metric: str, seeds: range) -> Series:
    """The line of each scheme for a metric, over the figure's places."""
    return {
        scheme: [
            measured.estimate(metric, [chart.trial(per_s, at, scheme, seed) for seed in seeds]) for at in chart.points
        ]
        for scheme in (*COMPARED, OURS)
    }


def comparison(chart: SchedulerChart, per_s: float, measured: Measured, seeds: range) -> Table:
    """A table of the reductions that the text gives, and ours."""
    table = Table("reduction (%)", "paper", "ours", "ratio", title=f"{chart.name}, {ARRIVALS[per_s]}")
    points = [partial(chart.trial, per_s, at) for at in chart.points]
    for claim in chart.claims:
        ours = claim.ours(measured, points, seeds)
        table.add_row(claim.name, f"{claim.paper:.1f}", f"{ours:.1f}", f"{ours / claim.paper:.2f}")
    return table
