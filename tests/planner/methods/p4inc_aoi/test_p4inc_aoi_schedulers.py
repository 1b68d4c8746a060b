"""P4INC-AOI's heuristics and our own planner: what they consist of, and that their schedules keep all constraints."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from p4inc_aoi_cases import GIGA, center, problems
from tiers import long_unless

from inakit.planner.methods.p4inc_aoi.job_traces import place, training
from inakit.planner.methods.p4inc_aoi.optical_system import PlacedJob, Scheduling
from inakit.planner.methods.p4inc_aoi.schedule import Failure, Grant, Slot, UnitCircuit, check, figures
from inakit.planner.methods.p4inc_aoi.schedulers import (
    OPTICS,
    SERVERS,
    Active,
    FirstCome,
    SlotSimulation,
    TimeWindow,
    assign_inc,
    earliest_s,
    match,
    pack,
    replan,
    windows,
)
from inakit.planner.methods.p4inc_aoi.slot_resources import ROUNDING, settle, uniform
from inakit.planner.registry import SCHEDULERS, find_scheduler
from inakit.topo.errors import InputError, PlanError

HEURISTICS = [name for name in SCHEDULERS if name not in ("milp", "INC-TW-NoRecon")]


@pytest.mark.parametrize("seed", range(20))
def test_matching_has_the_greatest_weight(seed: int) -> None:
    draws = np.random.default_rng(seed)
    weight = draws.integers(0, 9, draws.integers(1, 7, 2)).astype(float)
    graph: nx.Graph[tuple[str, int]] = nx.Graph()
    graph.add_weighted_edges_from((("row", r), ("column", c), w) for (r, c), w in np.ndenumerate(weight) if w > 0)
    best = nx.max_weight_matching(graph)
    found = match(weight)
    assert len({row for row, _ in found}) == len({column for _, column in found}) == len(found)
    assert sum(weight[place] for place in found) == sum(graph.edges[edge]["weight"] for edge in best)


def test_inc_goes_to_jobs_with_more_traffic_between_units_and_each_job_gets_one_unit() -> None:
    light, heavy = (PlacedJob(n, {"u0": n}, "u1", gradient_bytes=100) for n in (1, 2))
    both = PlacedJob(3, {"u0": 4, "u2": 3}, "u1", gradient_bytes=100)
    assert assign_inc([light, heavy, both], {"u0": 1, "u1": 1, "u2": 1}) == {2: "u0", 3: "u2"}
    assert assign_inc([light, heavy, both], {"u0": 2}) == {3: "u0", 2: "u0"}


def test_windows_end_so_late_that_updates_are_done() -> None:
    """16 Gbit at 16 Gbit/s take 1 s, but half of them have to be sent 0.5 s earlier: 8/w + 8/(w - 0.5) = 16."""
    uses = [{("u0", OPTICS): 1}, {("u0", OPTICS): 2}]
    found = windows(center(), uses, np.array([8 * GIGA, 4 * GIGA]), np.array([0.0, 0.5]))
    end = found["u0", OPTICS]
    assert 8 / end + 8 / (end - 0.5) == pytest.approx(16, rel=0.01)
    assert found["u1", OPTICS] == found["u0", SERVERS] == 0


def test_circuits_stay_until_their_ports_are_needed() -> None:
    before = {("u0", "u1"): 2, ("u1", "u2"): 0}
    assert settle(center(), {("u2", "u0"): 1}, before, {}) == {("u2", "u0"): 1, ("u0", "u1"): 1}


def test_uniform_circuits_use_all_ports() -> None:
    found = uniform(center(units=4, ports=7))
    assert set(found.values()) == {2, 3} and sum(found.values()) == 4 * 7 / 2


@pytest.mark.parametrize("name", HEURISTICS)
@settings(max_examples=25, deadline=None)
@given(problem=problems())
def test_schedules_keep_every_constraint(name: str, problem: Scheduling) -> None:
    schedule = find_scheduler(name).schedule(problem)  # checks
    assert figures(problem, schedule).ct_bti_s >= earliest_s(problem) - 1e-9
    if name.startswith("noINC"):
        assert not schedule.inc


@settings(max_examples=15, deadline=None)
@given(problem=problems(), inc=st.booleans(), strict=st.booleans())
def test_schedules_of_other_readings_keep_every_constraint(problem: Scheduling, inc: bool, strict: bool) -> None:
    check(problem, SlotSimulation(problem, FirstCome(inc, strict)).run("reading"))


def test_without_reconfiguration_circuits_never_change() -> None:
    problem = drawn(jobs=20, seed=0)
    schedule = find_scheduler("INC-TW-NoRecon").schedule(problem)
    assert len({slot.circuits for slot in schedule.slots}) == 1
    assert figures(problem, schedule).connections == 0


@pytest.mark.parametrize("name", [*HEURISTICS, "INC-TW-NoRecon"])
def test_the_same_problem_has_the_same_schedule(name: str) -> None:
    problem = drawn(jobs=20, seed=1)
    first, second = (replace(find_scheduler(name).schedule(problem), outcome=None) for _ in range(2))  # type: ignore[arg-type]
    assert first == second


@settings(max_examples=150, deadline=None)
@given(problem=problems(), name=st.sampled_from(("INC-TW", "noINC-FCFS", "pack")), draws=st.randoms())
def test_after_a_connection_fails_for_good_every_job_is_done_or_named(
    problem: Scheduling, name: str, draws: Random
) -> None:
    schedule = find_scheduler(name).schedule(problem)
    places = [(number, units) for number, slot in enumerate(schedule.slots) for units in slot.ports]
    assume(places)
    failure = Failure(*draws.choice(places))
    try:
        found = replan(problem, schedule, failure)
    except PlanError as error:
        assert "optical ports" in str(error) and "job" in str(error)
        return
    check(problem, found, failure)  # the ports that are left, and that all jobs send all their data
    assert found.slots[: failure.slot + 1] == schedule.slots[: failure.slot + 1]
    assert found.inc == schedule.inc


def test_a_job_whose_only_connection_fails_goes_on_over_another_port() -> None:
    """It sends 24 Gbit at 8 Gbit/s. What it sends in the slot of the failure is lost, so it takes a slot more."""
    problem = Scheduling(center(inc_jobs=0, reconfiguration_s=0.0), (PlacedJob(1, {"u0": 1}, "u1", 3 * 10**9),))
    schedule = find_scheduler("pack").schedule(problem)
    grants = (Grant(1, 8 * GIGA),)
    by_one = replace(schedule, slots=(Slot((UnitCircuit("u0", "u1", 1),), grants),) * 3)
    failure = Failure(1, ("u0", "u1"))
    found = replan(problem, by_one, failure)
    assert [slot.grants for slot in found.slots] == [grants] * 4
    assert figures(problem, found, failure).jct_s == {1: 4.0}
    with pytest.raises(PlanError, match=r"ports \(6\).*'u0' in slot 2"):
        check(
            problem,
            replace(found, slots=(*found.slots[:2], *(Slot((UnitCircuit("u0", "u1", 2),), grants),) * 2)),
            failure,
        )
    with pytest.raises(PlanError, match="slot 1 has no connection between u0 and u2"):
        replan(problem, by_one, Failure(1, ("u0", "u2")))


@pytest.mark.parametrize("seed", [long_unless(seed < 2, seed) for seed in range(6)])
def test_our_own_is_never_later_than_the_papers(seed: int) -> None:
    problem = drawn(jobs=25, seed=seed)
    ends = {name: figures(problem, find_scheduler(name).schedule(problem)).ct_bti_s for name in HEURISTICS}
    assert ends["pack"] == min(ends.values())
    assert pack(problem, tries=0).slots  # the first round alone is a schedule too


def test_a_job_that_fills_its_last_slot_to_the_end_is_packed() -> None:
    """At 4 Gbit/s, all that two ports carry, it sends 3.36 of its 16.8 Gbit in a slot, so five slots leave nothing."""
    job = PlacedJob(1, {"u0": 1, "u1": 2}, "u2", 700_000_000, update_s=0.25, iterations=3, compute_s=0.1)
    problem = Scheduling(center(units=3, ports=2, inc_jobs=0, reconfiguration_s=0.0), (job,))
    for name in ("pack", "INC-TW", "INC-FCFS"):
        assert find_scheduler(name).schedule(problem).spans == {1: (0, 4)}


@settings(max_examples=100, deadline=None)
@given(
    workers=st.lists(st.integers(1, 7), min_size=1, max_size=3),
    ports=st.integers(3, 6),
    slots=st.sampled_from((1, 2, 3, 5, 7, 50)),
    iterations=st.integers(1, 3),
    compute_s=st.sampled_from((0.0, 0.1, 0.2)),
)
def test_a_job_alone_takes_no_slot_more_than_it_fills(
    workers: list[int], ports: int, slots: int, iterations: int, compute_s: float
) -> None:
    """The jobs' data fill whole slots exactly, at the highest rate that any division of the ports gives."""
    divisions = (counts for counts in product(range(1, ports + 1), repeat=len(workers)) if sum(counts) <= ports)
    carried = [min(8 * GIGA * count / w for count, w in zip(counts, workers, strict=True)) for counts in divisions]
    rate = min(max(carried), 64 * GIGA / sum(workers))
    gradient_bytes = int(rate * (slots - iterations * compute_s) / iterations / 8)
    placed = {f"u{number}": count for number, count in enumerate(workers)}
    job = PlacedJob(1, placed, "u3", gradient_bytes, iterations=iterations, compute_s=compute_s)
    problem = Scheduling(center(units=4, ports=ports, inc_jobs=0), (job,))
    packed = pack(problem, tries=0)
    check(problem, packed)
    assert packed.spans == {1: (0, slots - 1)}


