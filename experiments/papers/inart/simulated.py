"""InArt's Figures 8 to 13, simulated: sending rates, communication times, throughput and PS ingress.

Each prints what the text says beside ours, then all schemes by model or by number of workers. All are views of one
sweep, for a plan does not depend on the gradient's size: f, and the flows that come to PSs, give everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf

from rich.console import Console
from rich.table import Table

from experiments.papers.common import statements as text
from experiments.papers.common.drawing import number, save
from experiments.papers.common.estimates import Estimate
from experiments.papers.common.panels import BARS, LINES, Panel, Place, Printed
from experiments.papers.common.statements import Statement
from experiments.papers.common.sweep import Measured, Request, Trial, sweep
from experiments.papers.inart.setting import ATP, INART, LBMM, LIMITED_ATP, LP, MODELS, ONE, SETTINGS, compared, measure
from traffic.measure.verdict import VALID

SEEDS, QUICK_SEEDS = 30, 2
WORKERS, QUICK_WORKERS = (10, 20, 30, 40, 50), (30, 40, 50)
SOME_WORKERS = 40
"""Of the figures by model: what their 22 MB of LBMM are over VGG19's 548 kB. The text does not say."""
HOMOGENEOUS, HETEROGENEOUS = "homogeneous", "heterogeneous"
SLOW_SERVERS, FILLED = "heterogeneous, the PSs' links too", "homogeneous, racks filled"
PROCESSES = 2
OTHERWISE = "OTHERWISE"
RATIOS = ((LP, ATP), (INART, ATP), (ONE, LIMITED_ATP))
"""InArt over ATP: as the paper's values suggest, with whole flows, and as the text describes both."""


@dataclass(frozen=True)
class Point:
    """A place in a figure."""

    setting: str
    workers: int
    model: str = "LSTM"


@dataclass(frozen=True)
class Seen:
    """What a scheme does at a point: the sending rate, an iteration's time, the bytes that PSs get in it."""

    rate_bps: float
    time_s: float
    ingress_bytes: float


Quantity = Callable[[Seen, Point], float]
Values = Callable[[str, Point], float]
"""A figure's quantity by scheme."""
Estimates = Callable[[str, Point], Estimate]
"""The same with its interval."""


def rate_mbps(seen: Seen, _: Point) -> float:
    return seen.rate_bps / 1e6


def time_s(seen: Seen, _: Point) -> float:
    return seen.time_s


def throughput_mbps(seen: Seen, point: Point) -> float:
    """What all workers send together: the reading by which LBMM has 90 Mbit/s, about its PSs' 80."""
    return point.workers * seen.rate_bps / 1e6


def ingress_mb(seen: Seen, _: Point) -> float:
    return seen.ingress_bytes / 1e6


@dataclass(frozen=True)
class FigureOf:
    """`paper`: what the text says, by scheme, at the point `at`. `by_model`: bars, else lines over workers.

    `trend`: whether the text says that all schemes' values rise or fall from left to right.
    """

    name: str
    what: str
    unit: str
    quantity: Quantity
    at: Point
    paper: Mapping[str, float]
    by_model: bool = False
    readings: Sequence[str] = ()
    trend: str = ""

    @property
    def more_is_better(self) -> bool:
        """Of rates and throughput, which are all that is in Mbit/s."""
        return self.unit == "Mbit/s"

    @property
    def over(self) -> str:
        """What the figure's places are."""
        return "models" if self.by_model else "workers"

    @property
    def settings(self) -> tuple[str, ...]:
        return (self.at.setting, *self.readings)

    def points(self, setting: str, workers: Iterable[int]) -> list[Point]:
        if self.by_model:
            return [Point(setting, SOME_WORKERS, model) for model in MODELS]
        return [Point(setting, count, self.at.model) for count in workers]


