"""SHARP: one tree of the fabric for all jobs, with its root in a switch where one aggregator can sum all."""

from __future__ import annotations

import pytest
from planner_cases import FRAGMENT, first_is_server, job, single

from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.method import Options
from inakit.planner.core.plan import ROOT_LABEL, AggregationTree
from inakit.planner.core.problem import Problem
from inakit.planner.registry import METHODS
from inakit.topo.fabric.generators import fat_tree, leaf_spine
from inakit.topo.fabric.variations import with_ina, with_pipelines


def trees(problem: Problem, seed: int = 0) -> list[AggregationTree]:
    return [planned.tree for planned in METHODS["sharp"].plan(problem, Options(seed=seed)).trees]


def test_the_root_is_a_core_switch_and_no_server_receives_anything() -> None:
    problem = first_is_server(fat_tree(4))
    (tree,) = trees(problem)
    assert (tree.root, tree.server, tree.policy) == ("core1", "h1", "switchml")
    assert evaluate(problem, METHODS["sharp"].plan(problem)).ps_ingress_bytes == 0
    assert METHODS["sharp"].plan(problem).trees[0].rate_bps == pytest.approx(20e6)


def test_a_job_within_a_rack_has_its_root_there() -> None:
    (tree,) = trees(single(leaf_spine(4, 2, 4), ["h1", "h2", "h3"], "h16"))
    assert tree.root == "leaf1"
    assert {branch.path for branch in tree.branches} == {(f"h{i}", "leaf1") for i in (1, 2, 3)}
    assert tree.fallback[0] == "leaf1"
    assert tree.fallback[-1] == "h16"


def test_all_jobs_use_one_tree_and_another_seed_another() -> None:
    hosts = [host.name for host in fat_tree(4).hosts]
    problem = Problem(fat_tree(4), (job(hosts[1:15:2], "h1"), job(hosts[2:15:2], "h16", number=2)), FRAGMENT)
    assert {tree.root for tree in trees(problem)} == {"core1"}
    assert {tree.root for tree in trees(problem, seed=2)} == {"core3"}
    (first, second) = METHODS["sharp"].plan(problem).trees
    assert first.rate_bps == second.rate_bps == pytest.approx(10e6)


def test_a_root_of_several_pipelines_is_replaced_by_the_server() -> None:
    (tree,) = trees(first_is_server(with_pipelines(fat_tree(4), 2)))
    assert tree.root == "h1"


def test_a_tree_that_goes_on_to_the_server_still_passes_the_root() -> None:
    """Static routes to the PS alone would climb to spine 1, which does not sum: 12 flows would share a link to leaf 1.

    Spine 2 has two pipelines: leaves 1 and 3 enter one, leaves 2 and 4 the other. Workers beside the PS do not climb.
    """
    fabric = with_pipelines(with_ina(leaf_spine(4, 2, 4), ("spine2",)), 2)
    problem = first_is_server(fabric)
    (tree,) = trees(problem)
    assert (tree.root, {aggregator.switch for aggregator in tree.aggregators}) == ("h1", {"spine2"})
    ways = {branch.path for branch in tree.branches if branch.parent == ROOT_LABEL}
    beside = {(worker, "leaf1", "h1") for worker in ("h2", "h3", "h4")}
    assert ways == beside | {("spine2", "leaf1", "h1")}


def test_a_switch_above_the_pipelines_sums_what_they_send() -> None:
    """Leaf 2 has two pipelines, each with two workers; the spine gets both sums by one port."""
    (tree,) = trees(single(with_pipelines(leaf_spine(2, 1, 4), 2), ["h5", "h6", "h7", "h8"], "h1"))
    assert tree.root == "spine1"
    assert sorted((a.switch, a.pipeline, len(a.children)) for a in tree.aggregators) == [
        ("leaf2", 0, 2),
        ("leaf2", 1, 2),
        ("spine1", 1, 2),
    ]


def test_switches_that_cannot_sum_pass_on() -> None:
    (tree,) = trees(first_is_server(with_ina(fat_tree(4), ("core2",))))
    assert [aggregator.switch for aggregator in tree.aggregators] == ["core2"]
    assert len(tree.aggregators[0].children) == 15
    (none,) = trees(first_is_server(with_ina(fat_tree(4), ())))
    assert (none.root, none.aggregators) == ("h1", ())
