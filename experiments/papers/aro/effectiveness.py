"""ARO's Figures 7 to 10 (effectiveness): rates of ARO and the baselines for one task, one job and several jobs.

Two more figures are made from them. `studies` has ARO's throughput over each baseline's in all studies, as section IV-C
and the abstract state it; `readings` compares the two ways to count the leaves of parameter servers (PSs).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean, pstdev

from inakit.experiments.papers.aro.setting import (
    AMONG,
    BESIDE,
    EXACT,
    MJMT,
    SJMT,
    SJST,
    AroSetting,
    aro_figure,
    compared,
    gbps,
    lines,
    lost_by_acc,
    points,
)
from inakit.experiments.papers.common.claims import read_ledger
from inakit.experiments.papers.common.drawing import BARS, LINES, VIOLINS, Panel, Place, Printed
from inakit.experiments.papers.common.estimates import Estimate, Series, means
from inakit.experiments.papers.common.figure_engine import Chart, Findings, Part, Picture
from inakit.experiments.papers.common.figure_registry import Request
from inakit.experiments.papers.common.statements import Statement, beside_paper, mean, ratio, value_table

LEDGER = read_ledger("aro")
BASELINES = ("RANDOM", "GRID", "AggTree")
ALL = (EXACT, "ARO-ACC", *BASELINES)
RATE = gbps("least_bps", "throughput (Gbit/s)")
JOBS_RATE = gbps("least_job_bps", "least job's throughput (Gbit/s)")
"""A job's throughput is the sum of its tasks' rates (section IV-A); with several jobs the least one counts."""

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
COMPARES_BASELINES = "it compares the paper's schemes with ARO"
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
    yield "GRID's program lets 100 gradients into a PS, which was fitted to 7a; its other reading has one link there"
    yield [*said_of_default(found.series(default)), *said_of_lines(found, by_share, by_size)]


def said_of_default(rates: Series) -> Iterator[Statement]:
    """The claims about Figure 7a."""
    best = rates[EXACT][0]
    for name in (EXACT, *BASELINES):
        yield LEDGER.judge(f"fig7a-{name.lower()}", rates[name][0])
    for name in BASELINES:
        yield LEDGER.judge(f"fig7a-over-{name.lower()}", ratio(best, rates[name][0]))
    yield LEDGER.judge("fig7a-acc-loss", lost_by_acc(rates)[0])
    yield LEDGER.judge("fig7a-order", {name: rates[name] for name in (EXACT, "ARO-ACC", "AggTree", "RANDOM", "GRID")})


def said_of_lines(found: Findings, by_share: Chart, by_size: Chart) -> Iterator[Statement]:
    """The claims about Figures 7b and 7c, and about all of Figure 7."""
    shares, sizes = found.series(by_share), found.series(by_size)
    yield LEDGER.judge("fig7b-rises", {name: shares[name] for name in (EXACT, "RANDOM", "AggTree")})
    yield LEDGER.judge("fig7b-grid-level", shares["GRID"])
    yield LEDGER.judge("fig7b-acc", lost_by_acc(shares))
    yield LEDGER.judge("fig7c-falls", {name: sizes[name] for name in ALL})
    at_once = [point.map(float(workers).__mul__) for workers, point in zip(by_size.places, sizes["GRID"], strict=True)]
    yield LEDGER.judge("fig7c-grid-1-over-g", at_once)
    yield LEDGER.judge("fig7c-aro-less", ratio(sizes[EXACT][-1], sizes[EXACT][0]))
    over_best = [mean(each) for series in (shares, sizes) for each in over(series, BASELINES)]
    yield LEDGER.judge("fig7-up-to-4", max(over_best))
    yield LEDGER.judge("fig7-acc-7", [*lost_by_acc(shares), *lost_by_acc(sizes)])
    yield LEDGER.judge("sjst-aggtree", [*over(shares, ["AggTree"]), *over(sizes, ["AggTree"])])


def over(rates: Series, others: Iterable[str]) -> list[Estimate]:
    """At every place, ARO over the best of other schemes."""
    rivals = (max(points, key=mean) for points in zip(*(rates[name] for name in others), strict=True))
    return [ratio(best, rival) for best, rival in zip(rates[EXACT], rivals, strict=True)]


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
    of_flat, of_four, rates = map(found.series, (flat, default, by_count))
    yield [
        *(
            LEDGER.judge(f"fig8a-{name.lower()}-gains", {"one pipeline": of_flat[name], "four": of_four[name]})
            for name in ("GRID", "AggTree")
        ),
        LEDGER.judge("fig8a-aro-best", {name: of_flat[name] for name in (EXACT, *BASELINES)}),
        LEDGER.judge("fig8-aro-best", {name: rates[name] for name in (EXACT, *BASELINES)}),
        LEDGER.judge("fig8b-falls", {name: rates[name] for name in ALL if name != "RANDOM"}),
        LEDGER.judge("fig8b-random", rates["RANDOM"]),
    ]


PARTS = {"minimum": "least_bps", "total": "total_bps"}


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
    kinds = map(found.series, (*charts, replace(charts[0], quantity=JOBS_RATE)))
    yield list(said_of_several(figure, *kinds, quick=found.request.quick))


def said_of_several(figure: int, least: Series, total: Series, jobs: Series, *, quick: bool) -> Iterator[Statement]:
    """The claims about the minimum and the total of the tasks' rates, and about the least job's throughput.

    Eq. (2) ignores the minimum of one job's tasks, which then depends on the search's time; the quick form judges none.
    """
    for part, rates, trend in (("min", least, "falls"), ("total", total, "rises")):
        if not quick or (figure, part) != (9, "min"):
            yield LEDGER.judge(f"fig{figure}-{part}-2", over(rates, BASELINES))
            yield LEDGER.judge(f"fig{figure}-{part}-{trend}", {name: rates[name] for name in (EXACT, "ARO-ACC")})
        yield LEDGER.judge(f"fig{figure}-{part}-{trend}-baselines", {name: rates[name] for name in BASELINES})
    yield LEDGER.judge("sjmt-aggtree" if figure == 9 else "mjmt-aggtree", over(jobs, ["AggTree"]))
    if figure == 9:
        yield LEDGER.judge("fig9b-full", total[EXACT][-1])
        yield LEDGER.judge("fig9b-full-acc", total["ARO-ACC"][-1])
        if not quick:
            yield LEDGER.judge("fig9a-acc-above", {name: least[name][-1:] for name in ("ARO-ACC", EXACT)})


def studies_charts(request: Request) -> list[Chart]:
    """The throughput of ARO and of the baselines in each study of Figures 7 to 10, whose trials these are."""
    of_each: dict[str, dict[Place, AroSetting]] = {
        "7b, INA (%)": {round(100 * setting.share): setting for setting in wanted(SHARES, request)},
        "7c, workers": {setting.workers: setting for setting in wanted(SIZES, request)},
        "8, pipelines": {setting.pipelines: setting for setting in wanted(PIPELINES, request)},
        "9": {setting.label: setting for setting in wanted(TASKS, request)},
        "10": {setting.label: setting for setting in wanted(JOBS, request)},
    }
    own = lines(request, (EXACT, *BASELINES))
    return [Chart(JOBS_RATE, points(settings), own, title=name) for name, settings in of_each.items()]


def studies(found: Findings) -> Iterator[Part]:
    """ARO over each baseline, study by study, and the claims about all of them."""
    yield from ratios(found, studies_charts(found.request))
    every: dict[str, list[Estimate]] = {name: [] for name in BASELINES}
    for chart in studies_charts(found.request):
        for name in BASELINES:
            every[name] += over(found.series(chart), [name])
    yield [
        *(LEDGER.judge(f"all-{name.lower()}", own) for name, own in every.items()),
        LEDGER.judge("abstract-aggtree", every["AggTree"]),
    ]


def ratios(found: Findings, charts: Iterable[Chart]) -> Iterator[Part]:
    """A table and a panel of each chart: ARO's throughput over each baseline's."""
    panels = []
    for chart in charts:
        series = {name: over(found.series(chart), [name]) for name in BASELINES}
        yield value_table(f"ARO over each baseline: {chart.title}", "", chart.places, means(series))
        kind = BARS if isinstance(chart.places[0], str) else LINES
        panels.append(Panel(kind, chart.places, series, chart.title, "ARO over the scheme", log="y"))
    yield Picture(panels)


def readings_charts(request: Request) -> list[Chart]:
    """Figure 7a and all studies of Figures 9 and 10, with the leaves of PSs among and beside the INA switches."""
    settings = {"7a": SJST} | {setting.label: setting for setting in wanted([*TASKS, *JOBS[1:]], request)}
    own = lines(request, (EXACT, *BASELINES))
    return [
        Chart(JOBS_RATE, points({name: replace(setting, ps_leaves=reading) for name, setting in settings.items()}),
              own, heading=f"ARO, leaves of PSs {reading} the INA switches (Gbit/s)", title=reading, column="setting")
        for reading in (AMONG, BESIDE)
    ]  # fmt: skip


def readings(found: Findings) -> Iterator[Part]:
    charts = readings_charts(found.request)
    yield from map(found.table, charts)
    yield from ratios(found, charts)


FIGURES = {
    "fig7": aro_figure("fig7", fig7_charts, fig7),
    "fig8": aro_figure("fig8", fig8_charts, fig8),
    "fig9": aro_figure("fig9", partial(several_charts, 9), partial(several, 9)),
    "fig10": aro_figure("fig10", partial(several_charts, 10), partial(several, 10)),
    "studies": aro_figure("studies", studies_charts, studies, leaves_out=COMPARES_BASELINES),
    "readings": aro_figure("readings", readings_charts, readings, leaves_out=COMPARES_BASELINES),
}
