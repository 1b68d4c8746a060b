"""P4INC-AOI's MILP: the printed one, the one by deadlines and brute force agree, and say what is infeasible."""

from __future__ import annotations

from dataclasses import replace

import pytest
from p4inc_aoi_brute_force import brute_force
from p4inc_aoi_cases import GIGA, center

from inakit.planner.core.plan import SolverOptions
from inakit.planner.methods.p4inc_aoi.milp import decide, optimise, optimise_printed
from inakit.planner.methods.p4inc_aoi.optical_system import DataCenter, PlacedJob, Scheduling
from inakit.planner.methods.p4inc_aoi.schedule import check, figures
from inakit.planner.methods.p4inc_aoi.schedulers import earliest_s, pack
from inakit.planner.registry import find_scheduler
from inakit.topo.errors import InputError, SolverError

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
