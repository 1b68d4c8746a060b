"""InArt's Figures 8 to 13, simulated: sending rates, communication times, throughput and PS ingress.

Each prints what the text says beside ours, then all schemes by model or by number of workers. All are views of one
sweep, for a plan does not depend on the gradient's size: f, and the flows that come to PSs, give everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from rich.console import Console
from rich.table import Table

from experiments.papers.inart import ATP, INART, LBMM, LIMITED_ATP, LP, MODELS, ONE, SCHEMES, measure
from experiments.papers.sweep import Measured, Request, Trial, sweep
from experiments.report import VALID

SEEDS, QUICK_SEEDS = 30, 2
WORKERS, QUICK_WORKERS = (10, 20, 30, 40, 50), (30, 40, 50)
SOME_WORKERS = 40
"""Of the figures by model: what their 22 MB of LBMM are over VGG19's 548 kB. The text does not say."""
HOMOGENEOUS, HETEROGENEOUS = "homogeneous", "heterogeneous"
SLOW_SERVERS, FILLED = "heterogeneous, the PSs' links too", "homogeneous, racks filled"
PROCESSES = 2
OTHERWISE = "OTHERWISE"
COLORS = {LP: "#56B4E9", INART: "#B3261E", ONE: "#CC79A7", ATP: "#0072B2", LIMITED_ATP: "#009E73", LBMM: "#E69F00"}


@dataclass(frozen=True)
class Point:
    """A place in a figure."""

    setting: str
    workers: int
    model: str = "LSTM"


@dataclass(frozen=True)
class Averages:
    """The means of a sweep over its seeds."""

    measured: Measured
    seeds: int

    def of(self, key: str, scheme: str, point: Point) -> float:
        return self.measured.mean(key, trials(point.setting, point.workers, scheme, self.seeds))


Quantity = Callable[[Averages, str, Point], float]


def rate_mbps(averages: Averages, scheme: str, point: Point) -> float:
    return averages.of("rate_bps", scheme, point) / 1e6


def time_s(averages: Averages, scheme: str, point: Point) -> float:
    """A gradient's bits over the mean rate, as the paper's times are."""
    return MODELS[point.model] * 8e-6 / rate_mbps(averages, scheme, point)


def throughput_mbps(averages: Averages, scheme: str, point: Point) -> float:
    """What all workers send together: the reading by which LBMM has 90 Mbit/s, about its PSs' 80."""
    return point.workers * rate_mbps(averages, scheme, point)


def ingress_mb(averages: Averages, scheme: str, point: Point) -> float:
    return averages.of("arrivals", scheme, point) * MODELS[point.model] / 1e6


@dataclass(frozen=True)
class FigureOf:
    """`paper`: what the text says, by scheme, at the point `at`. `by_model`: bars, else lines over workers."""

    name: str
    unit: str
    quantity: Quantity
    at: Point
    paper: Mapping[str, float]
    by_model: bool = False
    readings: Sequence[str] = ()

    def points(self, setting: str, workers: Sequence[int]) -> list[Point]:
        if self.by_model:
            return [Point(setting, SOME_WORKERS, model) for model in MODELS]
        return [Point(setting, count, self.at.model) for count in workers]


FIGURES = (
    FigureOf("fig8", "Mbit/s", rate_mbps, Point(HOMOGENEOUS, SOME_WORKERS), {INART: 10.75, ATP: 4.7}, by_model=True),
    FigureOf("fig9", "Mbit/s", rate_mbps, Point(HETEROGENEOUS, 50), {INART: 8.73, ATP: 4.44}, readings=[SLOW_SERVERS]),
    FigureOf(
        "fig10", "s", time_s, Point(HOMOGENEOUS, SOME_WORKERS, "ResNet-50"),
        {INART: 0.068, ATP: 0.152, LBMM: 0.35}, by_model=True,
    ),
    FigureOf(
        "fig11", "s", time_s, Point(HETEROGENEOUS, 50), {INART: 1.52, ATP: 2.96, LBMM: 8.13}, readings=[SLOW_SERVERS]
    ),
    FigureOf("fig12", "Mbit/s", throughput_mbps, Point(HOMOGENEOUS, 30), {INART: 420.0, ATP: 160.0, LBMM: 90.0}),
    FigureOf(
        "fig13", "MB", ingress_mb, Point(HOMOGENEOUS, SOME_WORKERS, "VGG19"),
        {INART: 3.44, ATP: 7.33, LBMM: 22.0}, by_model=True, readings=[FILLED],
    ),
)  # fmt: skip
PRINTED_AS = {LP: INART, ONE: INART, LIMITED_ATP: ATP}
"""Under which scheme's value of the paper a reading of ours stands."""


def trials(setting: str, workers: int, scheme: str, seeds: int) -> list[Trial]:
    return [{"setting": setting, "workers": workers, "scheme": scheme, "seed": seed} for seed in range(seeds)]


