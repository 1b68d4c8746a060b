"""What happened between two moments: who waited, what was free, and who else took the processors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inakit.traffic.measure.processors import (
    ENDPOINTS,
    IDLE,
    PRESSURE,
    SCHEDSTAT,
    UNSEEN,
    Moment,
    Process,
    Processors,
    Second,
    Thread,
    second,
)

OWNER = 100
START = Moment(
    at_s=10.0,
    processors=Processors(idle=50.0, working=40.0, low=5.0, softirq=3.0, stolen=1.0, online=2),
    processes={
        (OWNER, 1): Process("inakit", 1, 9.0, low=False),
        (101, 2): Process("simple_switch", OWNER, 3.0, low=False),
        (14, 0): Process("ksoftirqd/1", 2, 1.0, low=False),
        (200, 3): Process("make", 1, 0.5, low=False),
    },
    threads={
        ENDPOINTS: Thread("endpoints", 8.0, 1.0),
        14: Thread("ksoftirqd/1", 1.0, 0.1),
        102: Thread("simple_switch", 2.0, 0.5),
    },
    throttled_s=1.0,
    pressure_s=4.0,
)
ALONE = replace(
    START,
    at_s=12.0,
    processors=Processors(idle=51.0, working=42.6, low=5.0, softirq=3.4, stolen=1.0, online=2),
    processes={
        **START.processes,
        (OWNER, 1): Process("inakit", 1, 10.6, low=False),
        (101, 2): Process("simple_switch", OWNER, 4.0, low=False),
    },
    threads={
        ENDPOINTS: Thread("endpoints", 9.5, 1.2),
        14: Thread("ksoftirqd/1", 1.1, 0.16),
        102: Thread("simple_switch", 3.0, 1.3),
        999: Thread("simple_switch", 0.0, 5.0),
    },
    pressure_s=5.0,
)
BESIDE = replace(
    ALONE,
    processors=Processors(idle=50.0, working=43.6, low=5.8, softirq=3.4, stolen=1.0, online=2),
    processes={
        **ALONE.processes,
        (201, 5): Process("cc1plus", 200, 0.8, low=False),
        (202, 6): Process("cc1plus", 200, 0.4, low=False),
        (300, 7): Process("backup", 1, 0.8, low=True),
    },
)


def from_start(later: Moment, earlier: Moment = START) -> Second:
    return second(earlier, later, OWNER)


def test_alone_what_is_idle_is_free() -> None:
    found = from_start(ALONE)
    assert (found.start_s, found.end_s, found.processors) == (10.0, 12.0, 2)
    assert found.free == found.spare == pytest.approx(0.25)
    assert (found.others, found.stolen, found.throttled) == ((), 0.0, 0.0)


def test_what_interrupts_did_and_the_clock_missed_is_not_free() -> None:
    missed = replace(ALONE, processors=ALONE.processors._replace(softirq=START.processors.softirq))
    assert from_start(missed).free == pytest.approx(0.25)


def test_waits_are_shares_of_the_time_that_passed() -> None:
    found = from_start(ALONE)
    assert found.endpoints == pytest.approx(0.1)
    assert found.switches == pytest.approx(0.03)
    assert found.somebody_waited == pytest.approx(0.5)
    assert found.source == SCHEDSTAT


def test_what_own_processes_waited_counts_as_far_as_others_had_the_processors() -> None:
    found = from_start(BESIDE)
    assert found.switches == pytest.approx(0.4 * 0.5)


def test_what_others_took_is_free_but_for_what_interrupts_did_meanwhile() -> None:
    found = from_start(BESIDE)
    own_s = 1.6 + 1.0 + 0.4  # the processes of the run, and interrupts
    assert found.free == pytest.approx((4.0 - own_s) / 4.0)
    assert found.spare == pytest.approx(0.8 / 4.0)


def test_a_run_that_leaves_others_little_leaves_little_free() -> None:
    greedy = {**BESIDE.processes, (OWNER, 1): Process("inakit", 1, 11.5, low=False)}
    assert from_start(replace(BESIDE, processes=greedy)).free == pytest.approx(0.1 / 4.0)


def test_others_go_by_name_the_greatest_first() -> None:
    cc1plus, backup = from_start(BESIDE).others
    assert (cc1plus.name, cc1plus.processes, cc1plus.low) == ("cc1plus", 2, False)
    assert cc1plus.share == pytest.approx(0.3)
    assert (backup.name, backup.processes, backup.low) == ("backup", 1, True)


def test_what_no_process_accounts_for_is_of_others_that_cannot_be_seen() -> None:
    hidden = replace(ALONE, processors=ALONE.processors._replace(idle=50.0, working=43.6))
    (found,) = from_start(hidden).others
    assert found.name == UNSEEN
    assert found.share == pytest.approx(0.25)


def test_stolen_and_throttled_time() -> None:
    withheld = replace(ALONE, processors=ALONE.processors._replace(stolen=2.0), throttled_s=1.5)
    found = from_start(withheld)
    assert found.stolen == pytest.approx(0.25)
    assert found.throttled == pytest.approx(0.25)


def test_kernels_that_tell_less() -> None:
    untold = replace(START, threads=None, throttled_s=None), replace(ALONE, threads=None, throttled_s=None)
    found = from_start(untold[1], untold[0])
    assert (found.endpoints, found.switches, found.throttled, found.source) == (None, None, 0.0, PRESSURE)
    assert from_start(replace(untold[1], pressure_s=None), untold[0]).source == IDLE


def test_clocks_that_are_not_read_at_once_give_no_impossible_share() -> None:
    odd = replace(ALONE, processors=ALONE.processors._replace(idle=55.0, stolen=0.9))
    found = from_start(odd)
    assert (found.free, found.stolen) == (1.0, 0.0)
