"""GOAT's Figures 4, 5, 7, 8 and 9 by real packets: training on its testbed under GOAT, ESA, ATP and Geryon.

An epoch is one exchange of gradients for 128 samples of each worker, which `training_runs` measures. Its computing is
not emulated: its time is what Figures 7 and 8 leave for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.drawing import save
from inakit.experiments.papers.common.emulated_runs import name_in_world
from inakit.experiments.papers.common.estimates import exact
from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.common.panels import BARS, LINES, Panel, Printed, Values
from inakit.experiments.papers.common.statements import Statement
from inakit.experiments.papers.common.value_tables import table_of
from inakit.experiments.papers.goat.testbed import SCHEMES, compared
from inakit.experiments.papers.goat.training_runs import SCALE, Epoch, EpochRun, measured
from inakit.experiments.styles.method_styles import paper_name
from inakit.traffic.measure.verdict import VALID

SAMPLES = 128
"""The samples of a worker in an epoch: 931 images/s in 2.2 s are 128 for each of 16 workers (Figures 5a and 7a)."""
COMPUTING_S = 2.2 - 0.36
"""ResNet-18's computing time in an epoch: time per epoch less communication time (Figures 7a and 8a, GOAT)."""
GMACS = {
    "resnet18": 1.81, "resnet34": 3.66, "resnet50": 4.09, "densenet121": 2.83, "densenet169": 3.36, "densenet201": 4.29,
}  # fmt: skip
"""Billions of multiplications for a sample, as torchvision gives them: computing times are in proportion to them."""

WORKERS, QUICK_WORKERS = (4, 8, 12, 16), (8, 16)
MODELS, QUICK_MODELS = ("resnet18", "resnet50"), ("resnet18",)
FIG4_WORKERS, QUICK_FIG4_MODELS = 8, ("resnet18", "densenet121")


def epoch_time_s(setting: EpochRun, found: Epoch) -> float:
    """Computing and communication of an epoch, one after the other."""
    return COMPUTING_S * GMACS[setting.model] / GMACS["resnet18"] + found.communication_time_s


def throughput(setting: EpochRun, found: Epoch) -> float:
    """The samples of all workers per second."""
    return SAMPLES * setting.workers / epoch_time_s(setting, found)


def communication_time_s(_: EpochRun, found: Epoch) -> float:
    """The communication time of an epoch."""
    return found.communication_time_s


def ps_ingress_mb(_: EpochRun, found: Epoch) -> float:
    """The PS ingress of an epoch, in the paper's MB."""
    return found.ps_ingress_mb


ModelAndWorkers = tuple[str, int]
"""A model, and the number of workers that train it."""


@dataclass(frozen=True)
class TrainingChart:
    """A figure. `paper` has the text's values of GOAT, ESA, ATP and Geryon, which it gives at a single `place` only.

    `more_is_better` is true of throughput; `trend` says whether the text has all schemes rise with workers.
    """

    title: str
    value: Callable[[EpochRun, Epoch], float]
    place: ModelAndWorkers
    paper: tuple[float, ...]
    more_is_better: bool = False
    trend: bool = False

    @property
    def printed(self) -> dict[str, float]:
        """The text's values, by scheme."""
        return dict(zip(SCHEMES, self.paper, strict=True))

    def places(self, *, quick: bool) -> list[ModelAndWorkers]:
        """The models and numbers of workers that the figure shows."""
        models = QUICK_MODELS if quick else MODELS
        return [(model, workers) for model in models for workers in (QUICK_WORKERS if quick else WORKERS)]

    def panels(self, places: Sequence[ModelAndWorkers], values: Values) -> Iterator[Panel]:
        """A panel for each model, over workers."""
        for model in dict.fromkeys(model for model, _ in places):
            at = [number for number, place in enumerate(places) if place[0] == model]
            series = {paper_name(scheme): [exact(found[number]) for number in at] for scheme, found in values.items()}
            shown = self.printed if model == self.place[0] else {}
            paper: Printed = {paper_name(scheme): {self.place[1]: value} for scheme, value in shown.items()}
            yield Panel(LINES, [places[number][1] for number in at], series, "workers", self.title, model, paper)

    def said(self, places: Sequence[ModelAndWorkers], values: Values) -> Iterator[Statement]:
        """The statements about the text's order of values, about GOAT being best everywhere, and about trends."""
        named = {paper_name(scheme): values[scheme] for scheme in SCHEMES}
        place = {name: [found[places.index(self.place)]] for name, found in named.items()}
        highest_first = sorted(self.printed, key=self.printed.__getitem__, reverse=True)
        yield from statements.in_order(
            where(self.place), [paper_name(scheme) for scheme in highest_first], place, [self.place]
        )
        best = statements.is_highest if self.more_is_better else statements.is_lowest
        yield best(
            "everywhere", "GOAT", [paper_name(s) for s in SCHEMES if s != "goat"], named, list(map(where, places))
        )
        for model in dict.fromkeys(model for model, _ in places) if self.trend else ():
            for name, found in named.items():
                curve = [value for value, place in zip(found, places, strict=True) if place[0] == model]
                yield statements.rises(f"{model}: {name} rises with workers", curve)


