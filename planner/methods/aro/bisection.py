"""The least t = 1 / r at which a task's flows fit: bisection over the values of t at which something changes.

All flows of a task have one rate r, so a link of capacity b carries floor(b t) of them. Nothing changes between two
neighbouring values of t at which some link carries one flow more; and a routing that fits at one t fits at every
greater one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import ceil, floor
from typing import Generic, TypeVar

from inakit.topo.errors import SolverError

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
        """The relative gap of the rate 1 / t, 0 where `t` is proven to be the least."""
        return max(0.0, self.t / self.bound - 1)


def flows_within(capacity: float, t: float) -> int:
    """The number of flows at `t` that fit a link of this capacity."""
    return floor(capacity * t * (1 + ROUNDING))


class Steps:
    """The values of t at which a link of one of the given capacities carries one flow more: n / b."""

    def __init__(self, capacities: Iterable[float]) -> None:
        self.capacities = tuple(set(capacities))

    def above(self, t: float) -> float:
        return min((flows_within(b, t) + 1) / b for b in self.capacities)

    def from_(self, t: float) -> float:
        return min(ceil(b * t * (1 - ROUNDING)) / b for b in self.capacities)

    def up_to(self, t: float) -> float:
        return max(flows_within(b, t) / b for b in self.capacities)


def least_t(
    fits: Callable[[float], SolutionT | None],
    steps: Steps,
    lowest: float,
    highest: float,
    gap: float = 0.0,
    known: Least[SolutionT] | None = None,
) -> Least[SolutionT] | None:
    """The least step from `lowest` on with a solution, or one whose rate is within `gap` of its rate; None if `highest`
    has none.

    `fits` returns a solution at t, or None if there is none. If it gives up with a `SolverError`, the search continues
    above that t and the bound stays below; the search raises this error if no other t has a solution. `known` is an
    initial solution.
    """
    low = bound = t = steps.from_(lowest)  # no t below `low` is tested again
    best = known and (known.solution, known.t)
    failure: SolverError | None = None

    def following() -> float:
        """The next t to test: between `low` and the best one, or without a solution at least twice the last."""
        return steps.up_to((low + best[1]) / 2) if best else steps.from_(max(2 * t, low))

    t = following() if known else t
    while True:
        solution = None
        try:
            solution = fits(t)
            if solution is None:
                bound = steps.above(t)
        except SolverError as error:
            failure = error
        if solution is not None:
            best = solution, t
        else:
            low = steps.above(t)
        if best is None and t >= highest:
            break
        if best and (low >= best[1] * (1 - ROUNDING) or best[1] / bound - 1 <= gap):
            return Least(*best, bound)
        t = following()
    if failure is not None:
        raise failure
    return None
