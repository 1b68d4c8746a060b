"""The published models by every solver: the same optima, and at a time limit what was found with its gap."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from aro_cases import CLOS, LEAF_SPINES, random_problem, worth_of_plan
from installed_solvers import each_solver, installed
from planner_cases import FRAGMENT, job

from inakit.planner.core.plan import FEASIBLE, OPTIMAL, SolverOptions, SolverOutcome
from inakit.planner.core.problem import Problem
from inakit.planner.methods.aro.accelerations import LiteralOptions
from inakit.planner.methods.atro import atro as optimum
from inakit.planner.methods.atro.switch_cluster import SwitchCluster
from inakit.planner.methods.atro.wiring_models import optimise_printed
from inakit.planner.registry import METHODS
from inakit.topo.errors import SolverError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_ina, with_pipelines

SAME = 1e-5
"""The relative difference that the solvers' tolerances allow."""

Solve = Callable[[SolverOptions], tuple[float, SolverOutcome]]
"""Solves a model; returns what the solution is worth, and how well that is proven."""


def aro(problem: Problem, variant: str, options: SolverOptions) -> tuple[float, SolverOutcome]:
    asked = LiteralOptions(solver=options.solver, time_limit_s=options.time_limit_s, levels=50)
    plan = METHODS[variant].plan(problem, asked)
    return worth_of_plan(problem, plan), plan.outcome


def atro(cluster: SwitchCluster, options: SolverOptions) -> tuple[float, SolverOutcome]:
    wiring, outcome = optimise_printed(cluster, options)
    return 1 / wiring.most_flows, outcome


SMALL: dict[str, Solve] = {
    **{
        f"{shape} {variant} {seed}": partial(aro, random_problem(seed, *sizes, limited=seed % 2 == 1), variant)
        for shape, sizes in {
            "SJST": (1, 1, 5, CLOS),
            "SJMT": (1, 2, 4, CLOS),
            "MJMT": (2, 2, 3, LEAF_SPINES[:2]),
        }.items()
        for variant in ("aro-raw", "aro-qsr")
        for seed in range(2)
    },
    **{f"ATRO {sizes}": partial(atro, SwitchCluster(*sizes)) for sizes in ((1, 1, 4, 5), (2, 1, 3, 4), (2, 2, 4, 6))},
}


@pytest.mark.parametrize("solver", ["cbc", "gurobi"])
@pytest.mark.parametrize("model", SMALL)
def test_all_solvers_find_the_same_optimum(solver: str, model: str) -> None:
    if not installed(solver):
        pytest.skip(f"{solver} is not installed")
    found, outcome = SMALL[model](SolverOptions(solver))
    expected, by_highs = SMALL[model](SolverOptions("highs"))
    assert (outcome.status, outcome.solver) == (by_highs.status, solver)
    assert found == pytest.approx(expected, rel=SAME)


def crowded(fabric: Fabric, jobs: int, servers: int) -> Problem:
    """A problem in which every host works or serves."""
    fabric = with_pipelines(with_ina(fabric, share=0.3, seed=3), 3)
    hosts = [host.name for host in fabric.hosts]
    workers = hosts[jobs * servers :]
    chosen = (job(workers[k::jobs], *hosts[k * servers : (k + 1) * servers], number=k + 1) for k in range(jobs))
    return Problem(fabric, tuple(chosen), FRAGMENT)


def best_plan(problem: Problem) -> float:
    plan = METHODS["aro"].plan(problem)
    assert plan.outcome.status == OPTIMAL
    return worth_of_plan(problem, plan)


LARGE: dict[str, tuple[Solve, Callable[[], float]]] = {
    name: (partial(aro, problem, "aro-raw"), partial(best_plan, problem))
    for name, problem in {"SJST": crowded(fat_tree(8), 1, 1), "SJMT": crowded(leaf_spine(8, 8, 8), 1, 2)}.items()
} | {
    "ATRO": (
        partial(atro, SwitchCluster(3, 6, 5, 16)),
        lambda: 1 / optimum.optimise(SwitchCluster(3, 6, 5, 16))[0].most_flows,
    )
}
"""Models that one second does not settle, with their optimum by the fast methods."""


@each_solver
@pytest.mark.parametrize("model", LARGE)
def test_what_a_time_limit_leaves_is_no_optimum(solver: str, model: str) -> None:
    solve, best = LARGE[model]
    try:
        found, outcome = solve(SolverOptions(solver, time_limit_s=1.0))
    except SolverError as error:
        assert "raise the time limit" in str(error)
        return
    assert outcome.gap is not None
    assert outcome.status == (OPTIMAL if outcome.gap == 0 else FEASIBLE)
    inverse = model == "ATRO"  # which minimises the flows on the busiest link
    possible = found / (1 - outcome.gap) if inverse else found * (1 + outcome.gap)
    assert found <= best() * (1 + SAME) <= possible * (1 + SAME) ** 2