class ChartByModel(TrainingChart):
    """A figure that has models side by side, with the same number of workers."""

    def places(self, *, quick: bool) -> list[ModelAndWorkers]:
        """The models that the figure shows, with one number of workers."""
        return [(model, FIG4_WORKERS) for model in (QUICK_FIG4_MODELS if quick else GMACS)]

    def panels(self, places: Sequence[ModelAndWorkers], values: Values) -> Iterator[Panel]:
        """One panel, with a bar of each scheme for each model."""
        models = [model for model, _ in places]
        series = {paper_name(scheme): list(map(exact, found)) for scheme, found in values.items()}
        paper: Printed = {paper_name(scheme): {self.place[0]: value} for scheme, value in self.printed.items()}
        yield Panel(BARS, models, series, "model", self.title, f"{FIG4_WORKERS} workers", paper)


def where(place: ModelAndWorkers) -> str:
    """A place in words."""
    model, workers = place
    return f"{model}, {workers} workers"


RATE = "training throughput (images/s)"
CHARTS = {
    "fig4": ChartByModel(RATE, throughput, ("densenet121", 8), (276, 240, 219, 180), more_is_better=True),
    "fig5": TrainingChart(RATE, throughput, ("resnet18", 16), (931, 585, 512, 465), more_is_better=True),
    "fig7": TrainingChart("time per epoch (s)", epoch_time_s, ("resnet18", 16), (2.2, 3.5, 4, 4.65), trend=True),
    "fig8": TrainingChart("communication time (s)", communication_time_s, ("resnet18", 16), (0.36, 1.34, 1.64, 1.95)),
    "fig9": TrainingChart(
        "aggregation overhead of the PS (MB)", ps_ingress_mb, ("resnet18", 16), (44, 167.2, 198, 704)
    ),
}


def run(figure: str, console: Console, request: Request) -> str:
    """Measure what the figure needs and earlier figures have not measured, print its tables, and write its picture."""
    chart = CHARTS[figure]
    places = chart.places(quick=request.quick)
    found = measured([EpochRun(*place, scheme) for place in places for scheme in compared()], request, console)
    values = {
        scheme: [chart.value(own, found[own]) for own in (EpochRun(*place, scheme) for place in places)]
        for scheme in compared()
    }
    names = [f"{model.replace('net', '')}\n{workers}" for model, workers in places]
    console.print(table_of(f"GOAT, {figure}: {chart.title}, by model and workers", "", names, values))
    console.print(f"rates and sizes are 1/{SCALE} of the paper's, times are the paper's", highlight=False)
    console.print(comparison(figure, {scheme: values[scheme][places.index(chart.place)] for scheme in SCHEMES}))
    console.print(statements.table_of(chart.said(places, values)))
    save(request.results / name_in_world(f"goat-{figure}", request.switch), *chart.panels(places, values))
    return VALID


def comparison(figure: str, ours: Mapping[str, float]) -> Table:
    """The text's values beside ours, by scheme."""
    chart = CHARTS[figure]
    model, workers = chart.place
    table = Table("", "paper", "ours", "ratio", title=f"{figure}, what the text gives: {model}, {workers} workers")
    for (scheme, own), paper in zip(ours.items(), chart.paper, strict=True):
        table.add_row(scheme, f"{paper:g}", f"{own:.3g}", f"{own / paper:.2f}")
    return table
