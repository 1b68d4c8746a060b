"""InArt's Figures 8 to 13, simulated: sending rates, communication times, throughput and PS ingress.

Each prints what the text says beside ours, then all schemes by model or by number of workers. All are views of one
sweep, for a plan does not depend on the gradient's size: f, and the flows that come to PSs, give everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import inf

from rich.console import Console
from rich.table import Table

from experiments.papers.common import statements
from experiments.papers.common.drawing import save
from experiments.papers.common.estimates import Estimate
from experiments.papers.common.figure import Request
from experiments.papers.common.panels import Panel
from experiments.papers.common.statements import Statement
from experiments.papers.common.sweep import Measured, Trial, sweep
from experiments.papers.common.value_tables import number
from experiments.papers.common.verdicts import OTHERWISE
from experiments.papers.inart.charts import (
    HETEROGENEOUS,
    HOMOGENEOUS,
    Estimates,
    FigurePoint,
    InartFigure,
    Seen,
    Values,
    figure_of,
    ingress_mb,
    labels,
    panel,
    said,
)
from experiments.papers.inart.setting import ATP, INART, LBMM, LIMITED_ATP, LP, MODELS, ONE, SETTINGS, compared, measure
from traffic.measure.verdict import VALID

SEEDS, QUICK_SEEDS = 30, 2
WORKERS, QUICK_WORKERS = (10, 20, 30, 40, 50), (30, 40, 50)
PROCESSES = 2

RATIOS = ((LP, ATP), (INART, ATP), (ONE, LIMITED_ATP))
"""InArt over ATP: as the paper's values suggest, with whole flows, and as the text describes both."""


PRINTED_AS = {LP: INART, ONE: INART, LIMITED_ATP: ATP}
"""Under which scheme's value of the paper a reading of ours stands."""


def trials(setting: str, workers: int, scheme: str, seeds: int) -> list[Trial]:
    """One for each seed; a single one where nothing is drawn."""
    drawn = range(1 if SETTINGS[setting].filled else seeds)
    return [{"setting": setting, "workers": workers, "scheme": scheme, "seed": seed} for seed in drawn]


@dataclass(frozen=True)
class Averages:
    """The means of a sweep over its seeds."""

    measured: Measured
    seeds: int

    def seen(self, scheme: str, point: FigurePoint) -> Seen:
        """The time is a gradient's bits over the mean rate, as the paper's times are."""
        found = trials(point.setting, point.workers, scheme, self.seeds)
        rate_bps, size = self.measured.mean("rate_bps", found), MODELS[point.model]
        return Seen(rate_bps, size * 8 / rate_bps, self.measured.mean("arrivals", found) * size)

    def values(self, figure: InartFigure) -> Values:
        return lambda scheme, point: figure.quantity(self.seen(scheme, point), point)

    def estimates(self, figure: InartFigure) -> Estimates:
        """The quantity of the means; its interval is that of the mean rate, or of the mean of what comes to PSs."""

        def estimate(scheme: str, point: FigurePoint) -> Estimate:
            size, ingress = MODELS[point.model], figure.quantity is ingress_mb
            found = self.measured.estimate(
                "arrivals" if ingress else "rate_bps", trials(point.setting, point.workers, scheme, self.seeds)
            )

            def quantity(mean: float) -> float:
                seen = Seen(0.0, 0.0, mean * size) if ingress else Seen(mean, size * 8 / mean if mean > 0 else inf, 0.0)
                return figure.quantity(seen, point)

            return found.map(quantity)

        return estimate


def run(name: str, console: Console, request: Request) -> str:
    """Print and draw the figure; VALID if InArt is better than ATP, and ATP than LBMM, at the paper's point."""
    figure = figure_of(name)
    workers = QUICK_WORKERS if request.quick else WORKERS
    averages = averages_of(figure, workers, console, request)
    values = averages.values(figure)
    for setting in figure.settings:
        console.print(beside_the_paper(figure, values, setting))
    panels: list[Panel] = []
    sentences: list[Statement] = []
    for setting in (HOMOGENEOUS, HETEROGENEOUS):
        points = figure.points(setting, workers)
        console.print(over_points(figure, values, points))
        panels.append(panel(figure, averages.estimates(figure), compared(), points))
        sentences += said(figure, values, points)
    console.print(statements.table_of(sentences))
    save(request.results / f"inart-{name}", *panels)
    rates = [averages.seen(scheme, figure.at).rate_bps for scheme in (INART, ATP, LBMM)]
    return VALID if rates == sorted(rates, reverse=True) else OTHERWISE


def averages_of(figure: InartFigure, workers: Sequence[int], console: Console, request: Request) -> Averages:
    """What the figure needs of the sweep; figures by model, and those by workers, need much of the same."""
    seeds = QUICK_SEEDS if request.quick else SEEDS
    places = {(setting, figure.at.workers) for setting in figure.settings}
    for setting in (HOMOGENEOUS, HETEROGENEOUS):
        places |= {(setting, point.workers) for point in figure.points(setting, workers)}
    wanted = [
        trial
        for (setting, count), scheme in product(sorted(places), compared())
        for trial in trials(setting, count, scheme, seeds)
    ]
    return Averages(sweep(wanted, measure, request.results / "inart.jsonl", console, PROCESSES), seeds)


def beside_the_paper(figure: InartFigure, values: Values, setting: str) -> Table:
    """Every reading of a scheme beside the paper's value; then InArt over ATP, as printed and as stated."""
    point = FigurePoint(setting, figure.at.workers, figure.at.model)
    title = f"InArt, Figure {figure.name[3:]}, {setting}, {point.workers} workers"
    table = Table("scheme", "paper", "ours", "ratio", title=f"{title}, {point.model} ({figure.unit})")
    for scheme in compared():
        paper, ours = figure.paper.get(PRINTED_AS.get(scheme, scheme)), values(scheme, point)
        table.add_row(scheme, number(paper), number(ours), number(paper and ours / paper))
    for scheme, other in RATIOS:
        paper = figure.paper[INART] / figure.paper[ATP]
        ours = values(scheme, point) / values(other, point)
        table.add_row(f"{scheme} / {other}", number(paper), number(ours), number(ours / paper))
    return table


def over_points(figure: InartFigure, values: Values, points: Sequence[FigurePoint]) -> Table:
    table = Table("scheme", *labels(figure, points), title=f"{points[0].setting} ({figure.unit})")
    for scheme in compared():
        table.add_row(scheme, *(number(values(scheme, point)) for point in points))
    return table
