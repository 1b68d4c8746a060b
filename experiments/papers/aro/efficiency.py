"""ARO's Figures 11 to 13 (efficiency): the time that SRO, APP and QSR save, and the throughput that they cost.

The kit's fast exact method is measured at the paper's scale. The published model is measured at a smaller scale,
because HiGHS on one thread replaces Gurobi on twelve threads, for which the paper allows 1,200 s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from inakit.experiments.papers.aro.setting import (
    EXACT,
    SCHEMES,
    SJST,
    AroSetting,
    aro_figure,
    gbps,
    lines,
    lost_by_acc,
    points,
)
from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.claims import read_ledger
from inakit.experiments.papers.common.drawing import LINES, Panel, Place
from inakit.experiments.papers.common.estimates import Estimate, Series, means, ratio_of_means
from inakit.experiments.papers.common.figure_engine import Chart, Findings, Part, Picture, Quantity, by_seed
from inakit.experiments.papers.common.figure_registry import COMPARES_VARIANTS, Request
from inakit.experiments.papers.common.statements import Statement, mean, ratio, value_table
from inakit.experiments.papers.common.sweep import Trial
from inakit.experiments.report.method_styles import categories

LEDGER = read_ledger("aro")
FAST = (EXACT, "ARO-SRO", "ARO-APP", "ARO-ACC")
LITERAL = ("literal aro-qsr", "literal aro-sro", "literal aro-app", "literal aro-acc")
RAW, QSR = "literal aro-raw", "literal aro-qsr"
SECONDS = Quantity("seconds", "seconds")
THROUGHPUT = gbps("least_job_bps", "least job's throughput (Gbit/s)")
LARGE_LIMIT_S, LITERAL_LIMIT_S = 30.0, 20.0
LARGE_SEEDS, SMALL_SEEDS = 3, 10

FIVE_JOBS = AroSetting(jobs=5, workers=100)
"""Figure 11's setting at lambda = 1."""
SMALL = AroSetting(jobs=2, workers=20, leaves=8, share=0.4)
"""A setting that the published model solves in about a second: 16 switches, 6 with INA, about 3 of them spines."""
ALPHAS = (0.2, 0.4, 0.6, 0.8, 1.0)
LEVELS = (10, 20, 50, 100, 200, 500)
LEVEL = 100
"""The N that the paper chooses."""
CONTINUOUS = 10**9
"""The number of levels that represents ARO-RAW, which does not quantise."""


def large(scale: int) -> AroSetting:
    """Figure 11's setting at lambda = `scale`: 48 lambda switches, 100 lambda workers for each of five jobs."""
    return replace(FIVE_JOBS, workers=100 * scale, leaves=24 * scale)


def effort(
    places: Mapping[Place, Trial], of: Mapping[str, Trial], axis: str, heading: str, title: str = "", log: str = ""
) -> tuple[Chart, Chart]:
    """Charts of the seconds and the slowest job's throughput. Lines that are no schemes get their styles by order."""
    styles = {} if set(of) <= set(SCHEMES) else categories(of)
    return (
        Chart(SECONDS, places, of, axis, f"ARO, {heading}: {SECONDS.label}", f"(a) {title}", log=log, styles=styles),
        Chart(THROUGHPUT, places, of, axis, f"ARO, {heading}: {THROUGHPUT.label}", f"(b) {title}", styles=styles),
    )


def fig11_charts(request: Request) -> tuple[Chart, ...]:
    """SRO and APP with five jobs: the fast method at the paper's scale, the published model at a small one.

    The paper's scale is 48 lambda switches for lambda up to 5.
    """
    full, few = ([FIVE_JOBS], [SMALL]) if request.quick else (
        [FIVE_JOBS, *map(large, (3, 4, 5))], [SMALL, replace(SMALL, jobs=3, workers=50, leaves=12)]
    )  # fmt: skip
    fast, slow = (points({2 * setting.leaves: setting for setting in settings}) for settings in (full, few))
    literal = lines(request, LITERAL, time_limit_s=LITERAL_LIMIT_S)
    return (
        *effort(fast, lines(request, FAST, time_limit_s=LARGE_LIMIT_S), "switches", "Figure 11, the fast method",
                "fast method", "y"),
        *effort(slow, literal, "switches", "Figure 11, the published model", "published model", "y"),
    )  # fmt: skip


