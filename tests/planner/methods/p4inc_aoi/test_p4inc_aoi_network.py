"""Jobs of units as jobs on hosts: where they are, what sums for them, and how their flows are split."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inakit.experiments.run.circuit_schedule import Course
from inakit.planner.core.check import check
from inakit.planner.core.plan import SolverOutcome
from inakit.planner.methods.p4inc_aoi.optical_network import (
    fabric_of,
    interconnect_of,
    pairs_of,
    plan_of,
    problem_of,
    scaled,
    with_a_host_for_each_gpu,
)
from inakit.planner.methods.p4inc_aoi.optical_system import DataCenter, PlacedJob, Scheduling, Unit
from inakit.planner.methods.p4inc_aoi.schedule import Grant, Schedule, Slot, UnitCircuit, figures
from inakit.planner.methods.p4inc_aoi.schedule import check as check_schedule
from inakit.planner.registry import find_scheduler
from inakit.topo.errors import InputError, PlanError
from inakit.traffic.wire.packet_format import FRAGMENT

WIRE = FRAGMENT.wire_bytes


def center(servers: int = 3) -> DataCenter:
    units = tuple(Unit(name, servers, 2, 64e6, 2) for name in ("gpu1", "gpu2", "cpu1"))
    return DataCenter(units, 8e6, 0.01, 1.0, 2e6)


JOBS = (
    PlacedJob(1, {"gpu1": 2}, "cpu1", 10 * WIRE, update_s=0.1, iterations=2, compute_s=0.2),
    PlacedJob(2, {"gpu1": 2}, "cpu1", 10 * WIRE),
    PlacedJob(3, {"gpu1": 2, "gpu2": 1}, "cpu1", 10 * WIRE),
)
ONCE = Slot(
    (UnitCircuit("cpu1", "gpu1", 1), UnitCircuit("cpu1", "gpu2", 1)), (Grant(1, 2e6), Grant(2, 2e6), Grant(3, 2e6))
)
TWICE = Slot((UnitCircuit("cpu1", "gpu1", 2),), (Grant(2, 4e6),))


def schedule(inc: dict[int, str], *slots: Slot) -> Schedule:
    return Schedule("hand", inc, slots or (ONCE,), SolverOutcome("heuristic", 0.0))


def test_jobs_get_servers_in_turn_and_one_role_each() -> None:
    problem = problem_of(Scheduling(center(), JOBS), schedule({1: "gpu1"}), FRAGMENT)
    assert [job.workers for job in problem.jobs] == [
        ("gpu1h1", "gpu1h2"),
        ("gpu1h3", "gpu1h1"),
        ("gpu1h2", "gpu1h3", "gpu2h1"),
    ]
    assert [job.servers for job in problem.jobs] == [("cpu1h1",), ("cpu1h2",), ("cpu1h3",)]
    assert {FRAGMENT.count(job.gradient_bytes) for job in problem.jobs} == {10}
    assert [job.compute_s for job in problem.jobs] == [0.2, 0, 0], "its switch updates while it sums"


def test_a_unit_without_a_server_for_the_ps_is_refused() -> None:
    full = Scheduling(center(2), (PlacedJob(1, {"gpu1": 2}, "gpu1", WIRE),))
    with pytest.raises(InputError, match="unit 'gpu1' has a worker on each of its 2 servers and none for the PS"):
        problem_of(full, schedule({}), FRAGMENT)


def test_a_ps_over_several_servers_receives_over_all_their_links_and_is_refused_by_packets() -> None:
    units = tuple(replace(unit, nic_bps=4e6, ps_links=2) for unit in center().units)
    scheduling = Scheduling(replace(center(), units=units), JOBS[:1])
    assert JOBS[0].most_bps(scheduling.center, None) == 4e6, "two workers, each over its own link"
    with pytest.raises(InputError, match="unit 'gpu1': by packets a PS runs on one host"):
        problem_of(scheduling, schedule({}), FRAGMENT)


def test_a_switch_that_makes_the_whole_sum_is_the_root() -> None:
    scheduling = Scheduling(center(), JOBS)
    chosen = schedule({1: "gpu1", 3: "gpu1"})
    problem = problem_of(scheduling, chosen, FRAGMENT)
    plan = plan_of(scheduling, chosen, problem)
    check(problem, plan)
    whole, plain, part = (planned.tree for planned in plan.trees)
    assert (whole.root, whole.server) == ("gpu1", "cpu1h1")
    assert (plain.root, plain.aggregators) == ("cpu1h2", ())
    (aggregator,) = part.aggregators
    assert (part.root, aggregator.switch, len(aggregator.children)) == ("cpu1h3", "gpu1", 2)


def one_after_another(count: int, together: int = 1) -> tuple[Scheduling, Schedule]:
    """Jobs with two workers in gpu1 and INC there, of which `together` run in each slot."""
    jobs = tuple(PlacedJob(number, {"gpu1": 2}, "cpu1", 10 * WIRE) for number in range(1, count + 1))
    slots = tuple(
        Slot((UnitCircuit("cpu1", "gpu1", 1),), tuple(Grant(job.number, 2e6) for job in jobs[first : first + together]))
        for first in range(0, count, together)
    )
    return Scheduling(center(6), jobs), schedule(dict.fromkeys(range(1, count + 1), "gpu1"), *slots)


def test_ten_thousand_jobs_one_after_another_find_segments() -> None:
    scheduling, chosen = one_after_another(10_000)
    plan = plan_of(scheduling, chosen, problem_of(scheduling, chosen, FRAGMENT))
    found = {(a.first_slot, a.slots) for planned in plan.trees for a in planned.tree.aggregators}
    assert found == {(0, 256)}, "half of the unit's 512 slots, as two of its jobs can use INC at a time"


def test_jobs_that_run_together_have_segments_of_their_own_and_so_have_their_servers() -> None:
    scheduling, chosen = one_after_another(40, together=2)
    course = Course.of(scheduling, chosen)
    course.check()
    segments = [planned.tree.aggregators[0].first_slot for planned in course.plan.trees]
    assert segments == [0, 256] * 20
    for one, other in zip(course.problem.jobs[::2], course.problem.jobs[1::2], strict=True):
        assert not {*one.workers, *one.servers} & {*other.workers, *other.servers}


def test_a_course_of_jobs_with_the_same_slots_at_the_same_time_is_refused() -> None:
    scheduling, chosen = one_after_another(2, together=2)
    course = Course.of(scheduling, chosen)
    trees = [replace(planned.tree, aggregators=course.plan.trees[0].tree.aggregators) for planned in course.plan.trees]
    with pytest.raises(PlanError, match="rule overlap broken at switch gpu1"):
        replace(course, plan=course.plan.with_trees(trees)).check()


def test_a_course_can_have_slots_in_which_no_job_runs() -> None:
    """The only job arrives in slot 2: nothing is checked in slots 0 and 1."""
    scheduling, chosen = one_after_another(1)
    late = tuple(replace(job, arrival=2) for job in scheduling.jobs)
    Course.of(replace(scheduling, jobs=late), replace(chosen, slots=(Slot((), ()),) * 2 + chosen.slots)).check()


def test_a_units_slots_are_those_that_its_jobs_share() -> None:
    scheduling, chosen = one_after_another(1)
    units = tuple(replace(unit, aggregator_slots=64) for unit in scheduling.center.units)
    fewer = replace(scheduling, center=replace(scheduling.center, units=units))
    (planned,) = plan_of(fewer, chosen, problem_of(fewer, chosen, FRAGMENT)).trees
    assert planned.tree.slots == 32
    none = replace(
        fewer, center=replace(fewer.center, units=tuple(replace(unit, aggregator_slots=1) for unit in units))
    )
    with pytest.raises(InputError, match="unit 'gpu1': 2 jobs use INC at a time, and its 1 aggregator slots leave"):
        plan_of(none, chosen, problem_of(none, chosen, FRAGMENT))


def test_workers_leave_whole_servers_to_parameter_servers() -> None:
    units = (Unit("u", 3, 2, 64e6, 0, gpus=2),)
    jobs = (PlacedJob(1, {"u": 1}, "u", WIRE), PlacedJob(2, {"u": 1}, "u", WIRE))
    scheduling = Scheduling(DataCenter(units, 8e6, 0.01, 1.0, 2e6), jobs)
    problem = problem_of(scheduling, schedule({}, Slot((), (Grant(1, 2e6), Grant(2, 2e6)))), FRAGMENT)
    assert [job.workers for job in problem.jobs] == [("uh1",), ("uh1",)], "two GPUs of one server"
    assert {server for job in problem.jobs for server in job.servers} == {"uh2", "uh3"}


def test_a_flow_over_several_connections_is_several_trees() -> None:
    scheduling = Scheduling(center(), JOBS)
    chosen = schedule({}, ONCE, TWICE)
    plan = plan_of(scheduling, chosen, problem_of(scheduling, chosen, FRAGMENT))
    assert [(planned.job, planned.share) for planned in plan.trees] == [(1, 1.0), (2, 0.5), (2, 0.5), (3, 1.0)]


def test_the_network_has_a_link_for_every_circuit_and_the_ports_there_are() -> None:
    fabric = fabric_of(center())
    assert {frozenset((link.a, link.b)) for link in fabric.links if link.optical} == {
        frozenset(pair) for pair in (("gpu1", "gpu2"), ("gpu1", "cpu1"), ("gpu2", "cpu1"))
    }
    panel = interconnect_of(center(), fabric)
    assert panel.ports == dict.fromkeys(("gpu1", "gpu2", "cpu1"), (4, 5))
    assert len(panel.between(pairs_of(ONCE))) == len(panel.between(pairs_of(TWICE))) == 2


def test_a_ps_on_standby_takes_no_server_from_another_job() -> None:
    """Job 1 is summed by its switch; its PS, on standby, had a server of its own, so that job 2's shared one."""
    jobs = (PlacedJob(1, {"gpu1": 2}, "gpu1", 10 * WIRE), PlacedJob(2, {"gpu2": 2}, "gpu1", 10 * WIRE))
    granted = Slot((UnitCircuit("gpu1", "gpu2", 1),), (Grant(1, 2e6), Grant(2, 2e6)))
    one, other = problem_of(Scheduling(center(), jobs), schedule({1: "gpu1"}, granted), FRAGMENT).jobs
    assert (one.workers, other.servers) == (("gpu1h1", "gpu1h2"), ("gpu1h3",))
    assert one.servers[0] not in one.workers


