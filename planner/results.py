"""Room for results: rates at which gradients, and the results that come back meanwhile, fit every link."""

from __future__ import annotations

from dataclasses import replace

from planner.evaluate import evaluate
from planner.plan import Plan
from planner.problem import Problem


def with_room_for_results(problem: Problem, plan: Plan) -> Plan:
    """The plan with every rate lowered by one factor, as far as its results need it; most often the plan itself.

    The papers plan the way to the PS only. A job with one PS needs no more: its results flow where no gradient
    does. With several PSs the results of one share links with gradients of another (ARO, footnote 3).
    """
    capacities = problem.fabric.capacities_bps
    loads = evaluate(problem, plan).loads_with_results_bps
    factor = min((capacities[link] / load for link, load in loads.items() if load > 0), default=1.0)
    if factor >= 1:
        return plan
    return replace(plan, shards=tuple(replace(shard, rate_bps=shard.rate_bps * factor) for shard in plan.shards))
