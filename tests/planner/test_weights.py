"""The weights of jobs, for every planner: rates in proportion to them, or a refusal that names the planner."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planner_cases import FRAGMENT, job, quick_plan

from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.method import PLANNED, Options
from inakit.planner.core.problem import Problem
from inakit.planner.registry import KIT, METHODS
from inakit.topo.errors import InputError
from inakit.topo.fabric.generators import leaf_spine

ONE_RATE = ("inart", "inart-equal", "inart-raw", "inart-forest", "goat", "goat-krgs")
"""The planners that give all jobs one rate."""


def competing(*weights: float) -> Problem:
    """Jobs of these weights with the same workers and the same PS, which share all links."""
    one = job(["h1", "h2"], "h4")
    jobs = (replace(one, number=number, weight=weight) for number, weight in enumerate(weights, start=1))
    return Problem(leaf_spine(2, 1, 3), tuple(jobs), FRAGMENT)


@pytest.mark.parametrize("name", [name for name in KIT if name not in ONE_RATE])
def test_a_job_of_three_times_the_weight_has_three_times_the_rate(name: str) -> None:
    problem = competing(1.0, 3.0)
    jobs = evaluate(problem, quick_plan(name, problem)).jobs
    assert jobs[2].sending_rate_bps == pytest.approx(3 * jobs[1].sending_rate_bps)


@pytest.mark.parametrize("name", ONE_RATE)
def test_a_planner_that_gives_all_jobs_one_rate_refuses_different_weights_by_name(name: str) -> None:
    with pytest.raises(InputError, match=f"planner '{name}' ignores weights, and jobs 1 and 2 have 1 and 3"):
        quick_plan(name, competing(1.0, 3.0))
    assert quick_plan(name, competing(2.0, 2.0)).trees == quick_plan(name, competing(1.0, 1.0)).trees


def test_results_that_return_leave_rates_in_proportion_to_weights() -> None:
    """h3 is the PS of one job and a worker of the other, so gradients and results share its link in both directions."""
    first, second = job(["h1", "h2"], "h3"), job(["h1", "h3"], "h2", number=2)
    problem = Problem(leaf_spine(2, 1, 3), (first, replace(second, weight=3.0)), FRAGMENT)
    for name in ("atp", "aro"):
        jobs = evaluate(problem, METHODS[name].plan(problem, Options(headroom=PLANNED))).jobs
        assert jobs[2].sending_rate_bps == pytest.approx(3 * jobs[1].sending_rate_bps, rel=0.02)


def test_inarouting_proves_nothing_for_weights_that_its_routes_ignore() -> None:
    outcomes = [METHODS["inarouting"].plan(competing(1.0, weight)).outcome.status for weight in (1.0, 3.0)]
    assert outcomes == ["optimal", "heuristic"]