# -- Pods: units of leaves, spines and the switch at the egress.

POD = Unit("pod", 8, 4, 128e6, 2, nic_bps=8e6, leaves=4, spines=2, uplink_bps=8e6)
PODS = DataCenter((POD, replace(POD, name="other"), Unit("rack", 4, 4, 64e6, 2, nic_bps=8e6)), 8e6, 0.01, 1.0, 1e6)


def test_a_pod_is_leaves_under_spines_under_the_switch_with_the_optical_ports() -> None:
    fabric = fabric_of(PODS)
    assert {name for name in fabric.tiers if name.startswith("pod") and fabric.tiers[name]} == {
        *("podl1", "podl2", "podl3", "podl4", "pods1", "pods2", "pod"),
    }  # fmt: skip
    assert [fabric.tor_of(f"podh{n}") for n in range(1, 9)] == [f"podl{n}" for n in (1, 1, 2, 2, 3, 3, 4, 4)]
    assert fabric.capacities_bps["podl1", "pods2"] == 8e6
    assert fabric.capacities_bps["pods1", "pod"] == 4 * 8e6 / 2, "two spines carry what four ports do"
    assert {link.ends[0][0] for link in fabric.links if link.optical} <= {"pod", "other", "rack"}
    assert set(interconnect_of(PODS, fabric).ports) == {"pod", "other", "rack"}


