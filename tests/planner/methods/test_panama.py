"""PANAMA's trees: evenly used, and by links that the others leave."""

from __future__ import annotations

from itertools import combinations

import pytest
from planner_cases import FRAGMENT, first_is_server, job

from inakit.planner.core.problem import Problem
from inakit.planner.methods.panama import PanamaOptions
from inakit.planner.registry import METHODS
from inakit.topo.errors import InputError
from inakit.topo.fabric.generators import leaf_spine


def uplinks(problem: Problem, trees: int) -> list[set[tuple[str, str]]]:
    """By tree, the links that it uses between leaves and spines."""
    plan = METHODS["panama"].plan(problem, PanamaOptions(trees=trees))
    return [
        {link for branch in planned.tree.branches for link in branch.links if "spine" in "".join(link)}
        for planned in plan.trees
    ]


def test_four_trees_of_a_job_have_a_spine_each() -> None:
    used = uplinks(first_is_server(leaf_spine(4, 4, 2)), 4)
    assert len(used) == 4
    assert not any(one & other for one, other in combinations(used, 2))


def test_trees_of_two_jobs_leave_each_other_room() -> None:
    fabric = leaf_spine(3, 4, 4)
    jobs = (job(["h5", "h9"], "h1", number=1), job(["h6", "h10"], "h2", number=2))
    used = uplinks(Problem(fabric, jobs, FRAGMENT), 2)
    assert not any(one & other for one, other in combinations(used, 2))


def test_a_job_has_no_more_trees_than_ways() -> None:
    plan = METHODS["panama"].plan(first_is_server(leaf_spine(3, 2, 2)), PanamaOptions(trees=8))
    assert [planned.share for planned in plan.trees] == [0.5, 0.5]


def test_every_tree_has_the_same_part_of_the_rate() -> None:
    plan = METHODS["panama"].plan(first_is_server(leaf_spine(4, 4, 2, oversubscription=2)), PanamaOptions())
    assert {planned.share for planned in plan.trees} == {0.25}
    assert len({planned.rate_bps for planned in plan.trees}) == 1


def test_no_tree_is_refused() -> None:
    with pytest.raises(InputError, match="trees 0: at least 1"):
        PanamaOptions(trees=0)
