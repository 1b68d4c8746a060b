"""What is asked of a solver, and what its answer is called: optimal, feasible with a gap, infeasible, error."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SolverOutcome:
    """How a plan was found: status is optimal, feasible (with `gap`), or heuristic.

    `gap` is relative, of what the method optimises: for one task that is 1 / rate, for several the rates' worth.
    """

    status: str
    seconds: float
    gap: float | None = None
    solver: str | None = None


OPTIMAL, FEASIBLE, INFEASIBLE, ERROR = "optimal", "feasible", "infeasible", "error"


@dataclass(frozen=True)
class SolverOptions:
    """How long, how exactly and with what a model is solved. `gap` is relative; 0 asks for the optimum."""

    solver: str = "highs"
    time_limit_s: float = 60.0
    gap: float = 0.0
    seed: int = 0
