"""P4INC-AOI's MILP, equations (1) to (11) with Appendix A's products: as printed, which is the reference, and by
deadlines, which is equally exact and smaller.

Rates are in parts of a job's data per slot. Every M is twice what the variable can reach: a solver that rounds by its
tolerance calls a model infeasible whose M fits exactly. Once the choices are made, a linear program gives the rates
anew. Where the printed text is garbled or incomplete:

- (3), (4), (5): B_j is 0 where x_j is, so the factor x adds nothing; (4) prints B_(v,v) and B_j^j for B_(v,u) and
  B_j^i.
- (6): circuits are counted by unordered pair, because P_(v,u) = P_(u,v).
- (7): "Delta P + 1 <= M alpha" makes alpha 1 where nothing changes. With Delta P <= M alpha it is 1 where connections
  increase, as the text requires.
- (8): d with a tilde is d.
- (10): alpha has no job. Its maximum, and those of (1) and (11), need only one half of (14), because less is better.
- (11): a transfer in slot i, counted from 0, takes until (i + 1) Delta t; "max (i x) Delta t" would take no time in
  slot 0. A job's durations begin at its arrival, which no equation mentions.
- (15), where it is needed, is z >= a - M (1 - u), not +.
- A transfer "runs continuously" (the set of durations): in each slot of it B is at least the small constant m.

The links of servers, and the GPUs that jobs wait for, are in the paper's text and in no equation. Both models have
them as `optical_system` describes them.

A job with several iterations sends the data of all. The model has no pauses between iterations and refuses jobs with
them.

`optimise` works by deadlines. A batch iteration ends with some slot and some job's update, so there are few possible
deadlines. A schedule of the kit's heuristics bounds the optimum from above, infeasible deadlines bound it from below.
If the solver's time is over before the bounds meet, the schedule is feasible, with its gap.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from math import inf, isfinite
from typing import Any

import pulp

from inakit.planner.core.plan import ERROR, FEASIBLE, INFEASIBLE, OPTIMAL, SolverOptions, SolverOutcome
from inakit.planner.methods.p4inc_aoi.optical_system import PlacedJob, Scheduling
from inakit.planner.methods.p4inc_aoi.schedule import Grant, Schedule, Slot, UnitPair, figures, pair
from inakit.planner.methods.p4inc_aoi.schedulers import earliest_s, pack, shapes
from inakit.planner.methods.p4inc_aoi.slot_resources import ROUNDING, circuits_of
from inakit.planner.solvers import run, solve
from inakit.topo.errors import InputError, SolverError

LEAST = 1e-3
"""m: the least rate of a transfer, as a fraction of the rate that sends a job's data in one slot."""

SPARE = 5e-7
"""The part that rates are raised by, because a solver keeps a row to 1e-7 only; `check` allows 1e-6."""

GIGA = 1e9


