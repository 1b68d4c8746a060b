"""P4INC-AOI's MILP, equations (1) to (11) with Appendix A's products: as the paper prints it, which is the reference,
and by deadlines, which is as exact and smaller.

Every M is the least that the data allows. Where the printed text is garbled or incomplete:

- (3), (4), (5): B_j is 0 where x_j is, so the factor x adds nothing; (4) prints B_(v,v) and B_j^j for B_(v,u) and
  B_j^i.
- (6): circuits are counted by unordered pair, because P_(v,u) = P_(u,v).
- (7): "Delta P + 1 <= M alpha" makes alpha 1 where nothing changes. With Delta P <= M alpha it is 1 where connections
  increase, as the text wants.
- (8): d with a tilde is d.
- (10): alpha has no job. Its maximum, and those of (1) and (11), need only one half of (14), because less is better.
- (11): a transfer in slot i, counted from 0, takes until (i + 1) Delta t; "max (i x) Delta t" would take no time in
  slot 0. A job's durations begin at its arrival, which no equation mentions.
- (15), where it is needed, is z >= a - M (1 - u), not +.
- A transfer "runs continuously" (the set of durations): in each slot of it B is at least the small constant m.

A job with several iterations sends the data of all. Its pauses have no place in the model, which refuses them.

`optimise` asks by deadlines. A batch iteration ends with some slot and some job's update, so few deadlines come into
question. A schedule of our own bounds the optimum from above, deadlines that nothing meets bound it from below. Where
the solver's time is over before the bounds meet, the schedule is feasible, with its gap.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import pulp

from inakit.planner.core.plan import INFEASIBLE, SolverOptions, SolverOutcome
from inakit.planner.methods.p4inc_aoi.optical_system import PlacedJob, Scheduling
from inakit.planner.methods.p4inc_aoi.pack import earliest_s, pack
from inakit.planner.methods.p4inc_aoi.resources import ROUNDING, Shape, circuits_of
from inakit.planner.methods.p4inc_aoi.schedule import Grant, Pair, Schedule, Slot, figures, pair
from inakit.planner.solvers import run, solve
from inakit.topo.errors import InputError, SolverError

LEAST = 1e-3
"""m: the least rate of a transfer, as a part of the rate that sends a job's data in one slot."""

GIGA = 1e9


def optimise_printed(problem: Scheduling, slots: int, options: SolverOptions) -> Schedule:
    """The best schedule within T = `slots`. Raises `SolverError` when T is too short, or nothing is found in time."""
    milp = Milp(problem, slots)
    remedy = "make T longer (constraint 'completion (10)'), or give the units more ports (6) or bandwidth (5)"
    return milp.extract(solve(milp.model, options, remedy))


