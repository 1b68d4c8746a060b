"""P4INC-AOI's Figures 8 to 12: 64 units of 64 servers, up to 1,400 jobs; reconfigured connections and CT-BTI.

What the paper leaves open is chosen as `NOTES.md` explains; `readings` measures what else it may mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import nan
from statistics import fmean

import numpy as np
from rich.console import Console
from rich.table import Table

from experiments.papers import drawing
from experiments.papers.statements import Statement, falls, rises, shown, table_of
from experiments.papers.sweep import Measured, Request, Result, Trial, sweep
from experiments.report import VALID
from planner.aoi.online import Policy
from planner.aoi.policies import FirstCome, TimeWindow
from planner.aoi.schedule import figures
from planner.aoi.schemes import SCHEMES, Scheme, online
from planner.aoi.system import DataCenter, Scheduling, Unit
from planner.aoi.traces import mapreduce, place, training

GIGA = 1e9
SERVERS, PORTS, PORT_BPS, STEP_BPS, INC_JOBS = 64, 24, 40 * GIGA, 10 * GIGA, 4
SWITCH_BPS = 2 * SERVERS * PORT_BPS
"""Each server with a link as fast as a port, both ways."""
RECONFIGURATION_S = 0.025
ARRIVALS_PER_S = 20.0
TRACES = {"training": training, "mapreduce": mapreduce}
SEEDS, QUICK_SEEDS = 5, 1
RESULTS = "aoi-simulation.jsonl"

COMPARED = ("noINC-FCFS", "INC-FCFS", "noINC-TW", "INC-TW")
OURS = "pack"
COLORS = {
    "noINC-FCFS": "#7A7A7A",
    "INC-FCFS": "#0072B2",
    "noINC-TW": "#E69F00",
    "INC-TW": "#B3261E",
    OURS: "#009E73",
    "INC-TW-NoRecon": "#CC79A7",
    "milp": "#000000",
}
STYLES = {"noINC-FCFS": ":", "noINC-TW": ":", OURS: "--"}
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


Curves = Mapping[str, Sequence[float]]
"""A metric over a figure's points, by scheme."""


@dataclass(frozen=True)
class Chart:
    """A figure over one key of its trials, and what the text says of it."""

    name: str
    title: str
    key: str
    points: Sequence[float]
    claims: tuple[Claim, ...] = ()
    setting: Trial = field(default_factory=dict)
    trends: Callable[[Curves, Curves], list[Statement]] | None = None

    def trial(self, at: float, scheme: str, seed: int) -> Trial:
        return {**DEFAULTS, **self.setting, self.key: at, "scheme": scheme, "seed": seed}


def order(connections: Curves, ends: Curves) -> list[Statement]:
    """The order of Figure 8's text."""
    fewest = all(min(COMPARED, key=lambda name: connections[name][at]) == "INC-TW" for at in range(len(ends["INC-TW"])))
    shortest = all(ends["INC-TW"][at] <= min(ends[name][at] for name in COMPARED) for at in range(len(ends["INC-TW"])))
    later = all(fcfs > tw for fcfs, tw in zip(ends["INC-FCFS"], ends["noINC-TW"], strict=True))
    return [
        Statement("INC-TW reconfigures the fewest connections", shown(connections["INC-TW"]), fewest),
        Statement("INC-TW has the shortest CT-BTI", shown(ends["INC-TW"]), shortest),
        Statement("INC-FCFS takes longer than noINC-TW", shown(ends["INC-FCFS"]), later),
    ]


def over_units(connections: Curves, ends: Curves) -> list[Statement]:
    both = {"AOI": connections, "CT-BTI": ends}
    return [
        falls(f"{name}: {scheme} falls with units", curves[scheme])
        for name, curves in both.items()
        for scheme in COMPARED
    ]


def over_capacity(connections: Curves, ends: Curves) -> list[Statement]:
    both = {"AOI": connections, "CT-BTI": ends}
    return [
        falls(f"{name}: {scheme} falls with INC capacity", curves[scheme])
        for name, curves in both.items() for scheme in ("INC-FCFS", "INC-TW")
    ]  # fmt: skip


