"""ARO's and ATRO's planners with real packets: every plan on an emulated network, planned rate against measured.

The networks are small, so that two processors carry them; at the seeds chosen here the planners differ. `pipelines` is
ARO's Figure 5 as a trap: a switch receives flows in several pipelines and cannot sum them, as `aro-unaware` thinks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from experiments.papers.common.drawing import save
from experiments.papers.common.estimates import exact
from experiments.papers.common.figure import Request
from experiments.papers.common.own_planners import own_planners
from experiments.papers.common.panels import BARS, Panel
from experiments.papers.common.trials import Trial, run_trials
from experiments.run.outcome import Outcome
from experiments.run.report import VERDICT_STYLES
from experiments.run.scenario import FabricChoice, JobChoice, build_problem
from experiments.run.tables import NamedTable
from planner.core.evaluate import evaluate
from planner.core.method import Options
from planner.core.plan import Plan
from planner.core.problem import Job, Problem
from planner.methods.aro.method import without_pipelines
from planner.methods.atro.cluster import Cluster
from planner.methods.atro.network import design
from planner.registry import METHODS
from planner.trees.headroom import with_room_for_results
from traffic.measure.verdict import VALID
from traffic.wire.packet import FRAGMENT

CAPACITY = "2M"
CAPACITY_BPS = 2e6
GRADIENT_BYTES, QUICK_GRADIENT_BYTES = 102_400, 51_200
WITHIN = 0.05
"""How far a measured rate may be from the planned one, relatively."""
DIFFERS = "DIFFERS"
"""The verdict of valid runs whose rates are further from the planned ones."""

TRAP = "pipelines"
COMPARED = ("aro", "random", "grid", "aggtree", "forest")
CLUSTER = Cluster(aggregators=4, common=12, ports=6, workers=32, capacity_bps=CAPACITY_BPS)
"""ATRO wires twelve of its switches."""

Planned = tuple[Problem, Mapping[str, Plan]]
"""A problem, and plans for it by name."""


@dataclass(frozen=True)
class Scene:
    """A network, and whose plans are run on it."""

    fabric: FabricChoice
    workers: int | None
    planners: tuple[str, ...]

    def plans(self, gradient_bytes: int) -> Planned:
        seed = self.fabric.seed
        problem = build_problem(self.fabric, JobChoice(None, self.workers, 1, gradient_bytes, 1, seed))
        planners = (*self.planners, *own_planners())
        return problem, {name: METHODS[name].plan(problem, Options(seed=seed)) for name in planners}


SCENES = {
    "leaf-spine": Scene(
        FabricChoice("leafspine", None, 6, 4, 4, CAPACITY, ina="0.6", pipelines=2, seed=9), 20, COMPARED
    ),
    "fat-tree": Scene(FabricChoice("fattree", 4, capacity=CAPACITY, ina="0.6", pipelines=4, seed=1), 14, COMPARED),
    TRAP: Scene(FabricChoice("pipelines", scale="1/10"), None, ("aro", "aro-unaware")),
}


@dataclass(frozen=True)
class Row:
    """One plan on one network: its sending rate as planned and as measured, and whether all sums were exact."""

    network: str
    planner: str
    planned_bps: float
    measured_bps: float
    exact: bool
    verdict: str

    @property
    def ratio(self) -> float:
        return self.measured_bps / self.planned_bps

    @property
    def holds(self) -> bool:
        return self.exact and abs(self.ratio - 1) <= WITHIN


def aro(console: Console, request: Request) -> str:
    """ARO, the baselines and a forest of two trees on a leaf-spine and a fat-tree; and what pipelines cost."""
    planned = {name: scene.plans(bytes_of(request)) for name, scene in SCENES.items()}
    rows, verdict = run("aro-emulated", planned, console, request)
    said = about_pipelines(planned[TRAP][0], [row for row in rows if row.network == TRAP])
    console.print(said, highlight=False, soft_wrap=True)
    return verdict


def atro(console: Console, request: Request) -> str:
    """The network that ATRO designs, by its own routes and by those that ARO finds there."""
    _, verdict = run("atro-emulated", designed(bytes_of(request)), console, request)
    return verdict


def designed(gradient_bytes: int) -> dict[str, Planned]:
    found = design(CLUSTER, FRAGMENT, job=Job(1, (), (), gradient_bytes))
    plans = {"atro": found.plan} | {name: METHODS[name].plan(found.problem) for name in ("aro", *own_planners())}
    return {f"{len(found.fabric.switches)} switches": (found.problem, plans)}


def bytes_of(request: Request) -> int:
    return QUICK_GRADIENT_BYTES if request.quick else GRADIENT_BYTES


def run(figure: str, planned: Mapping[str, Planned], console: Console, request: Request) -> tuple[list[Row], str]:
    """Run all plans and print what came of them, with a run folder for each network; the first verdict but VALID."""
    rows, verdicts = [], []
    for network, (problem, plans) in planned.items():
        trials = [Trial(name, problem, with_room_for_results(problem, plan)) for name, plan in plans.items()]
        done = run_trials(f"{figure}-{network.replace(' ', '-')}", trials, request, console)
        own = [row_of(network, *each) for each in zip(trials, done.outcomes, strict=True)]
        done.folder.write_rows("rates.csv", [f.name for f in fields(Row)], [list(asdict(row).values()) for row in own])
        done.tell(console)
        rows += own
        verdicts += [done.verdict, VALID if all(row.holds for row in own) else DIFFERS]
        save(done.folder.path / "figure", panel(own))
    console.print(table_of(rows))
    return rows, next((verdict for verdict in verdicts if verdict != VALID), VALID)


def panel(rows: Sequence[Row]) -> Panel:
    """The measured rates of one network, with the planned ones."""
    places = list(dict.fromkeys(row.network for row in rows))
    series = {row.planner: [exact(row.measured_bps / 1e3)] for row in rows}
    planned = {row.planner: [row.planned_bps / 1e3] for row in rows}
    return Panel(BARS, places, series, "", "sending rate (kbit/s)", planned=planned)


def row_of(network: str, trial: Trial, outcome: Outcome) -> Row:
    planned_bps = evaluate(trial.problem, trial.plan).sending_rate_bps
    measured = outcome.measured
    return Row(network, trial.name, planned_bps, measured.sending_rate_bps, bool(measured.exact), outcome.verdict)


def table_of(rows: Sequence[Row]) -> NamedTable:
    table = Table(title="sending rate (kbit/s)", box=SIMPLE_HEAD)
    for heading in ("network", "planner"):
        table.add_column(heading, no_wrap=True)
    for heading in ("planned", "measured", "ratio"):
        table.add_column(heading, justify="right")
    table.add_column("sums")
    table.add_column("verdict")
    for row in rows:
        style = VERDICT_STYLES.get(row.verdict, "bold yellow")
        figures = f"{row.planned_bps / 1e3:.0f}", f"{row.measured_bps / 1e3:.0f}", f"{row.ratio:.3f}"
        exact = "exact" if row.exact else "[red]wrong[/]"
        table.add_row(row.network, row.planner, *figures, exact, f"[{style}]{row.verdict}[/]")
    return NamedTable(table, names=2)


def about_pipelines(problem: Problem, rows: Sequence[Row]) -> str:
    """Figure 5's point in figures: what the unaware planner hopes for, what the model says it gets, what it gets."""
    flat = replace(problem, fabric=without_pipelines(problem.fabric))
    hoped_bps = evaluate(flat, METHODS["aro"].plan(flat)).sending_rate_bps
    aware, unaware, *_ = rows
    kept, measured = unaware.planned_bps / aware.planned_bps, unaware.measured_bps / aware.measured_bps
    return (
        f"Figure 5: who does not mind pipelines expects {hoped_bps / 1e3:.0f} kbit/s, and keeps {kept:.2f} of the best "
        f"rate by the model, {measured:.2f} as measured"
    )
