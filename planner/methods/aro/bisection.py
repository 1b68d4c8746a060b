"""The least t = 1 / r at which a task's flows fit: bisection over the values of t that matter.

All flows of a task have one rate r, so a link of capacity b carries floor(b t) of them. Nothing changes between two
neighbouring values of t at which some link takes one flow more; and what fits at one t fits at every greater one.
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
        """The relative gap, 0 where `t` is proven to be the least."""
        return max(0.0, 1 - self.bound / self.t)


def flows_within(capacity: float, t: float) -> int:
    """How many flows a link of this capacity carries at `t`."""
    return floor(capacity * t * (1 + ROUNDING))


class Steps:
    """The values of t at which a link of one of the given capacities takes one flow more: n / b."""

    def __init__(self, capacities: Iterable[float]) -> None:
        self.capacities = tuple(set(capacities))

    def above(self, t: float) -> float:
        return min((flows_within(b, t) + 1) / b for b in self.capacities)

    def from_(self, t: float) -> float:
        return min(ceil(b * t * (1 - ROUNDING)) / b for b in self.capacities)

    def up_to(self, t: float) -> float:
        return max(flows_within(b, t) / b for b in self.capacities)


@dataclass
class Bisection(Generic[SolutionT]):
    """What is known while t is bisected: a solution `best` with its t, and that none exists below `bound`.

    No t below `low` is asked about any more. `failure` is the error of the last question that was given up.
    """

    fits: Callable[[float], SolutionT | None]
    steps: Steps
    low: float
    bound: float
    best: tuple[SolutionT, float] | None
    failure: SolverError | None = None

    def ask(self, t: float) -> None:
        """Look for a solution at `t`. Where `fits` gives up with a `SolverError`, the bound stays below `t`."""
        solution = None
        try:
            solution = self.fits(t)
            if solution is None:
                self.bound = self.steps.above(t)
        except SolverError as error:
            self.failure = error
        if solution is not None:
            self.best = solution, t
        else:
            self.low = self.steps.above(t)

    def following(self, t: float) -> float:
        """The t to ask about after `t`: between `low` and the best one, or without a solution at least twice `t`."""
        if self.best is None:
            return self.steps.from_(max(2 * t, self.low))
        return self.steps.up_to((self.low + self.best[1]) / 2)

    def result(self, gap: float) -> Least[SolutionT] | None:
        """The best solution, once no better one is left to ask about, or its relative gap is at most `gap`."""
        if self.best is None:
            return None
        t = self.best[1]
        return Least(*self.best, self.bound) if self.low >= t * (1 - ROUNDING) or 1 - self.bound / t <= gap else None


def least_t(
    fits: Callable[[float], SolutionT | None],
    steps: Steps,
    lowest: float,
    highest: float,
    gap: float = 0.0,
    known: Least[SolutionT] | None = None,
) -> Least[SolutionT] | None:
    """The least step from `lowest` on with a solution, or one within `gap` of it; None if `highest` has none.

    `fits` returns a solution at t, or None where there is none. Where it gives up with a `SolverError`, the search goes
    on above that t, and the bound stays below; the search raises this error if no other t has a solution either.
    `known` is a solution to start from.
    """
    t = steps.from_(lowest)
    search = Bisection(fits, steps, t, t, (known.solution, known.t) if known else None)
    if known:
        t = search.following(t)
    while True:
        search.ask(t)
        if search.best is None and t >= highest:
            break
        if found := search.result(gap):
            return found
        t = search.following(t)
    if search.failure is not None:
        raise search.failure
    return None
