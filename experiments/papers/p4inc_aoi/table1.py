"""P4INC-AOI's Table I: the heuristics against the MILP on 8 units.

The table leaves ports, slots and placement open. Here units have the testbed's 8 ports, and a slot is 0.25 s, so that
20 jobs arrive in it, as the text says. A gap is 1 - MILP / heuristic, as in the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from inakit.experiments.papers.common import drawing, statements
from inakit.experiments.papers.common.drawing import BARS, Panel, Printed
from inakit.experiments.papers.common.estimates import Estimate, estimate, means
from inakit.experiments.papers.common.figure import COMPARES_SCHEDULERS, Request, leave_out
from inakit.experiments.papers.common.statements import Curves, Statement
from inakit.experiments.papers.common.sweep import Measured, Result, Trial, sweep
from inakit.experiments.papers.p4inc_aoi.setting import drawn
from inakit.planner.core.plan import SolverOptions
from inakit.planner.methods.p4inc_aoi.schedule import figures
from inakit.planner.registry import find_scheduler
from inakit.traffic.measure.verdict import VALID

TABLE_SEEDS, QUICK_TABLE_SEEDS = 5, 1
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


def table_trial(scheme: str, jobs: int, seed: int) -> Trial:
    """The trial of a scheme with so many jobs; a seed gives other jobs for another number of jobs."""
    return {**TABLE_SETTING, "scheme": scheme, "jobs": jobs, "seed": seed + 100 * jobs}


def measure_table(trial: Trial) -> Result:
    """Measure a trial: CT-BTI, reconfigurations, connections, seconds, and the MILP's gap that is not closed."""
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


def run(console: Console, request: Request) -> str:
    """Print Table I for our draws and the paper's gaps beside ours, and write a picture of the gaps."""
    seeds = range(QUICK_TABLE_SEEDS if request.quick else TABLE_SEEDS)
    trials = [
        table_trial(scheme, jobs, seed)
        for jobs in (*PROVABLE, *LARGER) for scheme in TABLE_SCHEMES for seed in seeds
        if scheme != "milp" or jobs in PROVABLE
    ]  # fmt: skip
    measured = sweep(trials, measure_table, request.results / "aoi-table1-trials", console)
    console.print(absolute(measured, seeds))
    console.print(proofs(measured, seeds))
    console.print(gaps(measured, seeds))
    shown = {scheme: [gap(measured, scheme, jobs, seeds) for jobs in PROVABLE] for scheme in TABLE_SCHEMES[1:]}
    places = [f"{jobs} jobs" for jobs in PROVABLE]
    paper: Printed = {name: dict(zip(places, values, strict=False)) for name, values in PAPER_GAPS.items()}
    panel = Panel(BARS, places, shown, "", "gap to the MILP (%)", "Table I", paper)
    drawing.save(request.results / "p4inc-aoi-table1", panel)
    console.print(statements.table_of(said_of_table(measured, means(shown), seeds)))
    leave_out(console, COMPARES_SCHEDULERS)
    return VALID


def said_of_table(measured: Measured, found: Curves, seeds: range) -> Iterator[Statement]:
    """The text's sentences about Table I."""

    def of(key: str, schemes: Sequence[str]) -> dict[str, list[float]]:
        return {
            scheme: [measured.mean(key, [table_trial(scheme, jobs, seed) for seed in seeds]) for jobs in PROVABLE]
            for scheme in schemes
        }

    heuristics = TABLE_SCHEMES[1:4]
    best = of("ct_bti_s", TABLE_SCHEMES[:4])
    yield statements.is_lowest("Table I, CT-BTI", "milp", heuristics, best, PROVABLE)
    yield statements.is_lowest(
        "Table I, reconfigurations", "milp", heuristics[:2], of("reconfigurations", TABLE_SCHEMES), PROVABLE
    )
    yield statements.is_lowest(
        "Table I, seconds", "INC-FCFS", ("milp", "INC-TW"), of("seconds", TABLE_SCHEMES), PROVABLE
    )
    yield from statements.in_order("Table I, gap", ("INC-FCFS", "INC-TW"), found, PROVABLE)
    yield from statements.in_order("Table I, gap", ("INC-TW-NoRecon", "INC-TW"), found, PROVABLE)
    reconfigurations = of("reconfigurations", TABLE_SCHEMES)
    yield statements.is_lowest("Table I, reconfigurations", "milp", heuristics[:2], reconfigurations, PROVABLE)
    yield from statements.in_order("Table I, reconfigurations", ("INC-FCFS", "INC-TW"), reconfigurations, PROVABLE)


def absolute(measured: Measured, seeds: range) -> Table:
    """A table of seconds to schedule, CT-BTI, slots that reconfigure, and connections: means over the seeds."""
    table = Table("jobs", *TABLE_SCHEMES, title="time (s) / CT-BTI (s) / reconfigurations / connections")
    for jobs in (*PROVABLE, *LARGER):
        cells = []
        for scheme in TABLE_SCHEMES:
            trials = [table_trial(scheme, jobs, seed) for seed in seeds]
            keys = ("seconds", "ct_bti_s", "reconfigurations", "connections")
            known = scheme != "milp" or jobs in PROVABLE
            cells.append(" / ".join(f"{measured.mean(key, trials):.3g}" for key in keys) if known else "-")
        table.add_row(str(jobs), *cells)
    return table


def proofs(measured: Measured, seeds: range) -> Table:
    """A table of how well and how fast the MILP was solved."""
    table = Table("jobs", "paper (s)", "ours, longest (s)", "ratio", "proven optimal", "largest gap left (%)")
    for jobs in PROVABLE:
        trials = [table_trial("milp", jobs, seed) for seed in seeds]
        seconds, left = max(measured.of("seconds", trials)), measured.of("proven_gap", trials)
        ratio = f"{seconds / PAPER_SECONDS[jobs]:.2f}"
        optimal = f"{left.count(0.0)} of {len(left)}"
        table.add_row(str(jobs), f"{PAPER_SECONDS[jobs]}", f"{seconds:.1f}", ratio, optimal, f"{100 * max(left):.1f}")
    return table


def gaps(measured: Measured, seeds: range) -> Table:
    """A table of the paper's gaps beside ours."""
    table = Table("gap to the MILP (%)", *(f"{jobs} jobs: paper, ours" for jobs in PROVABLE), "ratio of means")
    for scheme in TABLE_SCHEMES[1:]:
        ours = [gap(measured, scheme, jobs, seeds).value for jobs in PROVABLE]
        paper = PAPER_GAPS.get(scheme)
        cells = [f"{paper[at] if paper else '-'}, {value:.1f}" for at, value in enumerate(ours)]
        table.add_row(scheme, *cells, f"{sum(ours) / sum(paper):.2f}" if paper else "-")
    return table


def gap(measured: Measured, scheme: str, jobs: int, seeds: range) -> Estimate:
    """The mean over the seeds of a scheme's gap, 1 - MILP / scheme, in percent."""
    best, found = (
        measured.of("ct_bti_s", [table_trial(name, jobs, seed) for seed in seeds]) for name in ("milp", scheme)
    )
    return estimate([100 * (1 - low / high) for low, high in zip(best, found, strict=True)])
