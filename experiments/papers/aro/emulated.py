"""ARO and the baselines by real packets: every plan on an emulated network, planned rate against measured.

The networks are small, so that two processors carry them, and have seeds at which the planners differ. The fabric
`pipelines` is ARO's Figure 5 as a trap: a switch receives flows in several pipelines, so it cannot sum them, although
`aro-unaware`, which ignores pipelines, plans that it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.console import Console

from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.common.own_planners import own_planners
from inakit.experiments.papers.common.planned_measured import Planned, RateRow, bytes_of, run_plans
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.method import Options
from inakit.planner.core.problem import Problem
from inakit.planner.methods.aro.method import without_pipelines
from inakit.planner.registry import METHODS

CAPACITY = "2M"

TRAP = "pipelines"
COMPARED = ("aro", "random", "grid", "aggtree", "forest")


@dataclass(frozen=True)
class ComparedNetwork:
    """A network, and the planners whose plans are run on it; `workers` None takes the fabric's own job."""

    fabric: FabricChoice
    workers: int | None
    planners: tuple[str, ...]

    def plans(self, gradient_bytes: int) -> Planned:
        """The problem with one job of this size, and the plans of all planners for it, your own included."""
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
    """Run ARO, the baselines and a forest of two trees on a leaf-spine and a fat-tree; print what pipelines cost."""
    planned = {name: scene.plans(bytes_of(request)) for name, scene in NETWORKS.items()}
    rows, verdict = run_plans("aro-emulated", planned, console, request)
    said = about_pipelines(planned[TRAP][0], [row for row in rows if row.network == TRAP])
    console.print(said, highlight=False, soft_wrap=True)
    return verdict


def about_pipelines(problem: Problem, rows: Sequence[RateRow]) -> str:
    """Figure 5's point as a sentence: the rate that the unaware planner expects, and by model and measured gets."""
    flat = replace(problem, fabric=without_pipelines(problem.fabric))
    hoped_bps = evaluate(flat, METHODS["aro"].plan(flat)).sending_rate_bps
    aware, unaware, *_ = rows
    kept, measured = unaware.planned_bps / aware.planned_bps, unaware.measured_bps / aware.measured_bps
    return (
        f"Figure 5: who does not mind pipelines expects {hoped_bps / 1e3:.0f} kbit/s, and keeps {kept:.2f} of the best "
        f"rate by the model, {measured:.2f} as measured"
    )
