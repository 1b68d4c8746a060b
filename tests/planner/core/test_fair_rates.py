"""Rates of given trees in a closed loop: max-min fair over jobs whose gradients and results share links."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planner_cases import FRAGMENT, job

from inakit.planner.core.check import check
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.fair_rates import in_closed_loop
from inakit.planner.core.plan import Plan, SolverOutcome
from inakit.planner.core.problem import Problem
from inakit.planner.trees.from_paths import plan_from_paths
from inakit.topo.errors import PlanError
from inakit.topo.fabric.generators import Cable, wire

MBPS = 1e6


def crossing(weights: tuple[float, float] = (1.0, 1.0)) -> tuple[Problem, Plan]:
    """Jobs 1 and 2 cross s1-s2 in opposite directions; job 3 stays at s1. Links have 10 Mbit/s."""
    racks = {"s1": ("a1", "a2", "a3", "a4"), "s2": ("b1", "b2")}
    cables = [Cable(host, switch, 10 * MBPS) for switch, rack in racks.items() for host in rack]
    fabric = wire("crossing", [host for rack in racks.values() for host in rack], {"s1": 1, "s2": 1}, [
        *cables, Cable("s1", "s2", 10 * MBPS),
    ])  # fmt: skip
    jobs = (
        replace(job(["a1"], "b1", number=1), weight=weights[0]),
        replace(job(["b2"], "a2", number=2), weight=weights[1]),
        job(["a3"], "a4", number=3),
    )
    problem = Problem(fabric, jobs, FRAGMENT)
    paths: dict[int, list[tuple[str, ...]]] = {
        1: [("a1", "s1", "s2", "b1")],
        2: [("b2", "s2", "s1", "a2")],
        3: [("a3", "s1", "a4")],
    }
    return problem, replace(plan_from_paths(problem, paths), outcome=SolverOutcome("optimal", 0.0, 0.0))


def rates(problem: Problem, plan: Plan) -> list[float]:
    return [planned.rate_bps for planned in in_closed_loop(problem, plan).trees]


def test_only_jobs_whose_results_need_room_are_slower() -> None:
    assert rates(*crossing()) == pytest.approx([5 * MBPS, 5 * MBPS, 10 * MBPS])


def test_weights_divide_a_link_in_proportion() -> None:
    """Rates per weight rise together: a job of weight 3 has three times the other's rate."""
    problem, plan = crossing((3.0, 1.0))
    first, second, _ = rates(problem, plan)
    assert first + second == pytest.approx(10 * MBPS)
    assert first == pytest.approx(3 * second)


def test_every_link_carries_gradients_and_results() -> None:
    problem, plan = crossing()
    loads = evaluate(problem, in_closed_loop(problem, plan)).loads_with_results_bps
    assert max(load - problem.fabric.capacities_bps[link] for link, load in loads.items()) <= 1e-3


def test_a_proof_of_gradients_alone_becomes_a_gap() -> None:
    outcome = in_closed_loop(*crossing()).outcome
    assert outcome.status == "feasible"
    assert outcome.gap == pytest.approx(1.0)


def test_a_plan_whose_results_fit_is_left_as_it_is() -> None:
    problem, plan = crossing()
    alone = replace(problem, jobs=problem.jobs[:1])
    kept = replace(plan, trees=plan.trees[:1])
    assert in_closed_loop(alone, kept) is kept


@pytest.mark.parametrize(
    ("results", "why"),
    [
        ({"a1": "s1", "s1": "b1"}, "link s1->b1: no branch uses it"),
        ({"a1": "s1"}, "worker a1: node s1 gets no results"),
    ],
)
def test_results_go_against_the_branches_to_every_worker(results: dict[str, str], why: str) -> None:
    problem, plan = crossing()
    first = plan.trees[0]
    broken = replace(first, tree=replace(first.tree, results=results))
    with pytest.raises(PlanError, match=f"rule results broken at job 1, tree 1, {why}"):
        check(problem, replace(plan, trees=(broken, *plan.trees[1:])))
