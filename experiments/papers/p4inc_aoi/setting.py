"""P4INC-AOI's simulations: 64 units of 64 servers, jobs and arrivals, schemes, and the reductions in its text.

What the paper leaves open are keys of a trial (`SETTING`); `inakit reproduce p4inc-aoi readings` measures all
combinations of `CHOICES`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from statistics import fmean

import numpy as np
from rich.table import Table

from inakit.experiments.papers.common.claims import read_ledger
from inakit.experiments.papers.common.drawing import BARS, Panel, Printed
from inakit.experiments.papers.common.estimates import MISSING, Estimate, estimate
from inakit.experiments.papers.common.figure_engine import Findings
from inakit.experiments.papers.common.statements import Statement, beside_paper
from inakit.experiments.papers.common.sweep import Result, Trial, Value
from inakit.experiments.report.method_styles import categories
from inakit.planner.methods.p4inc_aoi.job_traces import mapreduce, place, training
from inakit.planner.methods.p4inc_aoi.optical_system import DataCenter, Scheduling, Unit
from inakit.planner.methods.p4inc_aoi.schedule import figures
from inakit.planner.methods.p4inc_aoi.schedulers import Scheduler
from inakit.planner.registry import find_scheduler

PAPER = "p4inc-aoi"
GIGA = 1e9
SERVERS, PORTS, PORT_BPS, STEP_BPS, INC_JOBS = 64, 24, 40 * GIGA, 10 * GIGA, 4
NIC_BPS = 40 * GIGA
SWITCH_BPS = 2 * SERVERS * NIC_BPS
"""The bandwidth of a unit's switch: the links of all its servers, in both directions."""
RECONFIGURATION_S = 0.025
LINKS: Mapping[str, tuple[float | None, int]] = {"none": (None, 1), "workers": (NIC_BPS, SERVERS), "all": (NIC_BPS, 1)}
"""The servers' links that limit: none; the workers', while a PS is spread over servers; or the PS's single one, too."""
CHOICES: Mapping[str, Sequence[Value]] = {
    "links": tuple(LINKS),
    "inc": ("inside", "across"),
    "fcfs": ("strict", "passing"),
    "per_s": (0.0, 20.0),
    "free": (14, 22, 64),
}
"""What the text leaves open: which links limit; whether INC serves jobs over several units; whether jobs pass others
that wait under FCFS; arrivals per second, 0 for one concurrent batch; and the most servers that are free for a job in
its first unit.
"""
SETTING: Trial = {"links": "workers", "inc": "inside", "fcfs": "strict", "per_s": 0.0, "free": 22}
"""The combination of the choices with which all figures are drawn."""
DEFAULTS: Trial = {
    **SETTING, "kind": "training", "jobs": 1000, "units": 64, "capacity": INC_JOBS, "slot_s": 1.0,
}  # fmt: skip
TRACES = {"training": training, "mapreduce": mapreduce}
RESULTS = "aoi-simulation-trials"
COMPARED = ("noINC-FCFS", "INC-FCFS", "noINC-TW", "INC-TW")
OURS = "pack"


def scheme_of(trial: Trial) -> Scheduler:
    """The scheduler of a trial. The text does not say whether jobs pass others that wait under FCFS."""
    name = str(trial["scheme"])
    return find_scheduler(f"{name}-passing" if "FCFS" in name and trial["fcfs"] == "passing" else name)


def center(trial: Trial) -> DataCenter:
    """The data centre of a trial: `units` units with INC for `capacity` jobs each."""
    nic_bps, ps_links = LINKS[str(trial["links"])]
    units = tuple(
        Unit(
            f"unit{number:02}", SERVERS, int(trial.get("ports", PORTS)), SWITCH_BPS, int(trial["capacity"]),
            nic_bps=nic_bps, ps_links=ps_links,
        )
        for number in range(1, int(trial["units"]) + 1)
    )  # fmt: skip
    reconfiguration_s = float(trial.get("reconfiguration_s", RECONFIGURATION_S))
    across = trial["inc"] == "across"
    return DataCenter(units, PORT_BPS, reconfiguration_s, float(trial["slot_s"]), STEP_BPS, across)


