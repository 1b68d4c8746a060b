"""InArt's Figures 8 to 13, simulated: sending rates, communication times, throughput and PS ingress.

Each figure prints the text's values beside ours, then all schemes by model or by number of workers. All are views of
one sweep, because a plan does not depend on the gradient's size: its rate and its flows into the PSs determine every
quantity. The emulated figures use the same `InartFigure`s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import inf

from rich.table import Table

from inakit.experiments.papers.common.claims import Evidence, read_ledger
from inakit.experiments.papers.common.drawing import BARS, LINES, Panel, Place, Printed
from inakit.experiments.papers.common.estimates import Estimate
from inakit.experiments.papers.common.figure_engine import Findings, Part, Picture, Quantity, SweptFigure, by_seed
from inakit.experiments.papers.common.figure_registry import Request
from inakit.experiments.papers.common.statements import Statement, beside_paper, mean, number, ratio
from inakit.experiments.papers.common.sweep import Trial
from inakit.experiments.papers.inart.setting import (
    ATP,
    FOREST,
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

LEDGER = read_ledger("inart")
SOME_WORKERS = 40
"""The workers of the figures by model. The text does not state them: LBMM's 22 MB are 40 times VGG19's 548 kB."""
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
    """A scheme's result at a place: the sending rate, an iteration's time, and the PS ingress in bytes."""

    rate_bps: float
    time_s: float
    ingress_bytes: float

    def times(self, factor: float) -> Seen:
        """The result with rates and sizes multiplied by `factor`, and unchanged times."""
        return Seen(self.rate_bps * factor, self.time_s, self.ingress_bytes * factor)


Values = Callable[[str, FigurePoint], float]
"""A figure's quantity, for a scheme and a place."""
Estimates = Callable[[str, FigurePoint], Estimate]
"""A figure's quantity with its interval, for a scheme and a place."""

INGRESS = "PS ingress"
QUANTITIES: Mapping[str, tuple[str, Callable[[Seen, FigurePoint], float]]] = {
    "sending rate": ("Mbit/s", lambda seen, _: seen.rate_bps / 1e6),
    "communication time": ("s", lambda seen, _: seen.time_s),
    "network throughput": ("Mbit/s", lambda seen, point: point.workers * seen.rate_bps / 1e6),
    INGRESS: ("MB", lambda seen, _: seen.ingress_bytes / 1e6),
}
"""Units and values. Network throughput is the sum of all workers' sending rates: with this reading LBMM's 90 in the
text is close to its PSs' 80."""


@dataclass(frozen=True)
class InartFigure:
    """A figure of one of `QUANTITIES`. `paper` has the text's values by scheme; all are at the place `at`.

    Figures `by_model` have bars, others lines over workers. `readings` are further settings in which this place is
    measured.
    """

    name: str
    what: str
    at: FigurePoint
    paper: Mapping[str, float]
    by_model: bool = False
    readings: Sequence[str] = ()

    @property
    def unit(self) -> str:
        """The unit of the quantity."""
        return QUANTITIES[self.what][0]

    def quantity(self, seen: Seen, point: FigurePoint) -> float:
        """The quantity's value in a result."""
        return QUANTITIES[self.what][1](seen, point)

    def settings(self, request: Request) -> tuple[str, ...]:
        """The settings in which the text's place is measured; a quick request has the text's only."""
        return (self.at.setting, *(() if request.quick else self.readings))

    def points(self, setting: str, workers: Iterable[int]) -> list[FigurePoint]:
        """The figure's places in a setting; `workers` are the places of a figure that is not by model."""
        if self.by_model:
            return [FigurePoint(setting, SOME_WORKERS, model) for model in MODELS]
        return [FigurePoint(setting, count, self.at.model) for count in workers]


