"""Gradients planned together with the results that come back: against enumeration, and on two pods."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from aro_cases import LEAF_SPINES, best_value_bps, random_problem, worth_of_plan
from planner_cases import QUICKEST
from tiers import long_unless
from tolerance import assert_within

from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.files import load_jobs
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.prepared import Prepared, with_headroom
from inakit.planner.registry import METHODS, find_method
from inakit.topo.errors import InputError
from inakit.topo.files.fabrics import load_fabric
from inakit.traffic.wire.packet_format import FRAGMENT

CASES = Path(__file__).resolve().parents[3] / "experiments" / "cases"
EXACT = 1e-6

SHAPES = {"1x1": (1, 1, 5), "1x2": (1, 2, 4), "1x3": (1, 3, 3), "2x1": (2, 1, 4), "2x2": (2, 2, 2), "3x1": (3, 1, 2)}


@cache
def two_pods() -> Problem:
    """Jobs 1 and 2 send to the second pod, job 3 to the first, over links of 5 Mbit/s."""
    return Problem(load_fabric(CASES / "two-pods.yml"), load_jobs(CASES / "two-pods-jobs.yml"), FRAGMENT)


def planned(problem: Problem, planner: str = "aro", headroom: str = "planned") -> Plan:
    return find_method(planner).plan(problem, replace(QUICKEST.get(planner, Options()), headroom=headroom))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", [long_unless(seed < 4, seed) for seed in range(8)])
def test_the_rate_in_both_directions_is_the_best_that_enumeration_finds(shape: str, seed: int) -> None:
    problem = random_problem(seed, *SHAPES[shape], bases=LEAF_SPINES[:3])
    plan = planned(problem)
    assert plan.outcome.status == "optimal"
    assert worth_of_plan(problem, plan) == pytest.approx(best_value_bps(problem, results=True), rel=EXACT)
    assert with_headroom(problem, plan).factor == 1


def test_leaf1_1_bounds_the_two_pods_at_half_a_link_and_the_plan_reaches_it() -> None:
    """All three jobs have workers under leaf1_1, which has two uplinks: two trees share one of 5 Mbit/s.

    It runs at its rates. One made without results may have to be halved: that is for HiGHS, where several are best.
    """
    plan = planned(two_pods())
    assert plan.outcome.status == "optimal"
    assert sorted(planned.rate_bps for planned in plan.trees) == pytest.approx([2.5e6, 2.5e6, 5e6])
    assert with_headroom(two_pods(), plan).factor == 1
    assert with_headroom(two_pods(), planned(two_pods(), headroom="afterwards")).factor in (pytest.approx(0.5), 1)


def test_several_trees_reach_two_thirds_of_a_link_there() -> None:
    """Three jobs divide two uplinks of leaf1_1 evenly: 10 / 3 Mbit/s."""
    plan = planned(two_pods(), "forest")
    assert plan.outcome.status == "optimal"
    assert evaluate(two_pods(), plan).sending_rate_bps == pytest.approx(10e6 / 3)


def test_the_two_pods_run_at_the_planned_rate_in_virtual_time() -> None:
    problem = two_pods()
    outcome = run_plan(Run(Prepared(problem, planned(problem))), find_world("virtual"))
    assert (outcome.verdict, outcome.measured.exact) == ("VALID", True)
    assert_within(outcome.measured.sending_rate_bps, 2.5e6, 0.03, "sending rate", "bit/s")


SEARCHING = ("inart-equal", "halving-doubling-best", "double-tree-best")
"""Planners that search for long, by the same means as others."""


@pytest.mark.parametrize("planner", [long_unless(name not in SEARCHING, name) for name in METHODS])
def test_every_planner_leaves_room_in_its_trees(planner: str) -> None:
    """A collective has no trees and no results."""
    problem = two_pods()
    plan = planned(problem, planner)
    afterwards = with_headroom(problem, planned(problem, planner, headroom="afterwards")).plan
    assert plan.collectives or with_headroom(problem, plan).factor == 1
    least = [evaluate(problem, each).sending_rate_bps for each in (afterwards, plan)]
    assert least[1] >= least[0] * (1 - EXACT)


@pytest.mark.parametrize("seed", [long_unless(seed < 6, seed) for seed in range(12)])
def test_routes_alone_keep_the_rates_and_lose_no_more_to_results(seed: int) -> None:
    problem = random_problem(seed, *SHAPES["2x2"], bases=LEAF_SPINES[:3])
    afterwards, routed, both = (planned(problem, headroom=each) for each in ("afterwards", "routed", "planned"))
    assert [planned.rate_bps for planned in routed.trees] == pytest.approx(
        [planned.rate_bps for planned in afterwards.trees]
    )
    assert with_headroom(problem, routed).factor >= with_headroom(problem, afterwards).factor * (1 - EXACT)
    in_loop = with_headroom(problem, routed).plan
    assert worth_of_plan(problem, in_loop) <= worth_of_plan(problem, both) * (1 + EXACT)


def test_routes_alone_lose_nothing_on_two_pods() -> None:
    routed = planned(two_pods(), headroom="routed")
    assert with_headroom(two_pods(), routed).factor == 1
    assert sorted(planned.rate_bps for planned in routed.trees) == pytest.approx([2.5e6, 2.5e6, 5e6])


def test_an_unknown_headroom_is_named() -> None:
    with pytest.raises(InputError, match="unknown headroom 'planed': did you mean 'planned'"):
        Options(headroom="planed")
