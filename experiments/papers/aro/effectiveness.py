"""ARO's Figures 7 to 10, its effectiveness: rates of ARO and the baselines for one task, one job and several jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean as mean
from statistics import pstdev as sd

from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.aro.setting import (
    EXACT,
    MJMT,
    SJMT,
    SJST,
    AroSetting,
    Case,
    Sample,
    cases,
    compared,
    sample,
)
from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.drawing import BARS, LINES, VIOLINS, Panel, Printed, Values, save
from inakit.experiments.papers.common.estimates import means
from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.common.statements import Statement, number, value_table

BASELINES = ("RANDOM", "GRID", "AggTree")
GROWING = (EXACT, "RANDOM", "AggTree")
GBPS = "throughput (Gbit/s)"

SHARES = [replace(SJST, share=percent / 100) for percent in range(10, 80, 10)]
SIZES = [replace(SJST, workers=workers) for workers in (100, 200, 300, 400)]
PIPELINES = [replace(SJST, pipelines=pipelines) for pipelines in (1, 2, 4, 6, 8)]
FLAT = PIPELINES[0]
TASKS = [replace(SJMT, tasks=tasks) for tasks in (1, 2, 3, 4)]
JOBS = [replace(MJMT, jobs=jobs) for jobs in (1, 2, 3, 4)]

OTHER_READINGS = ("GRID, capped", "AggTree, balanced")
"""The baselines under another reading of their descriptions; measured at the default setting only."""

PRINTED_GBPS = {EXACT: 26.33, "ARO-ACC": 26.33 * (1 - 0.064), "RANDOM": 7.92, "GRID": 1.75, "AggTree": 8.76}
"""The rates of Figure 7a; that of ARO-ACC follows from the text, which says that it is within 6.4 % of ARO's."""
FULL_AT_FOUR: Printed = {name: {"1J4T": 100.0} for name in (EXACT, "ARO-ACC")}
"""The totals of Figure 9b with one job of four tasks, where the workers' own links are full."""


def wanted(settings: Sequence[AroSetting], request: Request) -> Sequence[AroSetting]:
    return settings[::3] if request.quick else settings


def fig7(console: Console, request: Request) -> str:
    """Figure 7, one task: rates at the default setting, over the share of INA switches, over the number of workers."""
    by_share, by_size = wanted(SHARES, request), wanted(SIZES, request)
    every = [*cases([SJST, *by_share, *by_size], compared()), *cases([SJST], OTHER_READINGS)]
    found = sample(every, request, console)
    console.print(default_table(found))
    shares, percents = found.lines(by_share, compared()), [round(100 * s.share) for s in by_share]
    sizes, workers = found.lines(by_size, compared()), [s.workers for s in by_size]
    console.print(value_table("ARO, Figure 7b (Gbit/s)", "INA switches (%)", percents, means(shares)))
    console.print(value_table("ARO, Figure 7c (Gbit/s)", "workers", workers, means(sizes)))
    save(
        request.results / "aro-fig7",
        violins(found, SJST, "(a) default", {scheme: {"": rate} for scheme, rate in PRINTED_GBPS.items()}),
        Panel(LINES, percents, shares, "switches with INA (%)", GBPS, "(b)"),
        Panel(LINES, workers, sizes, "workers", GBPS, "(c)"),
    )
    console.print(statements.table_of([*said_of_default(found), *said_of_lines(found, by_share, by_size)]))
    return found.verdict


def violins(found: Sample, setting: AroSetting, title: str, paper: Printed) -> Panel:
    """A panel of the rates of all schemes at one setting, which shows their spread over the seeds."""
    rates = {scheme: [found.estimate_of(Case(setting, scheme))] for scheme in compared()}
    return Panel(VIOLINS, [""], rates, "", GBPS, title, paper)


def default_table(found: Sample) -> Table:
    """The table of Figure 7a: the paper's mean rates, ours, and the standard deviation over the seeds."""
    table = Table("scheme", "paper", "ours", "ratio", "sd", title="ARO, Figure 7a (Gbit/s)")
    for scheme in (*compared(), *OTHER_READINGS):
        rates, paper = found.of(Case(SJST, scheme)), PRINTED_GBPS.get(scheme.split(",")[0])
        ratio = None if paper is None else mean(rates) / paper
        table.add_row(scheme, number(paper), number(mean(rates)), number(ratio), number(sd(rates)))
    return table


