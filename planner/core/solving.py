"""What is asked of a solver, and the names of its answers: optimal, feasible with a gap, infeasible, error."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SolverOutcome:
    """How a plan was found: the status is optimal, feasible (with a `gap`), or heuristic.

    `gap` is relative to what the method optimises: 1 / rate for one task, the worth of the rates for several (ARO's
    Eqs. (2) and (3)).
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
