"""The least t = 1 / r at which a task's flows fit: bisection over the values of t that matter.

All flows of a task have one rate r, so a link of capacity b carries floor(b t) of them. Between two values of t at
which some link takes one flow more, nothing changes; and what fits at one t fits at every greater one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import ceil, floor
from typing import Generic, TypeVar

from topo.errors import SolverError

ROUNDING = 1e-9

SolutionT = TypeVar("SolutionT")


@dataclass(frozen=True)
class Least(Generic[SolutionT]):
    """A solution at `t`; none exists below `bound`."""

    solution: SolutionT
    t: float
    bound: float

    @property
    def gap(self) -> float:
        """Relative, 0 where `t` is proven to be the least."""
        return max(0.0, 1 - self.bound / self.t)


def flows_within(capacity: float, t: float) -> int:
    """How many flows a link carries at `t`."""
    return floor(capacity * t * (1 + ROUNDING))


class Steps:
    """The values of t at which a link of one of the given capacities takes one flow more: n / b."""

    def __init__(self, capacities: Iterable[float]) -> None:
        self.capacities = tuple(set(capacities))

    def above(self, t: float) -> float:
        return min((flows_within(b, t) + 1) / b for b in self.capacities)

    def from_(self, t: float) -> float:
        """The first that is not below `t`."""
        return min(ceil(b * t * (1 - ROUNDING)) / b for b in self.capacities)

    def up_to(self, t: float) -> float:
        """The last that is not above `t`."""
        return max(flows_within(b, t) / b for b in self.capacities)


def least_t(
    fits: Callable[[float], SolutionT | None], steps: Steps, lowest: float, highest: float, gap: float = 0.0
) -> Least[SolutionT] | None:
    """The least step from `lowest` on with a solution, or one within `gap` of it; None if `highest` has none.

    `fits` gives a solution at t, or None where there is none; a `SolverError` of it, when its time is over, ends the
    search with the best solution so far.
    """
    t = bound = steps.from_(lowest)
    best: Least[SolutionT] | None = None
    while True:
        try:
            solution = fits(t)
        except SolverError:
            if best is None:
                raise
            return best
        if solution is None:
            bound = steps.above(t)
        best = improved(best, solution, t, bound)
        if best is None and t >= highest:
            return None
        if best is not None and best.gap <= max(gap, ROUNDING):
            return best
        t = steps.from_(max(2 * t, bound)) if best is None else steps.up_to((bound + best.t) / 2)


def improved(
    best: Least[SolutionT] | None, solution: SolutionT | None, t: float, bound: float
) -> Least[SolutionT] | None:
    if solution is not None:
        return Least(solution, t, bound)
    return best and Least(best.solution, best.t, bound)
