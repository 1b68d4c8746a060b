"""Times ARO with one task: planner `aro` and the paper's literal model `aro-raw`, on the same problems in one run."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import mean, median

from rich.console import Console
from rich.table import Table

from inakit.experiments.bench.seeds import measure_seeds
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Job, Problem
from inakit.planner.registry import METHODS
from inakit.topo.fabric.clos import fat_tree, leaf_spine
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.variations import with_capacity, with_ina, with_pipelines
from inakit.traffic.wire.frames import FRAGMENT

CAPACITY_BPS = 100e9
PIPELINES = 4
GRADIENT_BYTES = 100_000_000
LITERAL_TIME_S = 60.0


@dataclass(frozen=True)
class Case:
    """A leaf-spine or fat-tree in which a `share` of all switches are INA switches, the PS's ToR among them.

    Workers are random hosts. Each of `seeds` seeds gives one problem; the literal model plans the first `literal` too.
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


CASES = (
    Case("24x24, 200 workers", lambda: leaf_spine(24, 24, 24), 200, 0.2, seeds=30, literal=5),
    Case("k=16, 500 workers", lambda: fat_tree(16), 500, 0.2, seeds=5, literal=1),
    Case("k=32, 8191 workers", lambda: fat_tree(32), 8191, 0.2, seeds=1, literal=0),
)


@dataclass(frozen=True)
class Timing:
    """One problem: the rate of `aro`'s plan, its proven gap, and how long planning took.

    `search_s`: seconds of the search. `objects_s`: seconds to make the plan from its result, and to check it.
    `literal`: the literal model's plan, if it was asked.
    """

    rate_bps: float
    gap: float
    search_s: float
    objects_s: float
    literal: Plan | None

    @property
    def ratio(self) -> float:
        """The time of the literal model divided by that of the search; 0 if the literal model was not asked."""
        return self.literal.outcome.seconds / self.search_s if self.literal else 0.0


def timing(case: Case, seed: int) -> Timing:
    """Plan one problem by `aro` and, for the first seeds of a case, by the literal model too."""
    problem = case.problem(seed)
    with no_collection():
        started = time.perf_counter()
        plan = METHODS["aro"].plan(problem)
        took = time.perf_counter() - started
    literal = None
    if seed < case.literal:
        literal = METHODS["aro-raw"].plan(problem, Options(time_limit_s=LITERAL_TIME_S))
    outcome = plan.outcome
    return Timing(plan.shards[0].rate_bps, outcome.gap or 0.0, outcome.seconds, took - outcome.seconds, literal)


@contextmanager
def no_collection() -> Iterator[None]:
    """Pause Python's garbage collection, whose time depends on all objects in memory and not only on the planner's."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def bench_planners(console: Console, cases: Sequence[Case] = CASES, *, quick: bool = False) -> bool:
    """Time every case with all its seeds, and print the table; `quick` takes only the first seed of each case.

    Returns whether no seed failed.
    """
    table = Table(title="ARO with one task", caption=CAPTION, caption_justify="left")
    table.add_column("case", no_wrap=True)
    for heading in ("seeds", "mean Gbit/s", "worst gap", "search (ms)", "rest (ms)", "literal (s)", "ratio"):
        table.add_column(heading, justify="right")
    timing(cases[0], 0)  # so that nothing is loaded while the clock runs
    return measure_seeds(
        cases,
        lambda case: 1 if quick else case.seeds,
        timing,
        lambda one: f"{one.rate_bps / 1e9:.2f} Gbit/s in {short(1e3 * one.search_s)} ms",
        lambda _, timings: cells(timings),
        table,
        console,
    )


CAPTION = (
    "Search: from the problem to a path for every worker, with the proof; median to worst. Rest: the plan made of "
    f"them, and its check. Literal: the paper's model on the first seeds, median, {LITERAL_TIME_S:g} s at most. "
    "Ratio: literal to search, least to median."
)


def cells(timings: Sequence[Timing]) -> list[str]:
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