def optimise_printed(  # noqa: PLR0912, PLR0915, a model that is read from top to bottom
    problem: Scheduling, slots: int, options: SolverOptions
) -> Schedule:
    """The best schedule within T = `slots`. Raises `SolverError` if T is too short, or no schedule is found in time."""
    check_single(problem)
    model = pulp.LpProblem("p4inc-aoi", pulp.LpMinimize)

    # Sets: jobs j, units v, flows (job, v) to the PS's unit, pairs of units q, slots i
    center, jobs, times = problem.center, problem.jobs, range(slots)
    flows = [(job, v) for job in jobs for v in job.workers if v != job.server]
    pairs = sorted({pair(v, job.server) for job, v in flows})
    spans = list(combinations(range(slots + 1), 2))

    # Parameters. A rate of 1 sends a job's data in a slot; `full` is that rate in Gbit/s, `most` the M of rates. INC in
    # v lowers the flow from there by the rates of `spared[j, v]` workers (4).
    dt, epsilon = center.slot_s, center.reconfiguration_s / center.slot_s
    most = 2 / (1 - epsilon)
    full = {job.number: job.bits / GIGA / dt for job in jobs}
    spared = {(job.number, v): job.workers[v] - (job.home is None) for job, v in flows}
    ports = most_ports(problem, pairs)

    # Variables
    t = model.add_variable("t", 0, (slots + 1) * dt + max(job.update_s for job in jobs))
    k = {(job.number, v): binary(model, f"k_{job.number}_{v}") for job in jobs for v in job.workers}
    z = {
        (job.number, begin, end): binary(model, f"z_{job.number}_{begin}_{end}")
        for job in jobs
        for begin, end in spans
        if begin >= job.arrival
    }
    b = {(j, i): model.add_variable(f"b_{j}_{i}", 0, most) for j in full for i in times}
    x: dict[tuple[int, int], Any] = {
        (j, i): pulp.lpSum(chosen for (owner, begin, end), chosen in z.items() if owner == j and begin <= i < end)
        for j in full
        for i in times
    }
    p = {(q, i): model.add_variable(f"p_{q[0]}_{q[1]}_{i}", 0, ports[q], pulp.LpInteger) for q in pairs for i in times}
    alpha = {(q, i): binary(model, f"alpha_{q[0]}_{q[1]}_{i}") for q in pairs for i in times[1:]}

    # Objective
    model += t, "ct_bti"  # (1)

    # Constraints
    for job in jobs:
        model += pulp.lpSum(k[job.number, v] for v in job.workers) <= 1, f"one_unit_{job.number}"  # (2)
        for v in set(job.workers) - set(center.inc_units(job)):
            model += k[job.number, v] == 0, f"inside_{job.number}_{v}"
    kx = {(j, v, i): both(model, f"kx_{j}_{v}_{i}", own, x[j, i]) for (j, v), own in k.items() for i in times}
    for unit in center.units:
        for i in times:
            used = [own for (_, v, time), own in kx.items() if (v, time) == (unit.name, i)]
            if used:
                model += pulp.lpSum(used) <= unit.inc_jobs, f"inc_{unit.name}_{i}"  # (3)
            seats: list[Any] = [job.workers.get(unit.name, 0) * x[job.number, i] for job in jobs]
            for job in jobs:
                if job.server == unit.name:
                    replaced = kx[job.number, job.home, i] if job.home is not None else 0
                    seats.append(unit.server_places * (x[job.number, i] - replaced))
            model += pulp.lpSum(seats) <= unit.places, f"servers_{unit.name}_{i}"
    kb = {
        (j, v, i): times_binary(model, f"kb_{j}_{v}_{i}", own, b[j, i], most)
        for (j, v), own in k.items()
        for i in times
    }
    sent: dict[tuple[int, str, int], Any] = {  # from v to the PS's unit (4)
        (job.number, v, i): job.workers[v] * b[job.number, i] - spared[job.number, v] * kb[job.number, v, i]
        for job, v in flows
        for i in times
    }
    for unit in center.units:
        v = unit.name
        for i in times:
            load = [full[job.number] * job.workers[v] * b[job.number, i] for job in jobs if v in job.workers]
            load += [full[job.number] * sent[job.number, u, i] for job, u in flows if job.server == v]
            load += [
                full[job.number] * job.workers[v] * (b[job.number, i] - kb[job.number, v, i])
                for job in jobs
                if job.server == v and v in job.workers
            ]
            model += pulp.lpSum(load) <= unit.switch_bps / GIGA, f"switch_{v}_{i}"  # (5)
    for i in times:
        for q in pairs:
            name = f"{q[0]}_{q[1]}_{i}"
            exchanged = pulp.lpSum(
                full[job.number] * sent[job.number, v, i] for job, v in flows if pair(v, job.server) == q
            )
            model += exchanged <= center.port_bps / GIGA * p[q, i], f"port_rate_{name}"  # (6)
            if i:
                model += p[q, i] - p[q, i - 1] <= ports[q] * alpha[q, i], f"more_{name}"  # (7)
                model += p[q, i] - p[q, i - 1] >= -ports[q] * (1 - alpha[q, i]), f"not_fewer_{name}"  # (7)
        for unit in center.units:
            taken = pulp.lpSum(p[q, i] for q in pairs if unit.name in q)
            model += taken <= unit.optical_ports, f"ports_{unit.name}_{i}"  # (6)
    for job in jobs:
        j = job.number
        model += pulp.lpSum(own for (owner, _, _), own in z.items() if owner == j) == 1, f"one_duration_{j}"
        whole = pulp.lpSum(k[j, v] for v in job.workers if v == job.home)
        for i in times:
            model += b[j, i] <= most * x[j, i], f"only_in_its_duration_{j}_{i}"
            model += b[j, i] >= LEAST * x[j, i], f"all_its_duration_{j}_{i}"
            for number, (limit, received) in enumerate(links(problem, job)):
                own = (received.get(v, 0) * kb[j, v, i] for v in job.workers)
                model += received[None] * b[j, i] - pulp.lpSum(own) <= limit / full[j], f"link_{number}_{j}_{i}"
            model += t >= (i + 1) * dt * x[j, i] + job.update_s * (1 - whole), f"done_{j}_{i}"  # (11)
    for job in jobs:
        j = job.number
        model += pulp.lpSum(b[j, i] for i in times) >= 1, f"local_data_{j}"  # (10) for v = u
    for job, v in flows:
        j, weight = job.number, job.workers[v]
        left: Any = weight - spared[j, v] * k[j, v]  # (8)
        for i in times:
            name, lost = f"{j}_{v}_{i}", 0
            after = model.add_variable(f"d_{j}_{v}_{i + 1}", 0, 0 if i + 1 == slots else 2 * weight)
            if i:  # a flow that rises on new circuits loses Delta B beta alpha epsilon
                change, rise = sent[j, v, i] - sent[j, v, i - 1], 2 * weight * most
                beta = binary(model, f"beta_{name}")
                model += change <= rise * beta, f"rises_{name}"  # (9)
                model += change >= -rise * (1 - beta), f"does_not_fall_{name}"  # (9)
                hit = both(model, f"hit_{name}", beta, alpha[pair(v, job.server), i])
                lost = epsilon * times_binary(model, f"lost_{name}", hit, change, rise)
            model += after >= left - sent[j, v, i] + lost, f"data_{name}"  # (10)
            left = after

    remedy = "make T longer (constraint 'completion (10)'), or give the units more ports (6) or bandwidth (5)"
    outcome = solve(model, options, remedy)
    give_rates_anew(model, options)
    inc = {j: v for (j, v), own in k.items() if own.varValue > 0.5}
    sending = {(j, i) for (j, begin, end), own in z.items() if own.varValue > 0.5 for i in range(begin, end)}
    return schedule_of(problem, inc, {place: b[place].varValue for place in sending}, p, outcome)


