"""InArt's second phase again: when an event changes what is left of the network, new routes for the same split (4.1).

A PS keeps the part of the model that it has, for moving it costs consistency; routes and aggregation points may change
from one iteration to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from planner.loads import sending_rate_bps
from planner.methods.inart import InartOptions, plan_routes
from planner.once import Task
from planner.plan import AggregationTree, Plan, Shard
from planner.problem import Problem
from planner.residual import Background, residual
from planner.unfold import unfold
from topo.errors import InputError
from topo.fabric import Fabric

TOLERANCE = 1e-9

Event = Callable[[Fabric, Plan], bool]
"""Whether a plan has to be made again, given what is left of the fabric."""


def follow(
    problem: Problem, plan: Plan, changes: Iterable[Background], options: InartOptions, event: Event | None = None
) -> Iterator[Plan]:
    """The plan after each change of the background traffic: the one before, unless the change is an event.

    An event is, if nothing else is given, that the network is `congested`.
    """
    current = plan
    for background in changes:
        left = replace(problem, fabric=residual(problem.fabric, background))
        if (event or congested)(left.fabric, current):
            current = replan(left, current, options)
        yield current


def congested(fabric: Fabric, plan: Plan) -> bool:
    """Whether the plan's rates are more than the fabric, or what is left of it, can carry and sum."""
    return rate_left_bps(fabric, plan) < rate_bps(plan) * (1 - TOLERANCE)


def replan(problem: Problem, plan: Plan, options: InartOptions) -> Plan:
    """R-InArt with the plan's split on `problem`'s fabric; the plan's own trees, if no others are better there.

    A PS has as many trees as it had, whatever `options.trees` is. Raises `InputError` for a plan of other PSs.
    """
    shards = sorted(plan.shards, key=lambda shard: (shard.job, shard.number))
    tasks = [task_of(problem, shard) for shard in shards]
    known = [tree for shard in shards for tree in shard.trees] if can_sum(problem.fabric, plan) else []
    return plan_routes(problem, tasks, options, plan.method, known)


def task_of(problem: Problem, shard: Shard) -> Task:
    """A shard's PS and its share, from which anything else may be chosen again."""
    server = shard.trees[0].root
    job = next((job for job in problem.jobs if job.number == shard.job and server in job.servers), None)
    if job is None:
        raise InputError(f"shard {shard.number} of job {shard.job} ends at '{server}', which is not one of its PSs")
    return Task(job, server, shard.share, len(shard.trees), unfold(problem.fabric, server))


def rate_left_bps(fabric: Fabric, plan: Plan) -> float:
    """The sending rate at which the fabric carries the plan's trees; 0 where it cannot sum as they do."""
    return sending_rate_bps(fabric, shares_of(plan)) if can_sum(fabric, plan) else 0.0


def can_sum(fabric: Fabric, plan: Plan) -> bool:
    """Whether all switches where the plan sums are still INA switches."""
    return all(fabric.switch_by_name[inp.switch].ina for tree, _ in shares_of(plan) for inp in tree.aggregators)


def shares_of(plan: Plan) -> Iterator[tuple[AggregationTree, float]]:
    """Every tree, and its part of the gradient."""
    for shard in plan.shards:
        yield from ((tree, shard.share / len(shard.trees)) for tree in shard.trees)


def rate_bps(plan: Plan) -> float:
    """The sending rate of a worker. Where there are several jobs they have the same."""
    job = plan.shards[0].job
    return sum(shard.rate_bps for shard in plan.shards if shard.job == job)
