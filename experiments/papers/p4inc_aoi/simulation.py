"""P4INC-AOI's Figures 8 to 12: 64 units of 64 servers, up to 1,400 jobs; reconfigured connections and CT-BTI.

The note `p4inc_aoi.md` explains the parameters that the paper leaves open; `readings` measures Figure 8's reductions
and Table I's gaps under every combination of them. `reconfigurations` is a scenario of ours: circuits that change in
1 us to 100 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from statistics import fmean

from inakit.experiments.papers.common.claims import Evidence, read_ledger
from inakit.experiments.papers.common.drawing import BARS, Panel, Place
from inakit.experiments.papers.common.estimates import Series, exact
from inakit.experiments.papers.common.figure_engine import Chart, Draws, Findings, Part, Picture, Quantity, SweptFigure
from inakit.experiments.papers.common.figure_engine import by_seed as once_a_seed
from inakit.experiments.papers.common.figure_registry import COMPARES_SCHEDULERS, Request
from inakit.experiments.papers.common.statements import agrees, value_table
from inakit.experiments.papers.common.sweep import Trial
from inakit.experiments.papers.p4inc_aoi.setting import (
    CHOICES,
    COMPARED,
    DEFAULTS,
    FIGURE_8,
    FIGURE_9,
    OURS,
    PAPER,
    RESULTS,
    SETTING,
    Reduction,
    judged,
    measure,
    reductions,
    reductions_panel,
)
from inakit.experiments.report.method_styles import categories

SEEDS = (3, 1)
METRICS = {
    "aoi": (Quantity("connections", "reconfigured connections"), "y"),
    "ct": (Quantity("ct_bti_s", "CT-BTI (s)"), ""),
}
"""By the name in claims, a metric and the logarithmic axes of its panel."""
Found = Mapping[str, Series]
"""The points of all schemes, by the names of `METRICS`."""
Trends = Callable[[Found], Iterator[tuple[str, Evidence]]]
"""The evidence for a figure's claims about its curves, by the end of each claim's name."""
READ_DIFFERENTLY: Mapping[str, Trial] = {"": {}, "20 jobs/s": {"per_s": 20.0}, "links without limit": {"links": "none"}}
"""Figure 8 under the setting, and under readings that differ in one choice."""

FITTED = (
    f"the first unit of a job has 1 to {SETTING['free']} free servers, fitted to the connections that INC saves in "
    "Figure 8; links, INC, FCFS and arrivals are the reading that is nearest to Figure 8 and Table I (readings)"
)
"""What the setting is fitted to."""
AXES = {"capacity": "INC capacity", "slot_s": "slot (s)", "reconfiguration_s": "reconfiguration (s)"}
"""The words for keys of trials, where they differ."""


@dataclass(frozen=True)
class SchedulerChart:
    """A figure over one key of its trials. `claims` are the text's reductions; `trends` gives evidence for the rest.

    `readings` are other choices, beside which the full form shows the setting. Only the setting's claims are judged.
    """

    name: str
    title: str
    key: str
    points: Sequence[float]
    trends: Trends
    claims: tuple[Reduction, ...] = ()
    own: Trial = field(default_factory=dict)
    readings: Mapping[str, Trial] = field(default_factory=lambda: {"": {}})

    def charts(self, reading: Trial) -> dict[str, Chart]:
        """A chart for each metric, under a reading."""
        points: dict[Place, Trial] = {at: {**DEFAULTS, **self.own, **reading, self.key: at} for at in self.points}
        lines = {scheme: {"scheme": scheme} for scheme in (*COMPARED, OURS)}
        name = next(name for name, choices in self.readings.items() if choices == reading)
        title, axis = ", ".join(filter(None, (self.title, name))), AXES.get(self.key, self.key)
        return {
            metric: Chart(quantity, points, lines, axis, f"{self.name}, {title}: {quantity.label}", title, log=log)
            for metric, (quantity, log) in METRICS.items()
        }

    def shown(self, request: Request) -> Mapping[str, Trial]:
        """The readings of a request: the setting alone in a quick one."""
        return {"": {}} if request.quick else self.readings

    def cells(self, request: Request) -> Iterator[Trial]:
        """The trials of the figure; both metrics use the same ones."""
        return (cell for reading in self.shown(request).values() for cell in self.charts(reading)["aoi"].cells)

    def show(self, found: Findings) -> Iterator[Part]:
        """For each reading, tables, the text's reductions and a picture; the claims under the setting."""
        for name, reading in self.shown(found.request).items():
            charts = self.charts(reading)
            yield from map(found.table, charts.values())
            panels, points = [found.panel(chart) for chart in charts.values()], list(charts["aoi"].points.values())
            if self.claims:
                if not reading:
                    yield FITTED
                yield reductions(", ".join(filter(None, (self.name, name))), self.claims, found, points)
                panels.append(reductions_panel(self.claims, found, points))
            if not reading:
                series = {metric: found.series(chart) for metric, chart in charts.items()}
                ledger = read_ledger(PAPER)
                said = [ledger.judge(f"{self.name}-{end}", shown) for end, shown in self.trends(series)]
                if statements := [*judged(self.claims, found, points), *said]:
                    yield statements
            yield Picture(panels, f"{PAPER}-{self.name}{name and '-'}{name.replace(' ', '-').replace('/', '-per-')}")