def said_of_default(found: Sample) -> list[Statement]:
    """The text's sentences about Figure 7a."""
    best = found.mean(SJST, EXACT)
    rates = {scheme: [found.mean(SJST, scheme)] for scheme in PRINTED_GBPS}
    printed = sorted(PRINTED_GBPS, key=PRINTED_GBPS.__getitem__, reverse=True)
    return [
        *statements.in_order("7a", printed, rates, ["default"]),
        *(
            statements.is_about(f"7a: ARO is about {paper} times {name}", best / found.mean(SJST, name), paper)
            for name, paper in (("RANDOM", 3.3), ("GRID", 15), ("AggTree", 3))
        ),
        statements.is_below("7a: ARO-ACC loses less than 7 %", 1 - found.mean(SJST, "ARO-ACC") / best, 0.07),
    ]


def said_of_lines(found: Sample, by_share: Sequence[AroSetting], by_size: Sequence[AroSetting]) -> list[Statement]:
    """The text's sentences about Figures 7b and 7c."""
    sizes = means(found.lines(by_size, (EXACT, *BASELINES)))
    at_once = [setting.workers * rate for setting, rate in zip(by_size, sizes["GRID"], strict=True)]
    first, last = (1 - found.mean(s, "ARO-ACC") / found.mean(s, EXACT) for s in (by_share[0], by_share[-1]))
    both = [*by_share, *by_size]
    shares = means(found.lines(by_share, (EXACT, *BASELINES)))
    percents, workers = [f"{setting.share:.0%}" for setting in by_share], [setting.workers for setting in by_size]
    return [
        statements.is_highest("7b", EXACT, BASELINES, shares, percents),
        statements.is_lowest("7b", "GRID", (EXACT, "RANDOM", "AggTree"), shares, percents),
        statements.is_highest("7c", EXACT, BASELINES, sizes, workers),
        statements.is_lowest("7c", "GRID", (EXACT, "RANDOM", "AggTree"), sizes, workers),
        *(statements.rises(f"7b: {name} rises with INA switches", found.line(by_share, name)) for name in GROWING),
        statements.is_level("7b: GRID has little change", found.line(by_share, "GRID")),
        statements.is_below(f"7b: ARO-ACC loses less with more of them (first {first:.3f})", last, first),
        *(statements.falls(f"7c: {name} falls with workers", rates) for name, rates in sizes.items()),
        statements.is_level("7c: GRID falls as 1/g: rate x workers", at_once),
        statements.is_above("7c: ARO falls less: 4 g has more than 1/4", sizes[EXACT][-1] / sizes[EXACT][0], 0.25),
        ratios(found, "7: ARO is 2.2 to 4.0 times AggTree", both, "AggTree", 2.2, 4.0),
        ratios(found, "7: 2.8 to 4.1 times RANDOM", both, "RANDOM", 2.8, 4.1),
        ratios(found, "7: 8.2 to 41.6 times GRID", both, "GRID", 8.2, 41.6),
    ]


def ratios(
    found: Sample,
    says: str,
    settings: Sequence[AroSetting],
    scheme: str,
    low: float,
    high: float,
    key: str = "least_bps",
) -> Statement:
    """The statement that ARO's mean rate over a scheme's is between `low` and `high` in all settings."""
    return statements.spans(says, (found.mean(s, EXACT, key) / found.mean(s, scheme, key) for s in settings), low, high)


def fig8(console: Console, request: Request) -> str:
    """Figure 8, one task: rates with one pipeline, which is as without pipelines, and over their number."""
    settings = wanted(PIPELINES, request)
    found = sample(cases([*settings, SJST], compared()), request, console)
    counts = [setting.pipelines for setting in settings]
    lines = found.lines(settings, compared())
    rates = means(lines)
    console.print(value_table("ARO, Figure 8 (Gbit/s)", "pipelines", counts, rates))
    save(
        request.results / "aro-fig8",
        violins(found, FLAT, "(a) one pipeline", {}),
        Panel(LINES, counts, lines, "pipelines", GBPS, "(b)"),
    )
    console.print(statements.table_of(said_of_pipelines(found, rates, counts)))
    return found.verdict