def links(problem: Scheduling, job: PlacedJob) -> Iterator[tuple[float, dict[str | None, int]]]:
    """The limits of servers' links on a job, in Gbit/s: for the workers, and for the PS.

    With each is the multiple of a worker's rate that passes the link without INC (None), and by how much INC in a unit
    lowers it.
    """
    center = problem.center
    own, ps = min(center.unit(v).worker_bps for v in job.workers), center.unit(job.server).ps_bps
    if isfinite(own):
        yield own / GIGA, {None: 1}
    if isfinite(ps):
        incast = job.incast(None)
        yield ps / GIGA, {None: incast} | {v: incast - job.incast(v) for v in job.workers}


def give_rates_anew(model: pulp.LpProblem, options: SolverOptions) -> None:
    """Solve a solved model again with its choices fixed, as a linear program, whose rates fit them exactly.

    Raises `SolverError` if they fit no rates: then the solver had kept the rows by its tolerance only.
    """
    for variable in model.variables():
        if variable.cat == pulp.LpInteger:
            variable.lowBound = variable.upBound = round(variable.varValue)
    again = run(model, replace(options, solver="highs"))
    if again.status != OPTIMAL:
        raise SolverError(
            f"model '{model.name}': the choices of {options.solver} fit no rates ({again.status}); "
            "choose another solver, such as highs+cbc, which compares two"
        )