FIGURES = (
    FigureOf(
        "fig8", "sending rate", "Mbit/s", rate_mbps, Point(HOMOGENEOUS, SOME_WORKERS), {INART: 10.75, ATP: 4.7},
        by_model=True,
    ),
    FigureOf(
        "fig9", "sending rate", "Mbit/s", rate_mbps, Point(HETEROGENEOUS, 50), {INART: 8.73, ATP: 4.44},
        readings=[SLOW_SERVERS], trend="falls",
    ),
    FigureOf(
        "fig10", "communication time", "s", time_s, Point(HOMOGENEOUS, SOME_WORKERS, "ResNet-50"),
        {INART: 0.068, ATP: 0.152, LBMM: 0.35}, by_model=True,
    ),
    FigureOf(
        "fig11", "communication time", "s", time_s, Point(HETEROGENEOUS, 50), {INART: 1.52, ATP: 2.96, LBMM: 8.13},
        readings=[SLOW_SERVERS], trend="rises",
    ),
    FigureOf(
        "fig12", "network throughput", "Mbit/s", throughput_mbps, Point(HOMOGENEOUS, 30),
        {INART: 420.0, ATP: 160.0, LBMM: 90.0}, trend="rises",
    ),
    FigureOf(
        "fig13", "PS ingress", "MB", ingress_mb, Point(HOMOGENEOUS, SOME_WORKERS, "VGG19"),
        {INART: 3.44, ATP: 7.33, LBMM: 22.0}, by_model=True, readings=[FILLED],
    ),
)  # fmt: skip
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

    def seen(self, scheme: str, point: Point) -> Seen:
        """The time is a gradient's bits over the mean rate, as the paper's times are."""
        found = trials(point.setting, point.workers, scheme, self.seeds)
        rate_bps, size = self.measured.mean("rate_bps", found), MODELS[point.model]
        return Seen(rate_bps, size * 8 / rate_bps, self.measured.mean("arrivals", found) * size)

    def values(self, figure: FigureOf) -> Values:
        return lambda scheme, point: figure.quantity(self.seen(scheme, point), point)

    def estimates(self, figure: FigureOf) -> Estimates:
        """The quantity of the means; its interval is that of the mean rate, or of the mean of what comes to PSs."""

        def estimate(scheme: str, point: Point) -> Estimate:
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
    statements: list[Statement] = []
    for setting in (HOMOGENEOUS, HETEROGENEOUS):
        points = figure.points(setting, workers)
        console.print(over_points(figure, values, points))
        panels.append(panel(figure, averages.estimates(figure), compared(), points))
        statements += said(figure, values, points)
    console.print(text.table_of(statements))
    save(request.results / f"inart-{name}", *panels)
    rates = [averages.seen(scheme, figure.at).rate_bps for scheme in (INART, ATP, LBMM)]
    return VALID if rates == sorted(rates, reverse=True) else OTHERWISE


def figure_of(name: str) -> FigureOf:
    return next(figure for figure in FIGURES if figure.name == name)


def averages_of(figure: FigureOf, workers: Sequence[int], console: Console, request: Request) -> Averages:
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


def beside_the_paper(figure: FigureOf, values: Values, setting: str) -> Table:
    """Every reading of a scheme beside the paper's value; then InArt over ATP, as printed and as stated."""
    point = Point(setting, figure.at.workers, figure.at.model)
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


def over_points(figure: FigureOf, values: Values, points: Sequence[Point]) -> Table:
    table = Table("scheme", *labels(figure, points), title=f"{points[0].setting} ({figure.unit})")
    for scheme in compared():
        table.add_row(scheme, *(number(values(scheme, point)) for point in points))
    return table


def labels(figure: FigureOf, points: Iterable[Point]) -> list[str]:
    return [point.model if figure.by_model else str(point.workers) for point in points]


def panel(figure: FigureOf, values: Estimates, schemes: Iterable[str], points: Sequence[Point]) -> Panel:
    """Bars by model, or lines over workers, with the paper's values at the point where the text has them."""
    places: list[Place] = [point.model if figure.by_model else point.workers for point in points]
    series = {scheme: [values(scheme, point) for point in points] for scheme in schemes}
    at = places[points.index(figure.at)] if figure.at in points else None
    paper: Printed = {scheme: {at: value} for scheme, value in figure.paper.items() if at is not None}
    kind, xlabel = (BARS, "model") if figure.by_model else (LINES, "workers")
    return Panel(kind, places, series, xlabel, f"{figure.what} ({figure.unit})", points[0].setting, paper)


def said(figure: FigureOf, values: Values, points: Sequence[Point]) -> Iterator[Statement]:
    """What the text says of the figure in one setting: who is best, and what rises or falls."""
    curves = {scheme: [values(scheme, point) for point in points] for scheme in (INART, ATP, LBMM)}
    where, places = points[0].setting, labels(figure, points)
    best = text.is_highest if figure.more_is_better else text.is_lowest
    yield best(where, INART, (ATP, LBMM), curves, places)
    yield text.is_over(f"{where}: ATP better than LBMM", ordered(figure, curves[ATP], curves[LBMM]), places)
    trend = {"rises": text.rises, "falls": text.falls}.get(figure.trend)
    if trend and len(points) > 1:
        yield from (
            trend(f"{where}: {name} {figure.trend} with {figure.over}", curve) for name, curve in curves.items()
        )
    if figure.name == "fig11" and len(points) > 1:
        growth = {name: [curve[-1] - curve[0]] for name, curve in curves.items()}
        yield text.is_lowest(
            f"{where}, growth with workers", INART, (ATP, LBMM), growth, [f"{places[0]} to {places[-1]}"]
        )


def ordered(
    figure: FigureOf, better: Sequence[float], worse: Sequence[float]
) -> tuple[Sequence[float], Sequence[float]]:
    """The two curves with the one that is to be higher first."""
    return (better, worse) if figure.more_is_better else (worse, better)
