"""P4INC-AOI's Figures 8 to 12: 64 units of 64 servers, up to 1,400 jobs; reconfigured connections and CT-BTI.

What the paper leaves open is chosen as `NOTES.md` explains; `readings` measures what else it may mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import isnan, nan
from pathlib import Path
from statistics import fmean

import numpy as np
from rich.console import Console
from rich.table import Table

from experiments.papers.common import drawing
from experiments.papers.common import own_planners as own
from experiments.papers.common import statements as text
from experiments.papers.common.estimates import MISSING, Estimate, Series, estimate, means
from experiments.papers.common.method_styles import categories
from experiments.papers.common.panels import BARS, LINES, Panel, Place, Printed
from experiments.papers.common.statements import Curves, Statement
from experiments.papers.common.sweep import Measured, Request, Result, Trial, sweep
from planner.methods.p4inc_aoi.online.slot_by_slot import Policy
from planner.methods.p4inc_aoi.online.tw_fcfs import FirstCome, TimeWindow
from planner.methods.p4inc_aoi.problem.schedule import figures
from planner.methods.p4inc_aoi.problem.system import DataCenter, Scheduling, Unit
from planner.methods.p4inc_aoi.problem.traces import mapreduce, place, training
from planner.methods.p4inc_aoi.schemes import SCHEMES, Scheme, online
from traffic.measure.verdict import VALID

GIGA = 1e9
SERVERS, PORTS, PORT_BPS, STEP_BPS, INC_JOBS = 64, 24, 40 * GIGA, 10 * GIGA, 4
SWITCH_BPS = 2 * SERVERS * PORT_BPS
"""Each server with a link as fast as a port, both ways."""
RECONFIGURATION_S = 0.025
ARRIVALS_PER_S = 20.0
ARRIVALS = {ARRIVALS_PER_S: "20 jobs/s", 40.0: "40 jobs/s", 0.0: "all at once"}
"""What the text may mean: 20 jobs a second; 20 of each kind; a batch of concurrent jobs."""
TRACES = {"training": training, "mapreduce": mapreduce}
SEEDS, QUICK_SEEDS, READING_SEEDS = 3, 1, 2
RESULTS = "aoi-simulation.jsonl"

COMPARED = ("noINC-FCFS", "INC-FCFS", "noINC-TW", "INC-TW")
OURS = "pack"
LOGARITHMIC = {"connections": "y", "ct_bti_s": ""}
NAMES = {"connections": "AOI", "ct_bti_s": "CT-BTI", "total_jct_s": "JCT"}
METRICS = {"connections": "reconfigured connections", "ct_bti_s": "CT-BTI (s)"}

DEFAULTS: Trial = {
    "kind": "training",
    "jobs": 1000,
    "units": 64,
    "inc": INC_JOBS,
    "slot_s": 1.0,
    "per_s": ARRIVALS_PER_S,
}


def center(units: int, ports: int, inc_jobs: int, slot_s: float) -> DataCenter:
    return DataCenter(
        tuple(Unit(f"unit{number:02}", SERVERS, ports, SWITCH_BPS, inc_jobs) for number in range(1, units + 1)),
        PORT_BPS, RECONFIGURATION_S, slot_s, STEP_BPS,
    )  # fmt: skip


def drawn(trial: Trial) -> Scheduling:
    """The jobs of a trial: all schemes of a seed have the same."""
    draws = np.random.default_rng(int(trial["seed"]))
    found = center(int(trial["units"]), int(trial.get("ports", PORTS)), int(trial["inc"]), float(trial["slot_s"]))
    requests = TRACES[str(trial["kind"])](int(trial["jobs"]), float(trial["per_s"]) or None, draws)
    return Scheduling(found, place(requests, found, draws))


def measure(trial: Trial) -> Result:
    problem = drawn(trial)
    schedule = scheme_of(trial).schedule(problem)
    found = figures(problem, schedule)
    return {
        "ct_bti_s": found.ct_bti_s,
        "connections": found.connections,
        "mean_jct_s": sum(found.jct_s.values()) / len(found.jct_s),
        "seconds": schedule.outcome.seconds,
    }


# ---- what the text says --------------------------------------------------------------------------

TrialOf = Callable[[str, int], Trial]
"""The trial of a scheme and a seed."""


@dataclass(frozen=True)
class Claim:
    """By how much `better` is below `worse`, in percent, averaged over a figure's points."""

    metric: str
    better: str
    worse: str
    paper: float

    @property
    def name(self) -> str:
        return f"{self.better} to {self.worse}, {NAMES[self.metric]}"

    def estimate(self, measured: Measured, points: Sequence[TrialOf], seeds: range) -> Estimate:
        """The mean reduction; its interval is over seeds, of which each has a mean over the points."""
        value = self.ours(measured, points, seeds)
        if isnan(value):
            return MISSING
        found = estimate([self.ours(measured, points, range(seed, seed + 1)) for seed in seeds])
        return replace(found.map(lambda mean: mean + value - found.value), draws=found.draws)

    def ours(self, measured: Measured, points: Sequence[TrialOf], seeds: range) -> float:
        """NaN where `worse` is 0 at every point."""
        reductions = []
        for trial_of in points:
            low, high = (
                measured.mean(self.metric, [trial_of(scheme, seed) for seed in seeds])
                for scheme in (self.better, self.worse)
            )
            if high:
                reductions.append(100 * (1 - low / high))
        return fmean(reductions) if reductions else nan