def check_single(problem: Scheduling) -> None:
    """Raise `InputError` for a job that pauses between transfers."""
    if any(job.pause(None) for job in problem.jobs):
        raise InputError("the MILP covers one iteration without computing: set iterations to 1 and compute_s to 0")


def most_ports(problem: Scheduling, pairs: Iterable[UnitPair]) -> dict[UnitPair, int]:
    ports = {unit.name: unit.optical_ports for unit in problem.center.units}
    return {(v, u): min(ports[v], ports[u]) for v, u in pairs}


def binary(model: pulp.LpProblem, name: str) -> Any:
    return model.add_variable(name, cat=pulp.LpBinary)


def both(model: pulp.LpProblem, name: str, a: Any, b: Any) -> Any:
    """The product of two Booleans (12)."""
    z = model.add_variable(name, 0, 1)
    model += z <= a, f"{name}_first"
    model += z <= b, f"{name}_second"
    model += z >= a + b - 1, f"{name}_both"
    return z


def times_binary(model: pulp.LpProblem, name: str, a: Any, b: Any, most: float) -> Any:
    """The product of a Boolean a and a real b, which lies within +- `most` (13)."""
    z = model.add_variable(name, -most, most)
    model += z <= most * a, f"{name}_most"
    model += z >= -most * a, f"{name}_least"
    model += z <= b + most * (1 - a), f"{name}_above"
    model += z >= b - most * (1 - a), f"{name}_below"
    return z


def schedule_of(
    problem: Scheduling,
    inc: Mapping[int, str],
    rates: Mapping[tuple[int, int], float],
    p: Mapping[tuple[UnitPair, int], Any],
    outcome: SolverOutcome,
) -> Schedule:
    """The schedule of a solved model: parts of a job's data by job and slot, variables of ports by pair and slot."""
    full = {job.number: job.bits / problem.center.slot_s * (1 + SPARE) for job in problem.jobs}
    slots = tuple(
        Slot(
            circuits_of({q: round(count.varValue) for (q, time), count in p.items() if time == i}),
            tuple(Grant(j, rates[j, i] * full[j]) for j in problem.job_of if (j, i) in rates),
        )
        for i in range(max(i for _, i in rates) + 1)
    )
    return Schedule("milp", dict(inc), slots, outcome)


# -- The MILP as a decision: can all jobs be done by a deadline?
#
# The way to serve a job, with INC in one of its units or without, is chosen first, and each way has its own rates: so
# no rate is multiplied by a Boolean. Slots in which a way would end too late have no variables. Two parts of Eqs. (9)
# and (10) remain: the loss of a flow where circuits are new, and that a job sends all its data; once D is 0 it stays 0.
# Of the durations it remains that a job starts once.

WaySlot = tuple[int, str | None, int]
"""A job's number, the unit that sums for it or None, a slot."""


