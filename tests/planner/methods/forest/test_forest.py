"""Forests against enumeration: all trees of a task, packed by a linear program of its own."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pulp
import pytest
from aro_cases import CLOS, LEAF_SPINES, UNIT, Resource, capacity_of, random_problem, routings, worth_of_plan
from hypothesis import given, settings
from hypothesis import strategies as st
from planner_cases import FRAGMENT, papers_setting, single
from planner_cases import job as job_of
from tiers import long_unless

from inakit.experiments.papers.aro.setting import MJMT, SJMT, AroSetting
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.methods.forest import ForestOptions
from inakit.planner.prepared import with_headroom
from inakit.planner.registry import METHODS
from inakit.topo.errors import InputError
from inakit.topo.fabric.generators import Cable, fat_tree, leaf_spine, wire
from inakit.topo.fabric.variations import with_aggregators, with_ina, with_pipelines

EXACT = 1e-6
MU = 0.001
FEW = settings(max_examples=10, deadline=None)

SHAPES = {
    "one task": (1, 1, 5, CLOS),
    "one job, two PSs": (1, 2, 4, CLOS),
    "two jobs": (2, 1, 3, CLOS),
    "two jobs, two PSs each": (2, 2, 3, LEAF_SPINES[:2]),
}


def problem_of(shape: str, seed: int) -> Problem:
    jobs, servers, workers, bases = SHAPES[shape]
    return random_problem(seed, jobs, servers, workers, bases)


def planned(problem: Problem, trees: int, headroom: str = "afterwards") -> Plan:
    """The plan of a forest, which `Method.plan` has checked."""
    return METHODS["forest"].plan(problem, ForestOptions(trees=trees, headroom=headroom))


def best_packing(problem: Problem, *, results: bool = False) -> float:
    """The best worth, Eq. (3) or (2), of a packing of all trees that all tasks can have."""
    model = pulp.LpProblem("packing", pulp.LpMaximize)
    throughputs: list[Any] = []
    used: dict[Resource, list[Any]] = {}
    for job in problem.jobs:
        rates = []
        for server in job.servers:
            for k, loads in enumerate(routings(problem.fabric, job, server, results=results)):
                rates.append(model.add_variable(f"r_{job.number}_{server}_{k}", 0))
                for resource, count in loads:
                    used.setdefault(resource, []).append(count * rates[-1])
        throughputs.append(pulp.lpSum(rates) * (1 / job.weight if len(problem.jobs) > 1 else 1))
    least = model.add_variable("least")
    model += least + (MU * pulp.lpSum(throughputs) if len(throughputs) > 1 else 0)
    for throughput in throughputs:
        model += least <= throughput
    for resource, terms in used.items():
        model += pulp.lpSum(terms) <= capacity_of(problem.fabric, resource) / UNIT
    model.solve(pulp.HiGHS(msg=False))
    return float(pulp.value(model.objective)) * UNIT


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", [long_unless(seed < 3, seed) for seed in range(10)])
def test_any_number_of_trees_reaches_the_best_packing_of_all(shape: str, seed: int) -> None:
    problem = problem_of(shape, seed)
    plan = planned(problem, 0)
    assert plan.outcome.status == "optimal"
    assert worth_of_plan(problem, plan) == pytest.approx(best_packing(problem), rel=EXACT)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", [long_unless(seed < 2, seed) for seed in range(6)])
def test_with_results_any_number_of_trees_reaches_the_best_packing_too(shape: str, seed: int) -> None:
    problem = problem_of(shape, seed)
    plan = planned(problem, 0, headroom="planned")
    assert plan.outcome.status == "optimal"
    assert worth_of_plan(problem, plan) == pytest.approx(best_packing(problem, results=True), rel=EXACT)
    assert with_headroom(problem, plan).factor == 1


@settings(FEW, max_examples=6)
@given(st.sampled_from(sorted(SHAPES)), st.integers(0, 99))
def test_more_trees_are_never_worth_less(shape: str, seed: int) -> None:
    """Worth grows from ARO's optimum on, and the gap of a few trees bounds what any number gains."""
    problem = problem_of(shape, seed)
    plans = [METHODS["aro"].plan(problem), *(planned(problem, trees) for trees in (1, 2, 0))]
    single, one, two, every = (worth_of_plan(problem, plan) for plan in plans)
    assert single <= one * (1 + EXACT) <= two * (1 + EXACT) ** 2 <= every * (1 + EXACT) ** 3
    gap = plans[2].outcome.gap
    assert gap is not None
    assert every <= two * (1 + gap) * (1 + EXACT)