CHARTS = (
    InartFigure(
        "fig8", "sending rate", FigurePoint(HOMOGENEOUS, SOME_WORKERS), {INART: 10.75, ATP: 4.7},
        by_model=True,
    ),
    InartFigure(
        "fig9", "sending rate", FigurePoint(HETEROGENEOUS, 50), {INART: 8.73, ATP: 4.44},
        readings=[SLOW_SERVERS],
    ),
    InartFigure(
        "fig10", "communication time", FigurePoint(HOMOGENEOUS, SOME_WORKERS, "ResNet-50"),
        {INART: 0.068, ATP: 0.152, LBMM: 0.35}, by_model=True,
    ),
    InartFigure(
        "fig11", "communication time", FigurePoint(HETEROGENEOUS, 50),
        {INART: 1.52, ATP: 2.96, LBMM: 8.13}, readings=[SLOW_SERVERS],
    ),
    InartFigure(
        "fig12", "network throughput", FigurePoint(HOMOGENEOUS, 30),
        {INART: 420.0, ATP: 160.0, LBMM: 90.0},
    ),
    InartFigure(
        "fig13", "PS ingress", FigurePoint(HOMOGENEOUS, SOME_WORKERS, "VGG19"),
        {INART: 3.44, ATP: 7.33, LBMM: 22.0}, by_model=True, readings=[FILLED],
    ),
)  # fmt: skip


def labels(figure: InartFigure, points: Iterable[FigurePoint]) -> list[str]:
    """The names of places on the x axis."""
    return [point.model if figure.by_model else str(point.workers) for point in points]


def panel(figure: InartFigure, values: Estimates, schemes: Iterable[str], points: Sequence[FigurePoint]) -> Panel:
    """Bars by model, or lines over workers, with the paper's values at the place for which the text gives them."""
    places: list[Place] = [point.model if figure.by_model else point.workers for point in points]
    series = {scheme: [values(scheme, point) for point in points] for scheme in schemes}
    at = places[points.index(figure.at)] if figure.at in points else None
    paper: Printed = {scheme: {at: value} for scheme, value in figure.paper.items() if at is not None}
    kind, xlabel = (BARS, "model") if figure.by_model else (LINES, "workers")
    return Panel(kind, places, series, xlabel, f"{figure.what} ({figure.unit})", points[0].setting, paper)


def judged(figure: InartFigure, values: Estimates, request: Request) -> list[Statement]:
    """The figure's claims: values and ratios at the text's place, trends, and the best scheme in both settings."""
    schemes, at = {"inart": INART, "atp": ATP, "lbmm": LBMM}, figure.at
    own = {setting: figure.points(setting, workers_of(request)) for setting in (HOMOGENEOUS, HETEROGENEOUS)}
    points = [point for each in own.values() for point in each]
    curves = {scheme: [values(scheme, point) for point in points] for scheme in schemes.values()}
    trends = {
        f"{scheme}, {setting}": [values(scheme, point) for point in each]
        for (setting, each), scheme in product(own.items(), schemes.values())
    }
    growth = {
        scheme: [mean(values(scheme, each[-1])) - mean(values(scheme, each[0])) for each in own.values()]
        for scheme in schemes.values()
    }
    numbers: dict[str, Evidence] = {
        **{name: values(scheme, at) for name, scheme in schemes.items()},
        **{f"over-{name}": ratio(values(INART, at), values(scheme, at)) for name, scheme in schemes.items()},
    }
    everywhere: dict[str, Evidence] = {"best": curves, "most": dict(reversed(curves.items())), "trend": trends}
    places = [f"{point.setting}, {label}" for point, label in zip(points, labels(figure, points), strict=True)]
    return [
        *LEDGER.judge_each(figure.name, everywhere, places),
        *LEDGER.judge_each(figure.name, {"growth": growth}, list(own)),
        *LEDGER.judge_each(figure.name, numbers),
    ]


SEEDS = (30, 3)
WORKERS, QUICK_WORKERS = (10, 20, 30, 40, 50), (30, 40, 50)
PROCESSES = 2

RATIOS = ((INART, ATP), (INART, LIMITED_ATP), (LP, ATP), (FOREST, ATP), (ONE, LIMITED_ATP))
"""InArt over ATP in several readings: as published, with the text's limit for ATP too, at LP-InArt's f, and ours."""
PRINTED_AS = {LP: INART, FOREST: INART, ONE: INART, LIMITED_ATP: ATP}
"""By our reading, the paper's scheme whose value it is compared with."""


def draws(cell: Trial, seeds: int) -> list[Trial]:
    """A trial for each seed, or a single trial in a setting without random draws."""
    return by_seed(cell, 1 if SETTINGS[str(cell["setting"])].filled else seeds)


