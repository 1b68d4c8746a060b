"""Random small problems for ARO's models, and their best plans by enumeration.

Fabrics are leaf-spines and fat-trees with uneven pipelines, capacities that differ by link and direction, and INA on
any switches. The enumeration shares nothing with the models but the paths.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise, product

import pulp
from planner_cases import FRAGMENT, GRADIENT_BYTES

from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Job, Problem
from inakit.topo.fabric.fabric import Fabric, Path, Switch
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.up_down import up_down_paths

UNIT = 20e6
LEAF_SPINES = (leaf_spine(2, 2, 4), leaf_spine(3, 2, 2), leaf_spine(3, 3, 3), leaf_spine(4, 3, 2))
CLOS = (*LEAF_SPINES, fat_tree(4))

CAPACITIES: list[Callable[[random.Random], float]] = [
    lambda _: 1.0,
    lambda draw: draw.choice([0.4, 1.0, 2.0]),
    lambda draw: draw.uniform(0.5, 1.5),
]
"""Draws of capacities, in units of `UNIT`."""

Resource = tuple[str, str]
"""A directed link; or a switch, with "" as its other end, whose aggregators have a limited rate."""
Loads = frozenset[tuple[Resource, int]]
"""By resource, its flows."""


def random_fabric(draw: random.Random, bases: Sequence[Fabric] = CLOS, *, limited: bool = False) -> Fabric:
    """One of `bases` with random variations. With `limited`, the switches' aggregators have a rate, too."""
    base = draw.choice(bases)
    ina, aggregation_rate_bps = draw.choice([0.0, 0.3, 0.6, 1.0]), draw.choice([0.7, 1.5]) * UNIT if limited else None
    switches = tuple(
        replace(uneven(draw, switch), ina=draw.random() < ina, aggregation_rate_bps=aggregation_rate_bps)
        for switch in base.switches
    )
    capacity = draw.choice(CAPACITIES)
    links = tuple(
        replace(link, capacity_ab_bps=UNIT * capacity(draw), capacity_ba_bps=UNIT * capacity(draw))
        for link in base.links
    )
    return replace(base, switches=switches, links=links)


def uneven(draw: random.Random, switch: Switch) -> Switch:
    """The switch with each of its ports in any of up to three pipelines."""
    groups: list[list[int]] = [[] for _ in range(draw.randint(1, 3))]
    for port in switch.ports:
        draw.choice(groups).append(port)
    return replace(switch, pipelines=tuple(tuple(group) for group in groups))


def random_problem(
    seed: int,
    jobs: int = 1,
    servers: int = 1,
    workers: int = 5,
    bases: Sequence[Fabric] = CLOS,
    *,
    limited: bool = False,
) -> Problem:
    """Jobs with up to `workers` workers and `servers` PSs each, which may share hosts, with random weights."""
    draw = random.Random(seed)
    fabric = random_fabric(draw, bases, limited=limited)
    hosts = [host.name for host in fabric.hosts]
    chosen = []
    for number in range(1, jobs + 1):
        taken = draw.sample(hosts, min(len(hosts), servers + draw.randint(2, workers)))
        weight = draw.choice([1.0, 1.0, 2.0])
        chosen.append(Job(number, tuple(taken[servers:]), tuple(taken[:servers]), GRADIENT_BYTES, weight))
    return Problem(fabric, tuple(chosen), FRAGMENT)


def routings(fabric: Fabric, job: Job, server: str, *, results: bool = False) -> list[Loads]:
    """The loads of all routings of a task, without those that another routing undercuts everywhere.

    With `results` they count too, by every multicast tree against links of the gradients.
    """
    choices = [up_down_paths(fabric, worker, server) for worker in job.workers]
    found = set()
    for paths in product(*choices):
        loads = loads_of(fabric, paths)
        if loads is not None:
            found |= {loads} if not results else {loads | copies for copies in multicasts(paths)}
    return [loads for loads in found if not any(other != loads and undercuts(other, loads) for other in found)]


def multicasts(paths: Sequence[Path]) -> set[Loads]:
    """The copies of results on each link, for every choice of one link by which each node gets them."""
    onward: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        for node, following in pairwise(path):
            onward[node].add(following)
    found = set()
    for above in product(*(sorted(following) for following in onward.values())):
        parents = dict(zip(onward, above, strict=True))
        copies = set()
        for path in paths:
            node = path[0]
            while node != path[-1]:
                copies.add(((parents[node], node), 1))
                node = parents[node]
        found.add(frozenset(copies))
    return found


def undercuts(one: Loads, other: Loads) -> bool:
    more = dict(other)
    return all(count <= more.get(resource, 0) for resource, count in one)