class Milp:
    """The model as printed. Rates are in Gbit/s. The indices are job j, unit v, pair of units q, and slot i."""

    def __init__(self, problem: Scheduling, slots: int) -> None:
        check_single(problem)
        self.model = pulp.LpProblem("p4inc-aoi", pulp.LpMinimize)
        self.problem, self.center, self.jobs = problem, problem.center, problem.jobs
        self.times = range(slots)
        self.flows = [(job, v) for job in self.jobs for v in job.workers if v != job.server]
        self.pairs = sorted({pair(v, job.server) for job, v in self.flows})
        self.most = {job.number: highest_rate(problem, job) for job in self.jobs}
        self.data = {job.number: job.bits / GIGA for job in self.jobs}
        self.variables()
        self.in_network()
        self.bandwidth()
        self.circuits()
        self.durations_and_times()
        self.transfers()

    def variables(self) -> None:
        """The variables, and the objective (1)."""
        model, times = self.model, self.times
        jobs = [job.number for job in self.jobs]
        longest = (len(times) + 1) * self.center.slot_s + max(job.update_s for job in self.jobs)
        self.t = model.add_variable("t", 0, longest)
        model += self.t, "ct_bti"  # (1)
        self.k = {(job.number, v): binary(model, f"k_{job.number}_{v}") for job in self.jobs for v in job.workers}
        self.z = {
            (job.number, begin, end): binary(model, f"z_{job.number}_{begin}_{end}")
            for job in self.jobs
            for begin, end in combinations(range(len(times) + 1), 2)
            if begin >= job.arrival
        }
        self.b = {(j, i): model.add_variable(f"b_{j}_{i}", 0, self.most[j]) for j in jobs for i in times}
        self.x: dict[tuple[int, int], Any] = {
            (j, i): pulp.lpSum(z for (job, begin, end), z in self.z.items() if job == j and begin <= i < end)
            for j in jobs
            for i in times
        }
        ports = {unit.name: unit.optical_ports for unit in self.center.units}
        self.ports = {(v, u): min(ports[v], ports[u]) for v, u in self.pairs}
        self.p = {
            (q, i): model.add_variable(f"p_{q[0]}_{q[1]}_{i}", 0, self.ports[q], pulp.LpInteger)
            for q in self.pairs
            for i in times
        }
        self.alpha = {(q, i): binary(model, f"alpha_{q[0]}_{q[1]}_{i}") for q in self.pairs for i in times[1:]}

    def in_network(self) -> None:
        """Constraints (2), where k <= L holds by the choice of variables, and (3)."""
        model = self.model
        for job in self.jobs:
            model += pulp.lpSum(self.k[job.number, v] for v in job.workers) <= 1, f"one_unit_{job.number}"
        for unit in self.center.units:
            for i in self.times:
                used = [
                    both(model, f"kx_{j}_{v}_{i}", k, self.x[j, i]) for (j, v), k in self.k.items() if v == unit.name
                ]
                if used:
                    model += pulp.lpSum(used) <= unit.inc_jobs, f"inc_{unit.name}_{i}"

    def bandwidth(self) -> None:
        """Constraints (4), where `sent[j, v, i]` goes from v to the PS's unit, and (5)."""
        kb = {
            (j, v, i): times_binary(self.model, f"kb_{j}_{v}_{i}", k, self.b[j, i], self.most[j])
            for (j, v), k in self.k.items()
            for i in self.times
        }
        self.sent: dict[tuple[int, str, int], Any] = {
            (job.number, v, i): job.workers[v] * self.b[job.number, i] - spared(job, v) * kb[job.number, v, i]
            for job, v in self.flows
            for i in self.times
        }
        for unit in self.center.units:
            v = unit.name
            for i in self.times:
                load = [job.workers[v] * self.b[job.number, i] for job in self.jobs if v in job.workers]
                load += [self.sent[job.number, u, i] for job, u in self.flows if job.server == v]
                load += [
                    job.workers[v] * (self.b[job.number, i] - kb[job.number, v, i])
                    for job in self.jobs if job.server == v and v in job.workers
                ]  # fmt: skip
                self.model += pulp.lpSum(load) <= unit.switch_bps / GIGA, f"switch_{v}_{i}"

    def circuits(self) -> None:
        """Constraints (6) and (7)."""
        model, p = self.model, self.p
        for i in self.times:
            for q in self.pairs:
                name, most = f"{q[0]}_{q[1]}_{i}", self.ports[q]
                load = pulp.lpSum(self.sent[job.number, v, i] for job, v in self.flows if pair(v, job.server) == q)
                model += load <= self.center.port_bps / GIGA * p[q, i], f"port_rate_{name}"
                if i:
                    model += p[q, i] - p[q, i - 1] <= most * self.alpha[q, i], f"more_{name}"
                    model += p[q, i] - p[q, i - 1] >= -most * (1 - self.alpha[q, i]), f"not_fewer_{name}"
            for unit in self.center.units:
                used = pulp.lpSum(p[q, i] for q in self.pairs if unit.name in q)
                model += used <= unit.optical_ports, f"ports_{unit.name}_{i}"

    def durations_and_times(self) -> None:
        """Constraint (11), and that a job sends in the slots of its duration and in no others."""
        model, dt = self.model, self.center.slot_s
        for job in self.jobs:
            j = job.number
            chosen = pulp.lpSum(z for (owner, _, _), z in self.z.items() if owner == j)
            model += chosen == 1, f"one_duration_{j}"
            whole = pulp.lpSum(self.k[j, v] for v in job.workers if v == job.home)
            for i in self.times:
                x, b = self.x[j, i], self.b[j, i]
                model += b <= self.most[j] * x, f"only_in_its_duration_{j}_{i}"
                model += b >= LEAST * self.data[j] / dt * x, f"all_its_duration_{j}_{i}"
                model += self.t >= (i + 1) * dt * x + job.update_s * (1 - whole), f"done_{j}_{i}"

    def transfers(self) -> None:
        """Constraints (8), (9) and (10)."""
        model, dt = self.model, self.center.slot_s
        for job in self.jobs:
            total = pulp.lpSum(self.b[job.number, i] for i in self.times)
            model += dt * total >= self.data[job.number], f"local_data_{job.number}"  # (10) for v = u
        for job, v in self.flows:
            j, weight = job.number, job.workers[v]
            left: Any = weight * self.data[j] - spared(job, v) * self.data[j] * self.k[j, v]
            for i in self.times:
                most = 0 if i + 1 == len(self.times) else weight * self.data[j]
                after = model.add_variable(f"d_{j}_{v}_{i + 1}", 0, most)
                lost = self.lost(job, v, i) if i else 0
                model += after >= left - dt * self.sent[j, v, i] + lost, f"data_{j}_{v}_{i}"
                left = after

    def lost(self, job: PlacedJob, v: str, i: int) -> Any:
        """The Gbit that a rising flow loses while circuits are reconfigured: Delta B beta alpha epsilon."""
        model, name = self.model, f"{job.number}_{v}_{i}"
        change = self.sent[job.number, v, i] - self.sent[job.number, v, i - 1]
        most = job.workers[v] * self.most[job.number]
        beta = binary(model, f"beta_{name}")
        model += change <= most * beta, f"rises_{name}"  # (9)
        model += change >= -most * (1 - beta), f"does_not_fall_{name}"  # (9)
        hit = both(model, f"hit_{name}", beta, self.alpha[pair(v, job.server), i])
        return self.center.reconfiguration_s * times_binary(model, f"lost_{name}", hit, change, most)

    def extract(self, outcome: SolverOutcome) -> Schedule:
        """The schedule of the solved model."""
        inc = {j: v for (j, v), used in self.k.items() if used.varValue > 0.5}
        rates = {place: b.varValue for place, b in self.b.items()}
        ports = {place: round(p.varValue) for place, p in self.p.items()}
        return schedule_of("milp", self.problem, inc, rates, ports, outcome)


