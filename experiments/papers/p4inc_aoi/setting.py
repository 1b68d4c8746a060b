"""P4INC-AOI's simulations: 64 units of 64 servers, jobs and arrivals, schemes, and the reductions in its text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from statistics import fmean

import numpy as np
from rich.table import Table

from inakit.experiments.papers.common.drawing import BARS, Panel, Printed
from inakit.experiments.papers.common.estimates import MISSING, Estimate, estimate
from inakit.experiments.papers.common.figure_engine import Findings
from inakit.experiments.papers.common.statements import beside_paper
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.report.method_styles import categories
from inakit.planner.methods.p4inc_aoi.job_traces import mapreduce, place, training
from inakit.planner.methods.p4inc_aoi.optical_system import DataCenter, Scheduling, Unit
from inakit.planner.methods.p4inc_aoi.schedule import figures
from inakit.planner.methods.p4inc_aoi.schedulers import FirstCome, GrantPolicy, Scheduler, TimeWindow, slot_by_slot
from inakit.planner.registry import find_scheduler

GIGA = 1e9
SERVERS, PORTS, PORT_BPS, STEP_BPS, INC_JOBS = 64, 24, 40 * GIGA, 10 * GIGA, 4
SWITCH_BPS = 2 * SERVERS * PORT_BPS
"""The bandwidth of a unit's switch: each server's link has an optical port's rate, in both directions."""
RECONFIGURATION_S = 0.025
ARRIVALS_PER_S = 20.0
ARRIVALS = {ARRIVALS_PER_S: "20 jobs/s", 40.0: "40 jobs/s", 0.0: "all at once"}
"""The readings of the text's arrivals: 20 jobs a second, 20 of each kind a second, or one concurrent batch (0)."""
TRACES = {"training": training, "mapreduce": mapreduce}
RESULTS = "aoi-simulation-trials"
COMPARED = ("noINC-FCFS", "INC-FCFS", "noINC-TW", "INC-TW")
OURS = "pack"
DEFAULTS: Trial = {
    "kind": "training",
    "jobs": 1000,
    "units": 64,
    "inc": INC_JOBS,
    "slot_s": 1.0,
    "per_s": ARRIVALS_PER_S,
}


def center(units: int, ports: int, inc_jobs: int, slot_s: float) -> DataCenter:
    """A data centre of `units` units, each with `ports` optical ports and INC for `inc_jobs` jobs."""
    return DataCenter(
        tuple(Unit(f"unit{number:02}", SERVERS, ports, SWITCH_BPS, inc_jobs) for number in range(1, units + 1)),
        PORT_BPS, RECONFIGURATION_S, slot_s, STEP_BPS,
    )  # fmt: skip


def drawn(trial: Trial) -> Scheduling:
    """The data centre and the jobs of a trial; for one seed all schemes get the same jobs."""
    draws = np.random.default_rng(int(trial["seed"]))
    found = center(int(trial["units"]), int(trial.get("ports", PORTS)), int(trial["inc"]), float(trial["slot_s"]))
    requests = TRACES[str(trial["kind"])](int(trial["jobs"]), float(trial["per_s"]) or None, draws)
    return Scheduling(found, place(requests, found, draws))


def measure(trial: Trial) -> Result:
    """Measure a trial: CT-BTI, reconfigured connections, mean JCT, and the scheduling time in seconds."""
    problem = drawn(trial)
    schedule = scheme_of(trial).schedule(problem)
    found = figures(problem, schedule)
    return {
        "ct_bti_s": found.ct_bti_s,
        "connections": found.connections,
        "mean_jct_s": sum(found.jct_s.values()) / len(found.jct_s),
        "seconds": schedule.outcome.seconds,
    }


READINGS: dict[str, Mapping[str, GrantPolicy]] = {
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
"""The readings of FCFS and TW, each with the policies that it changes."""


def scheme_of(trial: Trial) -> Scheduler:
    name = str(trial["scheme"])
    policies = READINGS[str(trial["reading"])] if "reading" in trial else {}
    if name in policies:
        return Scheduler(str(trial["reading"]), slot_by_slot(name, policies[name]))
    return find_scheduler(name)


NAMES = {"connections": "AOI", "ct_bti_s": "CT-BTI", "total_jct_s": "JCT"}


@dataclass(frozen=True)
class Claim:
    """The text's claim: the percentage by which scheme `better` is below `worse`, averaged over a figure's places."""

    metric: str
    better: str
    worse: str
    paper: float

    @property
    def name(self) -> str:
        """The claim in the figures: "INC-TW to noINC-TW, AOI"."""
        return f"{self.better} to {self.worse}, {NAMES[self.metric]}"

    def estimate(self, found: Findings, points: Sequence[Trial]) -> Estimate:
        """Our mean reduction in percent; its interval is over the seeds' means over the places.

        `points` are the keys of the places' trials. The estimate is missing where `worse` is 0 at every place.
        """
        both = [
            [found.of({**point, "scheme": scheme}, self.metric) for scheme in (self.better, self.worse)]
            for point in points
        ]
        value = mean_reduction((fmean(low), fmean(high)) for low, high in both)
        if isnan(value):
            return MISSING
        seeds = range(len(both[0][0]))
        own = estimate([mean_reduction((low[seed], high[seed]) for low, high in both) for seed in seeds])
        return replace(own.map(lambda mean: mean + value - own.value), draws=own.draws)


def mean_reduction(pairs: Iterable[tuple[float, float]]) -> float:
    """The mean percentage by which each pair's first value is below the second; NaN where all second values are 0."""
    found = [100 * (1 - low / high) for low, high in pairs if high]
    return fmean(found) if found else nan


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
REDUCTION = "mean reduction"


def reductions(title: str | None, claims: Sequence[Claim], found: Findings, points: Sequence[Trial]) -> Table:
    """A table of the text's reductions and ours."""
    rows = [(claim.name, claim.paper, claim.estimate(found, points).value) for claim in claims]
    return beside_paper(title, rows, (".1f", ".1f", ".2f"), "reduction (%)")


def reductions_panel(claims: Sequence[Claim], found: Findings, points: Sequence[Trial]) -> Panel:
    names = [claim.name for claim in claims]
    ours = [claim.estimate(found, points) for claim in claims]
    paper: Printed = {REDUCTION: {name: claim.paper for name, claim in zip(names, claims, strict=True)}}
    styles = categories([REDUCTION])
    return Panel(BARS, names, {REDUCTION: ours}, "", "reduction (%)", "values in the text", paper, styles=styles)
