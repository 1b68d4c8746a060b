"""ARO and the baselines by real packets: planned and measured rates, on small networks and on Figure 7's.

The seeds of the small networks are chosen so that the planners differ. The fabric `pipelines` shows ARO's Figure 5: a
switch receives flows in several pipelines and cannot sum them, although `aro-unaware`, which ignores pipelines, plans
this sum. On Figure 7's network, links have the paper's 100 Gbit/s in virtual time; an emulation is slowed down to the
rates that this machine carries. Each network is drawn once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.console import Console

from inakit.experiments.emulate.defaults import rate_words
from inakit.experiments.papers.aro.effectiveness import OTHER_READINGS
from inakit.experiments.papers.aro.setting import CAPACITY_BPS, EXACT, SJST, AroSetting, compared
from inakit.experiments.papers.common.emulated_figure import Planned, RateRow, bytes_of, run_plans
from inakit.experiments.papers.common.figure_registry import Request, own_planners
from inakit.experiments.run.scenario import DEFAULT_GRADIENT_BYTES, FabricChoice, JobChoice, build_problem
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.method import Options
from inakit.planner.core.problem import Problem
from inakit.planner.methods.aro.aro import without_pipelines
from inakit.planner.registry import METHODS

CAPACITY = "2M"

TRAP = "pipelines"
COMPARED = ("aro", "random", "grid", "aggtree", "forest")


@dataclass(frozen=True)
class ComparedNetwork:
    """A network, and the planners whose plans run on it; with `workers` None the job is the fabric's own."""

    fabric: FabricChoice
    workers: int | None
    planners: tuple[str, ...]

    def plans(self, gradient_bytes: int) -> Planned:
        """The problem with one job of this size, and the plans of all planners for it, user-defined ones included."""
        seed = self.fabric.seed
        problem = build_problem(self.fabric, JobChoice(None, self.workers, 1, gradient_bytes, 1, seed))
        planners = (*self.planners, *own_planners())
        return problem, {name: METHODS[name].plan(problem, Options(seed=seed)) for name in planners}


NETWORKS = {
    "leaf-spine": ComparedNetwork(
        FabricChoice("leafspine", None, 6, 4, 4, CAPACITY, ina="0.6", pipelines=2, seed=9), 20, COMPARED
    ),
    "fat-tree": ComparedNetwork(
        FabricChoice("fattree", 4, capacity=CAPACITY, ina="0.6", pipelines=4, seed=1), 14, COMPARED
    ),
    TRAP: ComparedNetwork(FabricChoice("pipelines", scale="1/10"), None, ("aro", "aro-unaware")),
}


def run(console: Console, request: Request) -> str:
    """Run ARO, the baselines and a forest of two trees on a leaf-spine and a fat-tree; print the cost of pipelines."""
    planned = {name: scene.plans(bytes_of(request)) for name, scene in NETWORKS.items()}
    rows, verdict = run_plans("aro-emulated", planned, console, request)
    said = about_pipelines(planned[TRAP][0], [row for row in rows if row.network == TRAP])
    console.print(said, highlight=False, soft_wrap=True)
    return verdict


def about_pipelines(problem: Problem, rows: Sequence[RateRow]) -> str:
    """Figure 5's point as a sentence: the rate that `aro-unaware` expects, and its modelled and measured rates."""
    flat = replace(problem, fabric=without_pipelines(problem.fabric))
    hoped_bps = evaluate(flat, METHODS["aro"].plan(flat)).sending_rate_bps
    aware, unaware, *_ = rows
    kept, measured = unaware.planned_bps / aware.planned_bps, unaware.measured_bps / aware.measured_bps
    return (
        f"Figure 5: a planner that ignores pipelines expects {hoped_bps / 1e3:.0f} kbit/s; it has {kept:.2f} of the "
        f"best rate by the model, {measured:.2f} as measured"
    )


SEED = 0
QUICK_GRADIENT_BYTES = DEFAULT_GRADIENT_BYTES // 10
SETTINGS = {
    "default": SJST,
    "share of INA 0.7": replace(SJST, share=0.7),
    "100 workers": replace(SJST, workers=100),
    "400 workers": replace(SJST, workers=400),
}
"""The default setting of Figure 7a, and the ends of Figures 7b and 7c."""


PLANNERS = {EXACT: "aro", "ARO-ACC": "aro-acc", "RANDOM": "random", "GRID": "grid-aro", "GRID, one link": "grid",
            "AggTree": "aggtree", "AggTree, balanced": "aggtree-balanced"}  # fmt: skip
"""The planners of Figure 7's schemes and their other readings."""


def planned(setting: AroSetting, gradient_bytes: int) -> Planned:
    """The problem of a setting with a gradient of this size, and the plans of all schemes and user-defined planners."""
    problem = setting.problem(SEED)
    problem = replace(problem, jobs=tuple(replace(job, gradient_bytes=gradient_bytes) for job in problem.jobs))
    names = [*compared(), *OTHER_READINGS]
    return problem, {name: METHODS[PLANNERS.get(name, name)].plan(problem, Options(seed=SEED)) for name in names}


def fig7_by_packets(console: Console, request: Request) -> str:
    """Run all schemes in the default setting and, unless the request is quick, at the ends of Figures 7b and 7c."""
    names = [*SETTINGS][:1] if request.quick else [*SETTINGS]
    gradient_bytes = QUICK_GRADIENT_BYTES if request.quick else DEFAULT_GRADIENT_BYTES
    networks = {name: planned(SETTINGS[name], gradient_bytes) for name in names}
    console.print(f"links of {rate_words(CAPACITY_BPS)}, gradients of {gradient_bytes / 1e3:g} kB", highlight=False)
    return run_plans("aro-fig7", networks, console, request)[1]


FIGURES = {"emulated": run, "fig7-emulated": fig7_by_packets}