def over_slots(connections: Curves, ends: Curves) -> list[Statement]:
    longer = [rises(f"CT-BTI: {scheme} rises with the slot", ends[scheme]) for scheme in COMPARED]
    growth = {scheme: ends[scheme][-1] - ends[scheme][0] for scheme in COMPARED}
    less = max(growth["noINC-TW"], growth["INC-TW"]) < min(growth["noINC-FCFS"], growth["INC-FCFS"])
    fewer = [falls(f"AOI: {scheme} falls with the slot", connections[scheme]) for scheme in COMPARED]
    return [*fewer, *longer, Statement("TW's CT-BTI rises less than FCFS's", shown(growth.values()), less)]


CHARTS = {
    chart.name: chart
    for chart in (
        Chart("fig8", "over training jobs", "jobs", (800, 1000, 1200, 1400), FIGURE_8, trends=order),
        Chart("fig9", "over MapReduce jobs", "jobs", (200, 300, 400, 500), FIGURE_9, {"kind": "mapreduce"}, order),
        Chart("fig10", "over units, 1,000 jobs", "units", (16, 32, 48, 64), trends=over_units),
        Chart("fig11", "over INC capacity, 1,000 jobs", "inc", (2, 4, 8, 16), trends=over_capacity),
        Chart("fig12", "over the slot (s), 1,000 jobs", "slot_s", (0.5, 1.0, 1.5, 2.0), trends=over_slots),
    )
}


def run(figure: str, console: Console, request: Request) -> str:
    """Measure a figure, print its tables, hold it against the text, and leave its plot."""
    chart, seeds = CHARTS[figure], range(QUICK_SEEDS if request.quick else SEEDS)
    trials = [chart.trial(at, scheme, seed) for at in chart.points for scheme in (*COMPARED, OURS) for seed in seeds]
    measured = sweep(trials, measure, request.results / RESULTS, console)
    curves = {metric: curves_of(chart, measured, metric, seeds) for metric in METRICS}
    for metric, label in METRICS.items():
        console.print(drawing.table_of(f"{figure}, {chart.title}: {label}", chart.key, chart.points, curves[metric]))
    if chart.claims:
        console.print(comparison(chart, measured, seeds))
    if chart.trends:
        console.print(table_of(chart.trends(curves["connections"], curves["ct_bti_s"])))
    panels = (
        drawing.lines(chart.points, curves[metric], COLORS, chart.key, label, chart.title, LOGARITHMIC[metric], STYLES)
        for metric, label in METRICS.items()
    )
    drawing.save(request.results / f"p4inc-aoi-{figure}", *panels)
    return VALID


def curves_of(chart: Chart, measured: Measured, metric: str, seeds: range) -> dict[str, list[float]]:
    return {
        scheme: [measured.mean(metric, [chart.trial(at, scheme, seed) for seed in seeds]) for at in chart.points]
        for scheme in (*COMPARED, OURS)
    }


def comparison(chart: Chart, measured: Measured, seeds: range) -> Table:
    """The reductions that the text gives, and ours."""
    table = Table("reduction (%)", "paper", "ours", "ratio", title=f"{chart.name}, what the text gives")
    points = [partial(chart.trial, at) for at in chart.points]
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

READING_ARRIVALS = {20.0: "20 jobs/s", 40.0: "40 jobs/s", 0.0: "all at once"}


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
    seeds = range(QUICK_SEEDS if request.quick else 2)
    cases = [(reading, per_s) for reading in READINGS for per_s in READING_ARRIVALS]
    trials = [reading_trial(*case, scheme, seed) for case in cases for scheme in COMPARED for seed in seeds]
    measured = sweep(trials, measure, request.results / RESULTS, console)
    values: dict[str, list[float]] = {"the paper's text": [claim.paper for claim in FIGURE_8]}
    for reading, per_s in cases:
        name = f"{reading}; {READING_ARRIVALS[per_s]}"
        values[name] = [claim.ours(measured, [partial(reading_trial, reading, per_s)], seeds) for claim in FIGURE_8]
    console.print(
        drawing.table_of("Reductions (%) of the first against the second", "", [c.name for c in FIGURE_8], values)
    )
    return VALID
