"""P4INC-AOI's Table I: the heuristics against the MILP on 8 units.

The table leaves ports, slots and placement open. Here units have the testbed's 8 ports, and a slot is 0.25 s, so that
20 jobs arrive in each, as the text states. A gap is 1 - MILP / heuristic, as in the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from rich.table import Table

from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.drawing import BARS, Panel, Printed
from inakit.experiments.papers.common.estimates import Estimate, estimate, means
from inakit.experiments.papers.common.figure_engine import Findings, Part, Picture, SweptFigure
from inakit.experiments.papers.common.figure_registry import COMPARES_SCHEDULERS, Request
from inakit.experiments.papers.common.statements import Curves, Statement
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.papers.p4inc_aoi.setting import drawn
from inakit.planner.core.plan import SolverOptions
from inakit.planner.methods.p4inc_aoi.schedule import figures
from inakit.planner.registry import find_scheduler

SEEDS = (5, 1)
TABLE_SCHEMES = ("milp", "INC-FCFS", "INC-TW", "INC-TW-NoRecon", "pack")
PROVABLE, LARGER = (40, 50, 60), (80, 100)
TABLE_SETTING: Trial = {
    "kind": "training", "units": 8, "ports": 8, "inc": 4, "slot_s": 0.25, "per_s": 80.0,
}  # fmt: skip
TIME_LIMIT_S = 60.0
"""The time limit of a MILP; the paper's Gurobi took 85 to 358 s."""

PAPER_SECONDS = {40: 84.6, 50: 105.3, 60: 357.5}
PAPER_GAPS = {
    "INC-FCFS": (43.3, 38.4, 37.8),
    "INC-TW": (17.1, 15.9, 16.4),
    "INC-TW-NoRecon": (33.3, 29.6, 31.8),
}


def draws(cell: Trial, seeds: int) -> list[Trial]:
    """The trials of a scheme and a number of jobs; a seed gives other jobs for another number of jobs."""
    return [{**TABLE_SETTING, **cell, "seed": seed + 100 * int(cell["jobs"])} for seed in range(seeds)]


def cells(_: Request) -> Iterator[Trial]:
    """Every scheme for every number of jobs; the MILP only where its optimum can be proven."""
    every = product((*PROVABLE, *LARGER), TABLE_SCHEMES)
    return ({"jobs": jobs, "scheme": name} for jobs, name in every if name != "milp" or jobs in PROVABLE)


def measure(trial: Trial) -> Result:
    """Measure a trial: CT-BTI, reconfigurations, connections, seconds, and the MILP's remaining gap."""
    problem = drawn(trial)
    schedule = find_scheduler(str(trial["scheme"])).schedule(problem, SolverOptions(time_limit_s=TIME_LIMIT_S))
    found = figures(problem, schedule)
    return {
        "ct_bti_s": found.ct_bti_s,
        "reconfigurations": found.reconfigurations,
        "connections": found.connections,
        "seconds": schedule.outcome.seconds,
        "proven_gap": schedule.outcome.gap or 0.0,
    }


def show(found: Findings) -> Iterator[Part]:
    """Table I for our draws, the MILP's solution quality, and the paper's gaps beside ours."""
    yield absolute(found)
    yield proofs(found)
    shown = {scheme: [gap(found, scheme, jobs) for jobs in PROVABLE] for scheme in TABLE_SCHEMES[1:]}
    yield gaps(means(shown))
    places = [f"{jobs} jobs" for jobs in PROVABLE]
    paper: Printed = {name: dict(zip(places, values, strict=False)) for name, values in PAPER_GAPS.items()}
    yield Picture([Panel(BARS, places, shown, "", "gap to the MILP (%)", "Table I", paper)])
    yield list(said(found, means(shown)))


def said(found: Findings, gaps: Curves) -> Iterator[Statement]:
    """The text's sentences about Table I."""
    times, reconfigured, seconds = (
        {s: [found.mean({"jobs": jobs, "scheme": s}, key) for jobs in PROVABLE] for s in TABLE_SCHEMES}
        for key in ("ct_bti_s", "reconfigurations", "seconds")
    )
    fewest = statements.is_lowest("Table I, reconfigurations", "milp", ("INC-FCFS", "INC-TW"), reconfigured, PROVABLE)
    yield statements.is_lowest("Table I, CT-BTI", "milp", TABLE_SCHEMES[1:4], times, PROVABLE)
    yield fewest
    yield statements.is_lowest("Table I, seconds", "INC-FCFS", ("milp", "INC-TW"), seconds, PROVABLE)
    yield from statements.in_order("Table I, gap", ("INC-FCFS", "INC-TW"), gaps, PROVABLE)
    yield from statements.in_order("Table I, gap", ("INC-TW-NoRecon", "INC-TW"), gaps, PROVABLE)
    yield fewest
    yield from statements.in_order("Table I, reconfigurations", ("INC-FCFS", "INC-TW"), reconfigured, PROVABLE)


def absolute(found: Findings) -> Table:
    """A table of seconds to schedule, CT-BTI, slots that reconfigure, and connections: means over the seeds."""
    table = Table("jobs", *TABLE_SCHEMES, title="time (s) / CT-BTI (s) / reconfigurations / connections")
    keys = ("seconds", "ct_bti_s", "reconfigurations", "connections")
    for jobs in (*PROVABLE, *LARGER):
        known = [name for name in TABLE_SCHEMES if name != "milp" or jobs in PROVABLE]
        cells = {
            name: " / ".join(f"{found.mean({'jobs': jobs, 'scheme': name}, key):.3g}" for key in keys) for name in known
        }
        table.add_row(str(jobs), *(cells.get(name, "-") for name in TABLE_SCHEMES))
    return table


def proofs(found: Findings) -> Table:
    """A table of the MILP's solution times and remaining gaps."""
    table = Table("jobs", "paper (s)", "ours, longest (s)", "ratio", "proven optimal", "largest gap left (%)")
    for jobs in PROVABLE:
        cell: Trial = {"jobs": jobs, "scheme": "milp"}
        seconds, left = max(found.of(cell, "seconds")), found.of(cell, "proven_gap")
        ratio, optimal = f"{seconds / PAPER_SECONDS[jobs]:.2f}", f"{left.count(0.0)} of {len(left)}"
        table.add_row(str(jobs), f"{PAPER_SECONDS[jobs]}", f"{seconds:.1f}", ratio, optimal, f"{100 * max(left):.1f}")
    return table


def gaps(found: Curves) -> Table:
    """A table of the paper's gaps beside ours."""
    table = Table("gap to the MILP (%)", *(f"{jobs} jobs: paper, ours" for jobs in PROVABLE), "ratio of means")
    for scheme, ours in found.items():
        paper = PAPER_GAPS.get(scheme)
        cells = [f"{paper[at] if paper else '-'}, {value:.1f}" for at, value in enumerate(ours)]
        table.add_row(scheme, *cells, f"{sum(ours) / sum(paper):.2f}" if paper else "-")
    return table


def gap(found: Findings, scheme: str, jobs: int) -> Estimate:
    """The mean over the seeds of a scheme's gap, 1 - MILP / scheme, in percent."""
    best, own = (found.of({"jobs": jobs, "scheme": name}, "ct_bti_s") for name in ("milp", scheme))
    return estimate([100 * (1 - low / high) for low, high in zip(best, own, strict=True)])


FIGURES = {
    "table1": SweptFigure(
        "p4inc-aoi-table1", "aoi-table1-trials", measure, cells, show, SEEDS, draws, leaves_out=COMPARES_SCHEDULERS
    )
}
