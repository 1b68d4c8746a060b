"""INARouting: its published instances, its integer program against enumeration, and fair rates."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise, product
from math import inf

import pytest
from planner_cases import FRAGMENT, first_is_server, job
from tiers import long_unless

from inakit.experiments.papers.inarouting import PUBLISHED_GBPS, instance
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.loads import aggregated_flows, flow_counts, summed_flows
from inakit.planner.core.plan import FEASIBLE, OPTIMAL, AggregationTree, SolverOptions
from inakit.planner.core.problem import Problem
from inakit.planner.core.slots import Resource, is_link, resource_bps
from inakit.planner.methods.inarouting import (
    NextHops,
    SharedFabric,
    equal_shares,
    heuristic_routes,
    judged,
    optimal_routes,
    relax_and_round,
    shared_fabric,
    total_bound_bps,
    total_rates,
    usage,
    water_filled,
    worker_paths,
)
from inakit.planner.registry import METHODS
from inakit.planner.trees.from_paths import tree_from_paths
from inakit.topo.fabric.fabric import Chip
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_aggregators, with_capacities, with_chip, with_ina, with_pipelines


@cache
def published(name: str) -> SharedFabric:
    return shared_fabric(instance(name))


def small(seed: int, ina: float = 1.0) -> SharedFabric:
    """Two jobs on a leaf-spine whose links have random capacities."""
    fabric = with_aggregators(with_capacities(leaf_spine(3, 2, 3), 10e6, 30e6, seed), rate_bps=25e6)
    hosts = random.Random(seed).sample([host.name for host in fabric.hosts], 8)
    jobs = (job(hosts[1:4], hosts[0]), job(hosts[5:8], hosts[4], number=2))
    return shared_fabric(Problem(with_ina(fabric, share=ina, seed=seed), jobs, FRAGMENT))


def all_routes(network: SharedFabric) -> Iterator[list[NextHops]]:
    """Every choice of next hops of every task."""
    for ways in product(*(all_next_hops(network, place) for place in range(len(network.tasks)))):
        yield list(ways)


def all_next_hops(network: SharedFabric, place: int) -> list[NextHops]:
    task = network.tasks[place]
    nodes = list(dict.fromkeys(tail for tail, _ in task.unfolded.links(network.entering(task))))
    choices = product(*(task.unfolded.next_hops[node] for node in nodes))
    return [dict(zip(nodes, choice, strict=True)) for choice in choices]


def gbps(network: SharedFabric, hops: list[NextHops]) -> tuple[float, float]:
    fair, shared = total_rates(network, hops)
    return fair / 1e9, shared / 1e9


@pytest.mark.parametrize("name", ["leaf-spine", "fat-tree"])
def test_the_heuristic_is_no_worse_than_the_published_one(name: str) -> None:
    network = published(name)
    found = heuristic_routes(network, SolverOptions())
    assert gbps(network, found)[1] >= PUBLISHED_GBPS[name]["INARouting-Relax"] - 0.01


def test_the_heuristic_reaches_the_optima_that_the_integer_program_proves() -> None:
    """HiGHS proves 900 Gbit/s in some 20 s and 466.67 in some minutes: `inakit reproduce inarouting instances`."""
    assert gbps(published("leaf-spine"), heuristic_routes(published("leaf-spine"), SolverOptions()))[0] == 900
    found = heuristic_routes(published("fat-tree"), SolverOptions())
    assert gbps(published("fat-tree"), found) == pytest.approx((1400 / 3, 1450 / 3), abs=1e-6)


@pytest.mark.parametrize("ina", [1.0, 0.4])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_routes_are_better_than_those_of_the_integer_program(seed: int, ina: float) -> None:
    network = small(seed, ina)
    hops, outcome = optimal_routes(network, SolverOptions())
    best = max(total_rates(network, routes)[0] for routes in all_routes(network))
    assert outcome.status == OPTIMAL
    assert total_rates(network, hops)[0] == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("ina", [1.0, 0.4])
@pytest.mark.parametrize("seed", range(6))
def test_no_routes_exceed_the_bound_that_counts_what_all_routes_share(seed: int, ina: float) -> None:
    network = small(seed, ina)
    best = max(total_rates(network, routes)[0] for routes in all_routes(network))
    assert total_bound_bps(network) >= best - 1  # totals are in whole bit/s


def with_several_pipelines(seed: int) -> Problem:
    """Two jobs, one with two PSs, on a leaf-spine whose switches have pipelines, bitmaps of few bits, or a rate."""
    draw = random.Random(seed)
    fabric = with_pipelines(with_capacities(leaf_spine(3, 2, 3), 10e6, 30e6, seed), draw.choice([1, 2, 3]))
    bits = draw.choice([2, 3, 64])
    chip = Chip("drawn", 64, 512, bits, 4, 65536, 65535, recirculation_bps=draw.choice([None, 30e6]))
    some = with_ina(with_aggregators(with_chip(fabric, chip), rate_bps=draw.choice([None, 25e6])), share=0.8, seed=seed)
    hosts = draw.sample([host.name for host in fabric.hosts], 9)
    servers = (hosts[0], hosts[1]) if draw.random() < 0.3 else (hosts[0],)
    return Problem(some, (job(hosts[2:6], *servers), job(hosts[6:9], hosts[1], number=2)), FRAGMENT)


def trees_of(network: SharedFabric, hops: list[NextHops]) -> list[AggregationTree]:
    ina = network.fabric.ina_names
    return [
        tree_from_paths(network.fabric, 1, worker_paths(network, task, own), ina)
        for task, own in zip(network.tasks, hops, strict=True)
    ]


def counted(tree: AggregationTree) -> Counter[Resource]:
    """The flows of a tree on links, and the inputs of switches and pipelines that sum."""
    found: Counter[Resource] = Counter(flow_counts([tree]))
    found.update(aggregated_flows([tree]))
    found.update(summed_flows([tree]))
    return found


def total_of_trees(network: SharedFabric, hops: list[NextHops]) -> float:
    """The total of the tasks' rates if all flows of their trees have equal shares of what they use."""
    usages = [counted(tree) for tree in trees_of(network, hops)]
    total = sum(usages, Counter[Resource]())
    return sum(min(resource_bps(network.fabric, r) / total[r] for r in used) for used in usages)


