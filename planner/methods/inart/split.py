"""L-InArt: how much of the gradient each PS gets, Eq. (2), and once more for routes that are known.

Eq. (2) keeps of Eq. (1) the switches and the PSs and relaxes y and z. The paper solves its KKT system, whose equations
are products f x y. Written in rates (`relaxation`) the same program is linear: an optimum of the linear program, with
its dual prices as multipliers, is a KKT point of Eq. (2), and being convex it has no other optima. With f fixed, Eq.
(2) is linear in rates too, and a bisection over f could ask such programs whether they have a solution; it would end at
the f that the one program, with f as a variable, finds at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import pulp

from inakit.planner.core.limits.switch_limits import Resource, resource_bps
from inakit.planner.core.plan import AggregationTree
from inakit.planner.core.rates.loads import aggregated_flows, flow_counts, summed_flows
from inakit.planner.core.solving import SolverOptions
from inakit.planner.methods.inart.relaxation import TaskFlows, constrain_task, groups_of, limit_summing, task_flows
from inakit.planner.solvers.solve import solve
from inakit.planner.trees.summed_once import SplitTask
from inakit.topo.fabric.fabric import Fabric

SLACK = 0.02
"""The relative rate that the most even split may cost: whole flows lose more where the split is uneven."""
ROUNDING = 1e-6
"""The same for routes that are known, where only rounding may be lost."""
LEAST_SHARE = 1e-4
"""A task with a smaller share is left out."""

Rates = Sequence[Any]
"""A variable for each task: the rate at which every worker sends to its PS."""


def split_model(fabric: Fabric, tasks: Sequence[SplitTask], options: SolverOptions) -> tuple[list[SplitTask], float]:
    """The tasks with the shares of L-InArt, without those that get nothing; and the bound of f in bit/s.

    Of all optimal splits it is the most even, whose largest share is the least: small flows fill capacities best.
    """
    unit = max(fabric.capacities_bps.values())
    model = pulp.LpProblem("l_inart", pulp.LpMaximize)
    flows = [task_flows(model, fabric, number, task, routed=False) for number, task in enumerate(tasks)]
    for number, (task, flow) in enumerate(zip(tasks, flows, strict=True)):
        constrain_task(model, fabric, task, flow, number)
        access = fabric.tor_of(task.server), task.server
        model += arriving(fabric, task, flow) <= fabric.capacities_bps[access] / unit, f"server_capacity_{number}"
    limit_summing(model, fabric, tasks, flows, unit)
    shares, f = best_rates(model, fabric, tasks, [flow.rate for flow in flows], unit, options, SLACK)
    return with_shares(tasks, shares), f * unit


def arriving(fabric: Fabric, task: SplitTask, flow: TaskFlows) -> Any:
    """The rate at which the PS receives: sums, and flows that nobody sums."""
    groups = groups_of(fabric, task)
    return pulp.lpSum([*flow.z.values(), *(groups[group] * parts[None] for group, parts in flow.y.items())])


def split_routes(
    fabric: Fabric, tasks: Sequence[SplitTask], trees: Sequence[AggregationTree], options: SolverOptions
) -> list[float]:
    """The best shares for trees that are given, one for each task."""
    unit = max(fabric.capacities_bps.values())
    model = pulp.LpProblem("l_inart_routed", pulp.LpMaximize)
    rates = [model.add_variable(f"rate_{number}", 0) for number, _ in enumerate(tasks)]
    loads: dict[Resource, list[Any]] = defaultdict(list)
    for rate, tree in zip(rates, trees, strict=True):
        for link, count in flow_counts([tree]).items():
            loads[link].append(count * rate)
        for switch, count in aggregated_flows([tree]).items():
            loads[switch].append(count * rate)
        for inp, count in summed_flows([tree]).items():
            loads[inp].append(count * rate)
    for number, (resource, load) in enumerate(loads.items()):
        limit = resource_bps(fabric, resource)
        if limit < inf:
            model += pulp.lpSum(load) <= limit / unit, f"capacity_{number}"
    return best_rates(model, fabric, tasks, rates, unit, options, ROUNDING)[0]


def best_rates(
    model: pulp.LpProblem,
    fabric: Fabric,
    tasks: Sequence[SplitTask],
    rates: Rates,
    unit: float,
    options: SolverOptions,
    slack: float,
) -> tuple[list[float], float]:
    """The most even shares whose f is the highest but for `slack`; and the highest f, in units of `unit`."""
    f = model.add_variable("f", 0)
    model += f, "sending_rate"
    for job, found in by_job(tasks, rates).items():
        model += pulp.lpSum(found) == f, f"shares_{job}"
    for task in tasks:
        for worker in task.job.workers:
            f.upBound = min(f.upBound or 1.0, fabric.capacities_bps[worker, fabric.tor_of(worker)] / unit)
    solve(model, options)
    best = f.varValue
    f.lowBound = f.upBound = best * (1 - slack)
    largest = model.add_variable("largest_rate", 0)
    for number, rate in enumerate(rates):
        model += rate <= largest, f"largest_rate_{number}"
    model.setObjective(-1 * largest)
    solve(model, options)
    return [rate.varValue / f.varValue for rate in rates], best


def by_job(tasks: Sequence[SplitTask], rates: Rates) -> Mapping[int, list[Any]]:
    """The rates of the tasks, by the number of their job."""
    found: dict[int, list[Any]] = defaultdict(list)
    for task, rate in zip(tasks, rates, strict=True):
        found[task.job.number].append(rate)
    return found


def with_shares(tasks: Sequence[SplitTask], shares: Sequence[float]) -> list[SplitTask]:
    """The tasks with new shares, rounded so that nearly equal ones become equal.

    Tasks that get next to nothing are left out.
    """
    kept = [(task, round(share, 6)) for task, share in zip(tasks, shares, strict=True) if share > LEAST_SHARE]
    totals = {job: sum(found) for job, found in by_job([task for task, _ in kept], [x for _, x in kept]).items()}
    return [replace(task, share=share / totals[task.job.number]) for task, share in kept]
