"""Solve mathematical programs and name their outcomes: PuLP models, and programs of columns and rows.

A model is solved to optimality, or to a feasible solution with a proven gap, or not at all. A solution found at the
time limit is feasible, never optimal, even if PuLP reports it as optimal.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import inf
from typing import Any, TypeVar

import highspy
import numpy as np
import pulp
from numpy.typing import NDArray
from pulp.apis.coin_api import pulp_cbc_path

from inakit.planner.core.plan import ERROR, FEASIBLE, INFEASIBLE, OPTIMAL, SolverOptions, SolverOutcome
from inakit.topo.c_library import lasting_thread
from inakit.topo.errors import MachineError, SolverError, unknown_name

# -- Long calls of native code that Ctrl-C can interrupt.
#
# Python handles a signal between two of its own instructions, and a solver may take a minute for one of them. So the
# solver runs in its own thread, and the main thread waits where it can be interrupted. The solver itself cannot be
# interrupted: it continues until it is done, or until the process ends.

T = TypeVar("T")

LOOK_S = 0.2
"""The interval, in seconds, at which the main thread checks for a signal."""

solver_thread = lasting_thread("solver")
"""One thread for all calls, because HiGHS initialises itself in every thread that calls it."""


def interruptible(call: Callable[[], T]) -> T:
    """Return the result of `call`. In the main thread a signal ends the wait; other threads call it directly.

    The system may deliver a signal to any thread, which does not wake the main thread, so the main thread polls.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    solving = solver_thread().submit(call)
    while not wait([solving], LOOK_S).done:
        pass
    return solving.result()


TOLERANCE = 1e-7
"""The tolerance of rows. With HiGHS's own 1e-6 a bound would be off by as much as counts as proven (`PROVEN_GAP`)."""