def loads_of(fabric: Fabric, paths: Sequence[Path]) -> Loads | None:
    """The loads of given paths; None where flows of one INP want to go different ways."""
    flows: dict[Resource, set[object]] = defaultdict(set)
    onward: dict[object, str] = {}
    for path in paths:
        flow: object = path[0]
        for link, following in zip(pairwise(path), (*path[2:], ""), strict=False):
            flows[link].add(flow)
            switch = fabric.switch_by_name.get(link[1])
            if switch is not None and switch.ina:
                flow = (switch.name, fabric.ingress_pipeline(switch.name, link[0]))
                if onward.setdefault(flow, following) != following:
                    return None
    counts = Counter({link: len(found) for link, found in flows.items()})
    return frozenset((counts + summed_flows(fabric, counts)).items())


def summed_flows(fabric: Fabric, counts: Counter[Resource]) -> Counter[Resource]:
    """The flows that switches sum: those that enter an INP together with others."""
    entering: Counter[tuple[str, int]] = Counter()
    for (node, peer), count in counts.items():
        if peer in fabric.switch_by_name and fabric.switch_by_name[peer].ina:
            entering[peer, fabric.ingress_pipeline(peer, node)] += count
    summed: Counter[Resource] = Counter()
    for (switch, _), count in entering.items():
        if count > 1 and fabric.switch_by_name[switch].aggregation_rate_bps is not None:
            summed[switch, ""] += count
    return summed


def capacity_of(fabric: Fabric, resource: Resource) -> float:
    rate = fabric.capacities_bps[resource] if resource[1] else fabric.switch_by_name[resource[0]].aggregation_rate_bps
    assert rate is not None
    return rate


def worth(problem: Problem, rates_bps: Sequence[float]) -> float:
    """The worth of one rate for each task: Eq. (3), or with one job Eq. (2)."""
    left = iter(rates_bps)
    return worth_of_jobs(problem, [sum(next(left) for _ in job.servers) for job in problem.jobs])


def worth_of_jobs(problem: Problem, sums: Sequence[float]) -> float:
    weighted = [rate / job.weight for job, rate in zip(problem.jobs, sums, strict=True)]
    return min(weighted) + 0.001 * sum(weighted) if len(sums) > 1 else sums[0]


def worth_of_plan(problem: Problem, plan: Plan) -> float:
    """The worth of a plan's rates, Eq. (3) or (2)."""
    rates: dict[tuple[int, str], float] = defaultdict(float)
    for planned in plan.trees:
        rates[planned.job, planned.tree.root] += planned.rate_bps
    return worth(problem, [rates[job.number, server] for job in problem.jobs for server in job.servers])


def best_value_bps(
    problem: Problem, *, two_way: bool = False, results: bool = False, step_bps: float | None = None
) -> float:
    """The optimum of Eq. (3), or with one job of Eq. (2), over all combinations of routings."""
    fabric = problem.fabric
    options = [routings(fabric, job, server, results=results) for job in problem.jobs for server in job.servers]

    def hope(combination: Sequence[Loads]) -> float:
        """The worth that tasks would have if they had to share nothing but workers' own links."""
        alone = iter(min(capacity_of(fabric, x) / n for x, n in loads) for loads in combination)
        sums = [sum(next(alone) for _ in job.servers) for job in problem.jobs]
        links = [
            min(fabric.capacities_bps[worker, fabric.tor_of(worker)] for worker in job.workers) for job in problem.jobs
        ]
        return worth_of_jobs(problem, [min(pair) for pair in zip(sums, links, strict=True)])

    best = 0.0
    for combination in sorted(product(*options), key=hope, reverse=True):
        if hope(combination) <= best * (1 + 1e-9):
            break
        best = max(best, value_bps(problem, combination, two_way=two_way, step_bps=step_bps))
    return best


def value_bps(
    problem: Problem, combination: Sequence[Loads], *, two_way: bool = False, step_bps: float | None = None
) -> float:
    """The best Eq. (3) of given routings, task by task; with `step_bps`, of rates that are its multiples."""
    model = pulp.LpProblem("rates", pulp.LpMaximize)
    unit = step_bps or UNIT
    kind = pulp.LpContinuous if step_bps is None else pulp.LpInteger
    r = [model.add_variable(f"r{i}", 0, cat=kind) for i in range(len(combination))]
    owners = [job.number for job in problem.jobs for _ in job.servers]
    rates = [
        job.weight ** -(len(problem.jobs) > 1)
        * pulp.lpSum(x for x, number in zip(r, owners, strict=True) if number == job.number)
        for job in problem.jobs
    ]
    least = model.add_variable("least")
    model += least + (0.001 * pulp.lpSum(rates) if len(rates) > 1 else 0)
    for rate in rates:
        model += least <= rate
    used: dict[Resource, list[object]] = defaultdict(list)
    for i, loads in enumerate(combination):
        for resource, count in loads:
            used[resource].append(count * r[i])
            if two_way and resource[1]:
                used[resource[1], resource[0]].append(count * r[i])
    for resource, terms in used.items():
        model += pulp.lpSum(terms) <= capacity_of(problem.fabric, resource) / unit
    model.solve(pulp.HiGHS(msg=False, gapRel=0.0, gapAbs=0.0))
    assert model.status == pulp.LpStatusOptimal
    return float(pulp.value(model.objective)) * unit
