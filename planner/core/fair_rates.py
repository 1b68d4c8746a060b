"""Max-min fair rates, by progressive filling (Bertsekas and Gallager, *Data Networks*, section 6.5.2).

`max_min_rates` shares links among tasks, running jobs or, here, the jobs of a plan. In a closed loop results
return on a plan's trees while gradients still go up; `in_closed_loop` lowers the rates of each job by one factor, so
that both fit every link.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from inakit.planner.core.evaluate import link_loads, result_loads, together, tree_loads
from inakit.planner.core.plan import FEASIBLE, OPTIMAL, Plan, SolverOutcome
from inakit.planner.core.problem import Problem

ROUNDING = 1e-9
"""The relative tolerance of rates and loads: a plan can fill a link with gradients alone."""

Resource = TypeVar("Resource", bound=Hashable)
Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Usage:
    """The resources that one member uses per unit of its rate: `amounts` of the resources at `places` in an array."""

    places: NDArray[np.int64]
    amounts: Numbers

    @staticmethod
    def of(amounts: Mapping[Resource, float], places: Mapping[Resource, int]) -> Usage:
        """The usage of resources given by name; `places` maps a name to its place."""
        return Usage(np.array([places[each] for each in amounts], np.int64), np.array(list(amounts.values()), float))


def max_min_rates(usages: Sequence[Usage], capacities: Numbers, limits: Sequence[float] | None = None) -> Numbers:
    """The max-min fair rates, (members,): all rates grow together, each until one of its resources is full.

    `capacities` has the shape (resources,). With `limits`, one for each member, a member's rate also stops there.
    """
    most = np.full(len(usages), inf) if limits is None else np.array(limits, float)
    owner = np.repeat(np.arange(len(usages)), [len(used.places) for used in usages])
    column = np.concatenate([used.places for used in usages])
    amounts = np.concatenate([used.amounts for used in usages])
    resources, column = np.unique(column, return_inverse=True)
    left = capacities[resources]
    rates, growing = np.zeros(len(usages)), np.ones(len(usages), np.bool_)
    while growing.any():
        active = growing[owner]
        load = np.bincount(column, amounts * active, len(resources))
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(load > 0, left / load, inf)
        rate = min(room.min(initial=inf), most[growing].min())
        full = room <= rate * (1 + ROUNDING)
        ended = most <= rate * (1 + ROUNDING)
        ended[owner[active & full[column]]] = True
        ended &= growing
        rates[ended] = rate
        left = np.maximum(left - np.bincount(column, amounts * ended[owner], len(resources)) * rate, 0.0)
        growing &= ~ended
    return rates


def in_closed_loop(problem: Problem, plan: Plan) -> Plan:
    """Lower the plan's rates so that gradients and results fit every link: max-min fair over jobs; no rate rises.

    A bound that is proven for the plan's own rates also bounds those in a closed loop, so a proof becomes a gap.
    """
    factors = fair_factors(problem, plan)
    least = min(factors.values())
    if least >= 1 - ROUNDING:
        return plan
    trees = tuple(replace(planned, rate_bps=planned.rate_bps * factors[planned.job]) for planned in plan.trees)
    return replace(plan, trees=trees, outcome=lowered(plan.outcome, least))


def lowered(outcome: SolverOutcome, factor: float) -> SolverOutcome:
    """The outcome of a plan after every rate was lowered, by at most `factor`."""
    if outcome.status not in (OPTIMAL, FEASIBLE):
        return outcome
    return replace(outcome, status=FEASIBLE, gap=(1 + (outcome.gap or 0.0)) / factor - 1)


def fair_factors(problem: Problem, plan: Plan) -> dict[int, float]:
    """For each job, the factor of its rates, at most 1, that makes rates per weight max-min fair."""
    wanted = {job.number: 1 / job.weight * plan.job_rate_bps(job.number) for job in problem.jobs}
    capacities, trees = problem.fabric.capacities_bps, list(tree_loads(problem, plan))
    places = {link: place for place, link in enumerate(capacities)}
    usages = {}
    for job, rate in wanted.items():
        own = [load for load in trees if load.job == job]
        if rate > 0:
            loads = together(link_loads(own), result_loads(own))
            usages[job] = Usage.of({link: load / rate for link, load in loads.items()}, places)
    limits = [wanted[job] for job in usages]
    factors = dict.fromkeys(wanted, 1.0)
    if usages:
        rates = max_min_rates(list(usages.values()), np.array(list(capacities.values())), limits)
        factors |= {job: min(1.0, rate / wanted[job]) for job, rate in zip(usages, rates.tolist(), strict=True)}
    return factors