def fig11(found: Findings) -> Iterator[Part]:
    charts = fig11_charts(found.request)
    yield from map(found.table, charts)
    named = [dict(zip(FAST, chart.lines.values(), strict=True)) for chart in charts[2:]]  # as in the paper
    fast, slow = charts[:2], [replace(c, lines=own, styles={}) for c, own in zip(charts[2:], named, strict=True)]
    yield Picture(map(found.panel, (*fast, *slow)))
    yield list(said_of_speed(*map(found.series, (*fast, *slow)), quick=found.request.quick))


def said_of_speed(
    fast_s: Series, fast_gbps: Series, slow_s: Series, slow_gbps: Series, *, quick: bool
) -> Iterator[Statement]:
    """The claims about Figure 11: seconds by the published model at its largest scale, rates by both.

    The quick form judges neither seconds nor rates of searches that end by the clock: the machine's load changes both.
    """
    yield LEDGER.judge("solve-minutes", fast_s[EXACT])
    if quick:
        return
    yield LEDGER.judge("fig11-loss", lost_by_acc(fast_gbps))
    last = {name: line[-1:] for name, line in slow_s.items()}
    for name in ("ARO-SRO", "ARO-APP"):
        yield LEDGER.judge(f"fig11-{name[4:].lower()}", {EXACT: last[EXACT], name: last[name]})
    yield LEDGER.judge("fig11-acc", {name: last[name] for name in ("ARO-ACC", *FAST[:3])})
    yield LEDGER.judge("fig11-time", ratio(*(last[name][0] for name in ("ARO-ACC", EXACT))).map(lambda kept: 1 - kept))
    yield LEDGER.judge("fig11-loss-small", lost_by_acc(slow_gbps)[-1:])
    best = fast_gbps[EXACT][-1]
    yield LEDGER.judge("fig11-l5", any(statements.exceeds(fast_gbps[name][-1], best) for name in FAST[1:]))


ONE, FIVE = "one task", "five jobs"


def fig12_charts(request: Request) -> tuple[Chart, ...]:
    """APP's alpha, also without APP: one task by default and with most workers, five jobs at Figure 11's lambda = 1."""
    settings = {ONE: SJST, "400 workers": replace(SJST, workers=400), FIVE: FIVE_JOBS}
    own = points({name: settings[name] for name in [*settings][: 1 if request.quick else 3]})
    with_alpha, exact = (lines(request, [scheme])[scheme] for scheme in ("ARO-ACC", EXACT))
    alphas: dict[Place, Trial] = {alpha: {"alpha": alpha} for alpha in ALPHAS}
    return (
        *effort(alphas, {str(name): {**keys, **with_alpha} for name, keys in own.items()}, "alpha",
                "Figure 12, ARO-ACC"),
        Chart(THROUGHPUT, {"": {}}, {str(name): {**keys, **exact} for name, keys in own.items()}),
    )  # fmt: skip


def fig12(found: Findings) -> Iterator[Part]:
    seconds, throughput, without = fig12_charts(found.request)
    yield found.table(seconds)
    yield found.table(throughput)
    yield Picture([found.panel(seconds), found.panel(throughput)])
    took, rates, best = map(found.series, (seconds, throughput, without))
    lost = {name: 1 - mean(line[ALPHAS.index(0.4)]) / mean(best[name][0]) for name, line in rates.items()}
    judged = [LEDGER.judge("fig12-04", lost[ONE]), LEDGER.judge("fig12-rate", rates[ONE])]
    if not found.request.quick:  # which has one task alone, and few seconds
        judged += [LEDGER.judge("fig12-time", took[ONE]), LEDGER.judge("fig12-04-five", lost[FIVE])]
    yield judged


