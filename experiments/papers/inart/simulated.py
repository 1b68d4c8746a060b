"""InArt's Figures 8 to 13, simulated: sending rates, communication times, throughput and PS ingress.

Each prints the text's values beside ours, then all schemes by model or by number of workers. All are views of one
sweep, because a plan does not depend on the gradient's size: its rate and the flows that come to PSs give everything.
The emulated figures are made of the same `InartFigure`s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf

from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.drawing import BARS, LINES, Panel, Place, Printed, save
from inakit.experiments.papers.common.estimates import Estimate
from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.common.statements import Statement, number
from inakit.experiments.papers.common.sweep import Measured, Trial, sweep
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

SOME_WORKERS = 40
"""The workers of the figures by model, which the text does not state: LBMM's 22 MB are 40 times VGG19's 548 kB."""
HOMOGENEOUS, HETEROGENEOUS = "homogeneous", "heterogeneous"
SLOW_SERVERS, FILLED = "heterogeneous, the PSs' links too", "homogeneous, racks filled"


@dataclass(frozen=True)
class FigurePoint:
    """A place in a figure: a setting of `SETTINGS`, a number of workers and a model of `MODELS`."""

    setting: str
    workers: int
    model: str = "LSTM"


@dataclass(frozen=True)
class Seen:
    """What a scheme does at a place: the sending rate, an iteration's time, and the bytes that PSs get in it."""

    rate_bps: float
    time_s: float
    ingress_bytes: float

    def times(self, factor: float) -> Seen:
        """The same at rates and sizes that are `factor` times as large; times stay."""
        return Seen(self.rate_bps * factor, self.time_s, self.ingress_bytes * factor)


Quantity = Callable[[Seen, FigurePoint], float]
Values = Callable[[str, FigurePoint], float]
"""A figure's quantity, for a scheme and a place."""
Estimates = Callable[[str, FigurePoint], Estimate]
"""A figure's quantity with its interval, for a scheme and a place."""


def rate_mbps(seen: Seen, _: FigurePoint) -> float:
    """The sending rate of a worker in Mbit/s."""
    return seen.rate_bps / 1e6


def time_s(seen: Seen, _: FigurePoint) -> float:
    """The time of an iteration."""
    return seen.time_s


def throughput_mbps(seen: Seen, point: FigurePoint) -> float:
    """What all workers send together, in Mbit/s: the reading by which LBMM's 90 in the text are about its PSs' 80."""
    return point.workers * seen.rate_bps / 1e6


def ingress_mb(seen: Seen, _: FigurePoint) -> float:
    """The bytes that all PSs get in an iteration, in MB."""
    return seen.ingress_bytes / 1e6


@dataclass(frozen=True)
class InartFigure:
    """A figure. `paper` has the text's values by scheme, at the only place `at` for which it gives any.

    Figures `by_model` have bars, others lines over workers. `readings` are further settings in which the place is
    measured. `trend` is "rises" or "falls" where the text says this of all schemes' values from left to right.
    """

    name: str
    what: str
    unit: str
    quantity: Quantity
    at: FigurePoint
    paper: Mapping[str, float]
    by_model: bool = False
    readings: Sequence[str] = ()
    trend: str = ""

    @property
    def more_is_better(self) -> bool:
        """Whether higher values are better, which is so for rates and throughput, the only quantities in Mbit/s."""
        return self.unit == "Mbit/s"

    @property
    def over(self) -> str:
        """What the x axis has: models or workers."""
        return "models" if self.by_model else "workers"

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings in which the text's place is measured."""
        return (self.at.setting, *self.readings)

    def points(self, setting: str, workers: Iterable[int]) -> list[FigurePoint]:
        """The figure's places in a setting; `workers` are those of a figure that is not by model."""
        if self.by_model:
            return [FigurePoint(setting, SOME_WORKERS, model) for model in MODELS]
        return [FigurePoint(setting, count, self.at.model) for count in workers]


