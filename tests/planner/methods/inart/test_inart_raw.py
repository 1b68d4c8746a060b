"""InArt as printed: one rounding, whose loads at LP-InArt's rate exceed capacities; only the rate is lowered."""

from __future__ import annotations

from collections import Counter
from statistics import fmean

import pytest
from planner_cases import quick_plan, single
from random_problems import problem_of

from inakit.planner.core.method import Options
from inakit.planner.core.problem import Problem
from inakit.planner.core.slots import Resource
from inakit.planner.methods.inart.inart_raw import LINKS, SERVERS, SWITCHES, raw_overloads
from inakit.planner.registry import METHODS
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_aggregators

SEEDS = 100


def two_servers() -> Problem:
    """Twelve workers and two PSs in a fat-tree with k = 4: 10 Mbit/s a link, 9 Mbit/s of sums in a switch."""
    fabric = with_aggregators(fat_tree(4), rate_bps=9e6)
    hosts = [host.name for host in fabric.hosts]
    return single(fabric, hosts[2:14], hosts[0], hosts[15])


@pytest.mark.parametrize("seed", range(4))
def test_the_rate_is_lowered_by_the_largest_overload_and_nothing_else_is_repaired(seed: int) -> None:
    problem, options = two_servers(), Options(seed=seed)
    overloads, plan = raw_overloads(problem, options), METHODS["inart-raw"].plan(problem, options)
    worst = max(overloads.most.values())
    assert worst > 1
    assert sum(planned.rate_bps for planned in plan.trees) == pytest.approx(overloads.rate_bps / worst)
    assert plan.outcome.gap == pytest.approx(worst - 1)


@pytest.mark.parametrize("method", ["inart", "inart-equal", "inart-forest", "inart-raw"])
def test_the_bound_counts_several_sums_of_a_pipeline(method: str) -> None:
    """A leaf sums 66 workers in two slots of 64 bits: two flows to the PS, at half of a link's rate."""
    problem = single(leaf_spine(2, 1, 70), [f"h{number}" for number in range(71, 137)], "h1")
    plan = quick_plan(method, problem)
    assert sum(each.rate_bps for each in plan.trees) * (1 + (plan.outcome.gap or 0)) >= 10e6 * (1 - 1e-6)


def test_a_gap_is_one_to_any_split() -> None:
    """L-InArt's split is not the best one of these routes: LP-InArt's f for it alone would prove too much."""
    problem = problem_of("servers", 11)
    raw, best = METHODS["inart-raw"].plan(problem), METHODS["aro"].plan(problem)
    assert raw.job_rate_bps(1) * (1 + (raw.outcome.gap or 0)) >= best.job_rate_bps(1) * (1 - 1e-6)


def test_a_rounding_keeps_the_limits_of_switches_only_in_the_mean() -> None:
    """y is the expected number of summed flows, so that no switch sums more than its rate in the mean of many seeds."""
    loads: Counter[Resource] = Counter()
    most = []
    for seed in range(SEEDS):
        found = raw_overloads(two_servers(), Options(seed=seed))
        loads.update(found.by_kind[SWITCHES])
        most.append(found.most[SWITCHES])
    assert max(loads.values()) / SEEDS < 1.1
    assert fmean(most) > 1.3


def test_overloads_are_by_kind_beside_the_papers_factors() -> None:
    """φ is twice the least capacity, a switch's 9 Mbit/s, over the rate of a flow; the factors follow from it."""
    found = raw_overloads(two_servers(), Options())
    assert found.phi == pytest.approx(2 * 9e6 / (found.rate_bps / 2))
    assert found.bounds[SERVERS] == pytest.approx(2 + 2 * 0.6931 / found.phi, rel=1e-4)
    assert found.bounds[SWITCHES] < found.bounds[LINKS]
    assert set(found.by_kind[SERVERS]) == {("edge1_1", "h1"), ("edge4_2", "h16")}
    assert not set(found.by_kind[LINKS]) & set(found.by_kind[SERVERS])
    assert {str(name)[0] for name in found.by_kind[SWITCHES]} <= {"c", "a", "e"}