@pytest.mark.parametrize("name", HEURISTICS)
def test_a_job_far_larger_than_its_slots_is_scheduled(name: str) -> None:
    """A step of bandwidth is 2,000 times what a port carries, and the job needs 2,000 slots."""
    narrow = replace(center(inc_jobs=0), step_bps=16_000 * GIGA)
    problem = Scheduling(narrow, (PlacedJob(1, {"u0": 1}, "u1", gradient_bytes=4 * 10**12),))
    assert len(find_scheduler(name).schedule(problem).slots) >= 2000


def test_fcfs_lets_nobody_pass() -> None:
    """The first job takes all ports of u0 for a slot. The third needs none of them, but waits for the second."""
    places = ((1, "u0", "u1"), (2, "u0", "u1"), (3, "u2", "u3"))
    jobs = tuple(PlacedJob(number, {workers: 1}, server, 100) for number, workers, server in places)
    problem = Scheduling(center(units=4), jobs)
    strict, lax = (
        SlotSimulation(problem, FirstCome(inc=False, strict=strict)).run("").spans for strict in (True, False)
    )
    assert (strict[2], strict[3]) == ((1, 1), (1, 1))
    assert (lax[2], lax[3]) == ((1, 1), (0, 0))


@pytest.mark.parametrize("name", HEURISTICS)
def test_a_job_without_ports_is_refused(name: str) -> None:
    problem = Scheduling(center(ports=0, inc_jobs=0), (PlacedJob(1, {"u0": 1}, "u1", gradient_bytes=100),))
    with pytest.raises(PlanError, match=r"ports \(6\).*job 1 cannot transfer"):
        find_scheduler(name).schedule(problem)


