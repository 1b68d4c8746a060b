"""A plan that is ready to run: everything behind planning takes this one value, and computes nothing of it again.

prepared = prepare(problem, find_method("aro").plan(problem))
prepared.prediction.sending_rate_bps, prepared.entries
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from inakit.planner.core.evaluate import Prediction, evaluate
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.install.plan_entries import check_limits, entries
from inakit.planner.install.program import DataPlaneProgram
from inakit.planner.trees.headroom import as_run
from inakit.switch.entries import Entries


@dataclass(frozen=True)
class Prepared:
    """A checked plan with the rates and slots at which it runs, its prediction and its table entries.

    `notes` say in a line each why rates are not those of the method. `program` is the data-plane program to which the
    plan is fitted, if it is. Prediction and entries are made when they are first asked for, and once.
    """

    problem: Problem
    plan: Plan
    mode: str = "reliable"
    notes: tuple[str, ...] = ()
    program: DataPlaneProgram | None = None

    @cached_property
    def prediction(self) -> Prediction:
        """The planned figures: rates in bit/s, sizes in bytes, times in seconds."""
        return evaluate(self.problem, self.plan)

    @cached_property
    def entries(self) -> Entries:
        """The table entries of every switch."""
        return entries(self.problem, self.plan)

    def fitted(self, program: DataPlaneProgram) -> Prepared:
        """The same for switches of this program. Raises `PlanError` where the program cannot run the plan."""
        if self.program == program:
            return self
        fitted = replace(self, plan=program.fitted(self.plan), program=program)
        kept = ("prediction", "entries") if fitted.plan is self.plan else ("prediction",)  # bitmaps change no rate
        fitted.__dict__.update({name: self.__dict__[name] for name in kept if name in self.__dict__})
        return fitted

    def at(self, problem: Problem, factor: float) -> Prepared:
        """The same for a problem whose rates are `factor` times those of this one. Most often that is the same."""
        if problem is self.problem and factor == 1:
            return self
        return replace(self, problem=problem, plan=self.plan.with_rates_times(factor))


def prepare(problem: Problem, plan: Plan, mode: str = "reliable") -> Prepared:
    """A checked plan at the rates of a run in this mode: lowered by one factor where results need room.

    All planned rates that are shown or stored come from here. Raises `InputError` for an unknown mode, `PlanError` for
    what no target takes.
    """
    check_limits(problem.fabric, plan)
    run = as_run(problem, plan, mode)
    prepared = Prepared(problem, run.plan, mode, (run.said,) if run.said else ())
    if run.prediction is not None:
        prepared.__dict__["prediction"] = run.prediction
    return prepared