def check_single(problem: Scheduling) -> None:
    """Raise `InputError` for a job that pauses between transfers."""
    if any(job.pause(None) for job in problem.jobs):
        raise InputError("the MILP is about one iteration without computing: leave iterations at 1, compute_s at 0")


def spared(job: PlacedJob, v: str) -> int:
    """By how many workers' rates INC in v lowers the flow from there (4)."""
    return job.workers[v] - (job.home is None)


def highest_rate(problem: Scheduling, job: PlacedJob) -> float:
    """The rate in Gbit/s beyond which a worker sends more than all its data in a slot, or its switch is full."""
    center = problem.center
    usable = center.slot_s - center.reconfiguration_s
    full = min(center.units[center.index[v]].switch_bps / count for v, count in job.workers.items())
    return min(job.bits / usable, full) / GIGA


def binary(model: pulp.LpProblem, name: str) -> Any:
    """A Boolean variable."""
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
    method: str,
    problem: Scheduling,
    inc: Mapping[int, str],
    rates: Mapping[tuple[int, int], float],
    ports: Mapping[tuple[Pair, int], int],
    outcome: SolverOutcome,
) -> Schedule:
    """The schedule of a solved model's rates (Gbit/s, by job and slot) and ports (by pair and slot).

    A rate below half of m is the solver's tolerance, and counts as 0.
    """
    last = max(i for (j, i), rate in rates.items() if rate > least(problem, j) / 2)
    slots = tuple(
        Slot(
            circuits_of({q: count for (q, time), count in ports.items() if time == i}),
            tuple(
                Grant(job.number, rates[job.number, i] * GIGA)
                for job in problem.jobs
                if rates.get((job.number, i), 0.0) > least(problem, job.number) / 2
            ),
        )
        for i in range(last + 1)
    )
    return Schedule(method, dict(inc), slots, outcome)


def least(problem: Scheduling, number: int) -> float:
    """The least rate that counts as sending, in Gbit/s."""
    return LEAST * problem.job_of[number].bits / GIGA / problem.center.slot_s


Place = tuple[int, str | None, int]
"""A job's number, the unit that sums for it or None, a slot."""


def decide(problem: Scheduling, deadline_s: float, options: SolverOptions) -> tuple[Schedule | None, SolverOutcome]:
    """A schedule by the deadline, if one was found. The outcome says whether it is proven that there is none."""
    model = Deadline(problem, deadline_s)
    outcome = run(model.model, options)
    found = outcome.status in ("optimal", "feasible")
    return (model.extract(outcome) if found else None), outcome