FIGURES = (
    InartFigure(
        "fig8", "sending rate", "Mbit/s", rate_mbps, FigurePoint(HOMOGENEOUS, SOME_WORKERS), {INART: 10.75, ATP: 4.7},
        by_model=True,
    ),
    InartFigure(
        "fig9", "sending rate", "Mbit/s", rate_mbps, FigurePoint(HETEROGENEOUS, 50), {INART: 8.73, ATP: 4.44},
        readings=[SLOW_SERVERS], trend="falls",
    ),
    InartFigure(
        "fig10", "communication time", "s", time_s, FigurePoint(HOMOGENEOUS, SOME_WORKERS, "ResNet-50"),
        {INART: 0.068, ATP: 0.152, LBMM: 0.35}, by_model=True,
    ),
    InartFigure(
        "fig11", "communication time", "s", time_s, FigurePoint(HETEROGENEOUS, 50),
        {INART: 1.52, ATP: 2.96, LBMM: 8.13}, readings=[SLOW_SERVERS], trend="rises",
    ),
    InartFigure(
        "fig12", "network throughput", "Mbit/s", throughput_mbps, FigurePoint(HOMOGENEOUS, 30),
        {INART: 420.0, ATP: 160.0, LBMM: 90.0}, trend="rises",
    ),
    InartFigure(
        "fig13", "PS ingress", "MB", ingress_mb, FigurePoint(HOMOGENEOUS, SOME_WORKERS, "VGG19"),
        {INART: 3.44, ATP: 7.33, LBMM: 22.0}, by_model=True, readings=[FILLED],
    ),
)  # fmt: skip


def figure_of(name: str) -> InartFigure:
    """The figure with a name such as fig8."""
    return next(figure for figure in FIGURES if figure.name == name)


def labels(figure: InartFigure, points: Iterable[FigurePoint]) -> list[str]:
    """The names of places on the x axis."""
    return [point.model if figure.by_model else str(point.workers) for point in points]


def panel(figure: InartFigure, values: Estimates, schemes: Iterable[str], points: Sequence[FigurePoint]) -> Panel:
    """Bars by model, or lines over workers, with the paper's values at the place for which the text has them."""
    places: list[Place] = [point.model if figure.by_model else point.workers for point in points]
    series = {scheme: [values(scheme, point) for point in points] for scheme in schemes}
    at = places[points.index(figure.at)] if figure.at in points else None
    paper: Printed = {scheme: {at: value} for scheme, value in figure.paper.items() if at is not None}
    kind, xlabel = (BARS, "model") if figure.by_model else (LINES, "workers")
    return Panel(kind, places, series, xlabel, f"{figure.what} ({figure.unit})", points[0].setting, paper)


def said(figure: InartFigure, values: Values, points: Sequence[FigurePoint]) -> Iterator[Statement]:
    """The text's sentences about the figure in one setting: which scheme is best, and what rises or falls."""
    curves = {scheme: [values(scheme, point) for point in points] for scheme in (INART, ATP, LBMM)}
    where, places = points[0].setting, labels(figure, points)
    best = statements.is_highest if figure.more_is_better else statements.is_lowest
    yield best(where, INART, (ATP, LBMM), curves, places)
    yield statements.is_over(f"{where}: ATP better than LBMM", ordered(figure, curves[ATP], curves[LBMM]), places)
    trend = {"rises": statements.rises, "falls": statements.falls}.get(figure.trend)
    if trend and len(points) > 1:
        yield from (
            trend(f"{where}: {name} {figure.trend} with {figure.over}", curve) for name, curve in curves.items()
        )
    if figure.name == "fig11" and len(points) > 1:
        growth = {name: [curve[-1] - curve[0]] for name, curve in curves.items()}
        yield statements.is_lowest(
            f"{where}, growth with workers", INART, (ATP, LBMM), growth, [f"{places[0]} to {places[-1]}"]
        )


def ordered(
    figure: InartFigure, better: Sequence[float], worse: Sequence[float]
) -> tuple[Sequence[float], Sequence[float]]:
    """The two curves, with the one first that should be higher."""
    return (better, worse) if figure.more_is_better else (worse, better)


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