@pytest.mark.parametrize("name", HEURISTICS)
def test_a_job_that_only_inc_can_serve_waits_for_it_or_is_refused(name: str) -> None:
    jobs = tuple(PlacedJob(number, {"u0": 2}, "u1", gradient_bytes=10**9) for number in (1, 2, 3))
    problem = Scheduling(center(ports=0, inc_jobs=1), jobs)
    if name.startswith("noINC"):
        with pytest.raises(PlanError, match="job 1 cannot transfer"):
            find_scheduler(name).schedule(problem)
    else:
        assert sorted(find_scheduler(name).schedule(problem).spans.values()) == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.parametrize("name", HEURISTICS)
def test_a_horizon_too_short_is_refused(name: str) -> None:
    problem = replace(drawn(jobs=20, seed=1), horizon=1)
    with pytest.raises(PlanError, match=r"completion \(10\).*T = 1"):
        find_scheduler(name).schedule(problem)


def test_an_unknown_scheduler_gets_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'INC-TW'"):
        find_scheduler("INC-TV")


def drawn(jobs: int, seed: int) -> Scheduling:
    draws = np.random.default_rng(seed)
    wide = center(units=4, ports=24, inc_jobs=2, servers=64)
    return Scheduling(wide, place(training(jobs, 20.0, draws), wide, draws, free_servers=8))


