"""The networks of lab 6: random networks for each item, their form for planners, and the optimal rates on them.

Points depend on the ratio to ARO's optimum, the best rate with one tree for each job, which is the form of the
students' plans. A solver proves it within a second on these networks, so 100 % is possible. The leaderboard's networks
are too large for such a proof; they use `forest`'s bound, the value of a linear program that no plan exceeds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations, pairwise
from random import Random
from typing import Any

from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.plan import OPTIMAL
from inakit.planner.core.problem import Job, Problem
from inakit.planner.methods.aro.reduced_network import network
from inakit.planner.methods.aro.task_graphs import tasks_of
from inakit.planner.methods.tree_packing import Ground, relax
from inakit.planner.registry import METHODS
from inakit.topo.errors import SolverError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.up_down import up_down_paths
from inakit.topo.fabric.variations import with_aggregators, with_ina, with_pipelines
from inakit.traffic.wire.packet_format import FRAGMENT

MBPS = 1e6
GRADIENT_BYTES = 1 << 20
LEAST_SLOTS = 2
"""The least number of slots of an aggregator: slots have two versions (lab 4)."""


def leaves_and_spines(random: Random, leaves: int = 4, spines: int = 2, hosts: int = 4) -> Fabric:
    """A leaf-spine whose links all have the same random rate."""
    return leaf_spine(leaves, spines, hosts, capacity_bps=random.randrange(10, 50) * MBPS)


def three_tiers(random: Random) -> Fabric:
    """A fat-tree of four pods."""
    return fat_tree(4, capacity_bps=random.randrange(10, 50) * MBPS)


def unequal(random: Random, fabric: Fabric) -> Fabric:
    """The fabric with a random rate for each link between switches: 40, 70 or 100 % of its rate."""
    hosts = fabric.host_names

    def rate(a: str, bps: float) -> float:
        return bps if a in hosts else bps * random.choice((0.4, 0.7, 1.0))

    drawn = [(each, rate(each.a, each.capacity_ab_bps)) for each in fabric.links]
    return replace(fabric, links=tuple(replace(each, capacity_ab_bps=bps, capacity_ba_bps=bps) for each, bps in drawn))


def some_sum(random: Random, fabric: Fabric, share: float = 0.5) -> Fabric:
    """The fabric with INA on a random part of its switches."""
    return with_ina(fabric, share=share, seed=random.getrandbits(30))


def without_uplinks(random: Random, fabric: Fabric, count: int) -> Fabric:
    """The fabric without `count` random links between switches; every pair of hosts keeps a path."""
    between = [each for each in fabric.links if each.a not in fabric.host_names]
    while True:
        lost = random.sample(between, count)
        left = replace(fabric, links=tuple(each for each in fabric.links if each not in lost))
        tors = sorted({left.tor_of(host.name) for host in left.hosts})
        if all(up_down_paths(left, a, b) for a, b in combinations(tors, 2)):
            return left


def job_on(random: Random, fabric: Fabric, workers: int, number: int = 1, free: list[str] | None = None) -> Job:
    """A job on random hosts, which it removes from `free`; no worker shares the server's ToR."""
    free = [host.name for host in fabric.hosts] if free is None else free
    server = random.choice(free)
    others = [host for host in free if fabric.tor_of(host) != fabric.tor_of(server)]
    chosen = set(random.sample(others, min(workers, len(others))))
    free[:] = [host for host in free if host not in chosen | {server}]
    return Job(number, tuple(sorted(chosen, key=lambda host: int(host[1:]))), (server,), GRADIENT_BYTES)


def one_job(random: Random, fabric: Fabric, workers: int) -> Problem:
    """A single job on a fabric."""
    return Problem(fabric, (job_on(random, fabric, workers),), FRAGMENT)


def several_jobs(random: Random, fabric: Fabric, jobs: int, workers: int) -> Problem:
    """Jobs on a fabric that share no host."""
    free = [host.name for host in fabric.hosts]
    made = [job_on(random, fabric, workers, number, free) for number in range(1, jobs + 1)]
    return Problem(fabric, tuple(made), FRAGMENT)