PUBLISHED = "published model"


def fig13_charts(request: Request) -> tuple[Chart, Chart]:
    """QSR's N: ARO's optimum at the default setting, and the published model at a small one."""
    levels = LEVELS[::3] if request.quick else LEVELS
    exact: dict[Place, Trial] = {n: {"levels": n} for n in (*levels, CONTINUOUS)}
    default, small = (points({"": setting})[""] for setting in (SJST, SMALL))
    limited = {name: lines(request, [name], time_limit_s=LITERAL_LIMIT_S)[name] for name in (QSR, RAW)}
    published: dict[Place, Trial] = {n: {"levels": n, **limited[QSR]} for n in levels}
    return (
        Chart(THROUGHPUT, exact, {"one task, exactly": {**default, **lines(request, [EXACT])[EXACT]}}),
        Chart(THROUGHPUT, published | {CONTINUOUS: limited[RAW]}, {PUBLISHED: small}),
    )


def fig13(found: Findings) -> Iterator[Part]:
    """The throughput lost, exactly and by the published model, and the published model's time."""
    charts = fig13_charts(found.request)
    _, published = charts
    levels = published.places[:-1]
    losses = {name: lost(found, chart) for chart in charts for name in chart.lines}
    took = found.series(replace(published, quantity=SECONDS))[PUBLISHED]
    styles = categories(losses)
    yield value_table("ARO, Figure 13: throughput lost (%)", "N", levels, means(losses))
    yield value_table("ARO, Figure 13: seconds", "N", levels, means({PUBLISHED: took[:-1]}))
    panels = (("throughput lost (%)", losses, "(a)"), (SECONDS.label, {PUBLISHED: took[:-1]}, "(b)"))
    yield Picture(Panel(LINES, levels, s, "N", label, title, log="x", styles=styles) for label, s, title in panels)
    enough = [place for place, n in enumerate(levels) if float(n) >= LEVEL]
    judged = [LEDGER.judge("fig13-falls", {name: line for name, line in losses.items() if name != PUBLISHED})]
    if not found.request.quick:  # which has few seconds, and searches that end by the clock: the load changes both
        of_level = took[levels.index(LEVEL)]
        judged += [
            LEDGER.judge("fig13-falls-published", losses[PUBLISHED]),
            LEDGER.judge("fig13-loss", [mean(line[place]) / 100 for line in losses.values() for place in enough]),
            LEDGER.judge("fig13-time-rises", took[:-1]),
            LEDGER.judge("fig13-time", ratio(of_level, took[-1]).map(lambda kept: 1 - kept)),
            LEDGER.judge("fig13-4x", ratio(took[-1], of_level)),
        ]
    yield judged


def lost(found: Findings, chart: Chart) -> list[Estimate]:
    """The percentage of throughput that each level loses, compared with the last one, which is continuous."""
    (line,) = chart.lines
    *quantised, best = (found.of(chart.cell(line, place), THROUGHPUT.key, 1e9) for place in chart.places)
    return [ratio_of_means(rates, best).map(lambda kept: 100 * (1 - kept)) for rates in quantised]


FIGURES = {
    "fig11": aro_figure("fig11", fig11_charts, fig11, (LARGE_SEEDS, 2), leaves_out=COMPARES_VARIANTS),
    "fig12": aro_figure("fig12", fig12_charts, fig12, (SMALL_SEEDS, 2), leaves_out=COMPARES_VARIANTS),
    "fig13": aro_figure(
        "fig13", fig13_charts, fig13, leaves_out=COMPARES_VARIANTS,
        draws=lambda cell, seeds: by_seed(cell, seeds if cell["scheme"] == EXACT else min(seeds, SMALL_SEEDS)),
    ),
}  # fmt: skip
