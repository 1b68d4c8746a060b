"""Schedules on a running network: circuits change while jobs run, lost packets are sent again, every sum is exact."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from inakit.experiments.run.circuit_schedule import Course, run_course
from inakit.planner.core.plan import SolverOutcome
from inakit.planner.methods.p4inc_aoi.optical_system import DataCenter, PlacedJob, Scheduling, Unit
from inakit.planner.methods.p4inc_aoi.schedule import Failure, Grant, Schedule, Slot, UnitCircuit, check, figures
from inakit.planner.registry import find_scheduler
from inakit.topo.errors import PlanError

PORT_BPS = 4e6
CENTER = DataCenter(
    tuple(Unit(name, 2, 2, 32e6, 2) for name in ("gpu1", "gpu2", "cpu1", "cpu2")), PORT_BPS, 0.1, 0.6, 1e6
)
JOBS = (
    PlacedJob(1, {"gpu1": 2}, "cpu1", 60_000, update_s=0.05, iterations=2),
    PlacedJob(2, {"gpu2": 2}, "cpu2", 60_000),
    PlacedJob(3, {"gpu1": 1, "gpu2": 1}, "cpu2", 60_000, arrival=1),
)
FIRST = (UnitCircuit("cpu1", "gpu1", 1),)
SECOND = (UnitCircuit("cpu1", "gpu1", 2),)
THIRD = (UnitCircuit("cpu2", "gpu1", 1), UnitCircuit("cpu2", "gpu2", 1))
SCHEDULE = Schedule(
    "hand",
    {2: "gpu2"},
    (
        Slot(FIRST, (Grant(1, 2e6), Grant(2, 4e6))),
        Slot(SECOND, (Grant(1, 3e6),)),
        Slot(THIRD, (Grant(3, 3e6),)),
    ),
    SolverOutcome("heuristic", 0.0),
)
"""Job 1 gets a second connection while it runs, job 3 begins while its two are being set, and job 2 needs none."""
SCHEDULING = Scheduling(CENTER, JOBS)


TARGETS = pytest.mark.parametrize(
    "target",
    [
        pytest.param("virtual", marks=pytest.mark.compiler),
        pytest.param("fast", marks=pytest.mark.root),
        pytest.param("bmv2", marks=[pytest.mark.root, pytest.mark.bmv2]),
    ],
)


@TARGETS
def test_what_a_reconfiguration_costs_is_sent_again_and_sums_are_exact(target: str, tmp_path: Path) -> None:
    from inakit.experiments.worlds.registry import find_world  # noqa: PLC0415

    check(SCHEDULING, SCHEDULE)
    course = Course.of(SCHEDULING, SCHEDULE)
    ran = run_course(course, find_world(target), tmp_path, lambda _: None)
    measured = ran.outcome.measured
    assert measured.exact
    assert ran.connections == figures(SCHEDULING, SCHEDULE).connections == 3
    assert ran.lost > 0
    assert measured.of_job(1).retransmissions + measured.of_job(3).retransmissions > 0
    assert [i.job for i in measured.iterations] == [1, 1, 2, 3]
    assert set(ran.jct_s) == {1, 2, 3}


@TARGETS
def test_a_job_sums_in_the_slots_that_another_has_left(target: str, tmp_path: Path) -> None:
    """Three jobs, of which one at a time uses INC: each has all slots of its unit, which the last one's sums fill."""
    from inakit.experiments.worlds.registry import find_world  # noqa: PLC0415

    units = tuple(replace(unit, inc_jobs=1, servers=4, aggregator_slots=16) for unit in CENTER.units)
    jobs = tuple(PlacedJob(number, {"gpu1": 2}, "cpu1", 40_000) for number in (1, 2, 3))
    scheduling = Scheduling(replace(CENTER, units=units), jobs)
    slots = tuple(Slot(FIRST, (Grant(number, 2e6),)) for number in (1, 2, 3))
    course = Course.of(scheduling, replace(SCHEDULE, inc=dict.fromkeys((1, 2, 3), "gpu1"), slots=slots))
    assert [planned.tree.aggregators[0].first_slot for planned in course.plan.trees] == [0, 0, 0]
    assert [planned.tree.slots for planned in course.plan.trees] == [16, 16, 16]
    ran = run_course(course, find_world(target), tmp_path, lambda _: None)
    assert ran.outcome.measured.exact
    assert ran.outcome.verdict == "VALID"
    assert ran.outcome.measured.retransmissions == 0, "no slot is busy with another job's sum"
    assert {job.number: ran.outcome.measured.of_job(job.number).ps_ingress_bytes for job in jobs} == {1: 0, 2: 0, 3: 0}


def test_labels_carry_what_the_slot_grants_between_units_only() -> None:
    course = Course.of(SCHEDULING, SCHEDULE)
    first, second, _ = (course.label_rates(slot) for slot in SCHEDULE.slots)
    assert {key[0] for key in first} == {1, 3}, "all of job 2's packets stay in their unit"
    assert {rate for key, rate in first.items() if key[0] == 1} == {1e6}, "two trees for two connections"
    assert {rate for key, rate in second.items() if key[0] == 3} == {0}


