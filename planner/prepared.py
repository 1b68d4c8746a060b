"""A plan that is ready to run: all later steps take this value, and recompute no part of it.

prepared = prepare(problem, find_method("aro").plan(problem))
prepared.prediction.sending_rate_bps, prepared.entries
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property

from inakit.planner.core.evaluate import Prediction, evaluate
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.install.ina_program import INA, DataPlaneProgram
from inakit.planner.install.plan_entries import check_limits, entries
from inakit.planner.trees.headroom import RESULTS_RETURN, headroom
from inakit.switch.entries import Entries
from inakit.topo.errors import unknown_name


@dataclass(frozen=True)
class Prepared:
    """A checked plan with the rates and slots at which it runs, its prediction and its table entries.

    Rates are those of the method times `factor`; each line of `notes` gives a reason why this is not 1. `program` is
    the data-plane program to which the plan is fitted, if any. `known` is the prediction if it is known already;
    `dataclasses.replace` drops it. Prediction and entries are computed once, on first use. The entries can be added to
    those of `earlier` plans, whose trees have other numbers.
    """

    problem: Problem
    plan: Plan
    mode: str = "reliable"
    factor: float = 1.0
    notes: tuple[str, ...] = ()
    program: DataPlaneProgram | None = None
    earlier: tuple[Plan, ...] = ()
    known: InitVar[Prediction | None] = None
    _known: Prediction | None = field(init=False, repr=False, compare=False)

    def __post_init__(self, known: Prediction | None) -> None:
        object.__setattr__(self, "_known", known)

    @cached_property
    def prediction(self) -> Prediction:
        """The planned figures: rates in bit/s, sizes in bytes, times in seconds."""
        return self._known or evaluate(self.problem, self.plan)

    @cached_property
    def entries(self) -> Entries:
        """The table entries of every switch."""
        return entries(self.problem, self.plan, self.program or INA, self.earlier)

    def fitted(self, program: DataPlaneProgram) -> Prepared:
        """The plan fitted to this program. Raises `PlanError` if the program cannot run it."""
        if self.program == program:
            return self
        plan = program.fitted(self.plan)
        return replace(self, plan=plan, program=program, known=self.prediction)  # bitmaps change no rate

    def at(self, problem: Problem, factor: float) -> Prepared:
        """The plan for a problem whose rates are `factor` times those of this one. Usually the plan stays the same."""
        if problem is self.problem and factor == 1:
            return self
        return replace(self, problem=problem, plan=self.plan.with_rates_times(factor))


class OfPrepared:
    """A base for values that refer to one prepared plan: its problem, plan and mode."""

    prepared: Prepared

    @property
    def problem(self) -> Problem:
        """The fabric and the jobs."""
        return self.prepared.problem

    @property
    def plan(self) -> Plan:
        """The plan at the rates of a run: the method's, lowered where results need capacity (`notes` tell why)."""
        return self.prepared.plan

    @property
    def mode(self) -> str:
        """``"reliable"`` or ``"replay"``."""
        return self.prepared.mode


def with_headroom(problem: Problem, plan: Plan, mode: str = "reliable") -> Prepared:
    """A checked plan with the rates of a run in this mode: lowered by one factor where results need capacity.

    This function sets all planned rates that are shown or stored. Raises `InputError` for an unknown mode.
    """
    if mode not in RESULTS_RETURN:
        raise unknown_name("mode", mode, RESULTS_RETURN)
    if not RESULTS_RETURN[mode]:
        return Prepared(problem, plan, mode)
    prediction = evaluate(problem, plan)
    factor, why = headroom(problem, plan, prediction)
    if factor == 1:
        return Prepared(problem, plan, mode, known=prediction)
    lowered = plan.with_rates_times(factor)
    known = evaluate(problem, lowered)
    rates = (each.sending_rate_bps / 1e6 for each in (known, prediction))
    note = "{}: rates are x{:.3g}, {:.3f} instead of {:.3f} Mbit/s".format(why, factor, *rates)
    return Prepared(problem, lowered, mode, factor, (note,), known=known)


def prepare(problem: Problem, plan: Plan, mode: str = "reliable") -> Prepared:
    """`with_headroom` of a plan for switches. Raises `PlanError` for a plan that no target supports."""
    check_limits(problem.fabric, plan)
    return with_headroom(problem, plan, mode)
