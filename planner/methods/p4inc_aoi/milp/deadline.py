"""The same MILP as a question: can all jobs be done by a deadline? It is smaller than the printed one, and as exact.

The way a job is served, with INC in one of its units or without, is chosen first, and each way has rates of its own: so
no rate is multiplied by a Boolean. Slots in which a way would end too late have no variables. Of Eqs. (9) and (10) only
what a flow loses where circuits are new is left, and that a job sends all its data: once D is 0 it stays so. Of the
durations it is left that a job starts once.
"""

from __future__ import annotations

from typing import Any

import pulp

from inakit.planner.core.solving import SolverOptions, SolverOutcome
from inakit.planner.methods.p4inc_aoi.milp.model import GIGA, binary, check_single, highest_rate, least, schedule_of
from inakit.planner.methods.p4inc_aoi.problem.resources import ROUNDING, Shape
from inakit.planner.methods.p4inc_aoi.problem.schedule import Pair, Schedule
from inakit.planner.methods.p4inc_aoi.problem.system import PlacedJob, Scheduling
from inakit.planner.solvers.solve import run

Place = tuple[int, str | None, int]
"""A job's number, the unit that sums for it or None, a slot."""


def decide(problem: Scheduling, deadline_s: float, options: SolverOptions) -> tuple[Schedule | None, SolverOutcome]:
    """A schedule by the deadline, if one was found. The outcome says whether it is proven that there is none."""
    model = Deadline(problem, deadline_s)
    outcome = run(model.model, options)
    found = outcome.status in ("optimal", "feasible")
    return (model.extract(outcome) if found else None), outcome


class Deadline:
    """The model. Rates are in Gbit/s. The indices are job j, way o, unit v, pair of units q, and slot i."""

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
