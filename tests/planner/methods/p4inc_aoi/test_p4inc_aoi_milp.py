"""P4INC-AOI's MILP: the literal one, the one by deadlines and brute force agree; what is infeasible is said so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product

import pulp
import pytest
from p4inc_aoi_cases import GIGA, center

from planner.core.solving import SolverOptions
from planner.methods.p4inc_aoi.milp import model as literal
from planner.methods.p4inc_aoi.milp.deadline import decide
from planner.methods.p4inc_aoi.milp.exact import optimise
from planner.methods.p4inc_aoi.online.pack import earliest_s, pack
from planner.methods.p4inc_aoi.problem.check_schedule import check
from planner.methods.p4inc_aoi.problem.schedule import figures, pair
from planner.methods.p4inc_aoi.problem.system import DataCenter, PlacedJob, Scheduling
from planner.methods.p4inc_aoi.schemes import SCHEMES
from topo.errors import InputError, SolverError

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
    for schedule in (literal.optimise(problem, 3, OPTIONS), optimise(problem, OPTIONS)):
        check(problem, schedule)
        assert schedule.outcome.status == "optimal"
        assert figures(problem, schedule).ct_bti_s == pytest.approx(optimum)
    assert brute_force(problem, 3) == pytest.approx(optimum)


@pytest.mark.parametrize("seed", range(8))
def test_both_models_agree(seed: int) -> None:
    problem = Scheduling(*random_jobs(seed))
    packed = pack(problem)
    asked = literal.optimise(problem, len(packed.slots), OPTIONS), SCHEMES["milp"].schedule(problem, OPTIONS)
    reference, found = (figures(problem, schedule).ct_bti_s for schedule in asked)
    check(problem, asked[0])
    assert found == pytest.approx(reference)
    assert earliest_s(problem) - 1e-9 <= found <= figures(problem, packed).ct_bti_s + 1e-9
    nothing, outcome = decide(problem, found - 0.01, OPTIONS)
    assert nothing is None and outcome.status == "infeasible"


def random_jobs(seed: int) -> tuple[DataCenter, tuple[PlacedJob, ...]]:
    """Five jobs that contend for two ports; every third is in two units."""
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
        literal.optimise(problem, 1, OPTIONS) if model == "literal" else optimise(problem, OPTIONS)


def test_a_shorter_horizon_may_cost_an_update() -> None:
    """With INC in turn the two need two slots; in one slot one has to do without, and to update."""
    jobs = tuple(job(number, {"u0": 1}, "u0", 8, update_s=2.5) for number in (1, 2))
    for horizon, optimum in ((None, 2.0), (2, 2.0), (1, 3.5)):
        problem = Scheduling(center(), jobs, horizon)
        schedule = SCHEMES["milp"].schedule(problem, OPTIONS)
        assert figures(problem, schedule).ct_bti_s == pytest.approx(optimum)
        assert schedule.outcome.status == "optimal"


def test_jobs_that_compute_in_between_are_refused() -> None:
    problem = Scheduling(center(), (replace(job(1, {"u0": 1}, "u1", 4), iterations=2, compute_s=0.1),))
    with pytest.raises(InputError, match="one iteration"):
        literal.optimise(problem, 3, OPTIONS)


# ---- brute force -------------------------------------------------------------------------------


def brute_force(problem: Scheduling, slots: int) -> float:
    """The best end over all choices of INC, durations and circuits; only rates are left to a linear program."""
    times = range(slots)
    durations = list(combinations(range(slots + 1), 2))
    ways = [
        [(inc, span) for inc in (*job.workers, None) for span in durations if span[0] >= job.arrival]
        for job in problem.jobs
    ]
    settings = list(all_circuits(problem))
    ended = sorted(product(*ways), key=lambda chosen: end_of(problem, chosen))
    for chosen in ended:
        if inc_fits(problem, chosen, times) and any(
            rates_exist(problem, chosen, circuits) for circuits in product(settings, repeat=slots)
        ):
            return end_of(problem, chosen)
    raise AssertionError("nothing is feasible")


Way = tuple[str | None, tuple[int, int]]


def end_of(problem: Scheduling, chosen: tuple[Way, ...]) -> float:
    return max(span[1] + job.update_time(inc) for job, (inc, span) in zip(problem.jobs, chosen, strict=True))


def inc_fits(problem: Scheduling, chosen: tuple[Way, ...], times: range) -> bool:
    limits = {unit.name: unit.inc_jobs for unit in problem.center.units}
    return all(
        sum(inc == unit and span[0] <= i < span[1] for inc, span in chosen) <= limit
        for unit, limit in limits.items()
        for i in times
    )


def all_circuits(problem: Scheduling) -> Iterator[dict[tuple[str, str], int]]:
    """Every way to use ports between units that exchange anything."""
    pairs = sorted({pair(v, job.server) for job in problem.jobs for v in job.workers if v != job.server})
    limits = {unit.name: unit.optical_ports for unit in problem.center.units}
    for counts in product(range(max(limits.values()) + 1), repeat=len(pairs)):
        found = dict(zip(pairs, counts, strict=True))
        if all(sum(count for q, count in found.items() if unit in q) <= limit for unit, limit in limits.items()):
            yield found


def rates_exist(problem: Scheduling, chosen: tuple[Way, ...], circuits: tuple[dict[tuple[str, str], int], ...]) -> bool:
    model, dt, epsilon = pulp.LpProblem("rates"), problem.center.slot_s, problem.center.reconfiguration_s
    traffic: dict[tuple[tuple[str, str], int], list[object]] = {}
    for job, (inc, (begin, end)) in zip(problem.jobs, chosen, strict=True):
        rates = [model.add_variable(f"r_{job.number}_{i}", 0) for i in range(begin, end)]
        model += dt * pulp.lpSum(rates) >= job.bits / GIGA
        for v, weight in job.flows(inc):
            q, sent = pair(v, job.server), dt * pulp.lpSum(rates)
            for i, rate in enumerate(rates, start=begin):
                traffic.setdefault((q, i), []).append(weight * rate)
                if i and circuits[i][q] > circuits[i - 1][q]:
                    lost = model.add_variable(f"lost_{job.number}_{v}_{i}", 0)
                    model += lost >= rate - (rates[i - begin - 1] if i > begin else 0)
                    sent -= epsilon * lost
            model += sent >= job.bits / GIGA
    for (q, i), load in traffic.items():
        model += pulp.lpSum(load) <= problem.center.port_bps / GIGA * circuits[i][q]
    model.solve(pulp.HiGHS(msg=False))
    return bool(model.status == pulp.LpStatusOptimal)