def said_of_pipelines(found: Sample, rates: Values, counts: Sequence[int]) -> list[Statement]:
    """The text's sentences about Figure 8; `rates` are the means of each scheme over the `counts` of pipelines."""
    flat = found.mean(FLAT, EXACT)
    return [
        statements.is_above("8a: GRID, with one pipeline over four", gain(found, "GRID"), 1.0001),
        statements.is_above("8a: AggTree, with one pipeline over four", gain(found, "AggTree"), 1.0001),
        *(statements.is_above(f"8a: ARO is far above {b}", flat / found.mean(FLAT, b), 2) for b in BASELINES),
        *(statements.falls(f"8b: {name} falls with pipelines", rates[name]) for name in (EXACT, "GRID", "AggTree")),
        statements.falls("8b: ARO-ACC falls with pipelines", rates["ARO-ACC"]),
        statements.is_level("8b: RANDOM does not mind them", rates["RANDOM"]),
        statements.is_highest("8b", EXACT, BASELINES, rates, counts),
    ]


def gain(found: Sample, scheme: str) -> float:
    """A scheme's mean rate with one pipeline over that with four."""
    return found.mean(FLAT, scheme) / found.mean(SJST, scheme)


def fig9(console: Console, request: Request) -> str:
    """Figure 9: one job with 1 to 4 tasks."""
    return several(console, request, 9, wanted(TASKS, request), (1.8, 2.5))


def fig10(console: Console, request: Request) -> str:
    """Figure 10: 1 to 4 jobs, each with two tasks."""
    return several(console, request, 10, wanted(JOBS, request), (1.9, 2.3))


def several(
    console: Console, request: Request, figure: int, settings: Sequence[AroSetting], aggtree: tuple[float, float]
) -> str:
    """Measure and draw a figure of several tasks: the minimum and the total of their rates.

    `aggtree` is the range of ARO's total over AggTree's that the text states.
    """
    found = sample(cases(settings, compared()), request, console)
    groups = [setting.label for setting in settings]
    panels, said = [], []
    for part, key in (("minimum", "least_bps"), ("total", "total_bps")):
        lines = found.lines(settings, compared(), key)
        console.print(value_table(f"ARO, Figure {figure}, {part} (Gbit/s)", "tasks", groups, means(lines)))
        paper = FULL_AT_FOUR if (figure, part) == (9, "total") else {}
        panels.append(Panel(BARS, groups, lines, "jobs (J) and tasks of each (T)", f"{part} {GBPS}", part, paper))
        said += said_of_several(found, figure, settings, part, key)
    save(request.results / f"aro-fig{figure}", *panels)
    low, high = aggtree
    said.append(
        ratios(found, f"ARO is {low} to {high} times AggTree (total)", settings, "AggTree", low, high, "total_bps")
    )
    if figure == 9:
        said += [
            statements.is_about(
                f"9b: {name} has 100 Gbit/s in all at 1J4T", found.mean(TASKS[-1], name, "total_bps"), 100
            )
            for name in (EXACT, "ARO-ACC")
        ]
    console.print(statements.table_of(said))
    return found.verdict


def said_of_several(found: Sample, figure: int, settings: Sequence[AroSetting], part: str, key: str) -> list[Statement]:
    """The text's sentences about the minimum or the total of the tasks' rates in Figure 9 or 10."""
    rates = found.line(settings, EXACT, key)
    where = f"{figure}{'a' if part == 'minimum' else 'b'}"
    more = [
        statements.is_above(
            f"{where}: ARO's {part} is more than twice {name}'s",
            min(rate / other for rate, other in zip(rates, found.line(settings, name, key), strict=True)),
            2,
        )
        for name in BASELINES
    ]
    trend = statements.falls if part == "minimum" else statements.rises
    return [*more, trend(f"{where}: the {part} {'falls' if part == 'minimum' else 'rises'} with tasks", rates)]