def test_two_trees_gain_a_fifth_in_the_papers_setting() -> None:
    problems = [papers_setting(seed) for seed in range(10)]
    one = [worth_of_plan(problem, METHODS["aro"].plan(problem)) for problem in problems]
    plans = [planned(problem, 2) for problem in problems]
    two = [worth_of_plan(problem, plan) for problem, plan in zip(problems, plans, strict=True)]
    assert sum(two) >= 1.2 * sum(one)
    assert sum(plan.outcome.status == "optimal" for plan in plans) >= 8
    assert all(1 <= len(plan.trees) <= 2 for plan in plans)


@pytest.mark.long
@pytest.mark.parametrize(
    "setting",
    [replace(SJMT, tasks=2), replace(SJMT, tasks=3), replace(MJMT, jobs=2)],
    ids=lambda setting: setting.label,
)
def test_two_trees_gain_for_several_tasks(setting: AroSetting) -> None:
    """In the paper's settings more than two trees would gain no more than the gap."""
    problem = setting.problem(2)
    plan = planned(problem, 2)
    assert worth_of_plan(problem, plan) >= 1.09 * worth_of_plan(problem, METHODS["aro"].plan(problem))
    assert max(Counter(each.tree.root for each in plan.trees).values()) <= 2
    assert plan.outcome.gap is not None
    assert plan.outcome.gap < 0.01


@pytest.mark.parametrize("seed", [long_unless(seed in (1, 3, 5), seed) for seed in range(6)])
def test_classes_of_twins_lose_nothing(seed: int) -> None:
    """On a fat-tree with equal links and several tasks, what is found for classes reaches all of their links."""
    fabric = with_pipelines(with_ina(fat_tree(6), share=0.4, seed=seed), 1 + seed % 3)
    hosts = random.Random(seed).sample([host.name for host in fabric.hosts], 30)
    jobs = (job_of(hosts[3:15], *hosts[:2]), job_of(hosts[15:], hosts[2], number=2))
    plan = planned(Problem(fabric, jobs, FRAGMENT), 0)
    assert plan.outcome.status == "optimal"


@pytest.mark.parametrize("trees", [2, 0])
def test_the_routes_alone_load_the_links_as_predicted(trees: int) -> None:
    problem = problem_of("two jobs", 5)
    plan = planned(problem, trees)
    loads: dict[tuple[str, str], float] = defaultdict(float)
    for each in plan.trees:
        for branch in each.tree.branches:
            for link in pairwise(branch.path):
                loads[link] += each.rate_bps
    assert loads == pytest.approx(evaluate(problem, plan).link_loads_bps)
    assert all(load <= problem.fabric.capacities_bps[link] * (1 + EXACT) for link, load in loads.items())


def test_trees_carry_the_gradient_in_proportion_to_their_rates() -> None:
    """All trees of a job end together, so the job takes the time that its whole rate allows."""
    problem = papers_setting(1)
    plan = planned(problem, 2)
    assert len(plan.trees) == 2
    total = sum(each.rate_bps for each in plan.trees)
    assert [each.share for each in plan.trees] == pytest.approx([each.rate_bps / total for each in plan.trees])
    assert evaluate(problem, plan).sending_rate_bps == pytest.approx(total)


