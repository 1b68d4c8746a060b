"""ARO's Figures 7 to 10 (effectiveness): rates of ARO and the baselines for one task, one job and several jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean, pstdev

from inakit.experiments.papers.aro.setting import (
    EXACT,
    MJMT,
    SJMT,
    SJST,
    AroSetting,
    aro_figure,
    compared,
    gbps,
    lines,
    points,
)
from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.drawing import BARS, VIOLINS, Printed
from inakit.experiments.papers.common.figure_engine import Chart, Findings, Part, Picture
from inakit.experiments.papers.common.figure_registry import Request
from inakit.experiments.papers.common.statements import Curves, Statement, beside_paper

BASELINES = ("RANDOM", "GRID", "AggTree")
GROWING = (EXACT, "RANDOM", "AggTree")
RATE = gbps("least_bps", "throughput (Gbit/s)")

SHARES = [replace(SJST, share=percent / 100) for percent in range(10, 80, 10)]
SIZES = [replace(SJST, workers=workers) for workers in (100, 200, 300, 400)]
PIPELINES = [replace(SJST, pipelines=pipelines) for pipelines in (1, 2, 4, 6, 8)]
FLAT = PIPELINES[0]
TASKS = [replace(SJMT, tasks=tasks) for tasks in (1, 2, 3, 4)]
JOBS = [replace(MJMT, jobs=jobs) for jobs in (1, 2, 3, 4)]

OTHER_READINGS = ("GRID, one link", "AggTree, balanced")
"""The baselines under another reading of their descriptions; measured at the default setting only."""

PRINTED_GBPS = {EXACT: 26.33, "ARO-ACC": 26.33 * (1 - 0.064), "RANDOM": 7.92, "GRID": 1.75, "AggTree": 8.76}
"""The rates of Figure 7a; ARO-ACC's follows from the text, which states that it is within 6.4 % of ARO's."""
FULL_AT_FOUR: Printed = {name: {"1J4T": 100.0} for name in (EXACT, "ARO-ACC")}
"""The totals of Figure 9b with one job of four tasks, where the workers' own links are full."""


def wanted(settings: Sequence[AroSetting], request: Request) -> Sequence[AroSetting]:
    return settings[::3] if request.quick else settings


def fig7_charts(request: Request) -> tuple[Chart, Chart, Chart, Chart]:
    """One task: the default setting and its other readings, over the share of INA switches, and over workers."""
    own = lines(request, compared())
    shares = {round(100 * setting.share): setting for setting in wanted(SHARES, request)}
    sizes = {setting.workers: setting for setting in wanted(SIZES, request)}
    paper: Printed = {scheme: {"": rate} for scheme, rate in PRINTED_GBPS.items()}
    return (
        Chart(RATE, points({"": SJST}), own, "", "ARO, Figure 7a (Gbit/s)", "(a) default", VIOLINS, paper=paper),
        Chart(RATE, points(shares), own, "switches with INA (%)", "ARO, Figure 7b (Gbit/s)", "(b)",
              column="INA switches (%)"),
        Chart(RATE, points(sizes), own, "workers", "ARO, Figure 7c (Gbit/s)", "(c)"),
        Chart(RATE, points({"": SJST}), lines(request, OTHER_READINGS), heading="other readings (Gbit/s)"),
    )  # fmt: skip


def fig7(found: Findings) -> Iterator[Part]:
    default, by_share, by_size, readings = fig7_charts(found.request)
    draws = {
        scheme: list(point.draws) for chart in (default, readings) for scheme, (point,) in found.series(chart).items()
    }
    rows = [(name, PRINTED_GBPS.get(name.split(",")[0]), fmean(own), pstdev(own)) for name, own in draws.items()]
    yield beside_paper("ARO, Figure 7a (Gbit/s)", rows, heading="scheme")
    yield found.table(by_share)
    yield found.table(by_size)
    yield Picture([found.panel(chart) for chart in (default, by_share, by_size)])
    yield [*said_of_default(found.curves(default)), *said_of_lines(found, by_share, by_size)]


def said_of_default(rates: Curves) -> Iterator[Statement]:
    """The text's sentences about Figure 7a."""
    (best,), (accelerated,) = rates[EXACT], rates["ARO-ACC"]
    printed = sorted(PRINTED_GBPS, key=PRINTED_GBPS.__getitem__, reverse=True)
    yield from statements.in_order("7a", printed, rates, ["default"])
    for name, paper in (("RANDOM", 3.3), ("GRID", 15), ("AggTree", 3)):
        yield statements.is_about(f"7a: ARO is about {paper} times {name}", best / rates[name][0], paper)
    yield statements.is_below("7a: ARO-ACC loses less than 7 %", 1 - accelerated / best, 0.07)


def said_of_lines(found: Findings, by_share: Chart, by_size: Chart) -> Iterator[Statement]:
    """The text's sentences about Figures 7b and 7c."""
    shares, sizes = found.curves(by_share), found.curves(by_size)
    percents, paper_lines = [f"{place}%" for place in by_share.places], (EXACT, *BASELINES)
    for where, curves, places in (("7b", shares, percents), ("7c", sizes, by_size.places)):
        yield statements.is_highest(where, EXACT, BASELINES, curves, places)
        yield statements.is_lowest(where, "GRID", GROWING, curves, places)
    yield from (statements.rises(f"7b: {name} rises with INA switches", shares[name]) for name in GROWING)
    yield statements.is_level("7b: GRID hardly changes", shares["GRID"])
    first, last = (1 - shares["ARO-ACC"][at] / shares[EXACT][at] for at in (0, -1))
    yield statements.is_below(f"7b: ARO-ACC loses less with more of them (first {first:.3f})", last, first)
    yield from (statements.falls(f"7c: {name} falls with workers", sizes[name]) for name in paper_lines)
    at_once = [float(workers) * rate for workers, rate in zip(by_size.places, sizes["GRID"], strict=True)]
    yield statements.is_level("7c: GRID falls in inverse proportion: rate x workers", at_once)
    kept = sizes[EXACT][-1] / sizes[EXACT][0]
    yield statements.is_above("7c: ARO falls less: with 4 times the workers it keeps over 1/4", kept, 0.25)
    both = {name: [*shares[name], *sizes[name]] for name in paper_lines}
    yield ratios(both, "7: ARO is 2.2 to 4.0 times AggTree", "AggTree", 2.2, 4.0)
    yield ratios(both, "7: 2.8 to 4.1 times RANDOM", "RANDOM", 2.8, 4.1)
    yield ratios(both, "7: 8.2 to 41.6 times GRID", "GRID", 8.2, 41.6)


