"""What a monitor sees of a run while it goes on, on a network without links."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from inakit.topo.live.priority import Priority
from inakit.traffic.measure import monitor
from inakit.traffic.measure.counters import InterfaceCounters, Snapshot, SwitchCounters, Watched
from inakit.traffic.measure.monitor import Monitor, settled

NOTHING = Watched(hosts=())


def test_a_run_that_has_time_is_not_overloaded_so_far() -> None:
    with Monitor(NOTHING, period_s=0.1) as watching:
        time.sleep(0.3)
        assert watching.seconds
        assert watching.overloaded_so_far(planned_s=0.3) == ()
    assert watching.after.at_s > watching.before.at_s


def test_a_run_that_is_far_behind_its_plan_is_overloaded_already() -> None:
    with Monitor(NOTHING, period_s=0.1) as watching:
        watching.before = replace(watching.before, at_s=watching.before.at_s - 20.0)
        found = watching.overloaded_so_far(planned_s=10.0)
        assert watching.overloaded_so_far() == ()
    assert found[-1].startswith("the run is behind its plan: what was to take 10.0 s has taken 20.")


@pytest.mark.root
def test_the_thread_that_is_watched_goes_ahead_of_other_work_until_the_end() -> None:
    before = Priority.of(0)
    with Monitor(NOTHING):
        assert Priority.of(0) != before
    assert Priority.of(0) == before


class Draining:
    """A network whose port still receives `packets` packets, one in each look."""

    def __init__(self, packets: int) -> None:
        self.packets, self.looks = packets, 0

    def links(self) -> dict[str, InterfaceCounters]:
        """The interface's counters at the next look."""
        self.looks += 1
        return {"s1-1": InterfaceCounters(0, min(self.looks, self.packets), 0, 0, 0, 0)}

    def snapshot(self) -> Snapshot:
        """The counters at the next look; a packet comes after the interface was looked at."""
        counted, seen = self.links(), min(self.looks + 1, self.packets)
        return Snapshot(0.0, (0,), counted, {"s1-1": 0}, {"s1": SwitchCounters({}, {1: seen}, {}, {})})


@pytest.mark.parametrize("packets", [0, 1, 5])
def test_packets_that_still_move_are_waited_for(packets: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "QUIET_S", 0.0)
    network: Any = Draining(packets)
    found = settled(network)
    assert found.switches["s1"].received[1] == found.interfaces["s1-1"].received_packets == packets


def test_a_network_that_is_never_quiet_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "QUIET_S", 0.01)
    monkeypatch.setattr(monitor, "PATIENCE_S", 0.05)
    network: Any = Draining(1_000_000)
    settled(network)
    assert 2 <= network.looks < 10
