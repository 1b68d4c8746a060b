"""Whether a run had to wait for a processor and who had it: every rule and every fallback, from recorded seconds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inakit.traffic.measure.contention import (
    BEHIND_S,
    CLEAR_SECONDS,
    RECENT_SECONDS,
    blame,
    clear_overload,
    overload_reasons,
)
from inakit.traffic.measure.processors import UNSEEN, Consumer, Second
from inakit.traffic.measure.verdict import Limits

LIMITS = Limits()
HOGS = (
    Consumer("cc1plus", 2, 0.66, low=False),
    Consumer("ld", 1, 0.1, low=False),
    Consumer("kworker/1:1", 1, 0.04, low=False),
)
RIGHT = Second(
    start_s=0.0, end_s=1.0, processors=2, free=0.4, spare=0.4, endpoints=0.02, switches=0.01, somebody_waited=0.1
)  # fmt: skip


def texts(*seconds: Second) -> list[str]:
    return list(overload_reasons(seconds, LIMITS))


def test_a_run_that_never_waits_is_right_whatever_others_take() -> None:
    beside = replace(RIGHT, spare=0.0, somebody_waited=1.0, others=HOGS)
    assert texts(RIGHT, beside) == []


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (
            replace(RIGHT, free=0.031),
            "the emulation's own work left too little of the processors: 3.1% at worst, in 1 of 2 s; "
            "at least 5% must be free",
        ),
        (
            replace(RIGHT, endpoints=0.48),
            "the endpoints had to wait for a processor: 48% of a second at worst, in 1 of 2 s; "
            f"{LIMITS.endpoints:.0%} is the most",
        ),
        (
            replace(RIGHT, switches=0.6),
            "the switches had to wait for a processor: 60% of a second at worst, in 1 of 2 s; "
            f"{LIMITS.switches:.0%} is the most",
        ),
        (
            replace(RIGHT, throttled=0.5),
            "a quota of CPU time kept the emulation waiting: 50% of a second at worst, in 1 of 2 s; "
            f"{LIMITS.throttled:.0%} is the most: "
            "raise the quota of its control group or container, or lower the rates",
        ),
        (
            replace(RIGHT, stolen=0.5),
            "the hypervisor gave the processors to other machines: 50% of a second at worst, in 1 of 2 s; "
            f"{LIMITS.stolen:.0%} is the most: give this machine processors of its own, or lower the rates",
        ),
    ],
)
def test_each_rule_has_its_reason(second: Second, reason: str) -> None:
    assert texts(RIGHT, second) == [reason]


UNTOLD = replace(RIGHT, endpoints=None, switches=None, free=0.0)
NO_TIME_LEFT = (
    "the processors had no time left, and this kernel does not tell who waited: 1.0% at worst idle or with work of a "
    "low priority, in 1 of 1 s; at least 5% is needed"
)


def test_without_schedstat_work_of_a_low_priority_counts_as_free() -> None:
    assert texts(replace(UNTOLD, somebody_waited=1.0, spare=0.3)) == []
    assert texts(replace(UNTOLD, somebody_waited=1.0, spare=0.01)) == [NO_TIME_LEFT]


def test_without_schedstat_pressure_can_acquit() -> None:
    assert texts(replace(UNTOLD, somebody_waited=0.02, spare=0.01)) == []


def test_without_schedstat_and_pressure_idle_time_decides() -> None:
    assert texts(replace(UNTOLD, somebody_waited=None, spare=0.3)) == []
    assert texts(replace(UNTOLD, somebody_waited=None, spare=0.01)) == [NO_TIME_LEFT]


def accused(*seconds: Second) -> list[str]:
    return list(blame(seconds, LIMITS))


def test_others_are_named_with_what_they_took_and_for_how_long() -> None:
    beside = replace(RIGHT, endpoints=0.5, others=HOGS)
    (cause,) = accused(RIGHT, beside, beside)
    assert cause == (
        "cc1plus (2 processes, not of this run), ld (1 process, not of this run) took 80% of the processors "
        "in 2 of 3 s: end them, or wait"
    )


def test_work_of_a_low_priority_is_to_blame_only_where_the_run_waited() -> None:
    low = tuple(replace(consumer, low=True) for consumer in HOGS)
    assert accused(replace(RIGHT, others=low)) == []
    assert accused(replace(RIGHT, others=low, free=0.01)) == []
    assert len(accused(replace(RIGHT, others=low, endpoints=0.5))) == 1


def test_work_of_equal_priority_is_named_if_it_was_there_for_long() -> None:
    beside = replace(RIGHT, others=HOGS)
    assert len(accused(beside, RIGHT)) == 1
    assert accused(beside, *[RIGHT] * 9) == []


def test_little_work_is_not_named() -> None:
    assert accused(replace(RIGHT, endpoints=0.5, others=(Consumer("cron", 1, 0.05, low=False),))) == []


def test_what_cannot_be_seen_is_said_so() -> None:
    (cause,) = accused(replace(RIGHT, endpoints=0.5, others=(Consumer(UNSEEN, 0, 0.5, low=False),)))
    assert cause.startswith("processes that cannot be seen from here (of other containers, or very short ones)")


def so_far(*seconds: Second, elapsed_s: float = 4.0, planned_s: float | None = None) -> list[str]:
    """What each reason begins with."""
    return [reason[:16] for reason in clear_overload(seconds, LIMITS, elapsed_s, planned_s)]


def test_several_bad_seconds_are_a_clear_overload_and_one_is_not() -> None:
    bad = replace(RIGHT, free=0.0)
    assert so_far(RIGHT, bad, bad) == []
    assert so_far(RIGHT, *[bad] * CLEAR_SECONDS) == ["the emulation's "]
    assert so_far(*[bad] * CLEAR_SECONDS, *[RIGHT] * RECENT_SECONDS) == []


def test_a_run_far_behind_its_plan_is_a_clear_overload() -> None:
    assert so_far(RIGHT, elapsed_s=12.0, planned_s=11.0) == []
    assert so_far(RIGHT, elapsed_s=104.0 + BEHIND_S, planned_s=100.0) == []
    assert so_far(RIGHT, elapsed_s=12.0, planned_s=4.0) == ["the run is behin"]


def test_others_are_named_with_a_clear_overload_and_not_without() -> None:
    beside = replace(RIGHT, others=HOGS)
    assert so_far(beside) == []
    assert so_far(beside, elapsed_s=12.0, planned_s=4.0) == ["cc1plus (2 proce", "the run is behin"]