def test_reductions_are_means_over_pairs_and_need_both() -> None:
    from inakit.experiments.papers.p4inc_aoi.testbed import (  # noqa: PLC0415
        REDUCTIONS,
        ScenarioRow,
        Totals,
        claims,
    )

    totals = {
        "noINC-FCFS": Totals({"ResNet50": 8.0, "VGG16": 20.0}, 10),
        "INC-FCFS": Totals({"ResNet50": 4.0, "VGG16": 15.0}, 4),
        "noINC-TW": Totals({"ResNet50": 6.0, "VGG16": 10.0}, 5),
        "INC-TW": Totals({"ResNet50": 3.0, "VGG16": 8.0}, 2),
    }
    found = {each.what: each.ours(totals) for each in REDUCTIONS}
    assert found["connections, by INC"] == pytest.approx(60)
    assert found["ResNet50's JCT, by INC with FCFS"] == pytest.approx(50)
    assert found["VGG16's JCT, by TW with INC"] == pytest.approx(100 * 7 / 15)
    assert all(each.ours({"INC-TW": totals["INC-TW"]}) is None for each in REDUCTIONS)

    rows = [ScenarioRow(name, each, each, 0, 0, 0.0, exact=True, verdict="VALID") for name, each in totals.items()]
    assert all(claim.holds for claim in claims(rows))
    late = replace(totals["INC-TW"], jct_s={"ResNet50": 3.0, "VGG16": 9.5})
    assert [claim.holds for claim in claims([*rows[:3], replace(rows[3], measured=late)])] == [True, False]
    assert not next(claims([*rows[:3], replace(rows[3], exact=False)])).holds


def test_the_testbeds_table_has_the_time_that_slots_waited_for_late_jobs() -> None:
    from inakit.experiments.papers.p4inc_aoi.testbed import ScenarioRow, Totals, rows_table  # noqa: PLC0415

    same = Totals({"VGG16": 20.0}, 3)
    late = ScenarioRow("INC-TW", same, same, 7, 8, 1.25, exact=True, verdict="VALID")
    table = rows_table([late])
    shown = {str(column.header): list(column.cells) for column in table.columns}
    assert shown["slots\nlate (s)"] == ["1.25"] and late.cells()["behind_s"] == 1.25


@pytest.mark.compiler
def test_in_virtual_time_a_schedule_is_the_same_again(tmp_path: Path) -> None:
    from inakit.experiments.run.circuit_schedule import Course, run_course  # noqa: PLC0415
    from inakit.experiments.worlds.registry import find_world  # noqa: PLC0415

    course = Course.of(SCHEDULING, SCHEDULE)
    first, second = (run_course(course, find_world("virtual"), tmp_path, lambda _: None) for _ in range(2))
    assert first.outcome.measured == second.outcome.measured
    assert (first.lost, first.behind_s) == (second.lost, second.behind_s)
    assert first.behind_s == 0


@pytest.mark.compiler
@pytest.mark.parametrize("lasting_s", [0.1, 0.7])
def test_a_circuit_that_fails_costs_its_jobs_time_and_no_sum(lasting_s: float, tmp_path: Path) -> None:
    """Job 1 sends to its PS in the first slot, over one circuit; 0.7 s later the second slot has come."""
    from inakit.experiments.run.circuit_schedule import CircuitFault, Course, run_course  # noqa: PLC0415
    from inakit.experiments.worlds.registry import find_world  # noqa: PLC0415

    course, world = Course.of(SCHEDULING, SCHEDULE), find_world("virtual")
    usual = run_course(course, world, tmp_path / "usual", lambda _: None)
    failed = run_course(course, world, tmp_path / "failed", lambda _: None, fault=CircuitFault(0, 0.05, lasting_s))
    assert failed.outcome.measured.exact
    assert failed.connections == usual.connections, "a repair is no reconfiguration"
    assert failed.lost > usual.lost
    assert usual.jct_s[1] < failed.jct_s[1] < usual.jct_s[1] + lasting_s + 0.3
    assert failed.jct_s[2] == pytest.approx(usual.jct_s[2], 0.01), "job 2 is inside a unit"


@pytest.mark.parametrize("target", [pytest.param("virtual", marks=pytest.mark.compiler),
                                    pytest.param("fast", marks=pytest.mark.root)])  # fmt: skip