def test_a_job_that_gives_its_inc_back_unused_has_its_updates_again() -> None:
    """The second job gets INC while the first has all bandwidth; then larger ones come, and it goes on without INC."""
    first = PlacedJob(1, {"u0": 2}, "u0", gradient_bytes=8 * 10**9)
    second = PlacedJob(2, {"u0": 2}, "u0", 10**8, update_s=0.25, arrival=1, iterations=8)
    larger = [replace(first, number=number, arrival=2) for number in (3, 4)]
    problem = Scheduling(center(units=2, inc_jobs=2), (first, second, *larger))
    schedule = SlotSimulation(problem, TimeWindow()).run("given back")
    check(problem, schedule)
    assert set(schedule.inc) == {1, 3, 4}


@pytest.mark.parametrize("name", ["INC-TW", "INC-FCFS"])
def test_jobs_wait_for_gpus_and_the_next_in_the_queue_gets_inc(name: str) -> None:
    """Four GPUs run one job at a time. Under TW a job behind it in the queue had taken them first, and without INC."""
    units = tuple(replace(unit, servers=4, nic_bps=8 * GIGA) for unit in center(units=2, inc_jobs=1).units)
    where = replace(center(units=2), units=units)
    jobs = tuple(PlacedJob(number, {"u0": 4}, "u1", 2_000_000_000, 0.5) for number in range(1, 7))
    problem = Scheduling(where, jobs)
    schedule = find_scheduler(name).schedule(problem)
    assert schedule.inc == dict.fromkeys(range(1, 7), "u0")
    assert all(len(slot.grants) == 1 for slot in schedule.slots)
    found = figures(problem, schedule)
    assert [found.jct_s[number] for number in range(1, 7)] == [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]


class AsPrinted(TimeWindow):
    """Lines 19 to 31 of Algorithm 2 as printed: every job that a step fits is tried, and the latest of them gets it."""

    def deal_bandwidth(self, now: SlotSimulation, jobs: list[Active]) -> None:
        left = list(jobs)
        while left := [one for one in left if self.takes(now, one)]:
            latest = max(left, key=lambda one: one.time_left(one.rate_bps + one.step_bps))
            now.grant(latest, latest.step_bps)

    def takes(self, now: SlotSimulation, one: Active) -> bool:
        """Whether a step fits a job that is not done within the slot without it."""
        finished = one.rate_bps > 0 and now.steps_to_finish(one) <= 0
        seated = bool(one.rate_bps) or now.resources.has_places(one.shape)
        linked = one.rate_bps + one.step_bps <= one.shape.most_bps * (1 + ROUNDING)
        return not finished and seated and linked and now.resources.fits(one.shape, one.step_bps)


@settings(max_examples=60, deadline=None)
@given(problem=problems(), inc=st.booleans())
def test_every_step_of_bandwidth_goes_to_the_latest_job_that_it_fits(problem: Scheduling, inc: bool) -> None:
    ours, printed = (SlotSimulation(problem, policy(inc)).run("") for policy in (TimeWindow, AsPrinted))
    assert (ours.inc, ours.slots) == (printed.inc, printed.slots)