def cell_of(scheme: str, point: FigurePoint) -> Trial:
    """The keys of a scheme's trials at a place: a plan does not depend on the gradient's size."""
    return {"setting": point.setting, "workers": point.workers, "scheme": scheme}


def value_of(figure: InartFigure, found: Findings, scheme: str, point: FigurePoint) -> float:
    """The figure's quantity, from the means; a time is the gradient's bits over the mean rate, as in the paper."""
    cell, size = cell_of(scheme, point), MODELS[point.model]
    rate_bps = found.mean(cell, "rate_bps")
    return figure.quantity(Seen(rate_bps, size * 8 / rate_bps, found.mean(cell, "arrivals") * size), point)


def estimate_of(figure: InartFigure, found: Findings, scheme: str, point: FigurePoint) -> Estimate:
    """The figure's quantity, from the means; its interval follows from that of the mean rate or the mean PS ingress."""
    size, ingress = MODELS[point.model], figure.what == INGRESS

    def quantity(mean: float, _: Trial) -> float:
        seen = Seen(0.0, 0.0, mean * size) if ingress else Seen(mean, size * 8 / mean if mean > 0 else inf, 0.0)
        return figure.quantity(seen, point)

    return found.estimate(cell_of(scheme, point), Quantity("arrivals" if ingress else "rate_bps", "", 1.0, quantity))


def workers_of(request: Request) -> Sequence[int]:
    return QUICK_WORKERS if request.quick else WORKERS


def cells(figure: InartFigure, request: Request) -> list[Trial]:
    """The cells of the figure: the text's place in all its readings, and all places in both settings."""
    at_text = [FigurePoint(setting, figure.at.workers) for setting in figure.settings(request)]
    everywhere = [
        point for setting in (HOMOGENEOUS, HETEROGENEOUS) for point in figure.points(setting, workers_of(request))
    ]
    read = [cell_of(scheme, point) for point in at_text for scheme in read_schemes(request)]
    return [*read, *(cell_of(scheme, point) for point in everywhere for scheme in compared())]


def show(figure: InartFigure, found: Findings) -> Iterator[Part]:
    values, estimates = partial(value_of, figure, found), partial(estimate_of, figure, found)
    for setting in figure.settings(found.request):
        yield readings(figure, values, setting, found.request)
    panels: list[Panel] = []
    for setting in (HOMOGENEOUS, HETEROGENEOUS):
        points = figure.points(setting, workers_of(found.request))
        table = Table("scheme", *labels(figure, points), title=f"{setting} ({figure.unit})")
        for scheme in compared():
            table.add_row(scheme, *(number(values(scheme, point)) for point in points))
        yield table
        panels.append(panel(figure, estimates, compared(), points))
    yield judged(figure, estimates, found.request)
    yield Picture(panels)


def read_schemes(request: Request) -> tuple[str, ...]:
    """The schemes at the text's place. `inart` takes longest and no claim needs it: a quick request is without it."""
    return compared() if request.quick else (*compared(), ONE)


def readings(figure: InartFigure, values: Values, setting: str, request: Request) -> Table:
    """A table of every reading of a scheme beside the paper's value, and of InArt over ATP under several readings."""
    point = FigurePoint(setting, figure.at.workers, figure.at.model)
    paper = figure.paper
    rows: list[tuple[str, float | None, float]] = [
        (scheme, paper.get(PRINTED_AS.get(scheme, scheme)), values(scheme, point)) for scheme in read_schemes(request)
    ]
    for scheme, other in [pair for pair in RATIOS if pair[0] in read_schemes(request)]:
        rows.append((f"{scheme} / {other}", paper[INART] / paper[ATP], values(scheme, point) / values(other, point)))
    title = f"InArt, Figure {figure.name[3:]}, {setting}, {point.workers} workers, {point.model} ({figure.unit})"
    return beside_paper(title, rows, heading="scheme")


FIGURES = {
    figure.name: SweptFigure(
        f"inart-{figure.name}", "inart-trials", measure, partial(cells, figure), partial(show, figure), SEEDS, draws,
        processes=PROCESSES,
    )
    for figure in CHARTS
}  # fmt: skip
