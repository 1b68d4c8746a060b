"""P4INC-AOI's Table I, the heuristics against the MILP on 8 units, and its testbed's Figures 6 and 7, simulated.

Table I leaves ports, slots and placement open; here units have the testbed's 8 ports, and 20 jobs come in a slot, as
the text has it, of 0.25 s. A gap is that of the text's formula, 1 - MILP / heuristic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

from experiments.papers.common import drawing
from experiments.papers.common import own_planners as own
from experiments.papers.common import statements as text
from experiments.papers.common.estimates import Estimate, Series, estimate, means
from experiments.papers.common.panels import BARS, LINES, Panel, Printed
from experiments.papers.common.statements import Curves, Statement
from experiments.papers.common.sweep import Measured, Request, Result, Trial, sweep
from experiments.papers.p4inc_aoi.simulation import COMPARED, GIGA, Claim, drawn, reductions_panel
from planner.core.solving import SolverOptions
from planner.methods.p4inc_aoi.online.slot_by_slot import Policy, Simulation
from planner.methods.p4inc_aoi.online.tw_fcfs import FirstCome, TimeWindow
from planner.methods.p4inc_aoi.problem.check_schedule import check
from planner.methods.p4inc_aoi.problem.schedule import figures
from planner.methods.p4inc_aoi.problem.system import DataCenter, PlacedJob, Scheduling, Unit
from planner.methods.p4inc_aoi.problem.traces import arrivals
from planner.methods.p4inc_aoi.schemes import SCHEMES
from traffic.measure.verdict import VALID

# ---- Table I -----------------------------------------------------------------------------------

TABLE_SEEDS, QUICK_TABLE_SEEDS = 5, 1
TABLE_SCHEMES = ("milp", "INC-FCFS", "INC-TW", "INC-TW-NoRecon", "pack")
PROVABLE, LARGER = (40, 50, 60), (80, 100)
TABLE_SETTING: Trial = {
    "kind": "training", "units": 8, "ports": 8, "inc": 4, "slot_s": 0.25, "per_s": 80.0,
}  # fmt: skip
TIME_LIMIT_S = 60.0
"""Of a MILP; the paper gave Gurobi 85 to 358 s."""

PAPER_SECONDS = {40: 84.6, 50: 105.3, 60: 357.5}
PAPER_GAPS = {
    "INC-FCFS": (43.3, 38.4, 37.8),
    "INC-TW": (17.1, 15.9, 16.4),
    "INC-TW-NoRecon": (33.3, 29.6, 31.8),
}


def table_trial(scheme: str, jobs: int, seed: int) -> Trial:
    return {**TABLE_SETTING, "scheme": scheme, "jobs": jobs, "seed": seed + 100 * jobs}


def measure_table(trial: Trial) -> Result:
    problem = drawn(trial)
    schedule = SCHEMES[str(trial["scheme"])].schedule(problem, SolverOptions(time_limit_s=TIME_LIMIT_S))
    found = figures(problem, schedule)
    return {
        "ct_bti_s": found.ct_bti_s,
        "reconfigurations": found.reconfigurations,
        "connections": found.connections,
        "seconds": schedule.outcome.seconds,
        "proven_gap": schedule.outcome.gap or 0.0,
    }


def table1(console: Console, request: Request) -> str:
    """Print Table I for our draws, the paper's gaps beside ours, and leave a plot of the gaps."""
    seeds = range(QUICK_TABLE_SEEDS if request.quick else TABLE_SEEDS)
    trials = [
        table_trial(scheme, jobs, seed)
        for jobs in (*PROVABLE, *LARGER) for scheme in TABLE_SCHEMES for seed in seeds
        if scheme != "milp" or jobs in PROVABLE
    ]  # fmt: skip
    measured = sweep(trials, measure_table, request.results / "aoi-table1.jsonl", console)
    console.print(absolute(measured, seeds))
    console.print(proofs(measured, seeds))
    console.print(gaps(measured, seeds))
    shown = {scheme: [gap(measured, scheme, jobs, seeds) for jobs in PROVABLE] for scheme in TABLE_SCHEMES[1:]}
    places = [f"{jobs} jobs" for jobs in PROVABLE]
    paper: Printed = {name: dict(zip(places, values, strict=False)) for name, values in PAPER_GAPS.items()}
    panel = Panel(BARS, places, shown, "", "gap to the MILP (%)", "Table I", paper)
    drawing.save(request.results / "p4inc-aoi-table1", panel)
    console.print(text.table_of(said_of_table(measured, means(shown), seeds)))
    own.leave_out(console, own.SCHEDULES)
    return VALID