@pytest.mark.parametrize("seed", range(30))
def test_flows_and_sums_are_those_of_the_trees(seed: int) -> None:
    network = shared_fabric(with_several_pipelines(seed))
    draw = random.Random(seed)
    hops = [draw.choice(all_next_hops(network, place)) for place in range(len(network.tasks))]
    for task, own, tree in zip(network.tasks, hops, trees_of(network, hops), strict=True):
        sums = Counter(aggregator.switch for aggregator in tree.aggregators)
        assert usage(network, task, own) == flow_counts([tree]) | sums


@pytest.mark.parametrize("seed", [long_unless(seed < 12, seed) for seed in range(60)])
@pytest.mark.parametrize("method", ["inarouting", "inarouting-opt"])
def test_no_routes_are_better_than_a_plan_claims(method: str, seed: int) -> None:
    """Pipelines, bits of bitmaps and rates of switches decide what trees sum; enumeration is the second way."""
    problem = with_several_pipelines(seed)
    network = shared_fabric(problem)
    best = max(total_of_trees(network, routes) for routes in all_routes(network))
    plan = METHODS[method].plan(problem)
    hops: list[NextHops] = [{} for _ in network.tasks]
    for planned, own in zip(plan.trees, hops, strict=True):
        for branch in planned.tree.branches:
            own.update(pairwise(node for node in branch.path if node not in planned.tree.workers.values()))
    assert plan.outcome.gap is not None
    assert best <= total_of_trees(network, hops) * (1 + plan.outcome.gap) * (1 + 1e-6)
    limited = any(resource_bps(problem.fabric, r) < inf for r in network.capacities_bps if not is_link(r))
    if method == "inarouting-opt" and not limited:
        assert plan.outcome.status == OPTIMAL


def test_without_a_choice_of_routes_the_bound_is_their_total() -> None:
    network = shared_fabric(first_is_server(with_aggregators(leaf_spine(3, 1, 3), rate_bps=15e6)))
    (routes,) = all_routes(network)
    assert total_bound_bps(network) == pytest.approx(total_rates(network, routes)[0])


def test_the_published_leaf_spine_is_proven_by_counting_and_the_fat_tree_is_not() -> None:
    networks = [published(name) for name in ("leaf-spine", "fat-tree")]
    outcomes = [judged(network, heuristic_routes(network, SolverOptions()), 0.0) for network in networks]
    assert [outcome.status for outcome in outcomes] == [OPTIMAL, FEASIBLE]
    assert outcomes[1].gap == pytest.approx(800 / (1400 / 3) - 1, rel=1e-3)


def test_the_relaxation_bounds_every_route() -> None:
    network = small(4)
    rounded, outcome = relax_and_round(network, SolverOptions())
    assert outcome.status == OPTIMAL
    best = max(total_rates(network, routes)[0] for routes in all_routes(network))
    assert total_rates(network, rounded)[0] <= best


def test_fair_shares_leave_what_max_min_gives_to_others() -> None:
    """Three tasks on one link of 12, one of them also on a link of 2."""
    capacities: dict[object, float] = {"wide": 12.0, "narrow": 2.0}
    usages = [{"wide": 1, "narrow": 1}, {"wide": 1}, {"wide": 1}]
    assert equal_shares(usages, capacities) == [2, 4, 4]  # type: ignore[arg-type]
    assert water_filled(usages, capacities) == [2, 5, 5]  # type: ignore[arg-type]


def test_a_switch_that_cannot_sum_passes_all_flows_on() -> None:
    network = shared_fabric(first_is_server(with_ina(leaf_spine(2, 1, 4), ("spine1",))))
    (task,) = network.tasks
    used = usage(network, task, {"leaf2": "spine1", "spine1": "leaf1", "leaf1": "h1"})
    assert used["leaf2", "spine1"] == 4
    assert used["spine1", "leaf1"] == 1
    assert used["leaf1", "h1"] == 4
    assert (used["spine1"], used["leaf1"]) == (1, 0)


@pytest.mark.parametrize("method", ["inarouting", "inarouting-opt"])
def test_plans_of_several_jobs_and_servers_fill_links_and_repeat(method: str) -> None:
    hosts = [host.name for host in fat_tree(4).hosts]
    problem = Problem(fat_tree(4), (job(hosts[2:9], "h1", "h16"), job(hosts[9:15], "h2", number=2)), FRAGMENT)
    plan = METHODS[method].plan(problem)
    assert plan.trees == METHODS[method].plan(problem).trees
    assert [round(planned.share, 6) for planned in plan.trees] == [0.5, 0.5, 1.0]
    loads = evaluate(problem, plan).link_loads_bps
    assert max(load / problem.fabric.capacities_bps[link] for link, load in loads.items()) == pytest.approx(1)
