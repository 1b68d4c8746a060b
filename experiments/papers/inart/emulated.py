"""InArt's Figures 8 to 13 by real packets: planned and measured values beside the paper's.

All figures are views of the same runs, one for each scheme at each place, which are kept in the folder
`inart-emulated-trials`: a figure runs only what is missing there. The paper emulates a thousandth of its rates and
sizes, and so does the kit unless the request says `--scale 1`; tables and pictures have the values at a thousandth.
Where this machine does not carry the rates the network is slowed down; in virtual time it never is, and the runs are in
`inart-virtual-trials`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import ceil
from pathlib import Path

from rich.console import Console
from rich.table import Table

from inakit.experiments.emulate.defaults import rate_words
from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.drawing import save
from inakit.experiments.papers.common.emulated_runs import kind_of
from inakit.experiments.papers.common.estimates import Estimate, exact
from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.common.own_planners import own_planners
from inakit.experiments.papers.common.statements import Statement
from inakit.experiments.papers.common.sweep import Measured, Result, Trial, sweep
from inakit.experiments.papers.common.value_tables import number
from inakit.experiments.papers.inart import runs as inart_runs
from inakit.experiments.papers.inart.charts import (
    HETEROGENEOUS,
    HOMOGENEOUS,
    FigurePoint,
    InartFigure,
    Seen,
    figure_of,
    labels,
    panel,
    said,
)
from inakit.experiments.papers.inart.runs import QUANTITIES, conclusion, gradient_bytes, in_iterations, verdict
from inakit.experiments.papers.inart.setting import (
    ATP,
    HIGH_BPS,
    INART,
    LBMM,
    LINK_BPS,
    LOW_BPS,
    MODELS,
    ONE,
    SETTINGS,
    planned_by,
)
from inakit.experiments.papers.inart.simulated import WORKERS
from inakit.experiments.run.dilation import slowed_problem

EMULATED = (INART, ONE, ATP, LBMM)
EMULATED_SCALE = 1 / 1000
"""The scale at which the paper emulates, and in which its figures have their values."""
LEAST_BYTES = 1e6
"""A run sends gradients of at least this many bytes, in as many iterations as that takes."""


def run(name: str, console: Console, request: Request) -> str:
    """Run what is missing, print and draw the figure; VALID if all runs are valid and have their planned rates."""
    figure, kind, scale = figure_of(name), kind_of(request.switch), asked_scale(request)
    panels = [found for setting in (HOMOGENEOUS, HETEROGENEOUS) if (found := points(figure, setting, request))]
    wanted = [trial(scheme, point, scale) for found in panels for point, scheme in product(found, emulated())]
    measure = partial(emulate, switch=request.switch, results=request.results)
    runs = Runs(figure, sweep(wanted, measure, request.results / f"inart-{kind}-trials", console), kind, scale)
    sentences: list[Statement] = []
    for found in panels:
        console.print(runs.table(found))
        sentences += said(figure, runs.value, found)
    console.print(statements.table_of(sentences))
    results = list(runs.measured.results.values())
    console.print(conclusion(results), highlight=False)
    shown = (replace(panel(figure, runs.estimate, emulated(), found), planned=runs.planned(found)) for found in panels)
    console.print(packets_in_words(scale), highlight=False, soft_wrap=True)
    save(request.results / f"inart-{name}-{kind}", *shown)
    return verdict(results)


def emulated() -> tuple[str, ...]:
    """The schemes that are run, and your own planners."""
    return (*EMULATED, *own_planners())


def points(figure: InartFigure, setting: str, request: Request) -> list[FigurePoint]:
    """The figure's places in a setting; for a quick request only the one for which the text gives values."""
    every = figure.points(setting, WORKERS)
    return [point for point in every if point == figure.at] if request.quick else every


def asked_scale(request: Request) -> float:
    """The scale of rates and sizes; by default the one at which the paper emulates."""
    return EMULATED_SCALE if request.scale is None else request.scale


def packets_in_words(scale: float) -> str:
    """Which links and gradients the packets have had."""
    times = scale / EMULATED_SCALE
    links, low, high = (rate_words(rate * times) for rate in (LINK_BPS, LOW_BPS, HIGH_BPS))
    sizes = ", ".join(f"{name} {size * times / 1e6:g}" for name, size in MODELS.items())
    shown = "" if times == 1 else f"; rates and sizes above are divided by {times:g}"
    return f"links of {links} (heterogeneous: {low} to {high}), gradients in MB: {sizes}{shown}"


def trial(scheme: str, point: FigurePoint, scale: float) -> Trial:
    """The sweep's key of a run."""
    place: Trial = {"scheme": scheme, "setting": point.setting, "workers": point.workers, "model": point.model}
    return place if scale == EMULATED_SCALE else {**place, "scale": scale}


def emulate(trial: Trial, switch: str, results: Path) -> Result:
    """Run a scheme at a place on the network that seed 0 draws."""
    times = float(trial.get("scale", EMULATED_SCALE)) / EMULATED_SCALE
    setting, size = SETTINGS[str(trial["setting"])], times * MODELS[str(trial["model"])]
    scheme = planned_by(str(trial["scheme"]))
    problem, plan = scheme.plan(setting, int(trial["workers"]), 0, gradient_bytes(size))
    problem = in_iterations(slowed_problem(problem, times), ceil(LEAST_BYTES / size))
    plan = plan.with_rates_times(times)
    return inart_runs.emulate(f"inart-{kind_of(switch)}", problem, plan, trial, switch, results)


@dataclass(frozen=True)
class Runs:
    """A figure, and the runs that it shows: how they were run, and at which scale."""

    figure: InartFigure
    measured: Measured
    kind: str
    scale: float

    def value(self, scheme: str, point: FigurePoint, prefix: str = "") -> float:
        """The figure's quantity as measured, or, with the prefix `FORESEEN`, as planned."""
        found = self.measured.result(trial(scheme, point, self.scale))
        seen = Seen(*(float(found[prefix + quantity]) for quantity in QUANTITIES))
        return self.figure.quantity(seen.times(EMULATED_SCALE / self.scale), point)

    def estimate(self, scheme: str, point: FigurePoint) -> Estimate:
        """The measured quantity, of a single run."""
        return exact(self.value(scheme, point))

    def planned(self, places: Sequence[FigurePoint]) -> dict[str, list[float]]:
        """The planned quantity of each scheme at each place."""
        return {scheme: [self.value(scheme, point, inart_runs.FORESEEN) for point in places] for scheme in emulated()}

    def table(self, places: Sequence[FigurePoint]) -> Table:
        """A row for each run."""
        title = f"InArt, Figure {self.figure.name[3:]}, {self.kind}, {places[0].setting} ({self.figure.unit})"
        table = Table("model" if self.figure.by_model else "workers", "scheme", title=title)
        for heading in ("paper", "planned", "measured", "of plan"):
            table.add_column(heading, justify="right")
        table.add_column("verdict")
        for point, label in zip(places, labels(self.figure, places), strict=True):
            for scheme in emulated():
                table.add_row(label, scheme, *self.cells(scheme, point), end_section=scheme == emulated()[-1])
        return table

    def cells(self, scheme: str, point: FigurePoint) -> tuple[str, ...]:
        """The cells of a run's row: paper, planned, measured, measured over planned, verdict."""
        paper = self.figure.paper.get(scheme) if point == self.figure.at else None
        planned, measured = self.value(scheme, point, inart_runs.FORESEEN), self.value(scheme, point)
        judged = str(self.measured.result(trial(scheme, point, self.scale))["verdict"])
        return number(paper), number(planned), number(measured), f"{measured / planned:.1%}", judged