def beside_the_server(random: Random, fabric: Fabric, others: int) -> Problem:
    """A job with all workers under its server's ToR, and some others."""
    server = random.choice([host.name for host in fabric.hosts])
    near = [host.name for host in fabric.hosts if fabric.tor_of(host.name) == fabric.tor_of(server)]
    far = [host.name for host in fabric.hosts if host.name not in near]
    workers = [host for host in near if host != server] + random.sample(far, others)
    return Problem(fabric, (Job(1, tuple(workers), (server,), GRADIENT_BYTES),), FRAGMENT)


# -- the networks of each item


def for_paths(random: Random) -> list[Problem]:
    """Networks without sums: one worker; workers under the server's ToR; missing links, on two and three tiers."""
    sparse = without_uplinks(random, with_ina(leaves_and_spines(random, 5, 4), ()), 8)
    sparse_tree = without_uplinks(random, with_ina(three_tiers(random), ()), 8)
    return [
        one_job(random, with_ina(leaves_and_spines(random), ()), 1),
        beside_the_server(random, with_ina(leaves_and_spines(random), ()), 3),
        one_job(random, sparse, 10),
        one_job(random, sparse_tree, 8),
    ]


def for_rates(random: Random) -> list[Problem]:
    """Networks of unequal links: without sums, with sums, and with several jobs."""
    return [
        one_job(random, unequal(random, with_ina(leaves_and_spines(random), ())), 7),
        one_job(random, unequal(random, leaves_and_spines(random)), 9),
        several_jobs(random, leaves_and_spines(random, 3, 2, 5), 3, 3),
        several_jobs(random, unequal(random, three_tiers(random)), 2, 5),
        one_job(random, with_ina(leaves_and_spines(random), ()), 7),
    ]


def for_sums(random: Random) -> list[Problem]:
    """Networks in which every switch sums, in one pipeline; in the last one with workers under the server's ToR."""
    return [
        one_job(random, leaves_and_spines(random), 8),
        one_job(random, leaves_and_spines(random, 5, 3), 11),
        one_job(random, three_tiers(random), 10),
        beside_the_server(random, leaves_and_spines(random), 3),
    ]


def for_where(random: Random) -> list[Problem]:
    """Networks in which some switches sum."""
    tiers = leaves_and_spines(random, 4, 3)
    narrow = leaves_and_spines(random, 5, 2)
    leaves = [each.name for each in narrow.switches if each.tier == 1]
    spines = [each.name for each in tiers.switches if each.tier == 2]
    return [
        one_job(random, with_ina(narrow, leaves), 11),
        one_job(random, with_ina(tiers, spines), 9),
        one_job(random, some_sum(random, three_tiers(random)), 8),
    ]


def for_pipelines(random: Random) -> list[Problem]:
    """Networks whose switches have two or three pipelines."""
    return [
        one_job(random, with_pipelines(leaves_and_spines(random), 2), 9),
        one_job(random, with_pipelines(leaves_and_spines(random, 5, 3), 3), 11),
        one_job(random, with_pipelines(three_tiers(random), 2), 8),
    ]


def for_slots(random: Random) -> list[Problem]:
    """Networks with several jobs: with enough slots on all paths, and with one spine and exactly the slots needed."""
    few = with_aggregators(leaves_and_spines(random, 3, 2, 5), slots=3 * LEAST_SLOTS)
    two = with_pipelines(with_aggregators(leaves_and_spines(random, 4, 2, 6), slots=4 * LEAST_SLOTS), 2)
    wide = [several_jobs(random, few, 3, 3), several_jobs(random, two, 4, 4)]
    one = several_jobs(random, leaves_and_spines(random, 3, 1, 5), 3, 4)
    split = several_jobs(random, with_pipelines(leaves_and_spines(random, 4, 1, 8), 2), 4, 7)
    return [*wide, exactly_enough(one), exactly_enough(split)]