def test_pods_sum_in_leaves_and_spines_and_take_the_time_that_is_planned(target: str, tmp_path: Path) -> None:
    """Inside a pod, from a pod to a rack and back: exact sums; uplinks carry half of the servers' links."""
    from inakit.experiments.worlds.registry import find_world  # noqa: PLC0415

    pod = Unit("a", 8, 4, 160e6, 2, nic_bps=8e6, leaves=4, spines=2, uplink_bps=4e6)
    units = (pod, replace(pod, name="b"), Unit("r", 4, 4, 80e6, 2, nic_bps=8e6))
    jobs = (
        PlacedJob(1, {"a": 6}, "b", 250_000, update_s=0.05, iterations=3, compute_s=0.1),
        PlacedJob(2, {"a": 1, "b": 5}, "r", 200_000, update_s=0.05, iterations=2),
        PlacedJob(3, {"b": 2, "r": 2}, "a", 200_000, iterations=2, arrival=1),
        PlacedJob(4, {"r": 3}, "r", 400_000, iterations=2),
    )
    problem = Scheduling(DataCenter(units, 8e6, 0.025, 1.0, 1e6), jobs)
    for name in ("INC-TW", "noINC-TW"):
        schedule = find_scheduler(name).schedule(problem)
        planned = figures(problem, schedule)
        ran = run_course(Course.of(problem, schedule), find_world(target), tmp_path / name, lambda _: None)
        assert ran.outcome.measured.exact
        assert ran.connections == planned.connections
        assert ran.outcome.verdict == "VALID" or target != "virtual", ran.outcome.reasons
        if target == "virtual":
            for job, planned_s in planned.jct_s.items():
                assert ran.jct_s[job] == pytest.approx(planned_s, rel=0.03, abs=0.1)


@TARGETS
def test_after_a_circuit_that_stays_dark_all_jobs_are_done_by_a_new_plan(target: str, tmp_path: Path) -> None:
    """Job 1 loses its circuit and goes on over another port; job 3 waits for the last port of gpu1 until it is done."""
    from inakit.experiments.run.circuit_schedule import CircuitFault  # noqa: PLC0415
    from inakit.experiments.worlds.registry import find_world  # noqa: PLC0415

    course = Course.of(SCHEDULING, SCHEDULE)
    ran = run_course(course, find_world(target), tmp_path, lambda _: None, fault=CircuitFault(0, 0.05, inf))
    assert ran.outcome.measured.exact
    assert set(ran.jct_s) == {1, 2, 3}
    spans = ran.schedule.spans
    assert ran.schedule.slots[0] == SCHEDULE.slots[0] and spans[1][0] == 0 and spans[3][0] > spans[1][1]
    after = Failure(0, ("cpu1", "gpu1"))
    check(SCHEDULING, ran.schedule, after)
    assert all(slot.ports.get(("cpu1", "gpu1"), 0) <= 1 for slot in ran.schedule.slots[1:])
    planned = figures(SCHEDULING, ran.schedule, after).jct_s
    if ran.outcome.verdict == "VALID":
        assert all(ran.jct_s[job] < 1.25 * planned[job] + 0.15 for job in planned), (ran.jct_s, planned)
    assert ran.outcome.verdict == "VALID" or target != "virtual"


def test_a_job_without_another_port_is_named_before_the_run(tmp_path: Path) -> None:
    from inakit.experiments.run.circuit_schedule import CircuitFault  # noqa: PLC0415
    from inakit.experiments.worlds.registry import find_world  # noqa: PLC0415

    units = tuple(replace(unit, optical_ports=1) for unit in CENTER.units)
    jobs = (PlacedJob(1, {"gpu1": 1}, "cpu1", 60_000), PlacedJob(2, {"gpu2": 1}, "cpu2", 60_000))
    slots = (Slot((FIRST[0], THIRD[1]), (Grant(1, 4e6), Grant(2, 4e6))),)
    course = Course.of(Scheduling(replace(CENTER, units=units), jobs), Schedule("hand", {}, slots, SCHEDULE.outcome))
    with pytest.raises(PlanError, match=r"between cpu2 and gpu2 is dark.*job 2 cannot go on.*more optical ports"):
        run_course(course, find_world("virtual"), tmp_path, lambda _: None, fault=CircuitFault(0, 0.0, inf))


@pytest.mark.compiler
def test_a_schedule_of_the_papers_testbed_takes_the_time_that_it_says(tmp_path: Path) -> None:
    """In virtual time: as many connections as planned, and a JCT above the plan's by round trips and packets lost."""
    from rich.console import Console  # noqa: PLC0415

    from inakit.experiments.papers.common.emulated_figure import run_emulated  # noqa: PLC0415, needs Mininet
    from inakit.experiments.papers.common.figure_registry import Request  # noqa: PLC0415
    from inakit.experiments.papers.p4inc_aoi.testbed import Testbed  # noqa: PLC0415, needs Mininet

    testbed = Testbed.of(3, seed=5)
    request = Request(tmp_path, switch="virtual")
    run_emulated("aoi", [testbed.emulated_run("INC-TW")], request, Console(quiet=True))
    row = testbed.row("INC-TW")
    assert (row.verdict, row.exact) == ("VALID", True)
    assert row.measured.connections == row.planned.connections == 2
    assert row.lost > 0
    assert 1 < row.ratio < 1.05