def test_inside_a_pod_leaves_sum_for_their_workers_and_spines_for_leaves() -> None:
    scheduling = Scheduling(
        PODS, (PlacedJob(1, {"pod": 6}, "other", 100 * WIRE), PlacedJob(2, {"pod": 2}, "pod", WIRE))
    )
    granted = schedule({1: "pod"}, Slot((UnitCircuit("other", "pod", 1),), (Grant(1, 4e6), Grant(2, 1e6))))
    course = Course.of(scheduling, granted)
    check(course.problem, course.plan)
    own = [planned.tree for planned in course.plan.trees if planned.job == 1]
    assert [tree.root for tree in own] == ["pods1", "pods2"], "a tree over each spine, which answers the workers"
    assert [sorted(a.switch for a in tree.aggregators) for tree in own] == [
        ["podl1", "podl2", "podl3", spine] for spine in ("pods1", "pods2")
    ]
    assert {(a.first_slot, a.slots) for tree in own for a in tree.aggregators} == {(0, 128), (128, 128)}, "a segment"
    others = [planned.tree for planned in course.plan.trees if planned.job == 2]
    assert not any(tree.aggregators for tree in others), "it uses no INC"


def test_a_servers_part_of_the_uplinks_limits_every_scheduler() -> None:
    """Two servers of a leaf share two uplinks of 3 Gbit/s: 3 for each, though a server's link has 8."""
    units = tuple(replace(unit, uplink_bps=3e6) for unit in PODS.units[:2])
    job = PlacedJob(1, {"pod": 4}, "other", 750_000)
    problem = Scheduling(replace(PODS, units=units), (job,))
    assert units[0].worker_bps == units[0].ps_bps == 3e6
    for name in ("INC-TW", "INC-FCFS", "pack", "milp"):
        found = find_scheduler(name).schedule(problem)
        assert max(found.slots[0].rates_bps.values()) == pytest.approx(3e6)
    fast = schedule({1: "pod"}, *[Slot((), (Grant(1, 4e6),))] * 2)
    with pytest.raises(PlanError, match="constraint 'server links'"):
        check_schedule(problem, fast)
    check_schedule(Scheduling(replace(PODS, units=PODS.units[:2]), (job,)), fast)


