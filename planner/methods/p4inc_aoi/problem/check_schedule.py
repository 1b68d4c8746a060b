"""Checks a schedule of P4INC-AOI against its problem from the schedule alone: every constraint of Eqs. (1) to (11).

| constraint | says |
|---|---|
| placement (2) | a job uses INC in one unit, where workers of it are |
| INC capacity (3) | no switch sums for more jobs at a time than it can |
| switch bandwidth (5) | what a unit's servers send and get stays within the switch's bandwidth |
| circuits (6) | a circuit joins two units of the data centre, once, by at least one connection |
| ports (6) | no unit has more connections than optical ports |
| port rate (6) | what two units exchange stays within the rate of their connections |
| completion (8), (10) | every job has sent all its data by the last slot, reconfigurations counted |
| duration (11) | a job transfers in one run of slots, none of them before it arrives |
"""

from __future__ import annotations

from collections import Counter, defaultdict
from math import isfinite

from inakit.planner.methods.p4inc_aoi.problem.schedule import Pair, Schedule, Slot, pair, transfer_ends
from inakit.planner.methods.p4inc_aoi.problem.system import Scheduling
from inakit.topo.errors import PlanError

TOLERANCE = 1e-6


def check(problem: Scheduling, schedule: Schedule) -> None:
    """Raise `PlanError`, with the constraint, the slot and the unit or job, unless the schedule keeps them all."""
    check_inc(problem, schedule)
    for number, slot in enumerate(schedule.slots):
        check_grants(problem, number, slot)
        check_circuits(problem, number, slot)
        check_capacities(problem, schedule, number, slot)
    check_durations(problem, schedule)
    check_completion(problem, schedule)


def check_inc(problem: Scheduling, schedule: Schedule) -> None:
    """Check placement (2)."""
    for number, unit in schedule.inc.items():
        if number not in problem.job_of:
            raise broken("placement (2)", f"job {number}, which uses INC, is none of the problem's")
        if unit not in problem.job_of[number].workers:
            raise broken("placement (2)", f"job {number} uses INC in unit '{unit}', where it has no worker")


def check_grants(problem: Scheduling, number: int, slot: Slot) -> None:
    """Check that a slot serves jobs of the problem, each once, at finite rates above 0."""
    for grant in slot.grants:
        if grant.job not in problem.job_of:
            raise broken("duration (11)", f"slot {number} serves job {grant.job}, which is none of the problem's")
        if not (isfinite(grant.rate_bps) and grant.rate_bps > 0):
            raise broken(
                "duration (11)", f"slot {number} grants job {grant.job} {grant.rate_bps} bit/s; more than 0 is expected"
            )
    if len(slot.rates_bps) < len(slot.grants):
        raise broken("duration (11)", f"slot {number} serves a job twice")


def check_circuits(problem: Scheduling, number: int, slot: Slot) -> None:
    """Check circuits (6) and ports (6) in a slot."""
    used: Counter[str] = Counter()
    for circuit in slot.circuits:
        if circuit.a == circuit.b or circuit.ports < 1 or not {circuit.a, circuit.b} <= set(problem.center.index):
            raise broken("circuits (6)", f"slot {number}: {circuit} joins no two units")
        used[circuit.a] += circuit.ports
        used[circuit.b] += circuit.ports
    if len(slot.ports) < len(slot.circuits):
        raise broken("circuits (6)", f"slot {number} joins two units twice: give one circuit with all its ports")
    for unit in problem.center.units:
        within("ports (6)", f"connections of unit '{unit.name}' in slot {number}", used[unit.name], unit.optical_ports)


def check_capacities(problem: Scheduling, schedule: Schedule, number: int, slot: Slot) -> None:
    """Check INC capacity (3), switch bandwidth (5) and port rate (6) in a slot."""
    sums: Counter[str] = Counter()
    carried: defaultdict[str, float] = defaultdict(float)
    exchanged: defaultdict[Pair, float] = defaultdict(float)
    for grant in slot.grants:
        job, inc = problem.job_of[grant.job], schedule.inc.get(grant.job)
        if inc is not None:
            sums[inc] += 1
        for name, weight in job.switch_loads(inc).items():
            carried[name] += weight * grant.rate_bps
        for name, weight in job.flows(inc):
            exchanged[pair(name, job.server)] += weight * grant.rate_bps
    for unit in problem.center.units:
        where = f"of unit '{unit.name}' in slot {number}"
        within("INC capacity (3)", f"jobs that use INC {where}", sums[unit.name], unit.inc_jobs)
        within("switch bandwidth (5)", f"bit/s {where}", carried[unit.name], unit.switch_bps)
    for units, load in exchanged.items():
        limit = slot.ports.get(units, 0) * problem.center.port_bps
        within("port rate (6)", f"bit/s between '{units[0]}' and '{units[1]}' in slot {number}", load, limit)


def check_durations(problem: Scheduling, schedule: Schedule) -> None:
    """Check duration (11)."""
    served = Counter(grant.job for slot in schedule.slots for grant in slot.grants)
    for number, (first, last) in schedule.spans.items():
        if first < problem.job_of[number].arrival:
            raise broken("duration (11)", f"job {number} transfers in slot {first}, before it arrives")
        if served[number] < last + 1 - first:
            raise broken(
                "duration (11)", f"job {number} pauses between slots {first} and {last}; one run of slots is expected"
            )


def check_completion(problem: Scheduling, schedule: Schedule) -> None:
    """Check completion (8), (10), and that the schedule ends within T."""
    if problem.horizon is not None and len(schedule.slots) > problem.horizon:
        raise broken("completion (10)", f"{len(schedule.slots)} slots, but the horizon is T = {problem.horizon}")
    late = sorted(set(problem.job_of) - set(transfer_ends(problem, schedule)))
    if late:
        raise broken("completion (10)", f"job {late[0]} has data left after the last slot, {len(schedule.slots) - 1}")


def within(constraint: str, what: str, value: float, limit: float) -> None:
    """Raise the error for this constraint if the value exceeds the limit by more than rounding."""
    if value > limit * (1 + TOLERANCE):
        raise broken(constraint, f"{value:g} {what}, but at most {limit:g} are possible")


def broken(constraint: str, what: str) -> PlanError:
    """The error that names the broken constraint, and what breaks it."""
    return PlanError(f"schedule breaks constraint '{constraint}': {what}")
