"""A mixed-integer linear program as columns and rows, handed to HiGHS in one piece.

PuLP builds a model term by term, which for thousands of small models takes longer than solving them. Here a row is
a list of (coefficient, column) pairs, so that a model still reads as its equations do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

import highspy
import numpy as np

from inakit.planner.solvers.highs import Highs
from inakit.topo.errors import SolverError

Term = tuple[float, int]
"""A coefficient, and the column of its variable."""

OPTIMAL, FEASIBLE, INFEASIBLE, UNKNOWN = "optimal", "feasible", "infeasible", "unknown"

STATUS = {
    highspy.HighsModelStatus.kOptimal: OPTIMAL,
    highspy.HighsModelStatus.kInfeasible: INFEASIBLE,
    highspy.HighsModelStatus.kTimeLimit: UNKNOWN,
    highspy.HighsModelStatus.kSolutionLimit: UNKNOWN,
    highspy.HighsModelStatus.kObjectiveTarget: UNKNOWN,
}


@dataclass(frozen=True)
class Solution:
    """What the solver found: the status is optimal, feasible, infeasible or unknown.

    No solution is better than `bound`. For each row of a linear program, `duals` has what the objective gains when the
    row's bound rises by 1.
    """

    status: str
    values: list[float]
    objective: float
    bound: float
    duals: list[float]

    @property
    def found(self) -> bool:
        """Whether there are values to use."""
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
        """Solve the program on one thread. A solution that stands at the time limit is feasible, never optimal."""
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
        """What HiGHS found. Raises `SolverError` where it stopped for a reason that is not in `STATUS`."""
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
    """The row as coefficients by column; those of a column that occurs several times are added up."""
    found: dict[int, float] = {}
    for coefficient, column in row:
        found[column] = found.get(column, 0.0) + coefficient
    return found
