"""A run is ended early when it clearly falls behind its plan, and at no other time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from inakit.experiments.run.pace import CLEAR, WINDOW_S, Pace, PlannedProgress, TooSlowError, planned_progress
from inakit.experiments.run.planning import make_plan
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.planner.core.evaluate import evaluate

TICK_S = 0.2
"""How often a run tells its progress."""


def last_told(planned: tuple[PlannedProgress, ...], fraction_at: Callable[[float], float], until_s: float) -> float:
    """Simulate a run of which `fraction_at(now)` is done at each time; when it was over, in seconds."""
    now = 0.0
    pace = Pace(planned, lambda _: None, lambda: now)
    while now < until_s:
        pace(fraction_at(now))
        now += TICK_S
    return now


def ended_at(
    planned: tuple[PlannedProgress, ...], fraction_at: Callable[[float], float], until_s: float
) -> tuple[float, float]:
    """When such a run was ended early, and the share of its plan that it is said to have done."""
    seen: list[float] = []

    def fraction(now: float) -> float:
        seen.append(now)
        return fraction_at(now)

    with pytest.raises(TooSlowError) as ended:
        last_told(planned, fraction, until_s)
    return seen[-1], ended.value.share


ONE = (PlannedProgress(arrival_s=0.0, duration_s=100.0, weight=1.0),)


def test_a_run_at_half_its_pace_is_ended_after_one_window() -> None:
    at_s, share = ended_at(ONE, lambda now: now / 200, 100)
    assert WINDOW_S <= at_s <= WINDOW_S + 2 * TICK_S
    assert share == pytest.approx(0.5)


def test_a_run_that_stops_in_its_middle_is_ended() -> None:
    at_s, _ = ended_at(ONE, lambda now: min(now, 40.0) / 100, 100)
    assert 40 < at_s < 40 + WINDOW_S


@pytest.mark.parametrize("pace", [1.0, 0.95, CLEAR + 0.01])
def test_a_run_that_is_not_clearly_too_slow_goes_on(pace: float) -> None:
    assert last_told(ONE, lambda now: min(1.0, pace * now / 100), 100 / pace) >= 100


def test_a_hiccup_shorter_than_a_quarter_of_a_window_ends_nothing() -> None:
    lost_s = (1 - CLEAR) * WINDOW_S - 2 * TICK_S
    assert last_told(ONE, lambda now: min(1.0, (now if now < 50 else max(50.0, now - lost_s)) / 100), 100) >= 100


def test_a_run_that_is_over_is_not_ended() -> None:
    assert last_told((PlannedProgress(0.0, 10.0, 1.0),), lambda now: min(1.0, now / 10), 40) >= 40


def test_a_job_that_is_still_to_come_is_not_missed() -> None:
    """The second of two equal jobs arrives when the first has ended."""
    two = (PlannedProgress(0.0, 20.0, 0.5), PlannedProgress(20.0, 20.0, 0.5))
    assert last_told(two, lambda now: min(1.0, now / 40), 40) >= 40
    at_s, _ = ended_at(two, lambda now: min(now, 20.0) / 40, 60)
    assert at_s > 20


@pytest.mark.parametrize("exchange_s", [0.1, 1.0, 3.0])
def test_workers_that_compute_are_not_taken_for_slow_ones(exchange_s: float) -> None:
    """In each iteration workers compute for 4 s, in which they send nothing."""
    cycle_s, iterations = 4.0 + exchange_s, 20

    def fraction(now: float) -> float:
        whole, rest = divmod(now, cycle_s)
        return min(1.0, (whole + min(1.0, rest / exchange_s)) / iterations)

    total_s = cycle_s * iterations
    assert last_told((PlannedProgress(0.0, total_s, 1.0, cycle_s),), fraction, total_s) >= total_s


@pytest.fixture
def planned() -> Iterator[tuple[PlannedProgress, ...]]:
    problem = build_problem(FabricChoice("aro-figure1"), JobChoice(iterations=2))
    (job,) = problem.jobs
    problem = replace(problem, jobs=(replace(job, arrival_s=3.0, compute_s=0.5),))
    yield planned_progress(problem, evaluate(problem, make_plan(problem, "aro", 0)))


def test_the_course_of_a_job_is_the_evaluators(planned: tuple[PlannedProgress, ...]) -> None:
    """Two iterations of 548 kB at 20 Mbit/s, and 0.5 s of computing after each."""
    (course,) = planned
    assert (course.arrival_s, course.weight) == (3.0, 1.0)
    exchange_s = 2141 * 326 * 8 / 20e6
    assert course.cycle_s == pytest.approx(exchange_s + 0.5, rel=1e-3)
    assert course.duration_s == pytest.approx(2 * course.cycle_s)


class Monitor:
    """Stands for a monitor that sees an overload after `after` looks."""

    def __init__(self, after: int) -> None:
        self.looks, self.after = 0, after

    def overloaded_so_far(self) -> tuple[str, ...]:
        self.looks += 1
        return ("the endpoints had to wait for a processor",) if self.looks > self.after else ()


def test_a_run_that_had_to_wait_is_ended_with_the_cause_though_it_keeps_its_pace() -> None:
    pace = Pace((), lambda _: None)
    pace.monitor = Monitor(after=2)
    pace(0.1)
    pace(0.2)
    with pytest.raises(TooSlowError, match="it is overloaded already") as ended:
        pace(0.3)
    assert (ended.value.causes, ended.value.share) == (("the endpoints had to wait for a processor",), 1.0)


def test_a_run_that_is_done_is_not_ended_any_more() -> None:
    pace = Pace((), lambda _: None)
    pace.monitor = Monitor(after=0)
    pace(1.0)
