"""Solving a PuLP model: the solvers by name, and what their answers mean.

A model is solved to optimality, or to a feasible solution with a proven gap, or not at all. What a solver has found
when its time is over is feasible, never optimal, whatever PuLP calls it.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import pulp
from pulp.apis.coin_api import pulp_cbc_path

from inakit.planner.core.solving import ERROR, FEASIBLE, INFEASIBLE, OPTIMAL, SolverOptions, SolverOutcome
from inakit.planner.solvers.highs import Highs
from inakit.topo.errors import MachineError, SolverError, unknown_name

PROVEN_GAP = 1e-6
"""A relative gap below it is rounding: the solution is optimal."""


@dataclass(frozen=True)
class Solver:
    """A solver that PuLP drives. `gap` reads the relative gap that it has proven, None where it does not tell."""

    make: Callable[[SolverOptions], Any]
    gap: Callable[[Any], float | None]
    remedy: str


class PulpHighs(pulp.HiGHS):  # type: ignore[misc]
    """PuLP's HiGHS, which solves with the kit's. CBC is a process, which hears Ctrl-C by itself, as Gurobi does."""

    def createAndConfigureSolver(self, lp: pulp.LpProblem) -> None:  # noqa: N802, PuLP's name
        """Make the solver that PuLP then gives the model to."""
        lp.solverModel = Highs(self.timeLimit, self.gapRel or 0.0, self.optionsDict.get("random_seed", 0))


def highs(options: SolverOptions) -> Any:
    """PuLP's HiGHS with the options' time limit, relative gap and seed."""
    return PulpHighs(timeLimit=options.time_limit_s, gapRel=options.gap, random_seed=options.seed)


def cbc(options: SolverOptions) -> Any:
    """PuLP's CBC with the options: the installed one, or the one that PuLP brings."""
    return pulp.COIN_CMD(
        path=shutil.which("cbc") or pulp_cbc_path,
        msg=False,
        timeLimit=options.time_limit_s,
        gapRel=options.gap,
        options=[f"randomCbcSeed {options.seed}"],
    )


def gurobi(options: SolverOptions) -> Any:
    """PuLP's Gurobi with the options' time limit, relative gap and seed."""
    return pulp.GUROBI(msg=False, timeLimit=options.time_limit_s, gapRel=options.gap, Seed=options.seed)


SOLVERS: dict[str, Solver] = {
    "highs": Solver(highs, lambda model: model.solverModel.getInfo().mip_gap, "install the Python package highspy"),
    "cbc": Solver(cbc, lambda _: None, "install the package coinor-cbc"),
    "gurobi": Solver(
        gurobi, lambda model: model.solverModel.MIPGap, "install the Python package gurobipy and its licence"
    ),
}


def solve(model: pulp.LpProblem, options: SolverOptions, remedy: str = "relax its constraints") -> SolverOutcome:
    """Solve `model` and say how well.

    Raises `SolverError` when there is no solution to use; `remedy` says what to do about an infeasible model.
    """
    outcome = run(model, options)
    if outcome.status == INFEASIBLE:
        raise SolverError(f"model '{model.name}' is infeasible or unbounded, it has no best solution: {remedy}")
    if outcome.status == ERROR:
        raise SolverError(
            f"model '{model.name}': {options.solver} found no solution in {options.time_limit_s:g} s; "
            "raise the time limit, or make the problem smaller"
        )
    return outcome


def run(model: pulp.LpProblem, options: SolverOptions) -> SolverOutcome:
    """Solve `model`; the outcome is optimal, feasible with its gap, infeasible, or an error."""
    solver = find_solver(options.solver)
    started = time.monotonic()
    try:
        model.solve(solver.make(options))
    except pulp.PulpSolverError as error:
        raise SolverError(f"model '{model.name}': {options.solver} failed: {error}") from error
    status, gap = judge(model, solver, options)
    return SolverOutcome(status, time.monotonic() - started, gap, options.solver)


def find_solver(name: str) -> Solver:
    """The solver of that name. Raises `InputError` for an unknown one, `MachineError` for one not installed."""
    if name not in SOLVERS:
        raise unknown_name("solver", name, SOLVERS)
    solver = SOLVERS[name]
    if not solver.make(SolverOptions(name)).available():
        raise MachineError(f"solver '{name}' is not installed: {solver.remedy}, or take solver 'highs'")
    return solver


def judge(model: pulp.LpProblem, solver: Solver, options: SolverOptions) -> tuple[str, float | None]:
    """The status of a model that was solved, and its relative gap: 0 where optimal, None without a solution."""
    if model.status in (pulp.LpStatusInfeasible, pulp.LpStatusUnbounded):
        return INFEASIBLE, None
    if model.sol_status not in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        return ERROR, None
    gap = proven_gap(model, solver, options)
    return (OPTIMAL, 0.0) if gap <= PROVEN_GAP else (FEASIBLE, gap)


def proven_gap(model: pulp.LpProblem, solver: Solver, options: SolverOptions) -> float:
    """How far the solution may be from the optimum, relative to the solution."""
    finished = model.sol_status == pulp.LpSolutionOptimal
    if finished and not model.isMIP():
        return 0.0
    told = solver.gap(model)
    if told is not None:
        return told
    return options.gap if finished else relaxation_gap(model, options)


def relaxation_gap(model: pulp.LpProblem, options: SolverOptions) -> float:
    """The relative gap to the linear relaxation, whose optimum bounds every solution. `model` keeps its solution."""
    values = {variable: variable.varValue for variable in model.variables()}
    found = pulp.value(model.objective)
    model.solve(PulpHighs(mip=False, timeLimit=options.time_limit_s))
    bound = pulp.value(model.objective) if model.sol_status == pulp.LpSolutionOptimal else None
    for variable, value in values.items():
        variable.varValue = value
    if bound is None:
        return inf
    return float(abs(found - bound) / max(abs(found), PROVEN_GAP))