FIGURE_8 = (
    Claim("connections", "INC-FCFS", "noINC-FCFS", 55.4),
    Claim("connections", "INC-TW", "noINC-TW", 50.3),
    Claim("connections", "noINC-TW", "noINC-FCFS", 92.8),
    Claim("connections", "INC-TW", "INC-FCFS", 91.7),
    Claim("ct_bti_s", "noINC-TW", "noINC-FCFS", 86.8),
    Claim("ct_bti_s", "INC-TW", "INC-FCFS", 85.6),
)
FIGURE_9 = (
    Claim("connections", "INC-TW", "noINC-FCFS", 89.5),
    Claim("ct_bti_s", "INC-TW", "noINC-FCFS", 72.6),
)


@dataclass(frozen=True)
class Chart:
    """A figure over one key of its trials, and what the text says of it."""

    name: str
    title: str
    key: str
    points: Sequence[float]
    claims: tuple[Claim, ...] = ()
    setting: Trial = field(default_factory=dict)
    arrivals: Sequence[float] = (ARRIVALS_PER_S,)
    trends: Callable[[Curves, Curves, Sequence[object]], Iterator[Statement]] | None = None

    def trial(self, per_s: float, at: float, scheme: str, seed: int) -> Trial:
        return {**DEFAULTS, **self.setting, "per_s": per_s, self.key: at, "scheme": scheme, "seed": seed}


def both(connections: Curves, ends: Curves) -> dict[str, Curves]:
    return {"AOI": connections, "CT-BTI": ends}


def least(connections: Curves, ends: Curves, places: Sequence[object]) -> Iterator[Statement]:
    """INC-TW reconfigures the fewest connections, and has the shortest CT-BTI."""
    for name, curves in both(connections, ends).items():
        yield text.is_lowest(name, "INC-TW", [scheme for scheme in COMPARED if scheme != "INC-TW"], curves, places)


def order(connections: Curves, ends: Curves, places: Sequence[object]) -> Iterator[Statement]:
    """The orders of Figure 8's text."""
    yield from least(connections, ends, places)
    for policy in ("FCFS", "TW"):
        yield from text.in_order("AOI", (f"noINC-{policy}", f"INC-{policy}"), connections, places)
    for inc in ("noINC", "INC"):
        for name, curves in both(connections, ends).items():
            yield from text.in_order(name, (f"{inc}-FCFS", f"{inc}-TW"), curves, places)
    yield from text.in_order("CT-BTI", ("INC-FCFS", "noINC-TW"), ends, places)


