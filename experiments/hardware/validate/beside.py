"""New routes for the jobs that a failure touches, at the rates that they had, beside the jobs that keep their plans."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from math import inf

from inakit.experiments.hardware.validate.failures import for_jobs, linked
from inakit.planner.core.check import check
from inakit.planner.core.evaluate import Prediction, evaluate
from inakit.planner.core.limits.slots import assign_slots
from inakit.planner.core.limits.switch_limits import resource_bps
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Job, Problem
from inakit.planner.trees.headroom import as_run
from inakit.topo.errors import InakitError
from inakit.topo.fabric.fabric import Fabric, Link, Switch

ROUNDING = 1e-9
"""A rate so little below another counts as equal to it."""

Anew = Callable[[Problem, Plan], Plan]
"""Makes a plan of a problem anew, given the plan that its jobs had."""


def plan_beside(problem: Problem, plan: Plan, touched: Collection[int], anew: Anew, mode: str) -> Plan | None:
    """The plan with new routes for the touched jobs; None where not all jobs keep their rates that way.

    The jobs are planned one after another, each in what the jobs before it leave. The others keep trees and rates;
    segments of slots may move. `plan` is for the problem's jobs, and may lead touched ones over what is gone.
    """
    made = for_jobs(plan, {job.number for job in problem.jobs} - set(touched))
    try:
        for job in (job for job in problem.jobs if job.number in touched):
            made = joined(made, new_routes(problem, job, for_jobs(plan, {job.number}), made, anew))
        made = with_slots(problem.fabric, made)
        check(problem, made)
    except InakitError:
        return None
    slower = any(rate_bps(made, job) < rate_bps(plan, job) * (1 - ROUNDING) for job in problem.jobs)
    return None if slower or as_run(problem, made, mode).factor < 1 else made


def new_routes(problem: Problem, job: Job, had: Plan, others: Plan, anew: Anew) -> Plan:
    """A job's plan in what the plan of others leaves, no faster than the plan that it had. Raises `InakitError`."""
    numbers = {shard.job for shard in others.shards} | {each.job for each in others.collectives}
    beside = replace(problem, jobs=tuple(each for each in problem.jobs if each.number in numbers)) if numbers else None
    used = evaluate(beside, others) if beside else None
    fabric = what_is_left(problem.fabric, used, least_flow_bps(had)) if used else problem.fabric
    alone = replace(
        problem, fabric=fabric if had.collectives else no_faster(fabric, job, rate_bps(had, job)), jobs=(job,)
    )
    made = anew(alone, had)
    return made.with_rates_times(min(1.0, rate_bps(had, job) / rate_bps(made, job)))


def no_faster(fabric: Fabric, job: Job, most_bps: float) -> Fabric:
    """The fabric in which the job's workers send no faster than that: a planner then looks for no higher rate."""
    workers = set(job.workers) - set(job.servers)
    return replace(fabric, links=tuple(slower(link, workers, most_bps) for link in fabric.links))


def slower(link: Link, workers: Collection[str], most_bps: float) -> Link:
    """The link; if it is a worker's, with no more than a rate from the worker."""
    ab_bps, ba_bps = link.capacity_ab_bps, link.capacity_ba_bps
    if link.a in workers:
        return replace(link, capacity_ab_bps=min(ab_bps, most_bps))
    if link.b in workers:
        return replace(link, capacity_ba_bps=min(ba_bps, most_bps))
    return link


def joined(plan: Plan, other: Plan) -> Plan:
    """Two plans of different jobs as one. Its method and outcome are those of the second."""
    return replace(other, shards=plan.shards + other.shards, collectives=plan.collectives + other.collectives)


def with_slots(fabric: Fabric, plan: Plan) -> Plan:
    """The plan with segments of slots that do not overlap. Raises `InputError` where slots are too few."""
    trees = iter(assign_slots(fabric, [tree for shard in plan.shards for tree in shard.trees]))
    shards = tuple(replace(shard, trees=tuple(next(trees) for _ in shard.trees)) for shard in plan.shards)
    return replace(plan, shards=shards)


def rate_bps(plan: Plan, job: Job) -> float:
    """The sending rate of a job's workers. In a collective, the sum over its connections, which grows with them."""
    shards = sum(shard.rate_bps for shard in plan.shards if shard.job == job.number)
    connections = (c.rate_bps for each in plan.collectives if each.job == job.number for c in each.connections)
    return shards + sum(connections)


def least_flow_bps(plan: Plan) -> float:
    """The rate of the slowest flow of a plan."""
    flows = [shard.rate_bps / len(shard.trees) for shard in plan.shards]
    return min([*flows, *(c.rate_bps for each in plan.collectives for c in each.connections)])


def what_is_left(fabric: Fabric, used: Prediction, least_bps: float) -> Fabric:
    """What the jobs of a prediction leave of a fabric: capacities, aggregation rates and recirculation.

    A link that carries no further flow of `least_bps` in some direction is left out. A switch that sums none more sums
    nothing.
    """
    loads, enough = used.loads_with_results_bps, least_bps * (1 - ROUNDING)
    links = (link_left(link, loads) for link in fabric.links)
    room = tuple(link for link in links if min(link.capacity_ab_bps, link.capacity_ba_bps) >= enough)
    return linked(fabric, room, tuple(switch_left(fabric, each, used, enough) for each in fabric.switches))


def link_left(link: Link, loads: Mapping[tuple[str, str], float]) -> Link:
    """The link with the capacity that loads leave in each direction."""
    there, back = loads.get((link.a, link.b), 0.0), loads.get((link.b, link.a), 0.0)
    if not there and not back:
        return link
    left_ab, left_ba = max(0.0, link.capacity_ab_bps - there), max(0.0, link.capacity_ba_bps - back)
    return replace(link, capacity_ab_bps=left_ab, capacity_ba_bps=left_ba)


def switch_left(fabric: Fabric, switch: Switch, used: Prediction, enough_bps: float) -> Switch:
    """The switch with what its aggregators leave; each of its pipelines has what the fullest one has left."""
    loads = [load for (name, _), load in used.summed_bps.items() if name == switch.name]
    if not loads or not switch.ina:
        return switch
    rate_left = resource_bps(fabric, switch.name) - sum(loads)
    pipeline_left = switch.pipeline_summing_bps - max(loads)
    if min(rate_left, pipeline_left) < enough_bps:
        return replace(switch, ina=False)
    left = switch if rate_left == inf else replace(switch, aggregation_rate_bps=rate_left)
    if left.chip is None or pipeline_left == inf:
        return left
    rest = replace(left.chip, name=f"{left.chip.name} of {switch.name}")
    return replace(left, chip=replace(rest, recirculation_bps=pipeline_left * (rest.passes - 1)))
