"""Figures as data (trials, charts, parts of the output), and the engine that measures and presents them.

A `SweptFigure` is measured cell by cell, once for every draw; an `EmulatedFigure` by runs in a world. Both yield their
parts in reading order: tables, sentences, statements to be judged, pictures, rows of a CSV file. Only `present` prints,
judges, draws or writes a part, by its type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.common.drawing import LINES, Panel, Place, Printed, save
from inakit.experiments.papers.common.estimates import Estimate, Series, estimate, means
from inakit.experiments.papers.common.figure_registry import Request, leave_out
from inakit.experiments.papers.common.statements import Statement, table_of, value_table
from inakit.experiments.papers.common.sweep import Result, Trial, name_of, sweep
from inakit.experiments.report.method_styles import Style
from inakit.experiments.run.console import NamedTable
from inakit.topo.files.reader import write_csv
from inakit.traffic.measure.verdict import VALID, worst_of

Draws = Callable[[Trial, int], Sequence[Trial]]
"""The trials of a cell, given the number of seeds."""


def by_seed(cell: Trial, seeds: int) -> list[Trial]:
    """One trial for each of the seeds 0, 1, ..."""
    return [{**cell, "seed": seed} for seed in range(seeds)]


def once(cell: Trial, _: int) -> list[Trial]:
    """One trial, without random draws."""
    return [cell]


@dataclass(frozen=True)
class Quantity:
    """The quantity of a panel: the `key` of its results, the `unit`, and the label of its axis.

    `of_mean` converts the mean and its interval further, given the cell.
    """

    key: str
    label: str
    unit: float = 1.0
    of_mean: Callable[[float, Trial], float] | None = None


@dataclass(frozen=True)
class Chart:
    """Lines of one quantity over places, drawn by a panel and printed by a table. A place and a line give a cell.

    `heading` is the table's title; `kind`, `title`, `log`, `paper` and `styles` are those of the panel.
    """

    quantity: Quantity
    points: Mapping[Place, Trial]
    lines: Mapping[str, Trial]
    axis: str = ""
    heading: str = ""
    title: str = ""
    kind: str = LINES
    log: str = ""
    paper: Printed = field(default_factory=dict)
    styles: Mapping[str, Style] = field(default_factory=dict)
    column: str = ""
    """The heading of the table's first column, if it differs from the axis label."""

    @property
    def places(self) -> list[Place]:
        """The places from left to right."""
        return list(self.points)

    def cell(self, line: str, place: Place) -> Trial:
        """The keys of the trials of a line at a place."""
        return {**self.points[place], **self.lines[line]}

    @property
    def cells(self) -> Iterator[Trial]:
        """All cells, place by place."""
        return (self.cell(line, place) for place in self.points for line in self.lines)


@dataclass(frozen=True)
class Findings:
    """The results of a figure's sweep, keyed by the `name_of` of their trials. A cell's draws are its trials."""

    results: Mapping[str, Result]
    request: Request
    seeds: int
    draws: Draws = by_seed

    def trials(self, cell: Trial) -> Sequence[Trial]:
        """The trials of a cell, one for each draw."""
        return self.draws(cell, self.seeds)

    def result(self, trial: Trial) -> Result:
        """The result of a trial."""
        return self.results[name_of(trial)]

    def of(self, cell: Trial, key: str, unit: float = 1.0) -> list[float]:
        """The values of `key` in a cell, by draw, in units of `unit`."""
        return [float(self.result(trial)[key]) / unit for trial in self.trials(cell)]

    def mean(self, cell: Trial, key: str) -> float:
        """The mean of `key` over a cell's draws."""
        return fmean(self.of(cell, key))

    def estimate(self, cell: Trial, quantity: Quantity) -> Estimate:
        """The mean of a quantity over a cell's draws, with its interval."""
        found, convert = estimate(self.of(cell, quantity.key, quantity.unit)), quantity.of_mean
        return found if convert is None else found.map(lambda mean: convert(mean, cell))

    def series(self, chart: Chart) -> Series:
        """The points of each of a chart's lines."""
        return {
            line: [self.estimate(chart.cell(line, place), chart.quantity) for place in chart.points]
            for line in chart.lines
        }

    def curves(self, chart: Chart) -> dict[str, list[float]]:
        """The means of each of a chart's lines, in the form for tables and statements."""
        return means(self.series(chart))

    def table(self, chart: Chart) -> Table:
        """A row for each line, a column for each place."""
        return value_table(chart.heading, chart.column or chart.axis, chart.places, self.curves(chart))

    def panel(self, chart: Chart) -> Panel:
        """The panel that draws the chart."""
        return Panel(
            chart.kind, chart.places, self.series(chart), chart.axis, chart.quantity.label, chart.title, chart.paper,
            log=chart.log, styles=chart.styles,
        )  # fmt: skip