def run(name: str, console: Console, request: Request) -> str:
    """Print and draw the figure; VALID if InArt is better than ATP, and ATP than LBMM, at the paper's point."""
    figure = next(figure for figure in FIGURES if figure.name == name)
    averages = averages_of(figure, console, request)
    console.print(*(beside_the_paper(figure, averages, setting) for setting in (figure.at.setting, *figure.readings)))
    workers = QUICK_WORKERS if request.quick else WORKERS
    series = {setting: figure.points(setting, workers) for setting in (HOMOGENEOUS, HETEROGENEOUS)}
    for points in series.values():
        console.print(over_points(figure, averages, points))
    save(request.results / f"inart-{name}", figure, averages, series)
    rates = [rate_mbps(averages, scheme, figure.at) for scheme in (INART, ATP, LBMM)]
    return VALID if rates == sorted(rates, reverse=True) else OTHERWISE


def averages_of(figure: FigureOf, console: Console, request: Request) -> Averages:
    """What the figure needs of the sweep; figures by model, and those by workers, need much of the same."""
    seeds = QUICK_SEEDS if request.quick else SEEDS
    workers = QUICK_WORKERS if request.quick else WORKERS
    places = {(setting, figure.at.workers) for setting in (figure.at.setting, *figure.readings)}
    for setting in (HOMOGENEOUS, HETEROGENEOUS):
        places |= {(setting, point.workers) for point in figure.points(setting, workers)}
    wanted = [
        trial
        for (setting, count), scheme in product(sorted(places), SCHEMES)
        for trial in trials(setting, count, scheme, seeds)
    ]
    return Averages(sweep(wanted, measure, request.results / "inart.jsonl", console, PROCESSES), seeds)


def beside_the_paper(figure: FigureOf, averages: Averages, setting: str) -> Table:
    """Every reading of a scheme beside the paper's value; then InArt over ATP, as printed and as stated."""
    point = Point(setting, figure.at.workers, figure.at.model)
    title = f"InArt, Figure {figure.name[3:]}, {setting}, {point.workers} workers"
    table = Table("scheme", "paper", "ours", "ratio", title=f"{title}, {point.model} ({figure.unit})")
    for scheme in SCHEMES:
        paper, ours = figure.paper.get(PRINTED_AS.get(scheme, scheme)), figure.quantity(averages, scheme, point)
        table.add_row(scheme, number(paper), number(ours), number(paper and ours / paper))
    for scheme, other in ((LP, ATP), (INART, LIMITED_ATP)):
        paper = figure.paper[INART] / figure.paper[ATP]
        ours = figure.quantity(averages, scheme, point) / figure.quantity(averages, other, point)
        table.add_row(f"{scheme} / {other}", number(paper), number(ours), number(ours / paper))
    return table


def over_points(figure: FigureOf, averages: Averages, points: Sequence[Point]) -> Table:
    table = Table("scheme", *labels(figure, points), title=f"{points[0].setting} ({figure.unit})")
    for scheme in SCHEMES:
        table.add_row(scheme, *(number(figure.quantity(averages, scheme, point)) for point in points))
    return table


def labels(figure: FigureOf, points: Sequence[Point]) -> Iterator[str]:
    for point in points:
        yield point.model if figure.by_model else str(point.workers)


def save(path: Path, figure: FigureOf, averages: Averages, series: Mapping[str, Sequence[Point]]) -> None:
    """Both settings side by side, as PNG and SVG."""
    canvas = Canvas(figsize=(11, 4), layout="constrained")
    FigureCanvasAgg(canvas)
    for axes, (setting, points) in zip(canvas.subplots(1, 2, sharey=True), series.items(), strict=True):
        draw(axes, figure, averages, points)
        axes.set_title(setting, fontsize=10)
        axes.set_ylabel(figure.unit)
    for suffix in (".png", ".svg"):
        canvas.savefig(path.with_suffix(suffix))


def draw(axes: Axes, figure: FigureOf, averages: Averages, points: Sequence[Point]) -> None:
    """Bars by model, or lines over workers; the paper's values as black crosses where they are."""
    names = list(labels(figure, points))
    for position, scheme in enumerate(SCHEMES):
        values = [figure.quantity(averages, scheme, point) for point in points]
        shift = 0.13 * (position - 2.5) if figure.by_model else 0.0
        places = [place + shift for place in range(len(points))]
        if figure.by_model:
            axes.bar(places, values, 0.13, color=COLORS[scheme], label=scheme)
        else:
            axes.plot(places, values, marker="o", color=COLORS[scheme], label=scheme)
        if figure.at in points and scheme in figure.paper:
            axes.plot(places[points.index(figure.at)], figure.paper[scheme], "kx")
    axes.set_xticks(range(len(names)), names)
    axes.set_xlabel("" if figure.by_model else "workers")
    axes.legend(fontsize=7)


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
