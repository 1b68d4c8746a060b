"""The best schedules of very small problems of P4INC-AOI, by trying all choices but rates."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import pulp
from p4inc_aoi_cases import GIGA

from inakit.planner.methods.p4inc_aoi.optical_system import PlacedJob, Scheduling
from inakit.planner.methods.p4inc_aoi.schedule import pair

Way = tuple[str | None, tuple[int, int]]
"""The unit that sums for a job, or None; and its duration, from the first slot to the one after the last."""


def brute_force(problem: Scheduling, slots: int) -> float:
    """The best end over all choices of INC, durations and circuits; only rates are left to a linear program."""
    times = range(slots)
    durations = list(combinations(range(slots + 1), 2))
    ways = [
        [
            (inc, span)
            for inc in (*(job.workers if problem.center.inc_across or len(job.workers) == 1 else ()), None)
            for span in durations
            if span[0] >= job.arrival
        ]
        for job in problem.jobs
    ]
    settings = list(all_circuits(problem))
    ended = sorted(product(*ways), key=lambda chosen: end_of(problem, chosen))
    for chosen in ended:
        if (
            inc_fits(problem, chosen, times)
            and servers_fit(problem, chosen, times)
            and any(rates_exist(problem, chosen, circuits) for circuits in product(settings, repeat=slots))
        ):
            return end_of(problem, chosen)
    raise AssertionError("nothing is feasible")


def end_of(problem: Scheduling, chosen: tuple[Way, ...]) -> float:
    return max(span[1] + job.update_time(inc) for job, (inc, span) in zip(problem.jobs, chosen, strict=True))


def inc_fits(problem: Scheduling, chosen: tuple[Way, ...], times: range) -> bool:
    limits = {unit.name: unit.inc_jobs for unit in problem.center.units}
    return all(
        sum(inc == unit and span[0] <= i < span[1] for inc, span in chosen) <= limit
        for unit, limit in limits.items()
        for i in times
    )


def servers_fit(problem: Scheduling, chosen: tuple[Way, ...], times: range) -> bool:
    """Whether every worker has a GPU, and every PS a server, in each slot. Servers have at most one GPU."""
    for unit in problem.center.units:
        for i in times:
            taken = 0
            for job, (inc, (begin, end)) in zip(problem.jobs, chosen, strict=True):
                if begin <= i < end:
                    taken += job.workers.get(unit.name, 0)
                    taken += job.server == unit.name and not (len(job.workers) == 1 and inc in job.workers)
            if taken > unit.servers:
                return False
    return True


def most_rate(problem: Scheduling, job: PlacedJob, inc: str | None) -> float:
    """The highest rate of a worker in Gbit/s, by the links of the workers' servers and of the PS's."""
    uplinks = {unit.name: unit.spines * (unit.uplink_bps or 1e15) for unit in problem.center.units}  # of a leaf
    links = {
        unit.name: min(unit.nic_bps or 1e15, uplinks[unit.name] * unit.leaves / unit.servers if unit.spines else 1e15)
        for unit in problem.center.units
    }
    own = min(links[v] for v in job.workers)
    if len(job.workers) == 1 and inc in job.workers:
        return own / GIGA
    received = sum(1 if v == inc else count for v, count in job.workers.items())
    return min(own, links[job.server] / received) / GIGA


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
    loads: dict[tuple[str, int], list[object]] = {}
    for job, (inc, (begin, end)) in zip(problem.jobs, chosen, strict=True):
        most = most_rate(problem, job, inc)
        rates = [model.add_variable(f"r_{job.number}_{i}", 0, most) for i in range(begin, end)]
        for v, weight in job.switch_loads(inc).items():
            for i, rate in enumerate(rates, start=begin):
                loads.setdefault((v, i), []).append(weight * rate)
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
    for (v, _), load in loads.items():
        model += pulp.lpSum(load) <= problem.center.unit(v).switch_bps / GIGA
    model.solve(pulp.HiGHS(msg=False))
    return bool(model.status == pulp.LpStatusOptimal)
