"""ARO for one task and for several: planning times, and plans after some seconds, beside the paper's models."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from statistics import mean, median
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.aro.efficiency import large
from inakit.experiments.papers.aro.setting import MJMT, SJMT
from inakit.experiments.run.console import figures, names
from inakit.experiments.sweeps.run_trials import Row, measure_rows
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods.aro.printed_model import MU
from inakit.planner.registry import METHODS
from inakit.topo.errors import SolverError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_capacity, with_ina, with_pipelines
from inakit.traffic.wire.packet_format import FRAGMENT

Case = TypeVar("Case", "OneTask", "SeveralTasks")
Found = TypeVar("Found")


@dataclass(frozen=True)
class Draw:
    """One seed of the case in row `row` of the table."""

    row: int
    case: OneTask | SeveralTasks
    seed: int

    def __str__(self) -> str:
        return f"{self.case.name}, seed {self.seed}"


def measure_seeds(
    cases: Sequence[Case],
    seeds: Callable[[Case], int],
    measure: Callable[[Case, int], Found],
    words: Callable[[Found], str],
    cells: Callable[[Case, Sequence[Found]], Sequence[str]],
    table: Table,
    console: Console,
) -> bool:
    """Measure every case with its number of `seeds`, fill the `table` and print it; return whether no seed failed.

    After an error or an interrupt the table has the seeds that were measured.
    """
    draws = [Draw(row, case, seed) for row, case in enumerate(cases) for seed in range(seeds(case))]

    def show(rows: Sequence[Row[Draw, Found]]) -> bool:
        for number, case in enumerate(cases):
            if found := [row.found for row in rows if row.asked.row == number and row.found is not None]:
                table.add_row(case.name, *cells(case, found))
        console.print(table)
        return not any(row.error for row in rows)

    return measure_rows(draws, lambda draw: measure(cases[draw.row], draw.seed), words, show, console)


def table_of(title: str, caption: str, headings: Sequence[str]) -> Table:
    """An empty table with a row for each case."""
    return Table(*names("case"), *figures(*headings), title=title, caption=caption, caption_justify="left")


CAPACITY_BPS = 100e9
PIPELINES = 4
GRADIENT_BYTES = 100_000_000
LITERAL_TIME_S = 60.0


@dataclass(frozen=True)
class OneTask:
    """A leaf-spine or fat-tree in which a `share` of all switches are INA switches, among them the PS's ToR.

    Workers are random hosts. Each of `seeds` seeds gives one problem; the literal model plans the first `literal`.
    """

    name: str
    fabric: Callable[[], Fabric]
    workers: int
    share: float
    seeds: int
    literal: int

    def problem(self, seed: int) -> Problem:
        """The problem of one seed: one job with random workers and INA switches. The PS's ToR always aggregates."""
        draw = random.Random(seed)
        fabric = with_pipelines(with_capacity(self.fabric(), CAPACITY_BPS), PIPELINES)
        server, *others = (host.name for host in fabric.hosts)
        tor = fabric.tor_of(server)
        switches = [switch.name for switch in fabric.switches if switch.name != tor]
        aggregating = int(self.share * (len(switches) + 1))
        fabric = with_ina(fabric, (tor, *draw.sample(switches, aggregating - 1)))
        job = Job(1, tuple(draw.sample(others, self.workers)), (server,), GRADIENT_BYTES)
        return Problem(fabric, (job,), FRAGMENT)


ONE_TASK = (
    OneTask("24x24, 200 workers", lambda: leaf_spine(24, 24, 24), 200, 0.2, seeds=30, literal=5),
    OneTask("k=16, 500 workers", lambda: fat_tree(16), 500, 0.2, seeds=5, literal=1),
    OneTask("k=32, 8191 workers", lambda: fat_tree(32), 8191, 0.2, seeds=1, literal=0),
)


@dataclass(frozen=True)
class Timing:
    """The planning of one problem: the rate of `aro`'s plan, its proven gap, and the time that planning took.

    `search_s`: seconds of the search. `objects_s`: seconds to make the plan from its result and to check it.
    `literal`: the literal model's plan, if it planned this problem.
    """

    rate_bps: float
    gap: float
    search_s: float
    objects_s: float
    literal: Plan | None

    @property
    def ratio(self) -> float:
        """The time of the literal model divided by that of the search; 0 without a literal plan."""
        return self.literal.outcome.seconds / self.search_s if self.literal else 0.0