def test_trees_in_one_pipeline_divide_its_slots() -> None:
    problem = papers_setting(1)
    few = replace(problem, fabric=with_aggregators(problem.fabric, slots=8))
    plan = planned(few, 2)
    used: Counter[tuple[str, int]] = Counter()
    for each in plan.trees:
        for aggregator in each.tree.aggregators:
            used[aggregator.switch, aggregator.pipeline] += aggregator.slots
    assert len(plan.trees) == 2
    assert max(used.values()) <= 8
    assert [each.tree.window for each in plan.trees] == [2, 2]
    with pytest.raises(InputError, match="raise aggregator_slots"):
        planned(replace(problem, fabric=with_aggregators(problem.fabric, slots=1)), 2)


def test_aggregators_of_a_limited_rate_are_minded() -> None:
    """The pricing model leaves aggregation rates out; the plan's rates and gap do not."""
    for seed in range(5):
        problem = random_problem(seed, bases=LEAF_SPINES, limited=True)
        one, two = METHODS["aro"].plan(problem), planned(problem, 2)
        assert worth_of_plan(problem, two) >= worth_of_plan(problem, one) * (1 - EXACT)


def test_a_negative_number_of_trees_is_refused() -> None:
    with pytest.raises(InputError, match="trees -1"):
        ForestOptions(trees=-1)


def test_a_parameter_server_without_a_rate_gets_no_tree() -> None:
    """Two PSs of one job share a worker's link, so a second tree adds nothing; the plan is whole all the same."""
    for seed in range(6):
        problem = problem_of("one job, two PSs", seed)
        for trees in (2, 3):
            plan = planned(problem, trees)
            numbers = Counter(each.tree.root for each in plan.trees)
            assert max(numbers.values()) <= trees
            assert sum(each.share for each in plan.trees) == pytest.approx(1)
            assert all(each.rate_bps > 0 for each in plan.trees)


def atro_mixed() -> Problem:
    """ATRO's 4 aggregators and 16 common switches with 90 workers, one more than a single tree serves at full rate.

    The last worker's switch reaches the aggregators through all other common switches, which have as many uplinks as
    workers.
    """
    workers = [f"w{i}" for i in range(1, 91)]
    last, left = workers[-1], iter(workers[:-1])
    tiers = {"agg1": 4, **{f"agg{a}": 3 for a in (2, 3, 4)}, **{f"cs{c}": 2 for c in range(1, 16)}, "cs16": 1}
    pairs = [("ps", "agg1"), (last, "cs16"), *((next(left), "agg1") for _ in range(20))]
    for a in (2, 3, 4):
        pairs += [(f"agg{a}", "agg1"), *((next(left), f"agg{a}") for _ in range(8))]
    for c in range(1, 16):
        pairs += [("cs16", f"cs{c}"), *((f"cs{c}", f"agg{a}") for a in (2, 3, 4))]
        pairs += [(next(left), f"cs{c}") for _ in range(3)]
    fabric = wire("atro-mixed", ["ps", *workers], tiers, [Cable(*pair, UNIT) for pair in pairs])
    return single(with_ina(fabric, [f"agg{a}" for a in range(1, 5)]), workers, "ps")


def test_many_trees_serve_a_worker_more_than_one_tree_does() -> None:
    """One tree has half a link's rate. With many, 46 workers behind common switches fill the 45 uplinks of these."""
    problem = atro_mixed()
    plan = planned(problem, 0)
    assert plan.outcome.status == "optimal"
    assert METHODS["aro"].plan(problem).trees[0].rate_bps == pytest.approx(UNIT / 2)
    assert worth_of_plan(problem, plan) == pytest.approx(UNIT * 45 / 46)


def test_more_workers_than_bits_may_have_sums_on_several_ways() -> None:
    """66 workers behind a leaf whose two sums can part: 15 Mbit/s exist, so 10 or 13.3 are not optimal."""
    fabric = with_ina(leaf_spine(2, 2, 70), ("leaf1", "spine2"))
    plan = METHODS["forest-any"].plan(single(fabric, [f"h{i}" for i in range(1, 67)], "h140"))
    assert sum(planned.rate_bps for planned in plan.trees) == pytest.approx(15e6)
    assert plan.outcome.status == "optimal"