def decide(  # noqa: PLR0912, PLR0915, a model that is read from top to bottom
    problem: Scheduling, deadline_s: float, options: SolverOptions, *, fewest: bool = False
) -> tuple[Schedule | None, SolverOutcome]:
    """A schedule by the deadline, if one was found. The outcome reports whether infeasibility is proven.

    With `fewest` it has the fewest new connections of all such schedules, if the outcome is optimal.
    """
    check_single(problem)
    model = pulp.LpProblem("p4inc-aoi-deadline", pulp.LpMinimize)

    # Sets: ways (j, o) to serve a job j, units v, pairs of units q, slots i
    center = problem.center
    ways = {(job.number, shape.inc): shape for job in problem.jobs for shape in shapes(center, job)}
    slots: dict[tuple[int, str | None], range] = {}
    for way, shape in ways.items():
        most_slots = int((deadline_s - shape.job.update_time(shape.inc)) / center.slot_s + ROUNDING)
        slots[way] = range(shape.job.arrival, min(most_slots, problem.horizon or most_slots))
    times = range(max(own.stop for own in slots.values()))
    places = [(j, o, i) for (j, o), own in slots.items() for i in own]

    # Parameters, as in the printed model
    epsilon = center.reconfiguration_s / center.slot_s
    most = 2 / (1 - epsilon)
    full = {job.number: job.bits / GIGA / center.slot_s for job in problem.jobs}
    ports = most_ports(problem, sorted({q for shape in ways.values() for q, _ in shape.flows}))

    # Variables
    y = {(j, o): binary(model, f"y_{j}_{o or ''}") for j, o in ways}
    x: dict[WaySlot, Any] = {(j, o, i): binary(model, f"x_{j}_{o or ''}_{i}") for j, o, i in places}
    r: dict[WaySlot, Any] = {(j, o, i): model.add_variable(f"r_{j}_{o or ''}_{i}", 0, most) for j, o, i in places}
    for j, o, i in places:
        model += r[j, o, i] <= min(most, ways[j, o].most_bps / GIGA / full[j]) * x[j, o, i]
        model += r[j, o, i] >= LEAST * x[j, o, i]
        model += x[j, o, i] <= y[j, o]
    p: dict[tuple[UnitPair, int], Any] = {
        (q, i): model.add_variable(f"p_{q[0]}_{q[1]}_{i}", 0, count, pulp.LpInteger)
        for q, count in ports.items()
        for i in times
    }
    alpha = {(q, i): binary(model, f"alpha_{q[0]}_{q[1]}_{i}") for q, i in p if i}

    new = {(q, i): model.add_variable(f"new_{q[0]}_{q[1]}_{i}", 0) for q, i in alpha}

    # Objective
    model += pulp.lpSum(new.values()) if fewest else 0

    # Constraints
    for (q, i), changes in alpha.items():
        model += p[q, i] - p[q, i - 1] <= ports[q] * changes  # (7)
        model += p[q, i] - p[q, i - 1] <= new[q, i]
    for job in problem.jobs:
        own = {o: shape for (j, o), shape in ways.items() if j == job.number}
        j = job.number
        model += pulp.lpSum(y[j, o] for o in own) == 1  # (2)
        for o, shape in own.items():
            sent = pulp.lpSum(r[j, o, i] for i in slots[j, o])
            model += sent >= y[j, o]  # (10)
            for number, (q, _) in enumerate(shape.flows):
                losses = []  # the rise of a worker's rate where circuits are new (9)
                for i in filter(None, slots[j, o]):
                    lost = model.add_variable(f"lost_{j}_{o}_{number}_{i}", 0, most)
                    model += lost >= r[j, o, i] - r.get((j, o, i - 1), 0) - most * (1 - alpha[q, i])
                    losses.append(lost)
                model += sent - epsilon * pulp.lpSum(losses) >= y[j, o]  # (8), (10)
        starts: list[Any] = []
        for o in own:
            for i in slots[j, o]:
                start = model.add_variable(f"start_{j}_{o or ''}_{i}", 0, 1)
                model += start >= x[j, o, i] - x.get((j, o, i - 1), 0)
                starts.append(start)
        model += pulp.lpSum(starts) <= 1  # (11)
    sums, loads, exchanged, seats = (defaultdict[Any, list[Any]](list) for _ in range(4))
    for j, o, i in places:
        if o is not None:
            sums[o, i].append(x[j, o, i])
        for v, weight in ways[j, o].loads:
            loads[v, i].append(weight * full[j] * r[j, o, i])
        for q, weight in ways[j, o].flows:
            exchanged[q, i].append(weight * full[j] * r[j, o, i])
        for v, count in ways[j, o].places:
            seats[v, i].append(count * x[j, o, i])
    for unit in center.units:
        for i in times:
            model += pulp.lpSum(sums[unit.name, i]) <= unit.inc_jobs  # (3)
            model += pulp.lpSum(loads[unit.name, i]) <= unit.switch_bps / GIGA  # (5)
            model += pulp.lpSum(seats[unit.name, i]) <= unit.places
    for place, count in p.items():
        model += pulp.lpSum(exchanged[place]) <= center.port_bps / GIGA * count  # (6)
    for unit in center.units:
        for i in times:
            taken = pulp.lpSum(count for (q, time), count in p.items() if time == i and unit.name in q)
            model += taken <= unit.optical_ports  # (6)

    outcome = run(model, options)
    if outcome.status not in (OPTIMAL, FEASIBLE):
        return None, outcome
    try:
        give_rates_anew(model, options)
    except SolverError:
        return None, replace(outcome, status=ERROR)
    chosen = {j: o for (j, o), way in y.items() if way.varValue > 0.5}
    rates = {(j, i): rate.varValue for (j, o, i), rate in r.items() if x[j, o, i].varValue > 0.5}
    inc = {j: o for j, o in chosen.items() if o is not None}
    return schedule_of(problem, inc, rates, p, outcome), outcome


