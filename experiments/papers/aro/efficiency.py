"""ARO's Figures 11 to 13, its efficiency: the time that SRO, APP and QSR save, and the throughput that they lose.

The kit's fast exact method is measured at the paper's scale. The published model is measured at a smaller one, because
HiGHS on one thread stands in for Gurobi on twelve, to which the paper gave 1,200 s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from rich.console import Console

from inakit.experiments.papers.aro.setting import EXACT, SCHEMES, SJST, AroSetting, Case, Sample, sample
from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.drawing import LINES, Panel, Values, save
from inakit.experiments.papers.common.estimates import Estimate, Series, means, ratio_of_means
from inakit.experiments.papers.common.figure import COMPARES_VARIANTS, Request, leave_out
from inakit.experiments.papers.common.statements import Statement, value_table
from inakit.experiments.report.method_styles import categories

FAST = (EXACT, "ARO-SRO", "ARO-APP", "ARO-ACC")
LITERAL = ("literal aro-qsr", "literal aro-sro", "literal aro-app", "literal aro-acc")
RAW, QSR = "literal aro-raw", "literal aro-qsr"
SECONDS, GBPS = "seconds", "least job's throughput (Gbit/s)"
LITERAL_LIMIT_S = 20.0
LARGE_SEEDS, SMALL_SEEDS = 3, 10
LARGE_LIMIT_S = 30.0
LARGE, SHORT = (("time_limit_s", LARGE_LIMIT_S),), (("time_limit_s", LITERAL_LIMIT_S),)

FIVE_JOBS = AroSetting(jobs=5, workers=100)
"""Figure 11's setting at lambda = 1."""
SMALL = AroSetting(jobs=2, workers=20, leaves=8, share=0.4)
"""A setting that the published model solves in about a second: 16 switches, 6 with INA, about 3 of them spines."""
ALPHAS = (0.2, 0.4, 0.6, 0.8, 1.0)
LEVELS = (10, 20, 50, 100, 200, 500)
CONTINUOUS = 10**9


def large(scale: int) -> AroSetting:
    """Figure 11's setting at lambda = `scale`: 48 lambda switches, 100 lambda workers for each of five jobs."""
    return replace(FIVE_JOBS, workers=100 * scale, leaves=24 * scale)


@dataclass(frozen=True)
class Effort:
    """Seconds, and the throughput of the job that has least, in Gbit/s: for each line, a point at each place."""

    seconds: Series
    gbps: Series

    def panels(self, places: Sequence[float], axis: str, log: str = "", title: str = "") -> tuple[Panel, Panel]:
        """A panel of the seconds and one of the throughput. Lines that are no schemes get styles by their order."""
        styles = {} if set(self.seconds) <= set(SCHEMES) else categories(self.seconds)
        return (
            Panel(LINES, places, self.seconds, axis, SECONDS, f"(a) {title}", log=log, styles=styles),
            Panel(LINES, places, self.gbps, axis, GBPS, f"(b) {title}", styles=styles),
        )

    def show(self, console: Console, title: str, axis: str, places: Sequence[object]) -> None:
        console.print(value_table(f"ARO, {title}: {SECONDS}", axis, places, means(self.seconds)))
        console.print(value_table(f"ARO, {title}: {GBPS}", axis, places, means(self.gbps)))


def effort(found: Sample, lines: Mapping[str, Sequence[Case]]) -> Effort:
    def estimates(key: str) -> Series:
        return {name: [found.estimate_of(case, key) for case in line] for name, line in lines.items()}

    return Effort(estimates("seconds"), estimates("least_job_bps"))


def fig11(console: Console, request: Request) -> str:
    """Figure 11, SRO and APP with five jobs: the fast method at the paper's scale, the published model at a small one.

    The paper's scale is 48 lambda switches for lambda up to 5.
    """
    places = [FIVE_JOBS] if request.quick else [FIVE_JOBS, *map(large, (3, 4, 5))]
    few = [SMALL] if request.quick else [SMALL, replace(SMALL, jobs=3, workers=50, leaves=12)]
    fast_lines = {name: [Case(s, name, LARGE) for s in places] for name in FAST}
    slow_lines = {name: [Case(s, name, SHORT) for s in few] for name in LITERAL}
    every = chain.from_iterable((*fast_lines.values(), *slow_lines.values()))
    found = sample(every, request, console, LARGE_SEEDS)
    fast, slow = effort(found, fast_lines), effort(found, slow_lines)
    switches = [2 * setting.leaves for setting in places]
    fast.show(console, "Figure 11, the fast method", "switches", switches)
    few_switches = [2 * setting.leaves for setting in few]
    slow.show(console, "Figure 11, the published model", "switches", few_switches)
    save(
        request.results / "aro-fig11",
        *fast.panels(switches, "switches", "y", "fast method"),
        *as_named_in_the_paper(slow).panels(few_switches, "switches", "y", "published model"),
    )
    console.print(statements.table_of(said_of_speed(fast, slow)))
    leave_out(console, COMPARES_VARIANTS)
    return found.verdict


def as_named_in_the_paper(slow: Effort) -> Effort:
    """The published model's lines under the names that the paper gives to these schemes."""
    names = dict(zip(LITERAL, FAST, strict=True))
    return Effort(
        {names[name]: line for name, line in slow.seconds.items()},
        {names[name]: line for name, line in slow.gbps.items()},
    )