def drawn(trial: Trial) -> Scheduling:
    """The data centre and the jobs of a trial; for one seed all schemes get the same jobs."""
    draws = np.random.default_rng(int(trial["seed"]))
    found = center(trial)
    requests = TRACES[str(trial["kind"])](int(trial["jobs"]), float(trial["per_s"]) or None, draws)
    return Scheduling(found, place(requests, found, draws, int(trial["free"])))


def measure(trial: Trial) -> Result:
    """Measure a trial: CT-BTI, reconfigured connections, mean JCT, and the scheduling time in seconds."""
    problem = drawn(trial)
    schedule = scheme_of(trial).schedule(problem)
    found = figures(problem, schedule)
    return {
        "ct_bti_s": found.ct_bti_s,
        "connections": found.connections,
        "mean_jct_s": fmean(found.jct_s.values()),
        "seconds": schedule.outcome.seconds,
    }


NAMES = {"connections": "AOI", "ct_bti_s": "CT-BTI", "total_jct_s": "JCT"}
Schemes = tuple[str, str]
"""The scheme with the lower value, and the other."""


@dataclass(frozen=True)
class Reduction:
    """A claim: the percentage by which a scheme is below another, averaged over a figure's places, and over pairs."""

    claim: str
    metric: str
    pairs: tuple[Schemes, ...]

    @property
    def name(self) -> str:
        """The claim in the figures: "AOI, INC-TW to noINC-TW"."""
        return f"{NAMES[self.metric]}, {' and '.join(' to '.join(pair) for pair in self.pairs)}"

    @property
    def paper(self) -> float:
        """The paper's percentage."""
        value = read_ledger(PAPER).claims[self.claim].paper
        assert isinstance(value, float)
        return value

    def estimate(self, found: Findings, points: Sequence[Trial]) -> Estimate:
        """Our mean reduction in percent; its interval is over the seeds' means over the places.

        `points` are the keys of the places' trials. The estimate is missing where the higher value is 0 everywhere.
        """
        both = [
            [found.of({**point, "scheme": scheme}, self.metric) for scheme in pair]
            for point in points
            for pair in self.pairs
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


BY_INC: tuple[Schemes, ...] = (("INC-FCFS", "noINC-FCFS"), ("INC-TW", "noINC-TW"))
BY_TW: tuple[Schemes, ...] = (("noINC-TW", "noINC-FCFS"), ("INC-TW", "INC-FCFS"))
FIGURE_8 = (
    Reduction("fig8-aoi-inc-fcfs", "connections", BY_INC[:1]),
    Reduction("fig8-aoi-inc-tw", "connections", BY_INC[1:]),
    Reduction("fig8-aoi-tw-noinc", "connections", BY_TW[:1]),
    Reduction("fig8-aoi-tw-inc", "connections", BY_TW[1:]),
    Reduction("fig8-ct-tw-noinc", "ct_bti_s", BY_TW[:1]),
    Reduction("fig8-ct-tw-inc", "ct_bti_s", BY_TW[1:]),
)
FIGURE_9 = (
    Reduction("fig9-aoi", "connections", (("INC-TW", "noINC-FCFS"),)),
    Reduction("fig9-ct", "ct_bti_s", (("INC-TW", "noINC-FCFS"),)),
)
REDUCTION = "mean reduction"


def reductions(title: str | None, claims: Sequence[Reduction], found: Findings, points: Sequence[Trial]) -> Table:
    """A table of the text's reductions and ours."""
    rows = [(claim.name, claim.paper, claim.estimate(found, points).value) for claim in claims]
    return beside_paper(title, rows, (".1f", ".1f", ".2f"), "reduction (%)")


def judged(claims: Sequence[Reduction], found: Findings, points: Sequence[Trial]) -> list[Statement]:
    """The ledger's verdicts on reductions."""
    return [read_ledger(PAPER).judge(claim.claim, claim.estimate(found, points)) for claim in claims]


def reductions_panel(claims: Sequence[Reduction], found: Findings, points: Sequence[Trial]) -> Panel:
    names = [claim.name for claim in claims]
    ours = [claim.estimate(found, points) for claim in claims]
    paper: Printed = {REDUCTION: {name: claim.paper for name, claim in zip(names, claims, strict=True)}}
    styles = categories([REDUCTION])
    return Panel(BARS, names, {REDUCTION: ours}, "", "reduction (%)", "values in the text", paper, styles=styles)