def said_of_table(measured: Measured, found: Curves, seeds: range) -> Iterator[Statement]:
    """The text on Table I."""

    def of(key: str, schemes: Sequence[str]) -> dict[str, list[float]]:
        return {
            scheme: [measured.mean(key, [table_trial(scheme, jobs, seed) for seed in seeds]) for jobs in PROVABLE]
            for scheme in schemes
        }

    heuristics = TABLE_SCHEMES[1:4]
    best = of("ct_bti_s", TABLE_SCHEMES[:4])
    yield text.is_lowest("Table I, CT-BTI", "milp", heuristics, best, PROVABLE)
    yield text.is_lowest(
        "Table I, reconfigurations", "milp", heuristics[:2], of("reconfigurations", TABLE_SCHEMES), PROVABLE
    )
    yield text.is_lowest("Table I, seconds", "INC-FCFS", ("milp", "INC-TW"), of("seconds", TABLE_SCHEMES), PROVABLE)
    yield from text.in_order("Table I, gap", ("INC-FCFS", "INC-TW"), found, PROVABLE)
    yield from text.in_order("Table I, gap", ("INC-TW-NoRecon", "INC-TW"), found, PROVABLE)
    reconfigurations = of("reconfigurations", TABLE_SCHEMES)
    yield text.is_lowest("Table I, reconfigurations", "milp", heuristics[:2], reconfigurations, PROVABLE)
    yield from text.in_order("Table I, reconfigurations", ("INC-FCFS", "INC-TW"), reconfigurations, PROVABLE)


def absolute(measured: Measured, seeds: range) -> Table:
    """Seconds to plan, CT-BTI, slots that reconfigure, connections: means over the seeds."""
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
    """How well and how fast the MILP was solved."""
    table = Table("jobs", "paper (s)", "ours, longest (s)", "ratio", "proven optimal", "largest gap left (%)")
    for jobs in PROVABLE:
        trials = [table_trial("milp", jobs, seed) for seed in seeds]
        seconds, left = max(measured.of("seconds", trials)), measured.of("proven_gap", trials)
        ratio = f"{seconds / PAPER_SECONDS[jobs]:.2f}"
        optimal = f"{left.count(0.0)} of {len(left)}"
        table.add_row(str(jobs), f"{PAPER_SECONDS[jobs]}", f"{seconds:.1f}", ratio, optimal, f"{100 * max(left):.1f}")
    return table


def gaps(measured: Measured, seeds: range) -> Table:
    table = Table("gap to the MILP (%)", *(f"{jobs} jobs: paper, ours" for jobs in PROVABLE), "ratio of means")
    for scheme in TABLE_SCHEMES[1:]:
        ours = [gap(measured, scheme, jobs, seeds).value for jobs in PROVABLE]
        paper = PAPER_GAPS.get(scheme)
        cells = [f"{paper[at] if paper else '-'}, {value:.1f}" for at, value in enumerate(ours)]
        table.add_row(scheme, *cells, f"{sum(ours) / sum(paper):.2f}" if paper else "-")
    return table


def gap(measured: Measured, scheme: str, jobs: int, seeds: range) -> Estimate:
    """The mean over seeds of 1 - MILP / scheme, in percent."""
    best, found = (
        measured.of("ct_bti_s", [table_trial(name, jobs, seed) for seed in seeds]) for name in ("milp", scheme)
    )
    return estimate([100 * (1 - low / high) for low, high in zip(best, found, strict=True)])


# ---- Figures 6 and 7 ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Model:
    """A model on the testbed: its size, a worker's computing time, and the update without INC.

    The update is what makes INC so much faster as Figure 5 says (1.56 and 3.7 times), at 40 Gbit/s.
    """

    gradient_bytes: int
    compute_s: float
    update_s: float


MODELS = {"ResNet50": Model(102_000_000, 0.16, 0.10), "VGG16": Model(528_000_000, 0.25, 0.96)}
ITERATIONS = 20
TESTBED_JOBS, TESTBED_SEEDS = (10, 20, 40, 60), 3
NIC_BPS = 40 * GIGA
TESTBED = DataCenter(
    tuple(Unit(name, 4, 8, 2 * 4 * NIC_BPS, 4) for name in ("gpu1", "gpu2", "cpu1", "cpu2")),
    port_bps=40 * GIGA, reconfiguration_s=0.025, slot_s=1.0, step_bps=10 * GIGA,
)  # fmt: skip

POLICIES: Mapping[str, Policy] = {
    "noINC-FCFS": FirstCome(inc=False, limit_bps=NIC_BPS),
    "INC-FCFS": FirstCome(limit_bps=NIC_BPS),
    "noINC-TW": TimeWindow(inc=False, limit_bps=NIC_BPS),
    "INC-TW": TimeWindow(limit_bps=NIC_BPS),
}

AOI_CLAIMS = (
    Claim("connections", "INC-FCFS", "noINC-FCFS", 48.8),
    Claim("connections", "INC-TW", "noINC-TW", 48.8),
    Claim("connections", "noINC-TW", "noINC-FCFS", 47.5),
    Claim("connections", "INC-TW", "INC-FCFS", 47.5),
)
JCT_CLAIMS = {
    "ResNet50": (33.57, 46.66, 12.34, 29.62),
    "VGG16": (43.96, 56.34, 12.7, 32.0),
}


