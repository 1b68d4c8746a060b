"""P4INC-AOI's Figures 8 to 12: 64 units of 64 servers, up to 1,400 jobs; reconfigured connections and CT-BTI.

The note `p4inc_aoi.md` explains the parameters that the paper leaves open; `readings` measures Figure 8's reductions
under each reading of FCFS, TW and arrivals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from rich.table import Table

from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.drawing import BARS, Panel, Place
from inakit.experiments.papers.common.figure_engine import Chart, Findings, Part, Picture, Quantity, SweptFigure
from inakit.experiments.papers.common.figure_registry import COMPARES_SCHEDULERS, Request
from inakit.experiments.papers.common.statements import Curves, Statement
from inakit.experiments.papers.common.sweep import Trial
from inakit.experiments.papers.p4inc_aoi.setting import (
    ARRIVALS,
    ARRIVALS_PER_S,
    COMPARED,
    DEFAULTS,
    FIGURE_8,
    FIGURE_9,
    NAMES,
    OURS,
    READINGS,
    RESULTS,
    Claim,
    measure,
    reductions,
    reductions_panel,
)
from inakit.experiments.report.method_styles import categories

SEEDS, READING_SEEDS = (3, 1), (2, 1)


def reading_of(reading: str, per_s: float) -> Trial:
    """The keys of trials under a reading, with `per_s` arrivals per second."""
    return {**DEFAULTS, "reading": reading, "per_s": per_s}


def readings(found: Findings) -> Iterator[Part]:
    """The reductions of the text's claims, under each reading and each arrival process."""
    columns = (f"{claim.better}\nto {claim.worse}\n{NAMES[claim.metric]}" for claim in FIGURE_8)
    table = Table("FCFS, TW", "arrivals", *columns, title="reductions (%)")
    table.add_row("the paper's text", "", *(f"{claim.paper:.1f}" for claim in FIGURE_8), end_section=True)
    for reading, per_s in product(READINGS, ARRIVALS):
        ours = (f"{claim.estimate(found, [reading_of(reading, per_s)]).value:.1f}" for claim in FIGURE_8)
        table.add_row(reading, ARRIVALS[per_s], *ours)
    yield table
    names = [claim.name for claim in FIGURE_8]
    printed: dict[Place, float] = {name: claim.paper for name, claim in zip(names, FIGURE_8, strict=True)}
    paper, styles = dict.fromkeys(READINGS, printed), categories(READINGS)
    yield Picture(
        Panel(BARS, names, {
            reading: [claim.estimate(found, [reading_of(reading, per_s)]) for claim in FIGURE_8] for reading in READINGS
        }, "", "reduction (%)", title, paper, styles=styles)
        for per_s, title in ARRIVALS.items()
    )  # fmt: skip


METRICS = {
    "AOI": (Quantity("connections", "reconfigured connections"), "y"),
    "CT-BTI": (Quantity("ct_bti_s", "CT-BTI (s)"), ""),
}
"""By the name in statements, a metric and the logarithmic axes of its panel."""
Trends = Callable[[Mapping[str, Curves], Sequence[Place]], Iterator[Statement]]
"""The text's statements about the curves of both metrics, by the names of `METRICS`."""


@dataclass(frozen=True)
class SchedulerChart:
    """A figure over one key of its trials. `claims` are the text's reductions; `trends` returns its other statements.

    `arrivals` are the arrival processes under which the figure is measured.
    """

    name: str
    title: str
    key: str
    points: Sequence[float]
    trends: Trends
    claims: tuple[Claim, ...] = ()
    setting: Trial = field(default_factory=dict)
    arrivals: Sequence[float] = (ARRIVALS_PER_S,)

    def charts(self, per_s: float) -> dict[str, Chart]:
        """A chart for each metric, with `per_s` arrivals per second."""
        points: dict[Place, Trial] = {
            at: {**DEFAULTS, **self.setting, "per_s": per_s, self.key: at} for at in self.points
        }
        lines = {scheme: {"scheme": scheme} for scheme in (*COMPARED, OURS)}
        title = f"{self.title}, {ARRIVALS[per_s]}"
        return {
            name: Chart(quantity, points, lines, self.key, f"{self.name}, {title}: {quantity.label}", title, log=log)
            for name, (quantity, log) in METRICS.items()
        }

    def cells(self, _: Request) -> Iterator[Trial]:
        """The trials of the figure; both metrics use the same ones."""
        return (cell for per_s in self.arrivals for cell in self.charts(per_s)["AOI"].cells)

    def show(self, found: Findings) -> Iterator[Part]:
        """For each arrival process, tables, statements and a picture."""
        for per_s in self.arrivals:
            charts = self.charts(per_s)
            yield from map(found.table, charts.values())
            places, panels = charts["AOI"].places, [found.panel(chart) for chart in charts.values()]
            points = list(charts["AOI"].points.values())
            if self.claims:
                yield reductions(f"{self.name}, {ARRIVALS[per_s]}", self.claims, found, points)
                panels.append(reductions_panel(self.claims, found, points))
            yield list(self.trends({name: found.curves(chart) for name, chart in charts.items()}, places))
            suffix = "" if per_s == ARRIVALS_PER_S else f"-{ARRIVALS[per_s].replace(' ', '-').replace('/', '-per-')}"
            yield Picture(panels, f"p4inc-aoi-{self.name}{suffix}")