def only(series: Series, *schemes: str) -> Series:
    """The points of these schemes, in this order."""
    return {scheme: series[scheme] for scheme in schemes}


LEAST = ("INC-TW", *(scheme for scheme in COMPARED if scheme != "INC-TW"))


def least(found: Found) -> Iterator[tuple[str, Evidence]]:
    """INC-TW reconfigures the fewest connections and has the shortest CT-BTI."""
    for metric, series in found.items():
        yield f"{metric}-least", only(series, *LEAST)


def order(found: Found) -> Iterator[tuple[str, Evidence]]:
    """The text's sentences about Figure 8."""
    yield from least(found)
    yield "ct-inc-fcfs", only(found["ct"], "INC-FCFS", "noINC-TW")


def over_units(found: Found) -> Iterator[tuple[str, Evidence]]:
    """The text's sentences about Figure 10."""
    for metric, series in found.items():
        yield f"{metric}-falls", only(series, *COMPARED)
        yield f"{metric}-noinc-tw", only(series, "INC-FCFS", "noINC-TW")
    yield "aoi-least", only(found["aoi"], *LEAST)


def over_capacity(found: Found) -> Iterator[tuple[str, Evidence]]:
    """The text's sentences about Figure 11: an INC capacity above 8 gains hardly anything."""
    for metric, series in found.items():
        yield f"{metric}-falls", only(series, "INC-FCFS", "INC-TW")
        yield f"{metric}-beyond-8", {scheme: series[scheme][-2:] for scheme in ("INC-FCFS", "INC-TW")}
        yield f"{metric}-noinc", only(series, "noINC-FCFS", "noINC-TW")


def over_slots(found: Found) -> Iterator[tuple[str, Evidence]]:
    """The text's sentences about Figure 12."""
    ends = found["ct"]
    yield "aoi-falls", {scheme: found["aoi"][scheme][:2] for scheme in COMPARED}
    yield "aoi-converges", {scheme: found["aoi"][scheme][-2:] for scheme in COMPARED}
    yield "ct-rises", only(ends, *COMPARED)
    for inc in ("noINC", "INC"):
        growth = {f"{inc}-{policy}": [ends[f"{inc}-{policy}"][-1].value - ends[f"{inc}-{policy}"][0].value]
                  for policy in ("FCFS", "TW")}  # fmt: skip
        yield f"ct-{inc.lower()}-tw", growth


CHARTS = (
    SchedulerChart(
        "fig8", "over training jobs", "jobs", (800, 1000, 1200, 1400), order, FIGURE_8, {}, READ_DIFFERENTLY
    ),
    SchedulerChart("fig9", "over MapReduce jobs", "jobs", (200, 300, 400, 500), least, FIGURE_9, {"kind": "mapreduce"}),
    SchedulerChart("fig10", "over units, 1,000 jobs", "units", (16, 32, 48, 64), over_units),
    SchedulerChart("fig11", "over INC capacity, 1,000 jobs", "capacity", (2, 4, 8, 16), over_capacity),
    SchedulerChart("fig12", "over the slot (s), 1,000 jobs", "slot_s", (0.5, 1.0, 1.5, 2.0), over_slots),
    SchedulerChart(
        "reconfigurations", "over a reconfiguration (s), 1,000 jobs", "reconfiguration_s", (1e-6, 1e-4, 1e-2, 1e-1),
        lambda _: iter(()),
    ),
)  # fmt: skip


# -- Readings: all combinations of what the text leaves open.

GAPS = {"INC-FCFS": "fcfs", "INC-TW": "tw", "INC-TW-NoRecon": "norecon"}
GAP_JOBS = (40, 50, 60)
SMALL: Trial = {"units": 8}
READING_SEEDS = (2, 1)


def chosen(request: Request) -> list[Trial]:
    """All combinations of the choices; in a quick request the setting, and each other choice alone."""
    every: list[Trial] = [dict(zip(CHOICES, values, strict=True)) for values in product(*CHOICES.values())]
    differ = [sum(reading[key] != SETTING[key] for key in CHOICES) for reading in every]
    return [reading for reading, count in zip(every, differ, strict=True) if count <= 1 or not request.quick]


