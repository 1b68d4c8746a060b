"""What a monitor sees of a run while it goes on, on a network without links."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from topo.live.priority import Priority
from traffic.measure.counters.snapshots import Watched
from traffic.measure.monitor import Monitor
from traffic.measure.verdict import Invariant

NOTHING = Watched(hosts=())


def test_a_run_that_has_time_is_not_overloaded_so_far() -> None:
    with Monitor(NOTHING, period_s=0.1) as monitor:
        time.sleep(0.3)
        assert monitor.seconds
        assert monitor.overloaded_so_far(planned_s=0.3) == ()
    assert monitor.after.at_s > monitor.before.at_s


def test_a_run_that_is_far_behind_its_plan_is_overloaded_already() -> None:
    with Monitor(NOTHING, period_s=0.1) as monitor:
        monitor.before = replace(monitor.before, at_s=monitor.before.at_s - 20.0)
        found = monitor.overloaded_so_far(planned_s=10.0)
        assert monitor.overloaded_so_far() == ()
    assert found[-1].invariant == Invariant.PACE
    assert found[-1].text.startswith("the run is behind its plan: what was to take 10.0 s has taken 20.")


@pytest.mark.root
def test_the_thread_that_is_watched_goes_ahead_of_other_work_until_the_end() -> None:
    before = Priority.of(0)
    with Monitor(NOTHING):
        assert Priority.of(0) != before
    assert Priority.of(0) == before
