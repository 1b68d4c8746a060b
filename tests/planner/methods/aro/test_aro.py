"""ARO's optimum against brute force, and its sizes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product

import pytest
from planner_cases import first_is_server, single

from inakit.planner.core.problem import Problem
from inakit.planner.methods.aro.aro import AroOptions
from inakit.planner.registry import METHODS
from inakit.planner.trees.unfolding import unfold
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import aro_figure1, fat_tree, goat_testbed, leaf_spine
from inakit.topo.fabric.up_down import up_down_paths
from inakit.topo.fabric.variations import with_aggregators, with_capacities, with_ina, with_pipelines

Link = tuple[str, str]


def brute_force_bps(problem: Problem) -> float:
    """The best rate over all choices of a path per worker, with loads counted from the packets' point of view.

    Packets of one task that arrive in one pipeline of an INA switch leave it as one flow, which takes the way of any
    one of them: every combination of such ways is tried.
    """
    fabric, job = problem.fabric, problem.jobs[0]
    choices = [up_down_paths(fabric, worker, job.servers[0]) for worker in job.workers]
    return max(rate_of(fabric, paths) for paths in product(*choices))


def rate_of(fabric: Fabric, paths: tuple[tuple[str, ...], ...]) -> float:
    """The rate of given paths; 0 where flows of one INP want to go different ways, as other choices have them agree."""
    flows: dict[Link, set[object]] = {}
    onward: dict[object, str] = {}
    for path in paths:
        flow: object = path[0]
        for link, following in zip(pairwise(path), (*path[2:], ""), strict=False):
            flows.setdefault(link, set()).add(flow)
            switch = fabric.switch_by_name.get(link[1])
            if switch is not None and switch.ina:
                flow = (switch.name, fabric.ingress_pipeline(switch.name, link[0]))
                if onward.setdefault(flow, following) != following:
                    return 0.0
    rates = [fabric.capacities_bps[link] / len(found) for link, found in flows.items()]
    for name, switch in fabric.switch_by_name.items():
        into: dict[int, int] = {}
        for link, found in flows.items():
            if link[1] == name and switch.ina:
                pipeline = fabric.ingress_pipeline(name, link[0])
                into[pipeline] = into.get(pipeline, 0) + len(found)
        summed = sum(count for count in into.values() if count > 1)
        if switch.aggregation_rate_bps and summed:
            rates.append(switch.aggregation_rate_bps / summed)
    return min(rates)


def random_problems() -> Iterator[tuple[str, Problem]]:
    """Small fabrics with INA on a random share of switches, 1 to 3 pipelines, random capacities and random hosts."""
    for seed in range(60):
        draw = random.Random(seed)
        base = draw.choice([leaf_spine(3, 2, 2), leaf_spine(4, 3, 2), leaf_spine(2, 2, 4), fat_tree(4), aro_figure1()])
        fabric = with_ina(with_pipelines(base, draw.randint(1, 3)), share=draw.choice([0, 0.3, 0.6, 1]), seed=seed)
        if draw.random() < 0.6:
            fabric = with_capacities(fabric, 10e6, 30e6, seed)
        hosts = draw.sample([host.name for host in fabric.hosts], min(6, len(fabric.hosts)))
        yield f"{seed} {fabric.name}", single(fabric, hosts[1:], hosts[0])


PROBLEMS = dict(random_problems())


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_optimum_is_what_brute_force_finds(name: str) -> None:
    problem = PROBLEMS[name]
    plan = METHODS["aro"].plan(problem)
    assert plan.outcome.status == "optimal"
    assert plan.trees[0].rate_bps == pytest.approx(brute_force_bps(problem), rel=1e-9)


def test_the_examples_of_brute_force_differ() -> None:
    """Examples are worth something only where routing matters, so LBMM and ATP must often be worse than the optimum."""
    worse = [
        name
        for name, problem in PROBLEMS.items()
        if METHODS["atp"].plan(problem).trees[0].rate_bps < 0.99 * METHODS["aro"].plan(problem).trees[0].rate_bps
    ]
    assert len(worse) > len(PROBLEMS) / 3


def with_slow_switches(problem: Problem) -> Problem:
    return replace(problem, fabric=with_aggregators(problem.fabric, rate_bps=17e6))


@pytest.mark.parametrize("name", list(PROBLEMS)[:30])
def test_an_aggregation_rate_bounds_the_optimum(name: str) -> None:
    """Flows that a switch sums count against its rate, a flow that it only forwards does not."""
    problem = with_slow_switches(PROBLEMS[name])
    assert METHODS["aro"].plan(problem).trees[0].rate_bps == pytest.approx(brute_force_bps(problem), rel=1e-9)


def test_an_aggregation_rate_matters_in_some_of_them() -> None:
    def rate(problem: Problem) -> float:
        return METHODS["aro"].plan(problem).trees[0].rate_bps

    problems = list(PROBLEMS.values())[:30]
    assert sum(rate(with_slow_switches(problem)) < rate(problem) for problem in problems) > 5


def test_awareness_of_pipelines_never_hurts() -> None:
    for problem in PROBLEMS.values():
        aware = METHODS["aro"].plan(problem).trees[0].rate_bps
        unaware = METHODS["aro"].plan(problem, AroOptions(pipeline_aware=False)).trees[0].rate_bps
        assert unaware <= aware * (1 + 1e-9)


@pytest.mark.parametrize("solver", ["highs", "cbc"])
@pytest.mark.parametrize("fabric", [fat_tree(4), leaf_spine(8, 8, 4)], ids=lambda fabric: fabric.name)
def test_the_emulated_fabrics_are_planned_to_the_optimum(fabric: Fabric, solver: str) -> None:
    """Where all switches sum, every link has one flow at the full rate."""
    problem = first_is_server(fabric, workers=14 if "fattree" in fabric.name else None)
    plan = METHODS["aro"].plan(problem, AroOptions(solver=solver))
    assert plan.outcome.status == "optimal"
    assert plan.trees[0].rate_bps == pytest.approx(20e6)


def test_aggregators_with_one_child_are_plain_forwarding() -> None:
    for problem in PROBLEMS.values():
        tree = METHODS["aro"].plan(problem).trees[0].tree
        assert all(len(aggregator.children) > 1 for aggregator in tree.aggregators)


def test_an_inp_makes_one_sum_of_64_flows() -> None:
    """Of 65 flows two are left, and no other flow joins the second one."""
    for hosts, left in ((65, 1), (66, 2), (130, 3)):
        problem = first_is_server(leaf_spine(1, 1, hosts))
        planned = METHODS["aro"].plan(problem).trees[0]
        assert planned.rate_bps == pytest.approx(20e6 / left)
        assert METHODS["aro-raw"].plan(problem).trees[0].rate_bps == pytest.approx(20e6 / left)
        children = [len(aggregator.children) for aggregator in planned.tree.aggregators]
        assert sum(children) in (hosts - 1, hosts - 2) and max(children) == 64


@pytest.mark.parametrize("fabric", [fat_tree(4), fat_tree(6), leaf_spine(4, 3, 2), goat_testbed(2), aro_figure1()])
def test_the_unfolded_graph_has_the_shortest_up_down_paths(fabric: Fabric) -> None:
    root = fabric.hosts[-1].name
    unfolded = unfold(fabric, root)
    for host in fabric.host_names - {root}:
        assert sorted(unfolded.paths(host)) == sorted(up_down_paths(fabric, host, root))
