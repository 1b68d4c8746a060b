"""P4INC-AOI's MILP: the printed one, the one by deadlines and brute force agree, and say what is infeasible."""

from __future__ import annotations

from dataclasses import replace

import pytest
from p4inc_aoi_brute_force import brute_force
from p4inc_aoi_cases import GIGA, center, small_problem

from inakit.planner.core.plan import SolverOptions
from inakit.planner.methods.p4inc_aoi.milp import decide, optimise, optimise_printed
from inakit.planner.methods.p4inc_aoi.optical_system import DataCenter, PlacedJob, Scheduling
from inakit.planner.methods.p4inc_aoi.schedule import check, figures
from inakit.planner.methods.p4inc_aoi.schedulers import earliest_s, pack
from inakit.planner.registry import find_scheduler
from inakit.topo.errors import InputError, PlanError, SolverError

OPTIONS = SolverOptions(time_limit_s=30.0)


def job(number: int, workers: dict[str, int], server: str, gbit: float, update_s: float = 0.0) -> PlacedJob:
    return PlacedJob(number, workers, server, int(gbit * GIGA / 8), update_s)


CASES = {
    "two jobs share two ports": (center(inc_jobs=0), (job(1, {"u0": 1}, "u1", 8), job(2, {"u0": 2}, "u1", 8)), 2.0),
    "one uses INC, the other gets the ports": (
        center(inc_jobs=1), (job(1, {"u0": 2}, "u1", 8, 0.25), job(2, {"u0": 2}, "u1", 8, 0.25)), 1.25,
    ),
    "data for a slot and a half": (center(ports=1, inc_jobs=0), (job(1, {"u0": 1}, "u1", 12),), 2.0),
    "one port of u1 serves two units in turn": (
        center(ports=1, inc_jobs=0), (job(1, {"u0": 1}, "u1", 6), job(2, {"u2": 1}, "u1", 6)), 2.0,
    ),
    "the second would lose a slot's eighth": (
        center(ports=1, inc_jobs=0), (job(1, {"u0": 1}, "u1", 7.5), job(2, {"u2": 1}, "u1", 7.5)), 3.0,
    ),
    "INC across units needs one flow each": (center(inc_jobs=1), (job(1, {"u0": 2, "u2": 1}, "u1", 8, 0.25),), 1.25),
    "arrives later": (center(), (replace(job(1, {"u0": 1}, "u1", 4), arrival=2),), 3.0),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_known_optima(name: str) -> None:
    where, jobs, optimum = CASES[name]
    problem = Scheduling(where, jobs)
    for schedule in (optimise_printed(problem, 3, OPTIONS), optimise(problem, OPTIONS)):
        check(problem, schedule)
        assert schedule.outcome.status == "optimal"
        assert figures(problem, schedule).ct_bti_s == pytest.approx(optimum)
    assert brute_force(problem, 3) == pytest.approx(optimum)


@pytest.mark.parametrize("seed", range(8))
def test_both_models_agree(seed: int) -> None:
    problem = Scheduling(*random_jobs(seed))
    packed = pack(problem)
    asked = optimise_printed(problem, len(packed.slots), OPTIONS), find_scheduler("milp").schedule(problem, OPTIONS)
    reference, found = (figures(problem, schedule).ct_bti_s for schedule in asked)
    check(problem, asked[0])
    assert found == pytest.approx(reference)
    assert earliest_s(problem) - 1e-9 <= found <= figures(problem, packed).ct_bti_s + 1e-9
    nothing, outcome = decide(problem, found - 0.01, OPTIONS)
    assert nothing is None and outcome.status == "infeasible"


def random_jobs(seed: int) -> tuple[DataCenter, tuple[PlacedJob, ...]]:
    """Five jobs that contend for two ports; every third one has workers in two units."""
    where = center(ports=2, inc_jobs=1)
    return where, tuple(
        replace(
            job(
                n,
                {f"u{(seed + n) % 3}": 1 + (seed * n) % 3} | ({f"u{(seed + n + 1) % 3}": 1} if n % 3 == 0 else {}),
                f"u{(seed + 2 * n + 1) % 3}", 2 + (3 * seed + 5 * n) % 7, 0.125 * (n % 3),
            ),
            arrival=n % 2,
        )
        for n in range(1, 6)
    )  # fmt: skip


@pytest.mark.parametrize("model", ["literal", "deadline"])
def test_a_horizon_too_short_is_refused(model: str) -> None:
    where, jobs, _ = CASES["data for a slot and a half"]
    problem = Scheduling(where, jobs, horizon=1)
    with pytest.raises(SolverError, match=r"completion \(10\)"):
        optimise_printed(problem, 1, OPTIONS) if model == "literal" else optimise(problem, OPTIONS)


def test_a_shorter_horizon_may_cost_an_update() -> None:
    """With INC in turn the two jobs need two slots; in one slot, one of them does without INC and has to update."""
    jobs = tuple(job(number, {"u0": 1}, "u0", 8, update_s=2.5) for number in (1, 2))
    for horizon, optimum in ((None, 2.0), (2, 2.0), (1, 3.5)):
        problem = Scheduling(center(), jobs, horizon)
        schedule = find_scheduler("milp").schedule(problem, OPTIONS)
        assert figures(problem, schedule).ct_bti_s == pytest.approx(optimum)
        assert schedule.outcome.status == "optimal"


def test_jobs_that_compute_in_between_are_refused() -> None:
    problem = Scheduling(center(), (replace(job(1, {"u0": 1}, "u1", 4), iterations=2, compute_s=0.1),))
    with pytest.raises(InputError, match="one iteration"):
        optimise_printed(problem, 3, OPTIONS)


def on_one_port(*jobs: PlacedJob, ports: int = 1, inc_jobs: int = 1, reconfiguration_s: float = 0.0) -> Scheduling:
    return Scheduling(center(ports=ports, inc_jobs=inc_jobs, reconfiguration_s=reconfiguration_s), jobs)


@pytest.mark.parametrize("slots", range(2, 6))
def test_a_longer_horizon_is_never_worse(slots: int) -> None:
    """HiGHS called 2.25 optimal with T = 3 and 4, while 2.0 is with T = 2."""
    jobs = replace(job(1, {"u1": 2}, "u1", 13, 0.25), arrival=1), job(2, {"u0": 2}, "u0", 7, 0.25)
    where = center(units=2, ports=2)
    units = (replace(where.units[0], inc_jobs=0), where.units[1])
    schedule = optimise_printed(Scheduling(replace(where, units=units), jobs), slots, OPTIONS)
    assert figures(Scheduling(where, jobs), schedule).ct_bti_s == pytest.approx(2.0)


@pytest.mark.parametrize("slots", range(1, 7))
def test_rates_that_fit_exactly_are_found_with_every_horizon(slots: int) -> None:
    """Switches sum for all three, each in one slot at its full rate: HiGHS called 2.0 optimal for an M that fits."""
    problem = on_one_port(
        job(1, {"u0": 2}, "u0", 8, 2.3), job(2, {"u1": 1}, "u2", 7, 2.3), job(3, {"u2": 1}, "u0", 13, 2.3)
    )
    for solver in ("highs", "cbc"):
        schedule = optimise_printed(problem, slots, SolverOptions(solver, time_limit_s=30))
        assert figures(problem, schedule).ct_bti_s == pytest.approx(1.0)


def test_a_rate_that_a_solver_rounds_still_sends_all() -> None:
    """Job 2 needs 10 Gbit in slots of 8: a rate of 2.499999744 for 2.5 had left it unfinished, a `KeyError`."""
    problem = on_one_port(
        job(1, {"u0": 2}, "u1", 8, 2.3), job(2, {"u1": 2}, "u2", 10), ports=2, inc_jobs=0, reconfiguration_s=0.2
    )
    schedule = find_scheduler("milp").schedule(problem, OPTIONS)
    assert schedule.outcome.status == "optimal"
    assert figures(problem, schedule).ct_bti_s == pytest.approx(brute_force(problem, len(schedule.slots)))


def agreed(seed: int) -> None:
    """The program by deadlines, the printed one by two solvers and with a slot more, and enumeration agree."""
    problem = small_problem(seed)
    try:
        slots = len(pack(problem).slots)
    except PlanError:  # a unit that sends to another without an optical port between them
        return
    ways = [optimise(problem, OPTIONS)]
    if slots <= 4:
        ways += [optimise_printed(problem, horizon, OPTIONS) for horizon in (slots, slots + 1)]
        ways.append(optimise_printed(problem, slots, replace(OPTIONS, solver="cbc")))
        ways.append(optimise(problem, replace(OPTIONS, solver="highs+cbc")))
    for schedule in ways:
        check(problem, schedule)
        assert schedule.outcome.status == "optimal", seed
    found = [figures(problem, schedule).ct_bti_s for schedule in ways]
    if slots <= 3 and len(problem.jobs) <= 2:
        found.append(brute_force(problem, slots))
    assert found == pytest.approx([found[0]] * len(found)), seed


@pytest.mark.parametrize("part", range(4))
def test_every_way_to_the_optimum_agrees(part: int) -> None:
    for seed in range(part, 40, 4):
        agreed(seed)


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_every_way_agrees_on_a_thousand_problems(part: int) -> None:
    for seed in range(40 + part, 1040, 10):
        agreed(seed)


def test_the_fewest_connections_of_all_that_end_as_early() -> None:
    """Job 1 uses u0's port to u1 in slot 0 and job 2 the one to u2 then or later; nothing forces circuits to move."""
    problem = on_one_port(
        job(1, {"u0": 1}, "u1", 4), job(2, {"u0": 1}, "u2", 4), job(3, {"u1": 1}, "u2", 4), ports=2, inc_jobs=0
    )
    assert figures(problem, optimise(problem, OPTIONS)).connections == 0


def test_servers_limit_the_rate_and_the_number_of_jobs() -> None:
    where = center(servers=3, inc_jobs=0)
    units = tuple(replace(unit, nic_bps=8 * GIGA) for unit in where.units)
    problem = Scheduling(replace(where, units=units), (job(1, {"u0": 2}, "u0", 8), job(2, {"u0": 2}, "u0", 4)))
    schedule = optimise(problem, OPTIONS)
    assert schedule.slots[0].rates_bps.keys() != {1, 2}, "three servers have no room for four workers and two PSs"
    assert figures(problem, schedule).ct_bti_s == 3, "the PS receives 16 Gbit at 8 Gbit/s, then 8 Gbit"
    for name in ("INC-FCFS", "INC-TW", "noINC-TW", "pack"):
        assert figures(problem, find_scheduler(name).schedule(problem)).ct_bti_s >= 3