def timing(case: OneTask, seed: int) -> Timing:
    """Plan one problem by `aro` and, for the first seeds of a case, by the literal model."""
    problem = case.problem(seed)
    gc.collect()
    gc.disable()  # a collection's time depends on all objects in memory, not only on the planner's
    try:
        started = time.perf_counter()
        plan = METHODS["aro"].plan(problem)
        took = time.perf_counter() - started
    finally:
        gc.enable()
    literal = None
    if seed < case.literal:
        literal = METHODS["aro-raw"].plan(problem, Options(time_limit_s=LITERAL_TIME_S))
    outcome = plan.outcome
    return Timing(plan.trees[0].rate_bps, outcome.gap or 0.0, outcome.seconds, took - outcome.seconds, literal)


def bench_planners(console: Console, cases: Sequence[OneTask] = ONE_TASK, *, quick: bool = False) -> bool:
    """Time every case with all its seeds, and print the table; `quick` takes only the first seed of each case.

    Returns whether no seed failed.
    """
    headings = ("seeds", "mean Gbit/s", "worst gap", "search (ms)", "rest (ms)", "literal (s)", "ratio")
    timing(cases[0], 0)  # so that all modules are loaded before the clock runs
    return measure_seeds(
        cases,
        lambda case: 1 if quick else case.seeds,
        timing,
        lambda one: f"{one.rate_bps / 1e9:.2f} Gbit/s in {short(1e3 * one.search_s)} ms",
        lambda _, timings: one_task_cells(timings),
        table_of("ARO with one task", ONE_TASK_CAPTION, headings),
        console,
    )


ONE_TASK_CAPTION = (
    "Search: from the problem to a path for every worker, with the proof; median to worst. Rest: building the "
    f"plan, and its check. Literal: the paper's model on the first seeds, median, at most {LITERAL_TIME_S:g} s. "
    "Ratio: literal to search, lowest and median."
)


def one_task_cells(timings: Sequence[Timing]) -> list[str]:
    """A case's row: runs, mean rate in Gbit/s, largest gap, and median and longest times."""
    both = [timing for timing in timings if timing.literal]
    searches = [1e3 * timing.search_s for timing in timings]
    literal = [timing.literal.outcome.seconds for timing in both if timing.literal]
    ratios = [timing.ratio for timing in both]
    return [
        str(len(timings)),
        f"{mean(timing.rate_bps for timing in timings) / 1e9:.2f}",
        f"{max(timing.gap for timing in timings):.1%}",
        f"{short(median(searches))}-{short(max(searches))}",
        short(median(1e3 * timing.objects_s for timing in timings)),
        f"{median(literal):.2f}" if both else "-",
        f"{min(ratios):.0f}-{median(ratios):.0f}" if both else "-",
    ]


def short(milliseconds: float) -> str:
    """Milliseconds as text, with one decimal below 100."""
    return f"{milliseconds:.1f}" if milliseconds < 100 else f"{milliseconds:.0f}"


# -- The plans that several tasks have after a short time, by `aro` and by HiGHS on the paper's model.

LIMITS_S = (1.0, 2.0, 5.0, 10.0)
OVER_TIME = ("aro", "aro-raw", "panama")
SEEDS, QUICK_SEEDS = 3, 1
TIE = 1e-6


def some_jobs(fabric: Fabric, jobs: int, servers: int, workers: int, seed: int) -> Problem:
    """Random jobs on the fabric, with four pipelines, and INA on 30 % of its switches.

    Each job has `servers` PSs, and as many `workers`, of its own.
    """
    draw, each = random.Random(seed), servers + workers
    fabric = with_ina(with_pipelines(fabric, PIPELINES), share=0.3, seed=seed)
    hosts = draw.sample([host.name for host in fabric.hosts], jobs * each)
    parts = [hosts[k * each : (k + 1) * each] for k in range(jobs)]
    made = (Job(k, tuple(part[servers:]), tuple(part[:servers]), GRADIENT_BYTES) for k, part in enumerate(parts, 1))
    return Problem(fabric, tuple(made), FRAGMENT)


@dataclass(frozen=True)
class SeveralTasks:
    """A case with several tasks; each seed draws one `problem`."""

    name: str
    problem: Callable[[int], Problem]


