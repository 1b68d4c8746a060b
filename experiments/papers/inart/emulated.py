"""InArt's Figures 8 to 13 by real packets: planned and measured values beside the paper's.

All figures are views of the same runs, one for each scheme at each place, which are kept in `inart-emulated.jsonl`: a
figure runs only what is missing there. Where this machine does not carry the paper's rates the network is slowed down;
tables and pictures have the values at the paper's rates.
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

from experiments.papers.common import statements
from experiments.papers.common.drawing import save
from experiments.papers.common.estimates import Estimate, exact
from experiments.papers.common.figure import Request
from experiments.papers.common.own_planners import own_planners
from experiments.papers.common.statements import Statement
from experiments.papers.common.sweep import Measured, Result, Trial, sweep
from experiments.papers.common.value_tables import number
from experiments.papers.inart import runs as inart_runs
from experiments.papers.inart.charts import (
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
from experiments.papers.inart.runs import QUANTITIES, conclusion, gradient_bytes, in_iterations, verdict
from experiments.papers.inart.setting import ATP, INART, LBMM, MODELS, ONE, SETTINGS, planned_by
from experiments.papers.inart.simulated import WORKERS

EMULATED = (INART, ONE, ATP, LBMM)
LEAST_BYTES = 1e6
"""A run sends gradients of at least this many bytes, in as many iterations as that takes."""


def run(name: str, console: Console, request: Request) -> str:
    """Run what is missing, print and draw the figure; VALID if all runs are valid and have their planned rates."""
    figure = figure_of(name)
    panels = [found for setting in (HOMOGENEOUS, HETEROGENEOUS) if (found := points(figure, setting, request))]
    wanted = [trial(scheme, point) for found in panels for point, scheme in product(found, emulated())]
    measure = partial(emulate, switch=request.switch, results=request.results)
    runs = Runs(figure, sweep(wanted, measure, request.results / "inart-emulated.jsonl", console))
    sentences: list[Statement] = []
    for found in panels:
        console.print(runs.table(found))
        sentences += said(figure, runs.value, found)
    console.print(statements.table_of(sentences))
    results = list(runs.measured.results.values())
    console.print(conclusion(results), highlight=False)
    shown = (replace(panel(figure, runs.estimate, emulated(), found), planned=runs.planned(found)) for found in panels)
    save(request.results / f"inart-{name}-emulated", *shown)
    return verdict(results)


def emulated() -> tuple[str, ...]:
    """The schemes that are run, and your own planners."""
    return (*EMULATED, *own_planners())


def points(figure: InartFigure, setting: str, request: Request) -> list[FigurePoint]:
    """The figure's places in a setting; for a quick request only the one for which the text gives values."""
    every = figure.points(setting, WORKERS)
    return [point for point in every if point == figure.at] if request.quick else every


def trial(scheme: str, point: FigurePoint) -> Trial:
    """The sweep's key of a run."""
    return {"scheme": scheme, "setting": point.setting, "workers": point.workers, "model": point.model}


def emulate(trial: Trial, switch: str, results: Path) -> Result:
    """Run a scheme at a place on the emulated network that seed 0 draws."""
    setting, size = SETTINGS[str(trial["setting"])], MODELS[str(trial["model"])]
    scheme = planned_by(str(trial["scheme"]))
    problem, plan = scheme.plan(setting, int(trial["workers"]), 0, gradient_bytes(size))
    problem = in_iterations(problem, ceil(LEAST_BYTES / size))
    return inart_runs.emulate("inart-emulated", problem, plan, trial, switch, results)


@dataclass(frozen=True)
class Runs:
    """A figure, and the runs that it shows."""

    figure: InartFigure
    measured: Measured

    def value(self, scheme: str, point: FigurePoint, prefix: str = "") -> float:
        """The figure's quantity as measured, or, with the prefix `FORESEEN`, as planned."""
        found = self.measured.result(trial(scheme, point))
        return self.figure.quantity(Seen(*(float(found[prefix + quantity]) for quantity in QUANTITIES)), point)

    def estimate(self, scheme: str, point: FigurePoint) -> Estimate:
        """The measured quantity, of a single run."""
        return exact(self.value(scheme, point))

    def planned(self, places: Sequence[FigurePoint]) -> dict[str, list[float]]:
        """The planned quantity of each scheme at each place."""
        return {scheme: [self.value(scheme, point, inart_runs.FORESEEN) for point in places] for scheme in emulated()}

    def table(self, places: Sequence[FigurePoint]) -> Table:
        """A row for each run."""
        title = f"InArt, Figure {self.figure.name[3:]}, emulated, {places[0].setting} ({self.figure.unit})"
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
        judged = str(self.measured.result(trial(scheme, point))["verdict"])
        return number(paper), number(planned), number(measured), f"{measured / planned:.1%}", judged
