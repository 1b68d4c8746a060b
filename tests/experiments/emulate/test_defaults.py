"""Rates, gradients and other traffic that the user leaves open are made to fit, and a rate to try leaves room."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inakit.experiments.emulate.defaults import LEAST_FRAGMENTS, Free, faults_at, problem_at, rate_to_try
from inakit.experiments.run.faults_file import FaultPlan
from inakit.experiments.run.planning import make_plan
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.planner.core.check import check
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.problem import Problem
from inakit.planner.install.fault_entries import Flow
from inakit.topo.files.quantities import in_words
from inakit.traffic.faults.attacks import Attack


def problem(**size: Any) -> Problem:
    return build_problem(FabricChoice("aro-figure1"), JobChoice(**size))


@pytest.mark.parametrize(
    ("fabric", "given"),
    [
        (FabricChoice("fattree", 4), False),
        (FabricChoice("units:units=6,servers=8"), False),
        (FabricChoice("units:port_bps=40M"), True),
        (FabricChoice("leafspine:capacity_bps=1M"), True),
        (FabricChoice("fattree", capacity="20M"), True),
        (FabricChoice("fattree", scale="1/10"), True),
        (FabricChoice("my.yml"), True),
    ],
)
def test_rates_are_free_unless_something_says_them(fabric: FabricChoice, given: bool) -> None:
    assert fabric.gives_rates == given


def test_sizes_are_free_unless_something_says_them() -> None:
    assert not JobChoice(model="resnet50").gives_size
    assert JobChoice(gradient_bytes=1000).gives_size
    assert JobChoice(Path("jobs.yml")).gives_size


def test_gradients_get_smaller_as_rates_do_so_that_times_stay() -> None:
    one = problem()
    plan = make_plan(one, "aro", 0)
    slower, slowed = problem_at(one, 0.1, gradients=True), plan.with_rates_times(0.1)
    check(slower, slowed)
    before, after = evaluate(one, plan), evaluate(slower, slowed)
    assert after.sending_rate_bps == pytest.approx(0.1 * before.sending_rate_bps)
    assert after.communication_time_s == pytest.approx(before.communication_time_s, rel=0.01)


def test_a_gradient_that_was_asked_for_stays() -> None:
    one = problem(gradient_bytes=1000)
    assert problem_at(one, 0.1, gradients=False).jobs == one.jobs


@pytest.mark.parametrize(("asked", "left"), [(10**6, LEAST_FRAGMENTS), (10 * 256, 10)])
def test_a_gradient_is_never_made_so_small_that_its_time_means_nothing(asked: int, left: int) -> None:
    """A gradient that has fewer fragments from the start keeps its size."""
    (job,) = problem_at(problem(gradient_bytes=asked), 1e-4, gradients=True).jobs
    assert job.gradient_bytes == left * 256


def test_other_traffic_gets_slower_with_the_links() -> None:
    faults = FaultPlan(background=(Flow("w0", "w4", 5e6),), hostile=(Attack("w1", 1, ("spoof",), 2e6),))
    slower = faults_at(faults, 0.1)
    assert slower is not None
    assert [flow.rate_bps for flow in slower.background] == [500e3]
    assert [attack.rate_bps for attack in slower.hostile] == [200e3]
    assert faults_at(None, 0.1) is None


@pytest.mark.parametrize(
    ("rate_bps", "words"), [(20e6, "20 Mbit/s"), (250e3, "250 kbit/s"), (1e11, "100 Gbit/s"), (50, "50 bit/s")]
)
def test_rates_in_words(rate_bps: float, words: str) -> None:
    assert in_words(rate_bps, "bit/s") == words


def test_a_rate_to_try_leaves_room() -> None:
    """A machine that carried half of 20 Mbit/s was full, so 6 Mbit/s are advised, as a scale of the described rates."""
    assert rate_to_try(problem(), 1.0, 0.5).startswith("try links of 6 Mbit/s (--scale 0.3)")
    assert "(--scale 0.06)" in rate_to_try(problem(), 0.2, 0.5)


def test_a_rate_to_try_instead_of_a_chosen_one_is_no_scale() -> None:
    """The scale would be of the default rates, while the advice is about the chosen ones."""
    advice = rate_to_try(problem(), 1.0, 0.5, Free(rates=True))
    assert advice.startswith("try links of 6 Mbit/s (--capacity 6M), or run again when nothing else runs")
    assert "(--scale 0.3)" in rate_to_try(problem(), 1.0, 0.5, Free(rates=True, described=True))