def least(curves: Mapping[str, Curves], places: Sequence[Place]) -> Iterator[Statement]:
    """The statements that INC-TW reconfigures the fewest connections and has the shortest CT-BTI."""
    others = [scheme for scheme in COMPARED if scheme != "INC-TW"]
    for name, own in curves.items():
        yield statements.is_lowest(name, "INC-TW", others, own, places)


def order(curves: Mapping[str, Curves], places: Sequence[Place]) -> Iterator[Statement]:
    """The text's sentences about Figure 8: orders of the schemes."""
    yield from least(curves, places)
    for policy in ("FCFS", "TW"):
        yield from statements.in_order("AOI", (f"noINC-{policy}", f"INC-{policy}"), curves["AOI"], places)
    for inc, (name, own) in product(("noINC", "INC"), curves.items()):
        yield from statements.in_order(name, (f"{inc}-FCFS", f"{inc}-TW"), own, places)
    yield from statements.in_order("CT-BTI", ("INC-FCFS", "noINC-TW"), curves["CT-BTI"], places)


def over_units(curves: Mapping[str, Curves], places: Sequence[Place]) -> Iterator[Statement]:
    """The text's sentences about Figure 10."""
    for name, own in curves.items():
        yield from (statements.falls(f"{name}: {scheme} falls with units", own[scheme]) for scheme in COMPARED)
        yield from statements.in_order(name, ("INC-FCFS", "noINC-TW"), own, places)
    yield next(least(curves, places))


def over_capacity(curves: Mapping[str, Curves], places: Sequence[Place]) -> Iterator[Statement]:
    """The text's sentences about Figure 11: an INC capacity above 8 gains hardly anything."""
    for name, own in curves.items():
        for scheme in ("INC-FCFS", "INC-TW"):
            yield statements.falls(f"{name}: {scheme} falls with INC capacity", own[scheme])
            yield statements.is_level(f"{name}: {scheme} is level beyond {places[-2]}", own[scheme][-2:])
        for scheme in ("noINC-FCFS", "noINC-TW"):
            yield statements.is_level(f"{name}: {scheme} is independent of INC capacity", own[scheme])


def over_slots(curves: Mapping[str, Curves], places: Sequence[Place]) -> Iterator[Statement]:
    """The text's sentences about Figure 12."""
    connections, ends = curves["AOI"], curves["CT-BTI"]
    yield from (statements.falls(f"AOI: {scheme} falls with the slot", connections[scheme]) for scheme in COMPARED)
    yield from (statements.rises(f"CT-BTI: {scheme} rises with the slot", ends[scheme]) for scheme in COMPARED)
    growth, where = (
        {scheme: [ends[scheme][-1] - ends[scheme][0]] for scheme in COMPARED},
        [f"{places[0]} to {places[-1]} s"],
    )
    for inc in ("noINC", "INC"):
        yield from statements.in_order("CT-BTI's rise", (f"{inc}-FCFS", f"{inc}-TW"), growth, where)


BOTH_WAYS = (ARRIVALS_PER_S, 0.0)
CHARTS = (
    SchedulerChart("fig8", "over training jobs", "jobs", (800, 1000, 1200, 1400), order, FIGURE_8, {}, tuple(ARRIVALS)),
    SchedulerChart("fig9", "over MapReduce jobs", "jobs", (200, 300, 400, 500), least, FIGURE_9, {"kind": "mapreduce"}),
    SchedulerChart("fig10", "over units, 1,000 jobs", "units", (16, 32, 48, 64), over_units, arrivals=BOTH_WAYS),
    SchedulerChart("fig11", "over INC capacity, 1,000 jobs", "inc", (2, 4, 8, 16), over_capacity, arrivals=BOTH_WAYS),
    SchedulerChart("fig12", "over the slot (s), 1,000 jobs", "slot_s", (0.5, 1.0, 1.5, 2.0), over_slots),
)  # fmt: skip


def swept(name: str, cells: Callable[[Request], Iterator[Trial]], show: Callable[[Findings], Iterator[Part]],
          seeds: tuple[int, int]) -> SweptFigure:  # fmt: skip
    return SweptFigure(f"p4inc-aoi-{name}", RESULTS, measure, cells, show, seeds, leaves_out=COMPARES_SCHEDULERS)


FIGURES: dict[str, SweptFigure] = {chart.name: swept(chart.name, chart.cells, chart.show, SEEDS) for chart in CHARTS}
FIGURES["readings"] = swept(
    "readings",
    lambda _: ({**reading_of(*case), "scheme": scheme} for case in product(READINGS, ARRIVALS) for scheme in COMPARED),
    readings,
    READING_SEEDS,
)