def over_units(connections: Curves, ends: Curves, places: Sequence[object]) -> Iterator[Statement]:
    """The text on Figure 10."""
    for name, curves in both(connections, ends).items():
        yield from (text.falls(f"{name}: {scheme} falls with units", curves[scheme]) for scheme in COMPARED)
        yield from text.in_order(name, ("INC-FCFS", "noINC-TW"), curves, places)
    yield from list(least(connections, ends, places))[:1]


def over_capacity(connections: Curves, ends: Curves, places: Sequence[object]) -> Iterator[Statement]:
    """The text on Figure 11: beyond a capacity of 8 hardly anything is gained."""
    for name, curves in both(connections, ends).items():
        for scheme in ("INC-FCFS", "INC-TW"):
            yield text.falls(f"{name}: {scheme} falls with INC capacity", curves[scheme])
            yield text.is_level(f"{name}: {scheme} is level beyond {places[-2]}", curves[scheme][-2:])
        for scheme in ("noINC-FCFS", "noINC-TW"):
            yield text.is_level(f"{name}: {scheme} does not mind INC capacity", curves[scheme])


def over_slots(connections: Curves, ends: Curves, places: Sequence[object]) -> Iterator[Statement]:
    """The text on Figure 12."""
    yield from (text.falls(f"AOI: {scheme} falls with the slot", connections[scheme]) for scheme in COMPARED)
    yield from (text.rises(f"CT-BTI: {scheme} rises with the slot", ends[scheme]) for scheme in COMPARED)
    growth = {scheme: [ends[scheme][-1] - ends[scheme][0]] for scheme in COMPARED}
    for inc in ("noINC", "INC"):
        where = [f"{places[0]} to {places[-1]} s"]
        yield from text.in_order("CT-BTI's rise", (f"{inc}-FCFS", f"{inc}-TW"), growth, where)


CHARTS = {
    chart.name: chart
    for chart in (
        Chart("fig8", "over training jobs", "jobs", (800, 1000, 1200, 1400), FIGURE_8, {}, tuple(ARRIVALS), order),
        Chart(
            "fig9", "over MapReduce jobs", "jobs", (200, 300, 400, 500), FIGURE_9, {"kind": "mapreduce"}, trends=least
        ),
        Chart(
            "fig10",
            "over units, 1,000 jobs",
            "units",
            (16, 32, 48, 64),
            arrivals=(ARRIVALS_PER_S, 0.0),
            trends=over_units,
        ),
        Chart(
            "fig11",
            "over INC capacity, 1,000 jobs",
            "inc",
            (2, 4, 8, 16),
            arrivals=(ARRIVALS_PER_S, 0.0),
            trends=over_capacity,
        ),
        Chart("fig12", "over the slot (s), 1,000 jobs", "slot_s", (0.5, 1.0, 1.5, 2.0), trends=over_slots),
    )
}


def run(figure: str, console: Console, request: Request) -> str:
    """Measure a figure; for each way to arrive print its tables, hold it against the text, and leave its plot."""
    chart, seeds = CHARTS[figure], range(QUICK_SEEDS if request.quick else SEEDS)
    trials = [
        chart.trial(per_s, at, scheme, seed)
        for per_s in chart.arrivals for at in chart.points for scheme in (*COMPARED, OURS) for seed in seeds
    ]  # fmt: skip
    measured = sweep(trials, measure, request.results / RESULTS, console)
    for per_s in chart.arrivals:
        show(chart, per_s, measured, seeds, console)
        plot(chart, per_s, measured, seeds, request.results)
    own.leave_out(console, own.SCHEDULES)
    return VALID


def show(chart: Chart, per_s: float, measured: Measured, seeds: range, console: Console) -> None:
    curves = {metric: means(curves_of(chart, per_s, measured, metric, seeds)) for metric in METRICS}
    for metric, label in METRICS.items():
        title = f"{chart.name}, {chart.title}, {ARRIVALS[per_s]}: {label}"
        console.print(drawing.table_of(title, chart.key, chart.points, curves[metric]))
    if chart.claims:
        console.print(comparison(chart, per_s, measured, seeds))
    if chart.trends:
        console.print(text.table_of(chart.trends(curves["connections"], curves["ct_bti_s"], chart.points)))