# -- The shortest batch iteration, by bisection of the possible deadlines.

ROUNDING_S = 1e-9


def optimise(problem: Scheduling, options: SolverOptions) -> Schedule:
    """The shortest batch iteration found, and its gap. Raises `SolverError` if T is too short for any.

    Of the schedules that end then it is one with few reconfigured connections: with the fewest, if the time suffices
    (section VII-C: the MILP has the smallest number of AOI reconfigurations).
    """
    started = time.monotonic()
    best = first(problem, options)
    ends = deadlines(problem, len(best.slots))
    below, unknown = earliest_s(problem), inf  # nothing ends before `below`, and `unknown` was too hard to decide
    while True:
        reached = figures(problem, best).ct_bti_s
        open_ = [at for at in ends if below - ROUNDING_S <= at < min(reached, unknown) - ROUNDING_S]
        left_s = options.time_limit_s - (time.monotonic() - started)
        if not open_ or left_s <= 0:
            break
        asked = open_[len(open_) // 2]
        found, outcome = decide(problem, asked, replace(options, time_limit_s=left_s / 2))
        if found is not None:
            best = found
        elif outcome.status == INFEASIBLE:
            below = next((at for at in ends if at > asked + ROUNDING_S), reached)
        else:
            unknown = asked
    gap = max(0.0, 1 - below / reached)
    proven = gap < ROUNDING_S
    if figures(problem, best).connections and left_s > 0:
        fewer, _ = decide(problem, reached, replace(options, time_limit_s=left_s), fewest=True)
        if fewer is not None:
            best = min(best, fewer, key=lambda schedule: figures(problem, schedule).connections)
    seconds = time.monotonic() - started
    outcome = SolverOutcome(OPTIMAL if proven else FEASIBLE, seconds, 0.0 if proven else gap, options.solver)
    return replace(best, outcome=outcome)


def first(problem: Scheduling, options: SolverOptions) -> Schedule:
    """Some schedule within T. Raises `SolverError` if none is found."""
    packed = pack(problem, "milp", seed=options.seed)
    if problem.horizon is None or len(packed.slots) <= problem.horizon:
        return packed
    found, outcome = decide(problem, deadlines(problem, problem.horizon)[-1], options)
    if found is None:
        shown = "none exists" if outcome.status == INFEASIBLE else f"none was found in {options.time_limit_s:g} s"
        raise SolverError(
            f"constraint 'completion (10)': of schedules with T = {problem.horizon} slots {shown}; "
            "make T longer, or a slot"
        )
    return found


def deadlines(problem: Scheduling, slots: int) -> list[float]:
    """Every time in s at which a batch iteration of at most the given number of slots can end, in ascending order."""
    slot_s = problem.center.slot_s
    updates = {job.update_time(inc) for job in problem.jobs for inc in (*job.workers, None)}
    return sorted({(slot + 1) * slot_s + update for slot in range(slots) for update in updates})
