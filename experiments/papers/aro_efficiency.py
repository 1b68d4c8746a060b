"""ARO's Figures 11 to 13, its efficiency: what SRO, APP and QSR gain in time and lose in throughput.

The fast exact method is measured at the paper's scale. The published model is measured at a smaller one, because HiGHS
on one thread stands in for Gurobi on twelve; the paper gave Gurobi 1,200 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.console import Console

from experiments.papers import statements as text
from experiments.papers.aro_sample import Case, Sample, sample
from experiments.papers.aro_schemes import COLORS, EXACT
from experiments.papers.aro_setting import SJST, Setting
from experiments.papers.drawing import Values, lines, save, table_of
from experiments.papers.sweep import Request, Value

FAST = (EXACT, "ARO-SRO", "ARO-APP", "ARO-ACC")
LITERAL = ("literal aro-qsr", "literal aro-sro", "literal aro-app", "literal aro-acc")
RAW, QSR = "literal aro-raw", "literal aro-qsr"
SECONDS, GBPS = "seconds", "least job's throughput (Gbit/s)"
LITERAL_LIMIT_S = 20.0
LARGE_SEEDS, SMALL_SEEDS = 3, 10
LARGE_LIMIT_S = 30.0

FIVE_JOBS = Setting(jobs=5, workers=100)
"""Figure 11's setting at lambda = 1."""
SMALL = Setting(jobs=2, workers=20, leaves=8, share=0.4)
"""What the published model solves in about a second: 16 switches, 3 or so of the 6 with INA above the leaves."""
ALPHAS = (0.2, 0.4, 0.6, 0.8, 1.0)
LEVELS = (10, 20, 50, 100, 200, 500)
CONTINUOUS = 10**9


def large(scale: int) -> Setting:
    """Figure 11's setting: 48 lambda switches, 100 lambda workers for each of five jobs."""
    return replace(FIVE_JOBS, workers=100 * scale, leaves=24 * scale)


@dataclass(frozen=True)
class Effort:
    """Time and throughput of some schemes over some places; `found` has them for each scheme and place."""

    seconds: Values
    gbps: Values


def fig11(console: Console, request: Request) -> str:
    """SRO and APP with five jobs: at the paper's scale by the fast method, at a small one by the published model."""
    scales = () if request.quick else (3, 4, 5)
    few = [SMALL] if request.quick else [SMALL, replace(SMALL, jobs=3, workers=50, leaves=12)]
    limit, short = (("time_limit_s", LARGE_LIMIT_S),), (("time_limit_s", LITERAL_LIMIT_S),)
    places = [FIVE_JOBS, *map(large, scales)]
    found = sample([Case(s, name, limit) for s in places for name in FAST], request, console, LARGE_SEEDS)
    published = sample([Case(s, name, short) for s in few for name in LITERAL], request, console, LARGE_SEEDS)
    fast = effort(found, [(s, limit) for s in places], FAST)
    slow = effort(published, [(s, short) for s in few], LITERAL)
    show(console, "Figure 11, the fast method", "switches", [2 * s.leaves for s in places], fast)
    show(console, "Figure 11, the published model", "switches", [2 * s.leaves for s in few], slow)
    axes = [2 * s.leaves for s in places]
    save(
        request.results / "aro-fig11",
        lines(axes, fast.seconds, COLORS, "switches", SECONDS, "(a)", "y"),
        lines(axes, fast.gbps, COLORS, "switches", GBPS, "(b)"),
    )
    loss = 1 - slow.gbps["literal aro-acc"][-1] / slow.gbps["literal aro-qsr"][-1]
    saved = 1 - slow.seconds["literal aro-acc"][-1] / slow.seconds["literal aro-qsr"][-1]
    console.print(
        text.table_of(
            [
                text.is_above("11: ARO-ACC takes about 90 % less time (published model)", saved, 0.8),
                text.is_below("11: it loses less than 10 % (published model)", loss, 0.1),
                text.is_below("11: it loses less than 10 % (fast method, 48 switches)", lost(fast, 0), 0.1),
            ]
        )
    )
    return found.verdict


def lost(fast: Effort, place: int) -> float:
    return 1 - fast.gbps["ARO-ACC"][place] / fast.gbps[EXACT][place]