@dataclass(frozen=True)
class Picture:
    """Panels of one picture. `name` is that of its files, by default the figure's."""

    panels: Iterable[Panel]
    name: str = ""


@dataclass(frozen=True)
class Rows:
    """A CSV file beside the picture."""

    name: str
    headings: Sequence[str]
    rows: Iterable[Sequence[object]]


Part = Table | NamedTable | str | list[Statement] | Picture | Rows
"""A part of a figure. Tables and sentences are printed; statements are printed with their verdicts."""


@dataclass(frozen=True)
class SweptFigure:
    """A figure of a sweep. `name` names its files, `kept` the folder that keeps the results.

    `cells` returns the cells to measure, `show` the parts to present. `seeds` has the numbers of draws, full and quick.
    `verdict` judges the results; the figure's verdict is the worse of it and of the figure's claims. `leaves_out` is
    the reason why user-defined planners are not in the figure.
    """

    name: str
    kept: str
    measure: Callable[[Trial], Result]
    cells: Callable[[Request], Iterable[Trial]]
    show: Callable[[Findings], Iterator[Part]]
    seeds: tuple[int, int] = (1, 1)
    draws: Draws = by_seed
    verdict: Callable[[Findings, list[Statement]], str] = lambda *_: VALID
    processes: int = 1
    leaves_out: str = ""

    def __call__(self, console: Console, request: Request) -> str:
        """Measure the missing trials, print and draw the figure, and return its verdict."""
        seeds = self.seeds[request.quick]
        trials = [trial for cell in self.cells(request) for trial in self.draws(cell, seeds)]
        trials.sort(key=lambda trial: int(trial.get("seed", 0)))  # an unfinished figure has whole draws
        results = sweep(trials, self.measure, request.results / self.kept, console, self.processes)
        found = Findings(results, request, seeds, self.draws)
        judged = present(console, request.results / self.name, self.show(found), unprinted=request.unprinted)
        if self.leaves_out:
            leave_out(console, self.leaves_out)
        return worst_of((self.verdict(found, judged), request.settle(console, judged)))


def worst_run(found: Findings, _: list[Statement]) -> str:
    """The worst verdict of all trials, each of which is a run."""
    return worst_of(str(result["verdict"]) for result in found.results.values())


def charted(charts: Callable[[Request], Sequence[Chart]]) -> Callable[[Request], Iterator[Trial]]:
    """The cells of all charts."""
    return lambda request: (cell for chart in charts(request) for cell in chart.cells)


def present(console: Console, path: Path, parts: Iterable[Part], *, unprinted: bool = False) -> list[Statement]:
    """Print, judge and draw the parts of a figure in order; return all statements. `path` has no suffix.

    `unprinted`: pictures say that the paper prints no values.
    """
    judged: list[Statement] = []
    for part in parts:
        if isinstance(part, Picture):
            save(path.with_name(part.name or path.name), *part.panels, unprinted=unprinted)
        elif isinstance(part, Rows):
            write_csv(path.with_name(part.name), part.headings, part.rows)
        elif isinstance(part, list):
            judged += part
            console.print(table_of(part))
        elif isinstance(part, str):
            console.print(part, highlight=False, soft_wrap=True)
        else:
            console.print(part)
    return judged