def exactly_enough(problem: Problem) -> Problem:
    """The problem with as few slots as its only routes need, whichever of its switches sum."""
    fabric, jobs_at = problem.fabric, Counter[tuple[str, int]]()
    for job in problem.jobs:
        routes = [up_down_paths(fabric, worker, job.servers[0])[0] for worker in job.workers]
        flows = Counter(
            (node, fabric.ingress_pipeline(node, before)) for way in routes for before, node in pairwise(way[:-1])
        )
        jobs_at.update(place for place, count in flows.items() if count > 1)
    return replace(problem, fabric=with_aggregators(fabric, slots=LEAST_SLOTS * max(jobs_at.values())))


def for_nearness(random: Random) -> list[Problem]:
    """Networks with all difficulties: unequal links, pipelines, switches that sum and others."""
    two = unequal(random, with_pipelines(leaves_and_spines(random, 5, 3), 2))
    return [
        one_job(random, two, 12),
        one_job(random, some_sum(random, two), 12),
        one_job(random, unequal(random, with_pipelines(leaves_and_spines(random, 4, 4), 4)), 10),
        one_job(random, unequal(random, with_pipelines(some_sum(random, three_tiers(random), 0.7), 2)), 9),
        several_jobs(random, unequal(random, leaves_and_spines(random, 4, 3)), 2, 5),
        several_jobs(random, unequal(random, with_pipelines(leaves_and_spines(random, 4, 2, 5), 2)), 2, 6),
    ]


def for_the_board(random: Random) -> list[Problem]:
    """Larger networks, for the leaderboard."""
    wide = leaf_spine(8, 6, 6, capacity_bps=40 * MBPS)
    tall = fat_tree(6, capacity_bps=40 * MBPS)
    return [
        one_job(random, unequal(random, with_pipelines(wide, 2)), 30),
        one_job(random, unequal(random, some_sum(random, with_pipelines(wide, 4))), 30),
        several_jobs(random, unequal(random, with_pipelines(wide, 2)), 3, 12),
        one_job(random, unequal(random, some_sum(random, with_pipelines(tall, 2), 0.6)), 30),
        several_jobs(random, unequal(random, tall), 4, 10),
    ]


# -- the input of a planner


def fabric_given(fabric: Fabric) -> dict[str, Any]:
    """A fabric in the form for planners: hosts, switches, and both directions of each link."""
    switches = {
        each.name: {
            "tier": each.tier, "ina": each.ina, "pipelines": len(each.pipelines), "slots": each.aggregator_slots
        }
        for each in fabric.switches
    }  # fmt: skip
    links = [
        {"from": a, "to": b, "rate_bps": rate, "pipeline": fabric.ingress_pipeline(b, a) if b in switches else None}
        for (a, b), rate in fabric.capacities_bps.items()
    ]
    return {"hosts": [host.name for host in fabric.hosts], "switches": switches, "links": links}


def jobs_given(problem: Problem) -> list[dict[str, Any]]:
    """The jobs in the form for planners."""
    return [{"job": job.number, "workers": list(job.workers), "server": job.servers[0]} for job in problem.jobs]


# -- the best rates


def optimum_bps(problem: Problem) -> float:
    """The rate of the worst-served job in ARO's plan. Raises `SolverError` if it is not proven."""
    plan = METHODS["aro"].plan(problem)
    if plan.outcome.status != OPTIMAL:
        raise SolverError(f"the optimum on {problem.fabric.name} is not proven: the solver says {plan.outcome.status}")
    return evaluate(problem, plan).sending_rate_bps


def bound_bps(problem: Problem) -> float:
    """An upper bound on the rate of the worst-served job, with any number of trees: the optimum of a linear program."""
    ground = Ground(problem.fabric, tasks_of(problem))
    worth = relax(ground, network(ground.fabric, ground.tasks))
    return worth / (1 + ground.worth.mu * len(ground.worth.jobs))