def fig12(console: Console, request: Request) -> str:
    """APP's alpha: one task at the default setting, and five jobs at Figure 11's with lambda = 1."""
    settings = {"one task": SJST} if request.quick else {"one task": SJST, "five jobs": FIVE_JOBS}
    wanted = [Case(s, "ARO-ACC", (("alpha", alpha),)) for s in settings.values() for alpha in ALPHAS]
    found = sample([*wanted, *(Case(s, EXACT) for s in settings.values())], request, console, SMALL_SEEDS)
    gbps, seconds = {}, {}
    for name, setting in settings.items():
        gbps[name] = [found.mean(setting, "ARO-ACC", "least_job_bps", alpha=alpha) for alpha in ALPHAS]
        seconds[name] = [found.mean(setting, "ARO-ACC", "seconds", alpha=alpha) for alpha in ALPHAS]
    show(console, "Figure 12, ARO-ACC", "alpha", ALPHAS, Effort(seconds, gbps))
    save(
        request.results / "aro-fig12",
        lines(ALPHAS, seconds, COLORS, "alpha", SECONDS, "(a)"),
        lines(ALPHAS, gbps, COLORS, "alpha", GBPS, "(b)"),
    )
    losses = {name: 1 - gbps[name][1] / found.mean(s, EXACT, "least_job_bps") for name, s in settings.items()}
    console.print(
        text.table_of(
            [
                *(
                    text.is_below(f"12: alpha = 0.4 costs about 5 % ({name})", loss, 0.1)
                    for name, loss in losses.items()
                ),
                *(text.rises(f"12: throughput rises with alpha ({name})", rates) for name, rates in gbps.items()),
            ]
        )
    )
    return found.verdict


def fig13(console: Console, request: Request) -> str:
    """QSR's N: throughput lost, exactly, at the default setting; and the published model's time at a small one."""
    levels = LEVELS[::3] if request.quick else LEVELS
    default = [Case(SJST, EXACT, (("levels", n),)) for n in (*levels, CONTINUOUS)]
    short = (("time_limit_s", LITERAL_LIMIT_S),)
    published = [Case(SMALL, QSR, (("levels", n), *short)) for n in levels] + [Case(SMALL, RAW, short)]
    found = sample(default, request, console)
    slow = sample(published, request, console, SMALL_SEEDS)
    raw = slow.mean(SMALL, RAW, "least_job_bps", **dict(short))
    best = found.mean(SJST, EXACT, levels=CONTINUOUS)
    losses = {
        "one task (exact)": [100 * (1 - found.mean(SJST, EXACT, levels=n) / best) for n in levels],
        "published model": [
            100 * (1 - slow.mean(SMALL, QSR, "least_job_bps", levels=n, **dict(short)) / raw) for n in levels
        ],
    }
    seconds = {"published model": [slow.mean(SMALL, QSR, "seconds", levels=n, **dict(short)) for n in levels]}
    console.print(table_of("ARO, Figure 13: throughput lost (%)", "N", levels, losses))
    console.print(table_of("ARO, Figure 13: seconds", "N", levels, seconds))
    ratio = slow.mean(SMALL, RAW, "seconds", **dict(short)) / seconds["published model"][-1]
    save(
        request.results / "aro-fig13",
        lines(levels, losses, COLORS, "N", "throughput lost (%)", "(a)", "x"),
        lines(levels, seconds, COLORS, "N", SECONDS, "(b)", "x"),
    )
    after = [loss for name in losses for n, loss in zip(levels, losses[name], strict=True) if n >= 100]
    console.print(
        text.table_of(
            [
                text.is_below("13: from N = 100 on less than 2 % is lost", max(after) / 100, 0.02),
                *(text.falls(f"13: a larger N loses less, {name}", loss) for name, loss in losses.items()),
                text.is_above("13: QSR is about 4 times as fast as ARO-RAW", ratio, 3),
            ]
        )
    )
    return found.verdict


def effort(
    found: Sample, places: Sequence[tuple[Setting, tuple[tuple[str, Value], ...]]], schemes: Sequence[str]
) -> Effort:
    def line(scheme: str, key: str) -> list[float]:
        return [found.mean(setting, scheme, key, **dict(more)) for setting, more in places]

    return Effort(
        {scheme: line(scheme, "seconds") for scheme in schemes},
        {scheme: line(scheme, "least_job_bps") for scheme in schemes},
    )


def show(console: Console, title: str, axis: str, places: Sequence[object], found: Effort) -> None:
    console.print(table_of(f"ARO, {title}: seconds", axis, places, found.seconds))
    console.print(table_of(f"ARO, {title}: least throughput of a job (Gbit/s)", axis, places, found.gbps))
