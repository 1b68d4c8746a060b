"""The best order of ranks that a search finds: that of racks first, then orders that differ from the best one so far.

A trial exchanges two ranks, or turns a part of the order round. It is kept if the plan that the schemes make with it
takes less time. The seed decides what is tried, and the number of trials what it costs.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods.collectives.method import Ways, plan_scheme, quickest
from inakit.planner.methods.collectives.rank_order import Order, by_rack
from inakit.planner.methods.collectives.routes import Paths
from inakit.planner.methods.collectives.scheme import Make
from inakit.topo.fabric.fabric import Fabric

WORK = 800
"""A search makes so many trials divided by the number of ranks: each costs about as much as there are ranks."""
LEAST, MOST = 10, 50
"""The fewest and the most trials."""

Orders = dict[int, list[str]]
"""The ranks' hosts in their order, by job."""


def plan_best_order(makes: Sequence[Make], name: str, ways: Ways, problem: Problem, options: Options) -> Plan:
    """The plan with the best order of ranks that is found."""
    draw = random.Random(options.seed)
    orders = {job.number: by_rack(problem.fabric, job, options.seed) for job in problem.jobs}

    paths = Paths(problem.fabric)

    def planned(found: Orders) -> tuple[float, Plan]:
        own = replace(ways, order=given(found))
        return quickest(problem, [plan_scheme(make, name, own, problem, paths, options.seed) for make in makes])

    least_s, best = planned(orders)
    for _ in range(min(MOST, max(LEAST, WORK // sum(map(len, orders.values()))))):
        tried = changed(orders, draw)
        time_s, plan = planned(tried)
        if time_s < least_s:
            orders, least_s, best = tried, time_s, plan
    return best


def given(orders: Orders) -> Order:
    """The order that takes these."""

    def of_job(fabric: Fabric, job: Job, seed: int) -> list[str]:
        _ = fabric, seed
        return orders[job.number]

    return of_job


def changed(orders: Orders, draw: random.Random) -> Orders:
    """The orders with two ranks of a job exchanged, or with the ranks between two places in the opposite order."""
    job = draw.choice(sorted(orders))
    ranks = list(orders[job])
    low, high = sorted(draw.sample(range(len(ranks)), 2))
    if draw.random() < 0.5:
        ranks[low], ranks[high] = ranks[high], ranks[low]
    else:
        ranks[low : high + 1] = ranks[low : high + 1][::-1]
    return orders | {job: ranks}