def testbed_jobs(model: Model, count: int, seed: int) -> tuple[PlacedJob, ...]:
    """Two or four workers in the GPU units, in one of them or half in each; the PS in a CPU unit; a job per second."""
    draws = np.random.default_rng(seed)
    found = []
    for number, arrival in enumerate(arrivals(count, 1.0, draws), start=1):
        workers, first = int(draws.choice((2, 4))), int(draws.integers(2))
        units = ("gpu1", "gpu2")
        together = bool(draws.integers(2))
        placed = {units[first]: workers} if together else dict.fromkeys(units, workers // 2)
        found.append(
            PlacedJob(
                number, placed, f"cpu{draws.integers(1, 3)}", model.gradient_bytes, model.update_s, int(arrival),
                ITERATIONS, model.compute_s,
            )
        )  # fmt: skip
    return tuple(found)


def testbed_trial(model: str, jobs: float, scheme: str, seed: int) -> Trial:
    return {"testbed": model, "jobs": jobs, "scheme": scheme, "seed": seed}


def measure_testbed(trial: Trial) -> Result:
    problem = Scheduling(TESTBED, testbed_jobs(MODELS[str(trial["testbed"])], int(trial["jobs"]), int(trial["seed"])))
    schedule = Simulation(problem, POLICIES[str(trial["scheme"])]).run(str(trial["scheme"]))
    check(problem, schedule)
    found = figures(problem, schedule)
    return {"connections": found.connections, "total_jct_s": sum(found.jct_s.values())}


def testbed(figure: str, console: Console, request: Request) -> str:
    """Figure 6, reconfigured connections, or Figure 7, total JCT, for both models."""
    metric, label = {"fig6": ("connections", "reconfigured connections"), "fig7": ("total_jct_s", "total JCT (s)")}[
        figure
    ]
    seeds = range(1 if request.quick else TESTBED_SEEDS)
    trials = [testbed_trial(m, n, s, seed) for m in MODELS for n in TESTBED_JOBS for s in COMPARED for seed in seeds]
    measured = sweep(trials, measure_testbed, request.results / "aoi-testbed.jsonl", console)
    panels: list[Panel] = []
    statements: list[Statement] = []
    for model in MODELS:
        curves: Series = {
            scheme: [
                measured.estimate(metric, [testbed_trial(model, n, scheme, s) for s in seeds]) for n in TESTBED_JOBS
            ]
            for scheme in COMPARED
        }
        console.print(drawing.table_of(f"{figure}, {model}: {label}", "jobs", TESTBED_JOBS, means(curves)))
        console.print(reductions(figure, model, measured, seeds))
        panels.append(Panel(LINES, TESTBED_JOBS, curves, "jobs", label, model))
        points = [partial(testbed_trial, model, jobs) for jobs in TESTBED_JOBS]
        given = reductions_panel(claims_of(figure, model), measured, points, seeds)
        panels.append(replace(given, title=f"{model}: what the text gives"))
        statements += said_of_testbed(figure, model, means(curves))
    drawing.save(request.results / f"p4inc-aoi-{figure}", *panels)
    console.print(text.table_of(statements))
    own.leave_out(console, own.SCHEDULES)
    return VALID


def said_of_testbed(figure: str, model: str, curves: Curves) -> Iterator[Statement]:
    """The text on Figures 6 and 7; that INC-FCFS has a shorter JCT than noINC-TW is said beside Figure 8."""
    places = TESTBED_JOBS
    others = [scheme for scheme in COMPARED if scheme != "INC-TW"]
    yield text.is_lowest(model, "INC-TW", others, curves, places)
    yield from text.in_order(model, ("noINC-FCFS", "INC-FCFS"), curves, places)
    if figure == "fig6":
        yield from text.in_order(model, ("INC-FCFS", "noINC-TW"), curves, places)
    else:
        yield from text.in_order(model, ("noINC-FCFS", "noINC-TW", "INC-FCFS"), curves, places)


def claims_of(figure: str, model: str) -> Sequence[Claim]:
    """The reductions that the text gives for Figure 6, or for a model in Figure 7."""
    if figure == "fig6":
        return AOI_CLAIMS
    both = zip(AOI_CLAIMS, JCT_CLAIMS[model], strict=True)
    return [Claim("total_jct_s", claim.better, claim.worse, paper) for claim, paper in both]


def reductions(figure: str, model: str, measured: Measured, seeds: range) -> Table:
    """The reductions that the text gives, and ours."""
    table = Table("reduction (%)", "paper", "ours", "ratio")
    points = [partial(testbed_trial, model, jobs) for jobs in TESTBED_JOBS]
    for claim in claims_of(figure, model):
        ours = claim.ours(measured, points, seeds)
        table.add_row(claim.name, f"{claim.paper:.1f}", f"{ours:.1f}", f"{ours / claim.paper:.2f}")
    return table
