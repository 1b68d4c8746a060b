"""Solver outcomes: optimal, feasible with a gap, infeasible, error; by every solver that is installed."""

from __future__ import annotations

import random

import pulp
import pytest
from installed_solvers import each_solver, installed

from inakit.planner import solvers
from inakit.planner.core.plan import ERROR, FEASIBLE, INFEASIBLE, OPTIMAL, SolverOptions
from inakit.planner.solvers import find_solver, proven_gap, run, solve
from inakit.topo.errors import InputError, MachineError, SolverError


def knapsack(items: int, seed: int = 1) -> pulp.LpProblem:
    """A model with many constraints over correlated weights, which is too hard to be solved at once."""
    draw = random.Random(seed)
    model = pulp.LpProblem("knapsack", pulp.LpMaximize)
    chosen = [model.add_variable(f"item{i}", cat=pulp.LpBinary) for i in range(items)]
    model += pulp.lpSum(draw.randint(500, 1000) * x for x in chosen)
    for row in range(30):
        weights = [draw.randint(500, 1000) for _ in chosen]
        model += pulp.lpSum(w * x for w, x in zip(weights, chosen, strict=True)) <= sum(weights) / 2, f"row{row}"
    return model


@each_solver
def test_a_solved_model_is_optimal(solver: str) -> None:
    model = pulp.LpProblem("small", pulp.LpMinimize)
    x = model.add_variable("x", 0, 10, pulp.LpInteger)
    model += 2 * x
    model += 3 * x >= 7, "enough"
    outcome = run(model, SolverOptions(solver))
    assert (outcome.status, outcome.gap, outcome.solver) == (OPTIMAL, 0.0, solver)
    assert x.varValue == pytest.approx(3)


@each_solver
def test_a_linear_model_is_optimal(solver: str) -> None:
    model = pulp.LpProblem("linear", pulp.LpMaximize)
    x = model.add_variable("x", 0, 10)
    model += x
    model += 3 * x <= 7, "enough"
    assert run(model, SolverOptions(solver)).status == OPTIMAL
    assert x.varValue == pytest.approx(7 / 3)


@each_solver
def test_an_infeasible_model_is_said_to_be(solver: str) -> None:
    model = pulp.LpProblem("impossible", pulp.LpMinimize)
    x = model.add_variable("x", 0, 1, pulp.LpInteger)
    model += x
    model += 2 * x == 1, "half"
    assert run(model, SolverOptions(solver)).status == INFEASIBLE
    with pytest.raises(SolverError, match="'impossible' is infeasible"):
        solve(model, SolverOptions(solver))


@each_solver
def test_an_unbounded_model_has_no_solution_to_use(solver: str) -> None:
    model = pulp.LpProblem("endless", pulp.LpMaximize)
    model += model.add_variable("x", 0)
    assert run(model, SolverOptions(solver)).status == INFEASIBLE


@each_solver
def test_an_incumbent_at_the_time_limit_is_feasible_with_its_gap(solver: str) -> None:
    outcome = run(knapsack(120), SolverOptions(solver, time_limit_s=1.0))
    assert outcome.status == FEASIBLE
    assert outcome.gap is not None
    assert 1e-6 < outcome.gap < 0.1


def test_a_linear_model_whose_time_is_over_has_no_solution() -> None:
    """HiGHS's simplex method then stops at a point that breaks constraints, here with an objective far too low."""
    model, draw = pulp.LpProblem("cover", pulp.LpMinimize), random.Random(1)
    x = [model.add_variable(f"x{i}", 0) for i in range(1500)]
    model += pulp.lpSum(draw.randint(50, 100) * each for each in x)
    for row in range(1500):
        model += pulp.lpSum(draw.randint(1, 9) * each for each in draw.sample(x, 30)) >= 100, f"row{row}"
    with pytest.raises(SolverError, match="'cover': highs found no solution in"):
        solve(model, SolverOptions(time_limit_s=0.01))


@each_solver
def test_no_solution_in_time_is_an_error(solver: str) -> None:
    """The model is a subset sum that has no easy answer."""
    draw = random.Random(3)
    model = pulp.LpProblem("hidden", pulp.LpMinimize)
    chosen = [model.add_variable(f"x{i}", cat=pulp.LpBinary) for i in range(60)]
    model += pulp.lpSum(chosen)
    for row in range(4):
        weights = [draw.randint(10**5, 10**6) for _ in chosen]
        answer = sum(draw.sample(weights, 30))
        model += pulp.lpSum(w * x for w, x in zip(weights, chosen, strict=True)) == answer, f"sum{row}"
    assert run(model, SolverOptions(solver, time_limit_s=0.5)).status == ERROR
    with pytest.raises(SolverError, match=r"no solution in 0\.5 s; raise the time limit"):
        solve(model, SolverOptions(solver, time_limit_s=0.5))


@each_solver
def test_a_requested_gap_is_not_called_optimal_unless_it_is_zero(solver: str) -> None:
    model = knapsack(40)
    outcome = run(model, SolverOptions(solver, time_limit_s=20.0, gap=0.05))
    assert outcome.status == (OPTIMAL if outcome.gap == 0.0 else FEASIBLE)
    assert outcome.gap is not None
    assert outcome.gap <= 0.05


def test_the_relaxation_bounds_what_a_silent_solver_found() -> None:
    """CBC tells no gap, so it is computed to the linear relaxation. The solution stays in the model."""
    if not installed("cbc"):
        pytest.skip("cbc is not installed")
    model = knapsack(120)
    options = SolverOptions("cbc", time_limit_s=1.0)
    run(model, options)
    values = [variable.varValue for variable in model.variables()]
    found = pulp.value(model.objective)
    model.sol_status = pulp.LpSolutionIntegerFeasible
    gap = proven_gap(model, find_solver("cbc"), options)
    assert [variable.varValue for variable in model.variables()] == values
    model.solve(pulp.HiGHS(mip=False, msg=False))
    assert gap == pytest.approx((pulp.value(model.objective) - found) / found)


def test_two_solvers_confirm_an_optimum_or_contradict_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    if not installed("cbc"):
        pytest.skip("cbc is not installed")
    both = SolverOptions("highs+cbc", time_limit_s=30)
    outcome = run(knapsack(12), both)
    assert (outcome.status, outcome.solver) == (OPTIMAL, "highs+cbc")
    infeasible = pulp.LpProblem("nothing", pulp.LpMinimize)
    infeasible += infeasible.add_variable("x", 0, 1) >= 2
    assert run(infeasible, both).status == INFEASIBLE
    cbc = find_solver("cbc")
    monkeypatch.setattr(solvers, "judge", lambda _, solver, __: (INFEASIBLE, None) if solver is cbc else (OPTIMAL, 0.0))
    with pytest.raises(SolverError, match=r"highs says optimal .* cbc infeasible"):
        run(knapsack(12), both)


def test_unknown_and_missing_solvers_are_refused() -> None:
    with pytest.raises(InputError, match="unknown solver 'higs': did you mean 'highs'"):
        find_solver("higs")
    if not installed("gurobi"):
        with pytest.raises(MachineError, match=r"'gurobi' is not installed: .*gurobipy"):
            solve(knapsack(3), SolverOptions("gurobi"))
