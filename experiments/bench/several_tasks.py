"""Times ARO with several tasks: the fast method with much time and with two seconds, and the paper's literal model."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from rich.console import Console
from rich.table import Table

from inakit.experiments.bench.seeds import measure_seeds
from inakit.experiments.papers.aro.efficiency import large
from inakit.experiments.papers.aro.setting import MJMT, SJMT, AroSetting
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.methods.aro.published.model import MU
from inakit.planner.registry import METHODS
from inakit.topo.errors import SolverError

SOON_S = 2.0
LITERAL_TIME_S, QUICK_LITERAL_TIME_S = 60.0, 10.0
QUICK_SEEDS = 2


@dataclass(frozen=True)
class Case:
    """A setting of the paper, planned to a proven gap of `gap` within `limit_s` seconds.

    Each of `seeds` seeds gives one problem; the literal model plans the first `literal` of them too.
    """

    name: str
    setting: AroSetting
    seeds: int
    limit_s: float = 30.0
    gap: float = 0.0
    literal: int = 0


CASES = (
    *(Case(f"1 job, {n} tasks", replace(SJMT, tasks=n), seeds=10, literal=2) for n in (1, 2, 3, 4)),
    Case("4 jobs, 2 tasks", replace(MJMT, jobs=4), seeds=24, gap=0.001, literal=2),
    Case("5 jobs, 144 switches", large(3), seeds=10, limit_s=60.0, literal=1),
    Case("5 jobs, 192 switches", large(4), seeds=5),
    Case("5 jobs, 240 switches", large(5), seeds=5),
)
"""The paper's SJMT, MJMT, and Figure 11's lambda of 3, 4 and 5."""

CAPTION = (
    "Seconds: from the problem to the checked plan, median to worst. Proven: to the gap that was asked for. After "
    f"{SOON_S:g} s: the worth, Eq. (2) or (3), of the plan with that time limit, as a share of the best, median to "
    "worst; and its seconds. Literal: the paper's QSR model on the first seeds, median seconds, and the share of the "
    "best that it has found then, 0 for nothing. Ratio: its seconds to ours."
)


@dataclass(frozen=True)
class Timed:
    """A plan, None if the solver found none in time, and the seconds that planning and checking took."""

    plan: Plan | None
    seconds: float


@dataclass(frozen=True)
class Trial:
    """One problem, planned by `aro` with the case's time limit and with `SOON_S`, and perhaps by the literal model."""

    problem: Problem
    full: Timed
    soon: Timed
    literal: Timed | None

    @property
    def gap(self) -> float:
        """The gap that the fast method has proven within the case's time limit; 1 if it found no plan."""
        return (self.full.plan.outcome.gap or 0.0) if self.full.plan else 1.0

    def share(self, timed: Timed) -> float:
        """The worth of a plan as a share of that of the fast method's plan with the case's time limit."""
        return worth_bps(self.problem, timed.plan) / worth_bps(self.problem, self.full.plan)


def worth_bps(problem: Problem, plan: Plan | None) -> float:
    """ARO's objective value of a plan: Eq. (2) for one job, Eq. (3) for several jobs, 0 without a plan."""
    if plan is None:
        return 0.0
    jobs = [
        job.weight * sum(shard.rate_bps for shard in plan.shards if shard.job == job.number) for job in problem.jobs
    ]
    return jobs[0] if len(jobs) == 1 else min(jobs) + MU * sum(jobs)


def trial(case: Case, seed: int, literal_s: float) -> Trial:
    """Plan one problem within the case's time, within `SOON_S` and, for the first seeds, by the literal model."""
    problem = case.setting.problem(seed)
    full = timed(lambda: METHODS["aro"].plan(problem, Options(time_limit_s=case.limit_s, gap=case.gap)))
    soon = timed(lambda: METHODS["aro"].plan(problem, Options(time_limit_s=SOON_S, gap=case.gap)))
    literal = None
    if seed < case.literal:
        literal = timed(lambda: METHODS["aro-qsr"].plan(problem, Options(time_limit_s=literal_s)))
    return Trial(problem, full, soon, literal)


def timed(plan: Callable[[], Plan]) -> Timed:
    """The plan and the seconds that it took; no plan where the solver found none in time."""
    started = time.perf_counter()
    try:
        made: Plan | None = plan()
    except SolverError:
        made = None
    return Timed(made, time.perf_counter() - started)


def bench_several(console: Console, *, quick: bool = False, cases: Sequence[Case] = CASES) -> bool:
    """Time every case, and print the table; `quick` takes two seeds of each and gives the literal model less time.

    Returns whether no seed failed.
    """
    literal_s = QUICK_LITERAL_TIME_S if quick else LITERAL_TIME_S
    table = Table(title="ARO with several tasks", caption=f"{CAPTION} At most {literal_s:g} s.", caption_justify="left")
    table.add_column("case", no_wrap=True)
    for heading in ("seeds", "proven", "worst gap", "seconds", "after 2 s", "(s)", "literal (s)", "share", "ratio"):
        table.add_column(heading, justify="right")
    return measure_seeds(
        cases,
        lambda case: min(case.seeds, QUICK_SEEDS) if quick else case.seeds,
        lambda case, seed: trial(case, seed, literal_s),
        lambda one: f"gap {one.gap:.2%} in {one.full.seconds:.2f} s",
        cells,
        table,
        console,
    )


def cells(case: Case, trials: Sequence[Trial]) -> list[str]:
    """A case's row: runs, proven ones, worst gap, times, shares after `SOON_S`, and the literal model's figures."""
    soon = [trial.share(trial.soon) for trial in trials]
    both = [(trial, trial.literal) for trial in trials if trial.literal]
    proven = sum(trial.gap <= case.gap * (1 + 1e-6) for trial in trials)
    return [
        str(len(trials)),
        str(proven),
        f"{max(trial.gap for trial in trials):.2%}",
        spread([trial.full.seconds for trial in trials]),
        f"{median(soon):.0%}-{min(soon):.0%}",
        f"{max(trial.soon.seconds for trial in trials):.1f}",
        f"{median(literal.seconds for _, literal in both):.1f}" if both else "-",
        f"{median(trial.share(literal) for trial, literal in both):.0%}" if both else "-",
        f"{median(literal.seconds / trial.full.seconds for trial, literal in both):.0f}" if both else "-",
    ]


def spread(seconds: Sequence[float]) -> str:
    """Median and longest of some times, in seconds."""
    return f"{median(seconds):.2f}-{max(seconds):.2f}"
