"""The contract of a planning method: `plan(problem, options) -> Plan`, checked before anyone sees the plan.

A method's own options follow its name as text: `soar:switches=8`, `forest:trees=4`. A method that also changes the
problem returns a `Design`: ATRO chooses the fabric, PARING the hosts that work, SPAR the switches that aggregate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, Generic, TypeVar, get_args, get_type_hints

from inakit.planner.core.check import check
from inakit.planner.core.fair_rates import in_closed_loop
from inakit.planner.core.plan import Plan, SolverOptions
from inakit.planner.core.problem import Problem
from inakit.planner.core.slots import DEFAULT_WINDOW
from inakit.topo.errors import InputError, PlanError, unknown_name
from inakit.topo.fabric.fabric import Fabric

AFTERWARDS, ROUTED, PLANNED = "afterwards", "routed", "planned"
HEADROOM = {
    AFTERWARDS: "gradients are planned alone, as in the papers; a run lowers rates where results need capacity",
    ROUTED: "gradients keep their best rates, on the routes where results need the least capacity (aro)",
    PLANNED: "gradients and the results that return at the same time are planned together",
}
"""The ways to plan capacity for results, by the name of the option."""


@dataclass(frozen=True)
class Options:
    """The options of every method. Heuristics ignore `solver`, `time_limit_s` and `gap`.

    `window` is the maximum number of fragments that a worker has in flight in a tree. `headroom` is one of `HEADROOM`.
    """

    seed: int = 0
    solver: str = "highs"
    time_limit_s: float = 60.0
    gap: float = 0.0
    window: int = DEFAULT_WINDOW
    headroom: str = AFTERWARDS
    LEAST: ClassVar[Mapping[str, int]] = {}
    """The minimum values of a method's own options."""

    def __post_init__(self) -> None:
        if not self.time_limit_s > 0:
            raise InputError(f"time limit {self.time_limit_s:g} s: it must be greater than 0")
        if not 0 <= self.gap < 1:
            raise InputError(f"gap {self.gap:g}: it is relative, at least 0 and below 1")
        if self.window < 1:
            raise InputError(f"window {self.window}: at least 1 fragment is expected")
        if self.headroom not in HEADROOM:
            raise unknown_name("headroom", self.headroom, HEADROOM)
        for name, least in self.LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"{name} {value:g}: at least {least} is expected")

    @property
    def with_results(self) -> bool:
        """Whether gradients and results are planned together."""
        return self.headroom == PLANNED

    @property
    def for_solver(self) -> SolverOptions:
        """The options for a solver."""
        return SolverOptions(self.solver, self.time_limit_s, self.gap, self.seed)


OptionsT = TypeVar("OptionsT", bound=Options)


@dataclass(frozen=True)
class Method(Generic[OptionsT]):
    """A planning method: the type of its options (`Options` or a subclass) and its function."""

    summary: str
    options: type[OptionsT]
    function: Callable[[Problem, OptionsT], Plan]

    def plan(self, problem: Problem, options: Options | None = None) -> Plan:
        """Plan, and check the plan. Every method takes plain `Options`; options of a subclass fit only their own
        method.

        With planned headroom, rates are those that the trees allow in both directions, even if the method ignores
        results.
        """
        own = self.own(options or Options())
        plan: object = self.function(problem, own)
        if not isinstance(plan, Plan):
            given = f"{type(plan).__name__} {plan!r:.40}"
            raise PlanError(f"the planner returned {given}; a Plan is expected, as `plan_from_paths` makes one")
        check(problem, plan)
        return in_closed_loop(problem, plan) if own.with_results else plan

    def own(self, options: Options) -> OptionsT:
        """Convert the options to this method's own type. Raises `InputError` for options of another method."""
        if isinstance(options, self.options):
            return options
        if type(options) is Options:
            return self.options(**asdict(options))
        raise InputError(f"{type(options).__name__} are options of another method: give {self.options.__name__}")


NUMBERS: dict[type, str] = {int: "a whole number", float: "a number"}
"""The types of options that are parsed from text, beside plain text."""


def with_options(name: str, method: Method[Any], texts: Sequence[str]) -> Method[Any]:
    """Apply options, each written as "switches=8", to the method. Raises `InputError` for an unknown option."""
    given = dict(option(name, method, text) for text in texts)
    method.options(**given)  # the type checks its values
    return replace(method, function=lambda problem, own: method.function(problem, replace(own, **given)))


def own_options(method: Method[Any]) -> dict[str, type]:
    """The options that only this method has, with their types."""
    common = {field.name for field in fields(Options)}
    hints = get_type_hints(method.options)
    kinds = {field.name: get_args(hints[field.name]) or (hints[field.name],) for field in fields(method.options)}
    return {key: found[0] for key, found in kinds.items() if key not in common and found[0] in (*NUMBERS, str)}


def option(name: str, method: Method[Any], text: str) -> tuple[str, Any]:
    """Parse one option into its name and value."""
    key, _, value = text.partition("=")
    known = own_options(method)
    if not known:
        raise InputError(f"planner '{name}' has no options of its own: leave out ':{text}'")
    if key not in known:
        raise unknown_name(f"option of planner '{name}'", key, known)
    kind = known[key]
    try:
        return key, kind(value)
    except ValueError as error:
        raise InputError(f"planner '{name}', option {text}: {NUMBERS[kind]} is expected, as {key}=4") from error


@dataclass(frozen=True)
class Design:
    """A problem that a method has chosen, and the plan for it."""

    problem: Problem
    plan: Plan

    @property
    def fabric(self) -> Fabric:
        """The fabric of the chosen problem."""
        return self.problem.fabric

    @property
    def rate_bps(self) -> float:
        """The sending rate of each worker of the first job, over all its trees."""
        return self.plan.job_rate_bps(self.problem.jobs[0].number)
