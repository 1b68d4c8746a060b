"""The contract of a planning method: `plan(problem, options) -> Plan`, checked before anyone sees the plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Generic, TypeVar

from inakit.planner.core.check import check
from inakit.planner.core.limits.slots import DEFAULT_WINDOW
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.core.rates.closed_loop import in_closed_loop
from inakit.planner.core.solving import SolverOptions
from inakit.topo.errors import InputError, PlanError, unknown_name

AFTERWARDS, ROUTED, PLANNED = "afterwards", "routed", "planned"
HEADROOM = {
    AFTERWARDS: "gradients are planned alone, as in the papers; a run lowers rates where results need room",
    ROUTED: "gradients have the same best rates, by those of all routes on which results need least room (aro)",
    PLANNED: "gradients are planned together with the results that come back meanwhile",
}
"""When room for results is made, by the name of the option."""


@dataclass(frozen=True)
class Options:
    """The options that every method takes. Heuristics ignore `solver`, `time_limit_s` and `gap`.

    `window` is the most fragments that a worker has on their way in a tree. `headroom` is one of `HEADROOM`.
    """

    seed: int = 0
    solver: str = "highs"
    time_limit_s: float = 60.0
    gap: float = 0.0
    window: int = DEFAULT_WINDOW
    headroom: str = AFTERWARDS

    def __post_init__(self) -> None:
        if not self.time_limit_s > 0:
            raise InputError(f"time limit {self.time_limit_s:g} s: it must be greater than 0")
        if not 0 <= self.gap < 1:
            raise InputError(f"gap {self.gap:g}: it is relative, at least 0 and below 1")
        if self.window < 1:
            raise InputError(f"window {self.window}: at least 1 fragment is expected")
        if self.headroom not in HEADROOM:
            raise unknown_name("headroom", self.headroom, HEADROOM)

    @property
    def with_results(self) -> bool:
        """Whether gradients are planned together with results."""
        return self.headroom == PLANNED

    @property
    def for_solver(self) -> SolverOptions:
        """Those of the options that a solver takes."""
        return SolverOptions(self.solver, self.time_limit_s, self.gap, self.seed)


OptionsT = TypeVar("OptionsT", bound=Options)


@dataclass(frozen=True)
class Method(Generic[OptionsT]):
    """A planning method: its options' type (`Options`, or a subclass with its own) and its function."""

    summary: str
    options: type[OptionsT]
    function: Callable[[Problem, OptionsT], Plan]

    def plan(self, problem: Problem, options: Options | None = None) -> Plan:
        """The method's plan, checked. Plain `Options` fit every method, options of a subclass only their own method.

        With planned headroom, rates are those that the trees allow in both directions, whatever the method knew.
        """
        own = self.own(options or Options())
        plan: object = self.function(problem, own)
        if not isinstance(plan, Plan):
            given = f"{type(plan).__name__} {plan!r:.40}"
            raise PlanError(f"the planner returned {given}; a Plan is expected, as `plan_from_paths` makes one")
        check(problem, plan)
        return in_closed_loop(problem, plan) if own.with_results else plan

    def own(self, options: Options) -> OptionsT:
        """The options in this method's own type. Raises `InputError` for options of another method."""
        if isinstance(options, self.options):
            return options
        if type(options) is Options:
            return self.options(**asdict(options))
        raise InputError(f"{type(options).__name__} are options of another method: give {self.options.__name__}")
