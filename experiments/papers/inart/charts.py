"""InArt's Figures 8 to 13 as data: each one's quantity, places and printed values, its panel and its statements.

The simulated and the emulated figures are both made of this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.estimates import Estimate
from inakit.experiments.papers.common.panels import BARS, LINES, Panel, Place, Printed
from inakit.experiments.papers.common.statements import Statement
from inakit.experiments.papers.inart.setting import ATP, INART, LBMM, MODELS

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