SEVERAL_TASKS = (
    SeveralTasks("fat-tree 4, 1 job, 4 PSs", lambda seed: some_jobs(fat_tree(4), 1, 4, 6, seed)),
    SeveralTasks("fat-tree 4, 2 jobs, 2 PSs each", lambda seed: some_jobs(fat_tree(4), 2, 2, 5, seed)),
    SeveralTasks("leaf-spine 8x8, 1 job, 4 PSs", lambda seed: some_jobs(leaf_spine(8, 8, 8), 1, 4, 20, seed)),
    SeveralTasks("leaf-spine 8x8, 5 jobs", lambda seed: some_jobs(leaf_spine(8, 8, 8), 5, 1, 10, seed)),
    SeveralTasks("fat-tree 8, 1 job, 4 PSs", lambda seed: some_jobs(fat_tree(8), 1, 4, 40, seed)),
    SeveralTasks("fat-tree 8, 2 jobs, 2 PSs each", lambda seed: some_jobs(fat_tree(8), 2, 2, 40, seed)),
    SeveralTasks("fat-tree 8, 5 jobs", lambda seed: some_jobs(fat_tree(8), 5, 1, 20, seed)),
    SeveralTasks("ARO's 24x24, 1 job, 4 PSs", replace(SJMT, tasks=4).problem),
    SeveralTasks("ARO's 24x24, 4 jobs, 2 PSs each", replace(MJMT, jobs=4).problem),
    SeveralTasks("ARO's 144 switches, 5 jobs", large(3).problem),
)
"""Small and large Clos networks, and the paper's: SJMT, MJMT, and Figure 11 at lambda = 3."""


def worth_bps(problem: Problem, plan: Plan | None) -> float:
    """ARO's objective value of a plan: Eq. (2) for one job, Eq. (3) for several jobs, 0 without a plan."""
    if plan is None:
        return 0.0
    jobs = [plan.job_rate_bps(job.number) / job.weight for job in problem.jobs]
    return jobs[0] if len(jobs) == 1 else min(jobs) + MU * sum(jobs)


def plan_within(name: str, problem: Problem, limit_s: float) -> Plan | None:
    """A planner's plan, None if it has none within its time limit."""
    try:
        return METHODS[name].plan(problem, Options(time_limit_s=limit_s))
    except SolverError:
        return None


@dataclass(frozen=True)
class PlansOverTime:
    """The worth in bit/s, Eq. (2) or (3), of every planner's plan by its time limit, 0 without a plan; aro's gaps."""

    worths_bps: dict[str, tuple[float, ...]]
    gaps: tuple[float, ...]

    def shares(self, name: str) -> list[float]:
        """The worths of a planner's plans as shares of the best of all plans."""
        best = max(map(max, self.worths_bps.values()))
        return [worth / best for worth in self.worths_bps[name]]


def plans_over_time(case: SeveralTasks, seed: int) -> PlansOverTime:
    problem = case.problem(seed)
    made = {name: [plan_within(name, problem, limit_s) for limit_s in LIMITS_S] for name in OVER_TIME}
    worths = {name: tuple(worth_bps(problem, each) for each in plans) for name, plans in made.items()}
    return PlansOverTime(worths, tuple((each.outcome.gap or 0.0) if each else inf for each in made["aro"]))


def several_tasks_cells(_: SeveralTasks, draws: Sequence[PlansOverTime]) -> list[str]:
    """A case's row: shares of the best plan after each time limit, the means of all draws; and gaps of `aro`, means."""
    shares = [[mean(times) for times in zip(*(draw.shares(name) for draw in draws), strict=True)] for name in OVER_TIME]
    lower = sum(
        ours < theirs * (1 - TIE)
        for draw in draws
        for ours, theirs in zip(draw.worths_bps["aro"], draw.worths_bps["aro-raw"], strict=True)
    )
    gaps = [mean(times) for times in zip(*(draw.gaps for draw in draws), strict=True)]
    return [*(" ".join(f"{part:.0%}" for part in row) for row in [*shares, gaps]), str(lower)]


def bench_several(console: Console, *, quick: bool = False, cases: Sequence[SeveralTasks] = SEVERAL_TASKS) -> bool:
    """Plan every case with each time limit, and print the table; `quick` takes one seed. Whether no seed failed."""
    limits = ", ".join(f"{limit_s:g}" for limit_s in LIMITS_S)
    return measure_seeds(
        cases,
        lambda _: QUICK_SEEDS if quick else SEEDS,
        plans_over_time,
        lambda one: " ".join(f"{share:.0%}" for share in one.shares("aro")),
        several_tasks_cells,
        table_of(
            "Plans of several tasks after a short time",
            f"With time limits of {limits} s: the objective, Eq. (2) or (3), as a share of the best plan of all; the "
            "gap that aro states; and how often its plan is below that of aro-raw.",
            (*OVER_TIME, "gap of aro", "below aro-raw"),
        ),
        console,
    )
