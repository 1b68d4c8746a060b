"""The methods on the papers' examples, whose rates are known, and their common contract."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planner_cases import first_is_server, single

from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.methods.aro.aro import AroOptions
from inakit.planner.methods.atp import AtpOptions
from inakit.planner.registry import METHODS, find_method
from inakit.planner.trees.from_paths import plan_from_paths
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import aro_figure1, aro_figure3a, fat_tree, inart_testbed, leaf_spine, pipelines_trap
from inakit.topo.fabric.variations import with_ina

UNIT = 20e6
ARO_WORKERS = ("w0", "w1", "w2", "w3", "w4")
RACK = {"w0": "l1", "w1": "l1", "w2": "l2", "w3": "l2", "w4": "l3"}


def rate(plan: Plan) -> float:
    """The sending rate in units of a link."""
    return plan.trees[0].rate_bps / UNIT


def figure1(**kwargs: Fabric) -> Problem:
    return single(kwargs.get("fabric", aro_figure1(UNIT)), ARO_WORKERS, "ps")


def by_spine(spine_of: dict[str, str]) -> list[tuple[str, ...]]:
    """The paths of Figures 1 and 3 with a spine chosen for every leaf."""
    return [(worker, RACK[worker], spine_of[RACK[worker]], "l0", "ps") for worker in ARO_WORKERS]


def test_aro_reaches_the_full_link_rate_on_figure_1() -> None:
    plan = METHODS["aro"].plan(figure1())
    tree = plan.trees[0].tree
    assert rate(plan) == pytest.approx(1)
    assert plan.outcome.status == "optimal"
    assert sorted(a.switch for a in tree.aggregators) == ["l1", "l2", "s1"]


def test_without_aggregation_figure_1_leaves_a_fifth() -> None:
    assert rate(METHODS["lbmm"].plan(figure1())) == pytest.approx(1 / 5)
    none = with_ina(aro_figure1(UNIT), ())
    assert rate(METHODS["aro"].plan(figure1(fabric=none))) == pytest.approx(1 / 5)


def test_figure_3a_leaves_a_half() -> None:
    problem = figure1(fabric=aro_figure3a(UNIT))
    paths = by_spine({"l1": "s0", "l2": "s1", "l3": "s1"})
    assert rate(plan_from_paths(problem, {1: paths}, {"l0", "l1", "l2", "l3"})) == pytest.approx(1 / 2)


def test_figure_3c_leaves_a_third() -> None:
    paths = by_spine({"l1": "s0", "l2": "s1", "l3": "s0"})
    assert rate(plan_from_paths(figure1(), {1: paths}, {"l1", "l2", "s1"})) == pytest.approx(1 / 3)


def test_aro_cannot_beat_a_half_on_figure_3a() -> None:
    assert rate(METHODS["aro"].plan(figure1(fabric=aro_figure3a(UNIT)))) == pytest.approx(1 / 2)


def test_a_plan_that_ignores_pipelines_is_worse() -> None:
    problem = single(pipelines_trap(UNIT), [f"w{i}" for i in range(1, 7)], "ps")
    assert rate(METHODS["aro"].plan(problem)) == pytest.approx(4 / 5)
    unaware = METHODS["aro"].plan(problem, AroOptions(pipeline_aware=False))
    assert rate(unaware) == pytest.approx(1 / 3)
    assert unaware.outcome.status == "heuristic"


def test_lbmm_on_two_servers_is_inarts_example() -> None:
    plan = METHODS["lbmm"].plan(single(inart_testbed(UNIT), [f"w{i}" for i in range(1, 7)], "ps1", "ps2"))
    assert [planned.share for planned in plan.trees] == [0.5, 0.5]
    assert sum(planned.rate_bps for planned in plan.trees) / UNIT * 6 == pytest.approx(4 / 3)


def test_atp_sums_at_tors_only_and_draws_paths_by_seed() -> None:
    problem = first_is_server(fat_tree(4))
    plan = METHODS["atp"].plan(problem)
    aggregators = plan.trees[0].tree.aggregators
    assert {problem.fabric.switch_by_name[a.switch].tier for a in aggregators} == {1}
    assert METHODS["atp"].plan(problem, Options(seed=0)) == plan
    others = {METHODS["atp"].plan(problem, Options(seed=seed)).trees[0].tree.branches for seed in range(5)}
    assert len(others) > 1


def test_atp_without_the_second_level_leaves_the_servers_tor_alone() -> None:
    problem = first_is_server(leaf_spine(4, 2, 2))
    plan = METHODS["atp"].plan(problem, AtpOptions(second_level=False))
    assert problem.fabric.tor_of("h1") not in {a.switch for a in plan.trees[0].tree.aggregators}
    assert plan.trees[0].rate_bps < METHODS["atp"].plan(problem).trees[0].rate_bps


@pytest.mark.parametrize("name", ["aro", "atp", "lbmm"])
def test_a_server_that_cannot_be_reached_is_named_with_its_worker(name: str) -> None:
    fabric = leaf_spine(2, 1, 2)
    split = replace(fabric, links=tuple(link for link in fabric.links if (link.a, link.b) != ("leaf2", "spine1")))
    with pytest.raises(InputError, match="server 'h1' cannot be reached from worker 'h4'"):
        METHODS[name].plan(single(split, ["h2", "h4"], "h1"))


@pytest.mark.parametrize(("servers", "jobs"), [(("h1", "h2"), 1), (("h1",), 2)])
def test_aro_plans_any_number_of_tasks(servers: tuple[str, ...], jobs: int) -> None:
    """h1 and h2 receive the full rate from each of two workers, and two jobs share it."""
    problem = single(leaf_spine(2, 2, 2), ["h3", "h4"], *servers)
    one = problem.jobs[0]
    several = Problem(problem.fabric, tuple(replace(one, number=i + 1) for i in range(jobs)), problem.fragment)
    plan = METHODS["aro"].plan(several)
    assert plan.outcome.status == "optimal"
    assert sum(planned.rate_bps for planned in plan.trees) == pytest.approx(20e6)
    unaware = METHODS["aro-unaware"].plan(several)
    assert (unaware.method, unaware.outcome.status) == ("aro-unaware", "heuristic")


def test_an_unknown_method_gets_the_nearest_name() -> None:
    with pytest.raises(InputError, match="unknown planner 'arro': did you mean 'aro'"):
        find_method("arro")


def test_options_of_another_method_are_refused() -> None:
    with pytest.raises(InputError, match="AtpOptions"):
        METHODS["aro"].plan(figure1(), AtpOptions())


@pytest.mark.parametrize("values", [{"gap": -0.1}, {"gap": 1.0}, {"time_limit_s": 0.0}, {"window": 0}])
def test_options_out_of_range_are_refused(values: dict[str, float]) -> None:
    with pytest.raises(InputError, match="|".join(name.split("_")[0] for name in values)):
        Options(**values)  # type: ignore[arg-type]
