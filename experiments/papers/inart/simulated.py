"""InArt's Figures 8 to 13, simulated: sending rates, communication times, throughput and PS ingress.

Each prints the text's values beside ours, then all schemes by model or by number of workers. All are views of one
sweep, because a plan does not depend on the gradient's size: its rate and the flows that come to PSs give everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import inf

from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.drawing import save
from inakit.experiments.papers.common.estimates import Estimate
from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.common.panels import Panel
from inakit.experiments.papers.common.statements import Statement
from inakit.experiments.papers.common.sweep import Measured, Trial, sweep
from inakit.experiments.papers.common.value_tables import number
from inakit.experiments.papers.inart.charts import (
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
from inakit.experiments.papers.inart.setting import (
    ATP,
    INART,
    LBMM,
    LIMITED_ATP,
    LP,
    MODELS,
    ONE,
    SETTINGS,
    compared,
    measure,
)
from inakit.traffic.measure.verdict import VALID, Verdict

SEEDS, QUICK_SEEDS = 30, 2
WORKERS, QUICK_WORKERS = (10, 20, 30, 40, 50), (30, 40, 50)
PROCESSES = 2

RATIOS = ((LP, ATP), (INART, ATP), (ONE, LIMITED_ATP))
"""InArt over ATP, under three readings: as the paper's values suggest, with whole flows, and as the text describes."""


PRINTED_AS = {LP: INART, ONE: INART, LIMITED_ATP: ATP}
"""The scheme of the paper with whose value a reading of ours is compared."""


def trials(setting: str, workers: int, scheme: str, seeds: int) -> list[Trial]:
    """A trial for each seed, or a single one in a setting where nothing is drawn."""
    drawn = range(1 if SETTINGS[setting].filled else seeds)
    return [{"setting": setting, "workers": workers, "scheme": scheme, "seed": seed} for seed in drawn]


@dataclass(frozen=True)
class Averages:
    """The means of a sweep over its seeds."""

    measured: Measured
    seeds: int

    def seen(self, scheme: str, point: FigurePoint) -> Seen:
        """What a scheme does at a place; the time is the gradient's bits over the mean rate, as in the paper."""
        found = trials(point.setting, point.workers, scheme, self.seeds)
        rate_bps, size = self.measured.mean("rate_bps", found), MODELS[point.model]
        return Seen(rate_bps, size * 8 / rate_bps, self.measured.mean("arrivals", found) * size)

    def values(self, figure: InartFigure) -> Values:
        """The figure's quantity of the means."""
        return lambda scheme, point: figure.quantity(self.seen(scheme, point), point)

    def estimates(self, figure: InartFigure) -> Estimates:
        """The figure's quantity of the means; its interval follows from that of the mean rate, or mean PS ingress."""

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
    """Print and draw the figure; VALID if InArt is better than ATP, and ATP than LBMM, at the text's place."""
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
    return VALID if rates == sorted(rates, reverse=True) else Verdict.DIFFERS


def averages_of(figure: InartFigure, workers: Sequence[int], console: Console, request: Request) -> Averages:
    """Measure what the figure needs and earlier figures have not measured."""
    seeds = QUICK_SEEDS if request.quick else SEEDS
    places = {(setting, figure.at.workers) for setting in figure.settings}
    for setting in (HOMOGENEOUS, HETEROGENEOUS):
        places |= {(setting, point.workers) for point in figure.points(setting, workers)}
    wanted = [
        trial
        for (setting, count), scheme in product(sorted(places), compared())
        for trial in trials(setting, count, scheme, seeds)
    ]
    return Averages(sweep(wanted, measure, request.results / "inart-trials", console, PROCESSES), seeds)


def beside_the_paper(figure: InartFigure, values: Values, setting: str) -> Table:
    """A table of every reading of a scheme beside the paper's value, and of InArt over ATP under several readings."""
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
    """A row for each scheme, a column for each place."""
    table = Table("scheme", *labels(figure, points), title=f"{points[0].setting} ({figure.unit})")
    for scheme in compared():
        table.add_row(scheme, *(number(values(scheme, point)) for point in points))
    return table