class Highs(highspy.Highs):
    """A single-threaded solver, so that it finds the same solution on every machine. It prints nothing.

    HiGHS prints a banner at the first call of any method unless its output is off, and since 1.8 its own constructor
    makes such a call, `enableCallbacks`.
    """

    def __init__(self, time_limit_s: float, gap: float, seed: int = 0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        for name, value in {
            "output_flag": False,
            "threads": 1,
            "time_limit": max(float(time_limit_s), 0.001),
            "random_seed": seed,
            "mip_rel_gap": gap,
            "mip_abs_gap": 0.0,
            "mip_feasibility_tolerance": TOLERANCE,
        }.items():
            self.setOptionValue(name, value)

    def enableCallbacks(self) -> None:  # noqa: N802, HiGHS's name
        """Turn output off before the first call that would print."""
        self.setOptionValue("output_flag", False)
        super().enableCallbacks()  # type: ignore[no-untyped-call]

    def run(self) -> highspy.HighsStatus:
        """Solve the model; Ctrl-C interrupts the main thread's wait for it."""
        return interruptible(self.run_anew)

    def run_anew(self) -> highspy.HighsStatus:
        """Solve the model with any number of threads of an earlier solve in this thread.

        HiGHS keeps that number for each thread that calls it, and refuses another. A user's planner may have solved its
        model with PuLP's own solver, which uses all processors.
        """
        status = super().run()
        if status == highspy.HighsStatus.kError and self.getModelStatus() == highspy.HighsModelStatus.kNotset:
            highspy.Highs.resetGlobalScheduler(True)
            status = super().run()
        return status


# -- PuLP models: the solvers by name, and the meaning of their answers.

AGREEMENT = 1e-5
"""The relative difference up to which the optima of two solvers are equal."""

PROVEN_GAP = 1e-6
"""A smaller relative gap is rounding: the solution is optimal."""
LEAST_VIOLATION = 1e-5
"""A constraint that is broken by more is broken."""


def proven(gap: float, started: float, solver: str | None = None) -> SolverOutcome:
    """The outcome of a search that began at `started` on the monotonic clock, and whose result has this gap."""
    optimal = gap <= PROVEN_GAP
    return SolverOutcome(OPTIMAL if optimal else FEASIBLE, time.monotonic() - started, 0.0 if optimal else gap, solver)


@dataclass(frozen=True)
class Solver:
    """A solver that PuLP drives. `gap` reads the relative gap that it has proven; None if it does not report one."""

    make: Callable[[SolverOptions], Any]
    gap: Callable[[Any], float | None]
    remedy: str


class PulpHighs(pulp.HiGHS):  # type: ignore[misc]
    """PuLP's HiGHS with the kit's solver. CBC is a process, which receives Ctrl-C by itself, as Gurobi does."""

    def createAndConfigureSolver(self, lp: pulp.LpProblem) -> None:  # noqa: N802, PuLP's name
        """Make the solver to which PuLP then passes the model."""
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
    """Solve `model`; return its outcome.

    Raises `SolverError` if there is no usable solution; `remedy` is the advice for an infeasible model.
    """
    outcome = run(model, options)
    if outcome.status == INFEASIBLE:
        raise SolverError(f"model '{model.name}' is infeasible or unbounded: {remedy}")
    if outcome.status == ERROR:
        raise SolverError(
            f"model '{model.name}': {options.solver} found no solution in {options.time_limit_s:g} s; "
            "raise the time limit, or make the problem smaller"
        )
    return outcome


def run(model: pulp.LpProblem, options: SolverOptions) -> SolverOutcome:
    """Solve `model`; the outcome is optimal, feasible with its gap, infeasible, or an error.

    Two solvers, such as `highs+cbc`, solve it one after the other; the solution is the first one's. Raises
    `SolverError` if they contradict one another.
    """
    if "+" in options.solver:
        return confirmed(model, options)
    solver = find_solver(options.solver)
    started = time.monotonic()
    try:
        model.solve(solver.make(options))
    except pulp.PulpSolverError as error:
        raise SolverError(f"model '{model.name}': {options.solver} failed: {error}") from error
    status, gap = judge(model, solver, options)
    return SolverOutcome(status, time.monotonic() - started, gap, options.solver)


def confirmed(model: pulp.LpProblem, options: SolverOptions) -> SolverOutcome:
    """The outcome of two solvers, which is optimal or infeasible only if both say so, with the same objective."""
    first, _, second = options.solver.partition("+")
    other = run(model, replace(options, solver=second))
    its_value = objective_value(model)
    own = run(model, replace(options, solver=first))  # the model keeps this solution
    value = objective_value(model)
    seconds, found = own.seconds + other.seconds, {own.status, other.status}
    if found <= {OPTIMAL, INFEASIBLE}:
        if len(found) == 2 or (own.status == OPTIMAL and abs(value - its_value) > AGREEMENT * max(1.0, abs(value))):
            said = f"{first} says {own.status} ({value:g}), {second} {other.status} ({its_value:g})"
            raise SolverError(f"model '{model.name}': {said}: neither is proven; report the problem, with its files")
        return SolverOutcome(own.status, seconds, own.gap, options.solver)
    if own.gap is None:
        return SolverOutcome(ERROR, seconds, None, options.solver)
    return SolverOutcome(FEASIBLE, seconds, max(own.gap, other.gap or 0.0), options.solver)


def objective_value(model: pulp.LpProblem) -> float:
    """The objective's value of a solved model; 0 for a model without objective or without solution."""
    return 0.0 if model.objective is None else float(pulp.value(model.objective) or 0.0)


def find_solver(name: str) -> Solver:
    """The solver of that name. Raises `InputError` for an unknown one, `MachineError` for one not installed."""
    if name not in SOLVERS:
        raise unknown_name("solver", name, SOLVERS)
    solver = SOLVERS[name]
    if not solver.make(SolverOptions(name)).available():
        raise MachineError(f"solver '{name}' is not installed: {solver.remedy}, or use solver 'highs'")
    return solver


def judge(model: pulp.LpProblem, solver: Solver, options: SolverOptions) -> tuple[str, float | None]:
    """The status of a solved model, and its relative gap: 0 if optimal, None without a solution."""
    if model.status in (pulp.LpStatusInfeasible, pulp.LpStatusUnbounded):
        return INFEASIBLE, None
    if model.sol_status not in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        return ERROR, None
    if model.sol_status != pulp.LpSolutionOptimal and not model.isMIP() and not model.valid(LEAST_VIOLATION):
        return ERROR, None  # the simplex method stopped on its way to a solution
    gap = proven_gap(model, solver, options)
    return (OPTIMAL, 0.0) if gap <= PROVEN_GAP else (FEASIBLE, gap)


def proven_gap(model: pulp.LpProblem, solver: Solver, options: SolverOptions) -> float:
    """An upper bound on the distance of the solution from the optimum, relative to the solution."""
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


# -- A mixed-integer linear program as columns and rows, handed to HiGHS in one piece.
#
# PuLP builds a model term by term, which for thousands of small models takes longer than solving them. Here a row is
# a list of (coefficient, column) pairs, so that a model still reads as its equations do.

Term = tuple[float, int]
"""A coefficient, and the column of its variable."""

UNKNOWN = "unknown"

STATUS = {
    highspy.HighsModelStatus.kOptimal: OPTIMAL,
    highspy.HighsModelStatus.kInfeasible: INFEASIBLE,
    highspy.HighsModelStatus.kTimeLimit: UNKNOWN,
    highspy.HighsModelStatus.kSolutionLimit: UNKNOWN,
    highspy.HighsModelStatus.kObjectiveTarget: UNKNOWN,
}


@dataclass(frozen=True)
class Solution:
    """The solver's result; the status is optimal, feasible, infeasible or unknown.

    `bound` limits all solutions. For each row of a linear program, `duals` has the gain of the objective when the
    row's bound rises by 1.
    """

    status: str
    values: list[float]
    objective: float
    bound: float
    duals: list[float]

    @property
    def found(self) -> bool:
        return self.status in (OPTIMAL, FEASIBLE)


@dataclass
class LinearProgram:
    """A program that maximises its objective over the columns, subject to the rows."""

    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    integral: list[bool] = field(default_factory=list)
    rows: list[list[Term]] = field(default_factory=list)
    least: list[float] = field(default_factory=list)
    most: list[float] = field(default_factory=list)
    objective: list[Term] = field(default_factory=list)

    def variable(self, lower: float, upper: float, *, integral: bool = False) -> int:
        """Add a variable between the two bounds; returns its column."""
        self.lower.append(lower)
        self.upper.append(upper)
        self.integral.append(integral)
        return len(self.lower) - 1

    def fix(self, column: int, value: float) -> None:
        """Set both bounds of a variable to one value."""
        self.lower[column] = self.upper[column] = value

    def at_most(self, terms: Iterable[Term], bound: float) -> None:
        """Add a row whose terms sum to at most `bound`."""
        self.row(terms, -inf, bound)

    def at_least(self, terms: Iterable[Term], bound: float) -> None:
        """Add a row whose terms sum to at least `bound`."""
        self.row(terms, bound, inf)

    def equal(self, terms: Iterable[Term], value: float) -> None:
        """Add a row whose terms sum to `value`."""
        self.row(terms, value, value)

    def row(self, terms: Iterable[Term], least: float, most: float) -> None:
        """Add a row whose terms sum to at least `least` and at most `most`."""
        self.rows.append(list(terms))
        self.least.append(least)
        self.most.append(most)

    def maximise(self, terms: Iterable[Term]) -> None:
        """Set the objective to the sum of these terms."""
        self.objective = list(terms)

    def solve(self, time_limit_s: float = inf, seed: int = 0, gap: float = 0.0) -> Solution:
        """Solve the program on one thread. A solution at the time limit is feasible, never optimal."""
        solver = Highs(time_limit_s, gap, seed)
        solver.passModel(self.lp())
        solver.run()
        return self.solution(solver)

    def lp(self) -> highspy.HighsLp:
        """The program as HiGHS takes it, with all rows in one sparse matrix."""
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.lower), len(self.rows)
        costs = np.zeros(len(self.lower))
        for coefficient, column in self.objective:
            costs[column] += coefficient
        lp.col_cost_ = costs
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.col_lower_, lp.col_upper_ = np.array(self.lower), np.array(self.upper)
        lp.row_lower_, lp.row_upper_ = np.array(self.least), np.array(self.most)
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        if any(self.integral):
            lp.integrality_ = [kinds[integral] for integral in self.integral]
        merged = [merge(row) for row in self.rows]
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.cumsum([0, *map(len, merged)]).astype(np.int32)
        lp.a_matrix_.index_ = np.array([column for row in merged for column in row], dtype=np.int32)
        lp.a_matrix_.value_ = np.array([value for row in merged for value in row.values()], dtype=float)
        return lp

    def solution(self, solver: highspy.Highs) -> Solution:
        """The result of HiGHS. Raises `SolverError` if it stopped for a reason that is not in `STATUS`."""
        told = solver.getModelStatus()
        if told not in STATUS:
            raise SolverError(
                f"HiGHS {solver.version()} stopped with '{solver.modelStatusToString(told)}': "
                "make the problem smaller, or install another version of the Python package highspy"
            )
        info = solver.getInfo()
        status = STATUS[told]
        feasible = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        if status == UNKNOWN and feasible:
            status = FEASIBLE
        bound = info.mip_dual_bound if any(self.integral) else info.objective_function_value
        found = solver.getSolution()
        return Solution(status, list(found.col_value), info.objective_function_value, bound, list(found.row_dual))