class Deadline:
    """The MILP as a question: can all jobs be done by a deadline?

    The way a job is served, with INC in one of its units or without, is chosen first, and each way has rates of its
    own: so no rate is multiplied by a Boolean. Slots in which a way would end too late have no variables. Of Eqs. (9)
    and (10) only what a flow loses where circuits are new is left, and that a job sends all its data: once D is 0 it
    stays so. Of the durations it is left that a job starts once.

    Rates are in Gbit/s. The indices are job j, way o, unit v, pair of units q, and slot i.
    """

    def __init__(self, problem: Scheduling, deadline_s: float) -> None:
        check_single(problem)
        self.model = pulp.LpProblem("p4inc-aoi-deadline", pulp.LpMinimize)
        self.problem, self.center = problem, problem.center
        self.ways = {job.number: [Shape(job, o) for o in (*job.workers, None)] for job in problem.jobs}
        self.slots: dict[tuple[int, str | None], range] = {
            (j, shape.inc): range(shape.job.arrival, self.last(shape, deadline_s) + 1)
            for j, ways in self.ways.items()
            for shape in ways
        }
        self.times = range(max((slots.stop for slots in self.slots.values()), default=0))
        self.variables()
        for job in problem.jobs:
            self.one_way(job)
            self.one_run(job)
        self.capacities()
        self.circuits()

    def last(self, shape: Shape, deadline_s: float) -> int:
        """The last slot in which a job may send, by the deadline and within T."""
        sending_s = deadline_s - shape.job.update_time(shape.inc)
        slots = int(sending_s / self.center.slot_s + ROUNDING)
        return min(slots, self.problem.horizon or slots) - 1

    def variables(self) -> None:
        """The variables with their bounds, and constraint (7)."""
        model = self.model
        most = {job.number: highest_rate(self.problem, job) for job in self.problem.jobs}
        names = {key: f"{key[0]}_{key[1] or ''}" for key in self.slots}
        self.y = {key: binary(model, f"y_{names[key]}") for key in self.slots}
        self.x: dict[Place, Any] = {
            (*key, i): binary(model, f"x_{names[key]}_{i}") for key, slots in self.slots.items() for i in slots
        }
        self.r: dict[Place, Any] = {
            (j, o, i): model.add_variable(f"r_{names[j, o]}_{i}", 0, most[j]) for j, o, i in self.x
        }
        for (j, o, i), x in self.x.items():
            model += self.r[j, o, i] <= most[j] * x
            model += self.r[j, o, i] >= least(self.problem, j) * x
            model += x <= self.y[j, o]
        pairs = {q for ways in self.ways.values() for shape in ways for q, _ in shape.flows}
        ports = {unit.name: unit.optical_ports for unit in self.center.units}
        self.p: dict[tuple[Pair, int], Any] = {
            (q, i): model.add_variable(f"p_{q[0]}_{q[1]}_{i}", 0, min(ports[q[0]], ports[q[1]]), pulp.LpInteger)
            for q in sorted(pairs)
            for i in self.times
        }
        self.alpha = {(q, i): binary(model, f"alpha_{q[0]}_{q[1]}_{i}") for q, i in self.p if i}
        for (q, i), alpha in self.alpha.items():
            model += self.p[q, i] - self.p[q, i - 1] <= min(ports[q[0]], ports[q[1]]) * alpha  # (7)

    def one_way(self, job: PlacedJob) -> None:
        """Constraint (2), and that all data is sent (8), (10)."""
        j, dt, epsilon = job.number, self.center.slot_s, self.center.reconfiguration_s
        self.model += pulp.lpSum(self.y[j, shape.inc] for shape in self.ways[j]) == 1
        for shape in self.ways[j]:
            o, data = shape.inc, job.bits / GIGA * self.y[j, shape.inc]
            slots = self.slots[j, o]
            sent = dt * pulp.lpSum(self.r[j, o, i] for i in slots)
            self.model += sent >= data
            for number, (q, _) in enumerate(shape.flows):
                lost = [self.lost(f"{j}_{o}_{number}", (j, o, i), q) for i in slots if i]
                self.model += sent - epsilon * pulp.lpSum(lost) >= data

    def lost(self, name: str, place: Place, q: Pair) -> Any:
        """By how much a worker's rate rises in Gbit/s where circuits are new (9), (10)."""
        j, o, i = place
        most = self.r[place].upBound
        lost = self.model.add_variable(f"lost_{name}_{i}", 0, most)
        self.model += lost >= self.r[place] - self.r.get((j, o, i - 1), 0) - most * (1 - self.alpha[q, i])
        return lost

    def one_run(self, job: PlacedJob) -> None:
        """A job starts at most once (11)."""
        j = job.number
        starts: list[Any] = []
        for shape in self.ways[j]:
            for i in self.slots[j, shape.inc]:
                start = self.model.add_variable(f"start_{j}_{shape.inc or ''}_{i}", 0, 1)
                self.model += start >= self.x[j, shape.inc, i] - self.x.get((j, shape.inc, i - 1), 0)
                starts.append(start)
        self.model += pulp.lpSum(starts) <= 1

    def capacities(self) -> None:
        """Constraints (3) and (5)."""
        sums: dict[tuple[str, int], list[Any]] = {}
        loads: dict[tuple[str, int], list[Any]] = {}
        for ways in self.ways.values():
            for shape in ways:
                j, o = shape.job.number, shape.inc
                for i in self.slots[j, o]:
                    if o is not None:
                        sums.setdefault((o, i), []).append(self.x[j, o, i])
                    for v, weight in shape.loads:
                        loads.setdefault((v, i), []).append(weight * self.r[j, o, i])
        for unit in self.center.units:
            for i in self.times:
                self.model += pulp.lpSum(sums.get((unit.name, i), ())) <= unit.inc_jobs
                self.model += pulp.lpSum(loads.get((unit.name, i), ())) <= unit.switch_bps / GIGA

    def circuits(self) -> None:
        """Constraint (6)."""
        traffic: dict[tuple[Pair, int], list[Any]] = {}
        for ways in self.ways.values():
            for shape in ways:
                for i in self.slots[shape.job.number, shape.inc]:
                    for q, weight in shape.flows:
                        traffic.setdefault((q, i), []).append(weight * self.r[shape.job.number, shape.inc, i])
        for place, p in self.p.items():
            self.model += pulp.lpSum(traffic.get(place, ())) <= self.center.port_bps / GIGA * p
        for unit in self.center.units:
            for i in self.times:
                used = [p for (q, time), p in self.p.items() if time == i and unit.name in q]
                self.model += pulp.lpSum(used) <= unit.optical_ports

    def extract(self, outcome: SolverOutcome) -> Schedule:
        """The schedule of the solved model."""
        chosen = {j: o for (j, o), y in self.y.items() if y.varValue > 0.5}
        inc = {j: o for j, o in chosen.items() if o is not None}
        rates = {(j, i): r.varValue for (j, o, i), r in self.r.items() if chosen[j] == o}
        ports = {place: round(p.varValue) for place, p in self.p.items()}
        return schedule_of("milp", self.problem, inc, rates, ports, outcome)