def said_of_speed(fast: Effort, slow: Effort) -> list[Statement]:
    """The text's sentences about Figure 11; about the published model at the largest scale that was measured."""
    seconds, gbps = ({name: line[-1].value for name, line in values.items()} for values in (slow.seconds, slow.gbps))
    accelerated, plain = "literal aro-acc", "literal aro-qsr"
    fast_gbps = means(fast.gbps)
    lost = max(1 - acc / best for acc, best in zip(fast_gbps["ARO-ACC"], fast_gbps[EXACT], strict=True))
    published = means(as_named_in_the_paper(slow).seconds)
    at_last = {name: line[-1:] for name, line in published.items()}
    return [
        *(
            statements.is_over(
                f"11: {s} takes less time than ARO (published)", (at_last[EXACT], at_last[s]), ["largest"]
            )
            for s in ("ARO-SRO", "ARO-APP")
        ),
        statements.is_lowest("11, seconds (published)", "ARO-ACC", (EXACT, "ARO-SRO", "ARO-APP"), at_last, ["largest"]),
        statements.is_above(
            "11: ARO-ACC takes about 90 % less time (published)", 1 - seconds[accelerated] / seconds[plain], 0.8
        ),
        statements.is_below("11: it loses less than 10 % (published)", 1 - gbps[accelerated] / gbps[plain], 0.1),
        statements.is_below("11: it loses less than 10 % (fast method)", lost, 0.1),
    ]


def fig12(console: Console, request: Request) -> str:
    """Figure 12, APP's alpha: one task at the default setting, and five jobs at Figure 11's with lambda = 1."""
    settings = {"one task": SJST} if request.quick else {"one task": SJST, "five jobs": FIVE_JOBS}
    by_alpha = {name: [Case(s, "ARO-ACC", (("alpha", a),)) for a in ALPHAS] for name, s in settings.items()}
    without = {name: Case(setting, EXACT) for name, setting in settings.items()}
    found = sample([*chain.from_iterable(by_alpha.values()), *without.values()], request, console, SMALL_SEEDS)
    accelerated = effort(found, by_alpha)
    accelerated.show(console, "Figure 12, ARO-ACC", "alpha", ALPHAS)
    save(request.results / "aro-fig12", *accelerated.panels(ALPHAS, "alpha"))
    said = []
    for name, rates in means(accelerated.gbps).items():
        lost = 1 - rates[ALPHAS.index(0.4)] / found.mean_of(without[name], "least_job_bps")
        said.append(statements.is_below(f"12: alpha = 0.4 costs about 5 % ({name})", lost, 0.1))
        said.append(statements.rises(f"12: throughput rises with alpha ({name})", rates))
        said.append(statements.rises(f"12: seconds rise with alpha ({name})", means(accelerated.seconds)[name]))
    console.print(statements.table_of(said))
    leave_out(console, COMPARES_VARIANTS)
    return found.verdict


def fig13(console: Console, request: Request) -> str:
    """Figure 13, QSR's N: throughput lost, exactly, at the default setting; the published model's time at a small one.

    A large N stands for ARO-RAW, which does not quantise.
    """
    levels = LEVELS[::3] if request.quick else LEVELS
    exact = {n: Case(SJST, EXACT, (("levels", n),)) for n in (*levels, CONTINUOUS)}
    published = {n: Case(SMALL, QSR, (("levels", n), *SHORT)) for n in levels} | {CONTINUOUS: Case(SMALL, RAW, SHORT)}
    one = sample(exact.values(), request, console)
    small = sample(published.values(), request, console, SMALL_SEEDS)
    losses = {"one task, exactly": lost(one, exact), "published model": lost(small, published)}
    took = {"published model": [small.estimate_of(published[n], "seconds") for n in levels]}
    styles = categories(losses)
    console.print(value_table("ARO, Figure 13: throughput lost (%)", "N", levels, means(losses)))
    console.print(value_table("ARO, Figure 13: seconds", "N", levels, means(took)))
    save(
        request.results / "aro-fig13",
        Panel(LINES, levels, losses, "N", "throughput lost (%)", "(a)", log="x", styles=styles),
        Panel(LINES, levels, took, "N", SECONDS, "(b)", log="x", styles=styles),
    )
    console.print(statements.table_of(said_of_levels(means(losses), means(took), levels, small, published)))
    leave_out(console, COMPARES_VARIANTS)
    return one.verdict


def said_of_levels(
    losses: Values, took: Values, levels: Sequence[int], small: Sample, published: Mapping[int, Case]
) -> list[Statement]:
    """The text's sentences about Figure 13."""
    seconds = took["published model"]
    enough = [loss for line in losses.values() for n, loss in zip(levels, line, strict=True) if n >= 100]
    gain = small.mean_of(published[CONTINUOUS], "seconds") / seconds[levels.index(100)]
    said = [statements.falls(f"13: a larger N loses less ({name})", line) for name, line in losses.items()]
    said.append(statements.rises("13: a larger N takes longer (published)", seconds))
    said.append(statements.is_below("13: from N = 100 on less than 2 % is lost", max(enough) / 100, 0.02))
    said.append(statements.is_above("13: at N = 100 QSR is about 4 times as fast as ARO-RAW", gain, 3))
    return said


def lost(found: Sample, by_level: Mapping[int, Case]) -> list[Estimate]:
    """The percentage of throughput that each level loses, compared with the last one, which is continuous."""
    *quantised, best = (found.of(case, "least_job_bps") for case in by_level.values())
    return [ratio_of_means(rates, best).map(lambda kept: 100 * (1 - kept)) for rates in quantised]