def ratios(curves: Curves, says: str, scheme: str, low: float, high: float) -> Statement:
    """The statement that ARO's mean rate over a scheme's is between `low` and `high` everywhere."""
    pairs = zip(curves[EXACT], curves[scheme], strict=True)
    return statements.spans(says, (best / other for best, other in pairs), low, high)


def fig8_charts(request: Request) -> tuple[Chart, Chart, Chart]:
    """One task: one pipeline (no pipeline constraint), over the number of pipelines, and the default setting."""
    own = lines(request, compared())
    counts = {setting.pipelines: setting for setting in wanted(PIPELINES, request)}
    return (
        Chart(RATE, points({"": FLAT}), own, "", "ARO, Figure 8a (Gbit/s)", "(a) one pipeline", VIOLINS),
        Chart(RATE, points(counts), own, "pipelines", "ARO, Figure 8 (Gbit/s)", "(b)"),
        Chart(RATE, points({"": SJST}), own, heading="four pipelines (Gbit/s)"),
    )


def fig8(found: Findings) -> Iterator[Part]:
    flat, by_count, default = fig8_charts(found.request)
    yield found.table(by_count)
    yield Picture([found.panel(flat), found.panel(by_count)])
    yield list(said_of_pipelines(found.curves(flat), found.curves(default), found.curves(by_count), by_count.places))


def said_of_pipelines(flat: Curves, default: Curves, rates: Curves, places: Sequence[object]) -> Iterator[Statement]:
    """The text's sentences about Figure 8: one pipeline, the default of four, and over their number."""
    for name in ("GRID", "AggTree"):
        gain = flat[name][0] / default[name][0]
        yield statements.is_above(f"8a: {name}, with one pipeline over four", gain, 1.0001)
    for name in BASELINES:
        yield statements.is_above(f"8a: ARO is far above {name}", flat[EXACT][0] / flat[name][0], 2)
    for name in (EXACT, "GRID", "AggTree", "ARO-ACC"):
        yield statements.falls(f"8b: {name} falls with pipelines", rates[name])
    yield statements.is_level("8b: RANDOM is independent of pipelines", rates["RANDOM"])
    yield statements.is_highest("8b", EXACT, BASELINES, rates, places)


PARTS = {"minimum": "least_bps", "total": "total_bps"}
AGGTREE = {9: (1.8, 2.5), 10: (1.9, 2.3)}
"""By figure, the range of ARO's total over AggTree's that the text states."""


def several_charts(figure: int, request: Request) -> list[Chart]:
    """Several tasks: the minimum and the sum of their rates. Figure 9 has one job, Figure 10 jobs of two tasks."""
    groups = {setting.label: setting for setting in wanted(TASKS if figure == 9 else JOBS, request)}
    return [
        Chart(
            gbps(key, f"{part} throughput (Gbit/s)"), points(groups), lines(request, compared()),
            "jobs (J) and tasks of each (T)", f"ARO, Figure {figure}, {part} (Gbit/s)", part, BARS, column="tasks",
            paper=FULL_AT_FOUR if (figure, part) == (9, "total") else {},
        )
        for part, key in PARTS.items()
    ]  # fmt: skip


def several(figure: int, found: Findings) -> Iterator[Part]:
    charts = several_charts(figure, found.request)
    yield from map(found.table, charts)
    yield Picture(map(found.panel, charts))
    yield list(said_of_several(figure, {chart.title: found.curves(chart) for chart in charts}))


def said_of_several(figure: int, curves: Mapping[str, Curves]) -> Iterator[Statement]:
    """The text's sentences about the minimum and the total of the tasks' rates in Figure 9 or 10."""
    for (part, rates), letter, trend, word in zip(
        curves.items(), "ab", (statements.falls, statements.rises), ("falls", "rises"), strict=True
    ):
        for name in BASELINES:
            least = min(rate / other for rate, other in zip(rates[EXACT], rates[name], strict=True))
            yield statements.is_above(f"{figure}{letter}: ARO's {part} is more than twice {name}'s", least, 2)
        yield trend(f"{figure}{letter}: the {part} {word} with tasks", rates[EXACT])
    (low, high), total = AGGTREE[figure], curves["total"]
    yield ratios(total, f"ARO is {low} to {high} times AggTree (total)", "AggTree", low, high)
    for name in (EXACT, "ARO-ACC") if figure == 9 else ():
        yield statements.is_about(f"9b: {name} has 100 Gbit/s in all at 1J4T", total[name][-1], 100)


FIGURES = {
    "fig7": aro_figure("fig7", fig7_charts, fig7),
    "fig8": aro_figure("fig8", fig8_charts, fig8),
    "fig9": aro_figure("fig9", partial(several_charts, 9), partial(several, 9)),
    "fig10": aro_figure("fig10", partial(several_charts, 10), partial(several, 10)),
}