def merge(row: list[Term]) -> dict[int, float]:
    """The row as coefficients by column; those of a repeated column are added up."""
    found: dict[int, float] = {}
    for coefficient, column in row:
        found[column] = found.get(column, 0.0) + coefficient
    return found


Numbers = NDArray[np.float64]


def min_plus(sums: Numbers, below: Numbers) -> Numbers:
    """For every i, the least of sums(i - j) + below(j) over j, along the last axis, which keeps its length."""
    found = sums + below[..., :1]
    for j in range(1, min(below.shape[-1], sums.shape[-1])):
        np.minimum(found[..., j:], sums[..., : sums.shape[-1] - j] + below[..., j : j + 1], out=found[..., j:])
    return found


def divided(first: Numbers, tables: Sequence[Numbers]) -> list[int]:
    """The number of the `len(first) - 1` units for each table that minimises the sum of all costs.

    `tables[t][i]` is the cost of i units of table t, and `first[i]` that of i units without a table.
    """
    before = list(accumulate(tables, min_plus, initial=first))
    shares, left = [], len(first) - 1
    for table, rest in zip(reversed(tables), reversed(before[:-1]), strict=True):
        most = min(left, len(table) - 1)
        own = int(np.argmin(rest[left - np.arange(most + 1)] + table[: most + 1]))
        shares.append(own)
        left -= own
    return shares[::-1]
