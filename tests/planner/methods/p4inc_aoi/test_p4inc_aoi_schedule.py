"""P4INC-AOI's problems and schedules: derived figures by hand, files both ways, and every broken constraint named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inakit.planner.core.plan import SolverOutcome
from inakit.planner.methods.p4inc_aoi.optical_system import DataCenter, PlacedJob, Scheduling, Unit
from inakit.planner.methods.p4inc_aoi.schedule import (
    Grant,
    Schedule,
    Slot,
    UnitCircuit,
    check,
    figures,
    load_schedule,
    load_scheduling,
    save_schedule,
    save_scheduling,
    traffic_bps,
)
from inakit.topo.errors import InputError, PlanError

CENTER = DataCenter(
    tuple(Unit(name, servers=4, optical_ports=2, switch_bps=100.0, inc_jobs=1) for name in "abc"),
    port_bps=10.0, reconfiguration_s=0.5, slot_s=2.0, step_bps=5.0,
)  # fmt: skip
REMOTE = PlacedJob(1, {"a": 2}, "b", gradient_bytes=2, update_s=0.25)
LOCAL = PlacedJob(2, {"c": 2}, "b", gradient_bytes=1, update_s=0.25, arrival=1)
PROBLEM = Scheduling(CENTER, (REMOTE, LOCAL))
HEURISTIC = SolverOutcome("heuristic", 0.0, 0.0)
FIRST = Slot((UnitCircuit("a", "b", 1),), (Grant(1, 5.0),))
SECOND = Slot((UnitCircuit("b", "a", 2),), (Grant(1, 10.0), Grant(2, 8.0)))
GOOD = Schedule("by hand", {2: "c"}, (FIRST, SECOND), HEURISTIC)


def test_figures_by_hand() -> None:
    """Job 1 has 16 bit per worker, at 10 bit/s: 10 in slot 0, then 6 and the 2.5 that the new connection loses."""
    check(PROBLEM, GOOD)
    found = figures(PROBLEM, GOOD)
    assert found.iteration_s == {1: 4.25, 2: 4.0}
    assert found.jct_s == pytest.approx({1: 2 + 0.85 + 0.25, 2: 1.0})
    assert (found.ct_bti_s, found.reconfigured, found.connections, found.reconfigurations) == (4.25, (0, 1), 1, 1)


def test_a_job_that_computes_between_its_transfers_needs_the_rate_for_longer() -> None:
    """Three iterations of 8 bit at 8 bit/s, each after 0.5 s of computing, with updates of 0.25 s."""
    job = PlacedJob(1, {"a": 1}, "b", gradient_bytes=1, update_s=0.25, iterations=3, compute_s=0.5)
    slots = (Slot((UnitCircuit("a", "b", 1),), (Grant(1, 8.0),)),) * 3
    problem = Scheduling(CENTER, (job,))
    assert figures(problem, Schedule("by hand", {}, slots, HEURISTIC)).jct_s[1] == pytest.approx(3 * 1.75)


def test_traffic_between_units() -> None:
    job = PlacedJob(1, {"a": 3, "b": 1, "c": 2}, "b", gradient_bytes=4)
    problem = Scheduling(CENTER, (job,))
    slot = Slot((), (Grant(1, 2.0),))
    assert traffic_bps(problem, replace(GOOD, inc={}), slot) == {(1, "a", "b"): 6.0, (1, "c", "b"): 4.0}
    assert traffic_bps(problem, replace(GOOD, inc={1: "a"}), slot) == {(1, "a", "b"): 2.0, (1, "c", "b"): 4.0}
    alone = Scheduling(CENTER, (replace(job, workers={"a": 3}),))
    assert traffic_bps(alone, replace(GOOD, inc={1: "a"}), slot) == {}


def test_what_a_switch_carries() -> None:
    job = PlacedJob(1, {"a": 3, "b": 1}, "b", gradient_bytes=4)
    assert job.switch_loads(None) == {"a": 3, "b": 1 + 3 + 1}
    assert job.switch_loads("a") == {"a": 3, "b": 1 + 1 + 1}
    assert job.switch_loads("b") == {"a": 3, "b": 1 + 3}
    assert replace(job, workers={"a": 3}).switch_loads("a") == {"a": 3}


def test_files_both_ways(tmp_path: Path) -> None:
    save_scheduling(PROBLEM, tmp_path / "problem.json")
    save_schedule(GOOD, tmp_path / "schedule.json")
    assert load_scheduling(tmp_path / "problem.json") == PROBLEM
    assert load_schedule(tmp_path / "schedule.json") == GOOD


def test_equal_slots_in_a_row_are_written_once(tmp_path: Path) -> None:
    long = replace(GOOD, slots=(*(GOOD.slots[:1] * 5000), *GOOD.slots))
    save_schedule(long, tmp_path / "long.json")
    save_schedule(GOOD, tmp_path / "short.json")
    assert load_schedule(tmp_path / "long.json") == long
    text = (tmp_path / "long.json").read_text()
    assert len(text) < (tmp_path / "short.json").stat().st_size + 100
    (tmp_path / "long.json").write_text(text.replace("5001", "1000000000"))
    with pytest.raises(InputError, match="times"):
        load_schedule(tmp_path / "long.json")


BROKEN: dict[str, Callable[[], tuple[Scheduling, Schedule]]] = {
    "placement": lambda: (PROBLEM, replace(GOOD, inc={2: "a"})),
    "INC capacity": lambda: (
        Scheduling(CENTER, (LOCAL, replace(LOCAL, number=1))),
        Schedule("", {1: "c", 2: "c"}, (Slot((), ()), Slot((), (Grant(1, 8.0), Grant(2, 8.0)))), HEURISTIC),
    ),
    "switch bandwidth": lambda: (PROBLEM, replace(GOOD, slots=(FIRST, replace(SECOND, grants=(Grant(2, 60.0),))))),
    "circuits": lambda: (PROBLEM, replace(GOOD, slots=(replace(FIRST, circuits=(UnitCircuit("a", "a", 1),)), SECOND))),
    "ports": lambda: (PROBLEM, replace(GOOD, slots=(FIRST, replace(SECOND, circuits=(UnitCircuit("a", "b", 3),))))),
    "port rate": lambda: (PROBLEM, replace(GOOD, slots=(replace(FIRST, grants=(Grant(1, 6.0),)), SECOND))),
    "completion": lambda: (PROBLEM, replace(GOOD, slots=(FIRST, replace(SECOND, grants=(Grant(1, 4.0),))))),
    "duration": lambda: (PROBLEM, replace(GOOD, slots=(replace(FIRST, grants=(Grant(2, 1.0),)), SECOND))),
}


@pytest.mark.parametrize("constraint", BROKEN)
def test_a_broken_constraint_is_named(constraint: str) -> None:
    problem, schedule = BROKEN[constraint]()
    with pytest.raises(PlanError, match=f"constraint '{constraint} "):
        check(problem, schedule)


def test_a_horizon_too_short_is_named() -> None:
    with pytest.raises(PlanError, match=r"completion.*T = 1"):
        check(Scheduling(CENTER, (REMOTE, LOCAL), horizon=1), GOOD)


def test_a_job_larger_than_its_unit_is_refused() -> None:
    with pytest.raises(InputError, match="constraint 'servers'"):
        Scheduling(CENTER, (replace(REMOTE, workers={"a": 5}),))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"workers": {}}, "no worker"),
        ({"workers": {"z": 1}}, "unit 'z'"),
        ({"gradient_bytes": 0}, "gradient_bytes is 0"),
        ({"update_s": -1.0}, "update_s is -1"),
        ({"update_s": float("nan")}, "update_s is nan"),
        ({"kind": "sorting"}, "choose from training, mapreduce"),
    ],
)
def test_a_job_that_makes_no_sense_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Scheduling(CENTER, (replace(REMOTE, **change),))


def test_a_data_centre_that_makes_no_sense_is_refused() -> None:
    for change, message in (
        ({"reconfiguration_s": 2.0}, "make slots longer"),
        ({"port_bps": 0.0}, "port_bps is 0"),
        ({"units": CENTER.units * 2}, "given 2 times"),
        ({"units": (replace(CENTER.units[0], servers=8, leaves=3, spines=2),)}, "8 servers on 3 leaves: a multiple"),
        ({"units": (replace(CENTER.units[0], leaves=2),)}, "leaves and uplinks, and no spines"),
        ({"units": (replace(CENTER.units[0], leaves=0, spines=2),)}, "leaves is 0"),
        ({"units": (replace(CENTER.units[0], spines=1, uplink_bps=0.0),)}, "uplink_bps is 0"),
    ):
        with pytest.raises(InputError, match=message):
            replace(CENTER, **change)
    with pytest.raises(InputError, match="horizon is 0"):
        Scheduling(CENTER, (REMOTE,), horizon=0)