def test_scaled_down_a_schedule_takes_the_same_time() -> None:
    scheduling = Scheduling(center(), tuple(replace(job, gradient_bytes=2_000_000) for job in JOBS))
    chosen = schedule({1: "gpu1"}, *[ONCE] * 30)
    before, after = figures(scheduling, chosen), figures(*scaled(scheduling, chosen, 1 / 5000))
    assert after.jct_s == pytest.approx(before.jct_s)
    assert after.connections == before.connections


def test_a_job_with_more_workers_than_servers_has_a_host_for_each_gpu() -> None:
    units = (Unit("u", 2, 2, 64e6, 1, gpus=2, nic_bps=8e6), Unit("v", 2, 2, 64e6, 1, nic_bps=8e6))
    scheduling = Scheduling(DataCenter(units, 8e6, 0.01, 1.0, 2e6), (PlacedJob(1, {"u": 4}, "u", WIRE),))
    granted = schedule({1: "u"}, Slot((), (Grant(1, 4e6),)))
    with pytest.raises(InputError, match="4 workers on the 2 servers of unit 'u'"):
        problem_of(scheduling, granted, FRAGMENT)
    wider = with_a_host_for_each_gpu(scheduling)
    (job,) = problem_of(wider, granted, FRAGMENT).jobs
    assert (job.workers, job.servers) == (("uh1", "uh2", "uh3", "uh4"), ("uh5",))
    assert wider.center.unit("v") == scheduling.center.unit("v")