def reading_cells(request: Request) -> Iterator[Trial]:
    """Figure 8 with 1,000 jobs and Table I's units under each reading; `pack` stands for the MILP."""
    for reading in chosen(request):
        yield from ({**DEFAULTS, **reading, "scheme": scheme} for scheme in COMPARED)
        for jobs, scheme in product(GAP_JOBS, (OURS, *GAPS)):
            yield {**DEFAULTS, **SMALL, **reading, "jobs": jobs, "scheme": scheme}


def reading_draws(cell: Trial, seeds: int) -> list[Trial]:
    """One draw of Figure 8, and `seeds` of Table I."""
    return once_a_seed(cell, seeds if cell["units"] == SMALL["units"] else 1)


def gap(found: Findings, cell: Trial, best: str) -> float:
    """The mean over the draws of a scheme's gap, 1 - best / scheme, in percent."""
    pairs = zip(found.of({**cell, "scheme": best}, "ct_bti_s"), found.of(cell, "ct_bti_s"), strict=True)
    return fmean(100 * (1 - low / high) for low, high in pairs)


def readings(found: Findings) -> Iterator[Part]:
    """The reductions and gaps under each reading, and how many are within 10 % of the paper's."""
    ledger = read_ledger(PAPER)
    names: dict[Place, float] = {claim.claim: claim.paper for claim in FIGURE_8}
    for jobs, end in product(GAP_JOBS, GAPS.values()):
        names[f"table1-gap-{end}-{jobs}"] = float(str(ledger.claims[f"table1-gap-{end}-{jobs}"].paper))
    rows: dict[str, list[float | None]] = {"the paper": [*names.values(), None, None, None]}
    counts: dict[str, tuple[int, int]] = {}
    for reading in chosen(found.request):
        base: Trial = {**DEFAULTS, **reading}
        ours = [claim.estimate(found, [base]).value for claim in FIGURE_8]
        ours += [
            gap(found, {**base, **SMALL, "jobs": jobs, "scheme": scheme}, OURS)
            for jobs, scheme in product(GAP_JOBS, GAPS)
        ]
        held = [agrees(value, paper) for value, paper in zip(ours, names.values(), strict=True)]
        error = fmean(min(1.0, abs(value / paper - 1)) for value, paper in zip(ours, names.values(), strict=True))
        name = ", ".join(str(value) for value in reading.values())
        counts[name] = sum(held[: len(FIGURE_8)]), sum(held[len(FIGURE_8) :])
        rows[name] = [*ours, *map(float, counts[name]), 100 * error]
    columns = [*(str(name).replace("-", "\n") for name in names), "Fig. 8:\nhold", "Table I:\nhold", "mean\nerror (%)"]
    yield value_table("readings: reductions and gaps (%)", ", ".join(CHOICES), columns, rows)
    most = max(counts, key=lambda name: sum(counts[name]))
    nearest = min(counts, key=lambda name: float(rows[name][-1] or 0))
    table = max(counts, key=lambda name: counts[name][1])
    setting = ", ".join(map(str, SETTING.values()))
    drawn = {f"{label}: {name}": rows[name] for label, name in (("the setting", setting), ("nearest", nearest))}
    yield Picture([
        Panel(BARS, list(names), {label: [exact(value or 0.0) for value in own[: len(names)]]
                                  for label, own in drawn.items()},
              "", "reduction or gap (%)", "readings", {label: {**names} for label in drawn}, styles=categories(drawn))
    ])  # fmt: skip
    yield (
        f"of {len(counts)} readings, most claims hold with ({most}): {sum(counts[most])} of {len(names)}; the smallest "
        f"mean error has ({nearest}): {rows[nearest][-1]:.0f} %; most of Table I's nine gaps hold with ({table}): "
        f"{counts[table][1]}"
    )


def swept(
    name: str, cells: Callable[[Request], Iterator[Trial]], show: Callable[[Findings], Iterator[Part]],
    seeds: tuple[int, int], draws: Draws = once_a_seed,
) -> SweptFigure:  # fmt: skip
    return SweptFigure(f"{PAPER}-{name}", RESULTS, measure, cells, show, seeds, draws, leaves_out=COMPARES_SCHEDULERS)


FIGURES: dict[str, SweptFigure] = {chart.name: swept(chart.name, chart.cells, chart.show, SEEDS) for chart in CHARTS}
FIGURES["readings"] = swept("readings", reading_cells, readings, READING_SEEDS, reading_draws)