ROUNDING_S = 1e-9


def optimise(problem: Scheduling, options: SolverOptions) -> Schedule:
    """The shortest batch iteration that was found, and its gap. Raises `SolverError` when T is too short for any."""
    started = time.monotonic()
    best = first(problem, options)
    ends = deadlines(problem, len(best.slots))
    below, unknown = earliest_s(problem), float("inf")
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
    return concluded(problem, best, below, time.monotonic() - started, options)


def first(problem: Scheduling, options: SolverOptions) -> Schedule:
    """Some schedule within T. Raises `SolverError` where none is found."""
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


def concluded(problem: Scheduling, best: Schedule, below: float, seconds: float, options: SolverOptions) -> Schedule:
    """The schedule with its outcome, where `below` is a time in s before which no batch iteration ends."""
    gap = max(0.0, 1 - below / figures(problem, best).ct_bti_s)
    proven = gap < ROUNDING_S
    outcome = SolverOutcome("optimal" if proven else "feasible", seconds, 0.0 if proven else gap, options.solver)
    return replace(best, outcome=outcome)


def deadlines(problem: Scheduling, slots: int) -> list[float]:
    """Every time in s at which a batch iteration of at most so many slots may end, in order."""
    slot_s = problem.center.slot_s
    updates = {job.update_time(inc) for job in problem.jobs for inc in (*job.workers, None)}
    return sorted({(slot + 1) * slot_s + update for slot in range(slots) for update in updates})
