"""InArt's second phase repeated: new routes for the same split when the remaining network changes (4.1).

A PS keeps its part of the model, because moving parts would break consistency. Routes and aggregation points can change
from one iteration to the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from inakit.planner.core.loads import sending_rate_bps
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.install.fault_entries import Flow
from inakit.planner.methods.inart.inart import background_of_flows, plan_routes, residual
from inakit.planner.methods.inart.inart_forest import plan_trees, rate_bps
from inakit.planner.prepared import with_headroom
from inakit.planner.registry import find_method
from inakit.planner.trees.summed_once import SplitTask
from inakit.planner.trees.unfolding import unfold
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import Fabric

SECOND_PHASES: Mapping[str, Callable[[Problem, list[SplitTask], Any, str], Plan]] = {
    "inart": plan_routes,
    "inart-equal": plan_routes,
    "inart-forest": plan_trees,
}
"""For each method, the function that plans routes for a given split."""


def replan(problem: Problem, plan: Plan, options: Options) -> Plan:
    """The better of two plans for `problem`'s fabric: new routes for the plan's split, or the plan's own trees.

    Raises `InputError` for a plan of other PSs, or of a method that does not plan in two phases.
    """
    if plan.method not in SECOND_PHASES:
        raise InputError(f"planner '{plan.method}' has no second phase: plan with one of {', '.join(SECOND_PHASES)}")
    own = find_method(plan.method).own(options)
    again = SECOND_PHASES[plan.method](problem, tasks_of_plan(problem, plan), own, plan.method)
    left_bps = rate_left_bps(problem.fabric, plan)
    return again if rate_bps(again) >= left_bps else with_rate(plan, left_bps)


def replan_beside(problem: Problem, plan: Plan, flows: Iterable[Flow], options: Options) -> Plan:
    """A new plan for the capacity that background traffic leaves, at rates that leave capacity for results.

    Raises `InputError` where the traffic would follow the new routes of a worker or a PS, and so take other links.
    """
    known = list(flows)
    background = background_of_flows(problem, plan, known)
    left = replace(problem, fabric=residual(problem.fabric, background))
    again = with_headroom(left, replan(left, plan, options)).plan
    if background_of_flows(problem, again, known) != background:
        raise InputError("background traffic to a worker or a PS follows their routes: send it to another host")
    return again


def tasks_of_plan(problem: Problem, plan: Plan) -> list[SplitTask]:
    """A task for every PS of the plan, with its share of the gradient; routes are not set.

    Raises `InputError` for a PS that is not in the problem.
    """
    shares: Counter[tuple[int, str]] = Counter()
    for planned in sorted(plan.trees, key=lambda planned: planned.job):
        shares[planned.job, planned.tree.root] += planned.share  # type: ignore[assignment]
    jobs = {job.number: job for job in problem.jobs}
    for number, server in shares:
        if number not in jobs or server not in jobs[number].servers:
            raise InputError(f"the plan's job {number} ends at '{server}', which is not one of its PSs")
    return [
        SplitTask(jobs[job], server, share, unfold(problem.fabric, server)) for (job, server), share in shares.items()
    ]


def with_rate(plan: Plan, rate_bps: float) -> Plan:
    """The plan where every worker sends at `rate_bps`, divided over its trees by their shares."""
    return replace(plan, trees=tuple(replace(planned, rate_bps=planned.share * rate_bps) for planned in plan.trees))


def rate_left_bps(fabric: Fabric, plan: Plan) -> float:
    """The sending rate at which the fabric carries the plan's trees; 0 if it lacks one of their links or switches."""
    trees = [planned.tree for planned in plan.trees]
    links = {link for tree in trees for branch in tree.branches for link in branch.links}
    sums = {aggregator.switch for tree in trees for aggregator in tree.aggregators}
    if not (links <= fabric.capacities_bps.keys() and sums <= fabric.ina_names):
        return 0.0
    return sending_rate_bps(fabric, ((planned.tree, planned.share) for planned in plan.trees))
