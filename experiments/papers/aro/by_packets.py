"""ARO's Figure 7 by real packets: every scheme's plan on the paper's network, planned rate against measured.

In virtual time links have the paper's 100 Gbit/s; an emulation is slowed down to what this machine carries. One draw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from rich.console import Console

from inakit.experiments.emulate.defaults import rate_words
from inakit.experiments.papers.aro.effectiveness import OTHER_READINGS
from inakit.experiments.papers.aro.schemes import ALPHA, EXACT, TIME_LIMIT_S, compared
from inakit.experiments.papers.aro.setting import CAPACITY_BPS, SJST, AroSetting
from inakit.experiments.papers.common.figure import Request
from inakit.experiments.papers.common.planned_measured import Planned, run_plans
from inakit.experiments.run.scenario import DEFAULT_GRADIENT_BYTES
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.core.solving import SolverOptions
from inakit.planner.methods.aro.accelerated import accelerated
from inakit.planner.registry import METHODS
from inakit.planner.trees.from_paths import plan_from_paths

SEED = 0
QUICK_GRADIENT_BYTES = DEFAULT_GRADIENT_BYTES // 10
SETTINGS = {
    "default": SJST,
    "share of INA 0.7": replace(SJST, share=0.7),
    "100 workers": replace(SJST, workers=100),
    "400 workers": replace(SJST, workers=400),
}
"""The default setting of Figure 7a, and the ends of Figures 7b and 7c."""


def aro_acc(problem: Problem) -> Plan:
    """ARO-ACC's plan for one task: the best routes of what SRO and APP leave."""
    found = accelerated(problem, SolverOptions(time_limit_s=TIME_LIMIT_S, seed=SEED), sro=True, alpha=ALPHA)
    (job,) = problem.jobs
    return plan_from_paths(problem, {job.number: found.paths}, problem.fabric.ina_names, method="aro-acc")


def by_planner(name: str, problem: Problem) -> Plan:
    """The plan of a planner."""
    return METHODS[name].plan(problem, Options(seed=SEED))


PLANS: Mapping[str, Callable[[Problem], Plan]] = {
    EXACT: partial(by_planner, "aro"),
    "ARO-ACC": aro_acc,
    "RANDOM": partial(by_planner, "random"),
    "GRID": partial(by_planner, "grid"),
    "GRID, capped": partial(by_planner, "grid-capped"),
    "AggTree": partial(by_planner, "aggtree"),
    "AggTree, balanced": partial(by_planner, "aggtree-balanced"),
}
"""The schemes of Figure 7 and their other readings, as plans."""


def planned(setting: AroSetting, gradient_bytes: int) -> Planned:
    """The problem of a setting, with a gradient of this size, and the plans of all schemes, your own included."""
    problem = setting.problem(SEED)
    problem = replace(problem, jobs=tuple(replace(job, gradient_bytes=gradient_bytes) for job in problem.jobs))
    names = [*compared(), *OTHER_READINGS]
    return problem, {name: PLANS.get(name, partial(by_planner, name))(problem) for name in names}


def run(console: Console, request: Request) -> str:
    """Run all schemes in the default setting and, unless the request is quick, at the ends of Figures 7b and 7c."""
    names = [*SETTINGS][:1] if request.quick else [*SETTINGS]
    gradient_bytes = QUICK_GRADIENT_BYTES if request.quick else DEFAULT_GRADIENT_BYTES
    networks = {name: planned(SETTINGS[name], gradient_bytes) for name in names}
    console.print(f"links of {rate_words(CAPACITY_BPS)}, gradients of {gradient_bytes / 1e3:g} kB", highlight=False)
    return run_plans("aro-fig7", networks, console, request)[1]