def plot(chart: Chart, per_s: float, measured: Measured, seeds: range, folder: Path) -> None:
    """Both metrics, and the reductions that the text gives beside ours."""
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


REDUCTION = "mean reduction"


def reductions_panel(claims: Sequence[Claim], measured: Measured, points: Sequence[TrialOf], seeds: range) -> Panel:
    """A bar for each reduction that the text gives, and the text's value."""
    names = [claim.name for claim in claims]
    ours = [claim.estimate(measured, points, seeds) for claim in claims]
    paper: Printed = {REDUCTION: {name: claim.paper for name, claim in zip(names, claims, strict=True)}}
    styles = categories([REDUCTION])
    return Panel(BARS, names, {REDUCTION: ours}, "", "reduction (%)", "what the text gives", paper, styles=styles)


def curves_of(chart: Chart, per_s: float, measured: Measured, metric: str, seeds: range) -> Series:
    return {
        scheme: [
            measured.estimate(metric, [chart.trial(per_s, at, scheme, seed) for seed in seeds]) for at in chart.points
        ]
        for scheme in (*COMPARED, OURS)
    }


def comparison(chart: Chart, per_s: float, measured: Measured, seeds: range) -> Table:
    """The reductions that the text gives, and ours."""
    table = Table("reduction (%)", "paper", "ours", "ratio", title=f"{chart.name}, {ARRIVALS[per_s]}")
    points = [partial(chart.trial, per_s, at) for at in chart.points]
    for claim in chart.claims:
        ours = claim.ours(measured, points, seeds)
        table.add_row(claim.name, f"{claim.paper:.1f}", f"{ours:.1f}", f"{ours / claim.paper:.2f}")
    return table


# ---- what else the paper may mean --------------------------------------------------------------

READINGS: dict[str, Mapping[str, Policy]] = {
    "a job takes all, nobody passes": {},
    "a job takes all, others pass": {
        "noINC-FCFS": FirstCome(inc=False, strict=False), "INC-FCFS": FirstCome(strict=False),
    },
    "40 Gbit/s per worker, nobody passes": {
        "noINC-FCFS": FirstCome(inc=False, limit_bps=PORT_BPS), "INC-FCFS": FirstCome(limit_bps=PORT_BPS),
    },
    "what a slot needs, nobody passes": {
        "noINC-FCFS": FirstCome(inc=False, fill=False), "INC-FCFS": FirstCome(fill=False),
    },
    "TW deals all there is": {"noINC-TW": TimeWindow(inc=False, fill=True), "INC-TW": TimeWindow(fill=True)},
}  # fmt: skip
"""By what FCFS, or TW, is taken to mean: the policies other than usual."""


def scheme_of(trial: Trial) -> Scheme:
    name = str(trial["scheme"])
    policies = READINGS[str(trial["reading"])] if "reading" in trial else {}
    if name in policies:
        return Scheme(str(trial["reading"]), online(name, policies[name]))
    return SCHEMES[name]


def reading_trial(reading: str, per_s: float, scheme: str, seed: int) -> Trial:
    return {**DEFAULTS, "reading": reading, "per_s": per_s, "scheme": scheme, "seed": seed}


def readings(console: Console, request: Request) -> str:
    """The reductions that the text gives, under each reading and each way to arrive."""
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
    own.leave_out(console, own.SCHEDULES)
    return VALID


def readings_panel(measured: Measured, per_s: float, seeds: range) -> Panel:
    """The reductions of Figure 8 with one way to arrive, under each reading."""
    names = [claim.name for claim in FIGURE_8]
    series = {
        reading: [claim.estimate(measured, [partial(reading_trial, reading, per_s)], seeds) for claim in FIGURE_8]
        for reading in READINGS
    }
    printed: dict[Place, float] = {name: claim.paper for name, claim in zip(names, FIGURE_8, strict=True)}
    paper = dict.fromkeys(READINGS, printed)
    return Panel(BARS, names, series, "", "reduction (%)", ARRIVALS[per_s], paper, styles=categories(READINGS))
