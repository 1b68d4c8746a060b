"""A run that is slowed down as a whole: the plan keeps its proportions, and results are told in the described time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inakit.experiments.run.dilation import (
    TIMEOUTS,
    as_described,
    options_for,
    slowed_options,
    slowed_problem,
)
from inakit.experiments.run.planning import make_plan
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.planner.core.check import check
from inakit.planner.core.evaluate import evaluate
from inakit.traffic.closed_loop import ReliableOptions
from inakit.traffic.endpoints.options import WorkerOptions
from inakit.traffic.measure.measured import Iteration, Measured

SCALE = 0.125


def test_all_that_takes_time_takes_longer_alike() -> None:
    problem = build_problem(FabricChoice("aro-figure1"), JobChoice())
    problem = replace(problem, jobs=tuple(replace(job, arrival_s=1.0, compute_s=0.2) for job in problem.jobs))
    plan = make_plan(problem, "aro", 0)
    slower, slowed = slowed_problem(problem, SCALE), plan.with_rates_times(SCALE)
    check(slower, slowed)
    before, after = evaluate(problem, plan), evaluate(slower, slowed)
    assert after.communication_time_s == pytest.approx(before.communication_time_s / SCALE)
    assert after.ps_ingress_bytes == before.ps_ingress_bytes
    assert [(job.arrival_s, job.compute_s) for job in slower.jobs] == [(8.0, 1.6)]


def test_what_a_slowed_run_measures_is_told_in_the_described_time() -> None:
    found = Iteration(1, 0, 20.0, 5.0, {"w1": 2.5e6}, {"w1": 1000}, {"ps": 500}, retransmissions=3, exact=True)
    told = as_described(Measured("reliable", (found,), late_s={"w1": 0.5}), SCALE)
    quick = replace(found, started_s=2.5, communication_time_s=0.625, sending_rate_bps={"w1": 2e7})
    assert told == Measured("reliable", (quick,), late_s={"w1": 0.0625})


def test_endpoints_wait_longer_before_they_send_again() -> None:
    options = ReliableOptions(WorkerOptions(first_timeout_s=0.2, min_timeout_s=0.05), stall_s=10)
    slower = slowed_options(options, SCALE)
    assert (slower.worker.first_timeout_s, slower.worker.min_timeout_s, slower.stall_s) == pytest.approx((1.6, 0.4, 80))
    assert slower.worker.direct_after_s is None
    assert slowed_options(None, 1.0) == ReliableOptions()


def test_on_slow_links_endpoints_wait_as_many_packets_as_on_quick_ones() -> None:
    def first_timeout_s(capacity: str) -> float:
        return options_for(
            build_problem(FabricChoice("aro-figure1", capacity=capacity), JobChoice())
        ).worker.first_timeout_s

    assert first_timeout_s("20M") == first_timeout_s("1M") == ReliableOptions().worker.first_timeout_s
    assert first_timeout_s("200k") == pytest.approx(5 * first_timeout_s("1M"))


def test_every_time_of_a_worker_is_slowed() -> None:
    """`TIMEOUTS` has every option of `WorkerOptions` in seconds. A new option fails this test until it is added."""
    times = {name for name in WorkerOptions.__dataclass_fields__ if name.endswith("_s")}
    assert times == set(TIMEOUTS)
