"""ARO's model as the paper prints it, Eqs. (1) to (10), for any jobs and tasks: the reference for all faster methods.

SJST is SJMT with one task, SJMT is MJMT with one job. Only Eq. (10), which is quadratic, has another form here;
every optimum of the one is an optimum of the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor
from typing import Any

import pulp

from inakit.planner.core.problem import Problem
from inakit.planner.core.slots import Inp, limited_pipelines, most_children
from inakit.planner.methods.aro.bisection import ROUNDING
from inakit.planner.methods.aro.task_graphs import Task, TaskGraph, task_graph, tasks_of
from inakit.topo.fabric.fabric import DirectedLink

# -- Constraint (10), the sum of y r over tasks, in linear form, exactly.
#
# y is an integer and r a rate, so the paper's model is quadratic, and the paper leaves the linearisation to the solver.
# Here it is explicit. With one task, divide by r: y <= b t, where t = 1 / r is minimised. With several, write y in
# binary: its load y r is the sum of 2^k e[k] r, and e r is the least z >= 0 with z >= r - R (1 - e), where R bounds r.
# Nothing pushes z higher, because loads are only bounded from above. QSR needs no further steps: its r is an integer.

FlowTerm = tuple[int, Any]
"""A task's number, and an integer variable that counts its flows and has an upper bound."""


class TaskRates(ABC):
    """The rates r of the tasks in a model, in units of b-bar, Eq. (11)."""

    @abstractmethod
    def limit(self, name: str, terms: Iterable[FlowTerm], b: float) -> None:
        """Add constraint (10): all `terms`, each times the rate of its task, are at most `b`."""

    @abstractmethod
    def at_least(self, rate: float) -> None:
        """Require a rate of at least `rate`, in units of b-bar, for every task."""

    @property
    @abstractmethod
    def values(self) -> list[float]:
        """The rates of the solved model, in units of b-bar."""


class OneRate(TaskRates):
    """A single task with a continuous rate: the model minimises its inverse `t`."""

    def __init__(self, model: pulp.LpProblem) -> None:
        self.model = model
        self.t = model.add_variable("t", lowBound=0)

    def limit(self, name: str, terms: Iterable[FlowTerm], b: float) -> None:
        """Add the row y <= b t, which is (10) divided by r."""
        self.model += pulp.lpSum(y for _, y in terms) <= b * self.t, name

    def at_least(self, rate: float) -> None:
        self.t.upBound = 1 / rate if rate > 0 else None

    @property
    def values(self) -> list[float]:
        return [1 / self.t.varValue]


class Continuous(TaskRates):
    """`r[i]`, a variable from 0 to `most[i]`."""

    levels = 1
    """The number of units of r in b-bar."""
    kind = pulp.LpContinuous

    def __init__(self, model: pulp.LpProblem, most: Sequence[float]) -> None:
        self.model = model
        self.r = [model.add_variable(f"r_{i}", 0, self.floor(bound), self.kind) for i, bound in enumerate(most)]
        self.loads: dict[int, Any] = {}

    def floor(self, rate: float) -> float:
        """The largest value of r up to `rate`, among the values that r can take."""
        return rate

    def limit(self, name: str, terms: Iterable[FlowTerm], b: float) -> None:
        """Add the row (10), with each product y r made of `products` of bits."""
        self.model += pulp.lpSum(self.load(self.r[i], y) for i, y in terms) <= self.floor(b), name

    def load(self, r: Any, y: Any) -> Any:
        """The product y r. It is made once for each y, because footnote 3 needs it in both directions of a link."""
        if id(y) not in self.loads:
            products = []
            for k, bit in enumerate(bits_of(self.model, y)):
                z = self.model.add_variable(f"load_{y.name}_{k}", lowBound=0)
                self.model += z >= r - r.upBound * (1 - bit), f"is_load_{y.name}_{k}"
                products.append(2**k * z)
            self.loads[id(y)] = pulp.lpSum(products)
        return self.loads[id(y)]

    def at_least(self, rate: float) -> None:
        for r in self.r:
            r.lowBound = rate * self.levels

    @property
    def values(self) -> list[float]:
        return [r.varValue for r in self.r]


class Quantized(Continuous):
    """QSR: `r[i]` counts steps of b-bar / N, 0 to N.

    The load of a link is then a whole number of steps too, so b is rounded down to a whole number. The paper prints
    this as rounding up, by which a link of 50.5 steps would carry 51.
    """

    kind = pulp.LpInteger

    def __init__(self, model: pulp.LpProblem, most: Sequence[float], levels: int) -> None:
        self.levels = levels
        super().__init__(model, most)

    def floor(self, rate: float) -> int:
        """The number of whole steps in a rate."""
        return floor(rate * self.levels * (1 + ROUNDING))

    @property
    def values(self) -> list[float]:
        return [round(r.varValue) / self.levels for r in self.r]


def bits_of(model: pulp.LpProblem, number: Any) -> list[Any]:
    """The bits of an integer variable, the lowest first. A variable of at most 1 is its own bit."""
    if number.upBound <= 1:
        return [number]
    length = int(number.upBound).bit_length()
    bits = [model.add_variable(f"bit_{number.name}_{k}", cat=pulp.LpBinary) for k in range(length)]
    model += pulp.lpSum(2**k * bit for k, bit in enumerate(bits)) == number, f"bits_{number.name}"
    return bits


# -- The other constraints.

MU = 0.001
"""The weight of the total in Eq. (3), as the paper has it."""


@dataclass(frozen=True)
class Form:
    """The form of the rates: QSR with `levels` (N), or continuous without. `two_way` counts results too (footnote 3).

    Footnote 3 gives the results the same load on the way back as the flows of the gradients. A multicast sends one copy
    where the gradients had several flows, so this is more than the network needs.
    """

    levels: int | None = None
    two_way: bool = False


@dataclass(frozen=True)
class TaskVariables:
    """A task's variables: `y[u, v]`, flows on a directed link; `x[inp]`, whether the task passes the INP.

    Flows that enter an INP leave it as one flow for each `most_children`, the bits of a slot's bitmap; if more flows
    enter, x is the number of outgoing flows. The paper has no such limit.
    """

    y: dict[DirectedLink, Any]
    x: dict[Inp, Any]


@dataclass(frozen=True)
class PrintedModel:
    """The model with its variables, task by task. Rates are in units of `unit_bps`, which is b-bar of Eq. (11)."""

    problem: Problem
    tasks: tuple[Task, ...]
    graphs: tuple[TaskGraph, ...]
    unit_bps: float
    model: pulp.LpProblem
    rates: TaskRates
    flows: tuple[TaskVariables, ...]

    @property
    def rates_bps(self) -> list[float]:
        return [rate * self.unit_bps for rate in self.rates.values]

    def counts(self, i: int) -> dict[DirectedLink, int]:
        return {link: round(y.varValue) for link, y in self.flows[i].y.items()}


def task_graphs(problem: Problem) -> tuple[TaskGraph, ...]:
    """The graph of every task. Raises `InputError` when a worker cannot reach its PS."""
    return tuple(task_graph(problem.fabric, task.job.workers, task.server) for task in tasks_of(problem))


def highest_capacity_bps(graphs: Sequence[TaskGraph]) -> float:
    """b-bar of Eq. (11) in bit/s, of the tasks' complete graphs."""
    return max(graph.fabric.capacities_bps[link] for graph in graphs for link in graph.links)


def build(problem: Problem, graphs: Sequence[TaskGraph], form: Form, unit_bps: float) -> PrintedModel:
    """Build the model of all tasks, where task i can use the links of `graphs[i]`. `unit_bps` is b-bar."""
    tasks = tasks_of(problem)
    model = pulp.LpProblem("aro", pulp.LpMaximize)

    # Variables. A task's rate is bounded by its slowest worker's link.
    b = problem.fabric.capacities_bps
    most = [
        min(max(b[link] for link in graph.out_of[worker]) for worker in graph.workers) / unit_bps for graph in graphs
    ]
    rates: TaskRates = OneRate(model) if len(most) == 1 else Continuous(model, most)
    if form.levels is not None:
        rates = Quantized(model, most, form.levels)
    flows = []
    for i, graph in enumerate(graphs):
        limits = {(u, v): graph.most_flows[u] for u, v in graph.links}
        y = {(u, v): model.add_variable(f"y.{i}.{u}.{v}", 0, n, pulp.LpInteger) for (u, v), n in limits.items()}  # (4)
        sums = graph.most_sums
        x = {(v, p): model.add_variable(f"x.{i}.{v}.{p}", 0, sums[v, p], pulp.LpInteger) for v, p in graph.inps}  # (6)
        flows.append(TaskVariables(y, x))
    aro = PrintedModel(problem, tasks, tuple(graphs), unit_bps, model, rates, tuple(flows))

    # Objective
    add_objective(aro)

    # Constraints
    for i, graph in enumerate(graphs):
        conserve_flows(model, i, graph, flows[i])
    loads: dict[DirectedLink, list[FlowTerm]] = defaultdict(list)
    for i, own in enumerate(flows):
        for (u, v), count in own.y.items():
            loads[u, v].append((i, count))
            if form.two_way:  # footnote 3
                loads[v, u].append((i, count))
    for (u, v), terms in loads.items():
        rates.limit(f"capacity.{u}.{v}", terms, b[u, v] / unit_bps)  # (10)
    limit_aggregation(aro)
    return aro


def add_objective(aro: PrintedModel) -> None:
    """The objective: Eq. (1) for one task, Eq. (2) for one job, Eq. (3) for several."""
    model, rates = aro.model, aro.rates
    if isinstance(rates, OneRate):
        model.sense = pulp.LpMinimize
        model += rates.t, "inverse_throughput"
        return
    assert isinstance(rates, Continuous)
    throughput = {
        job.number: pulp.lpSum(r for r, task in zip(rates.r, aro.tasks, strict=True) if task.job == job)
        for job in aro.problem.jobs
    }
    if len(throughput) == 1:
        model += pulp.lpSum(throughput.values()), "throughput"  # (2)
        return
    weighted = {job.number: throughput[job.number] * (1 / job.weight) for job in aro.problem.jobs}  # beta_s
    least = model.add_variable("least", lowBound=0)
    model += least + MU * pulp.lpSum(weighted.values()), "least_throughput"  # (3)
    for number, rate in weighted.items():
        model += least <= rate, f"least_{number}"


def conserve_flows(model: pulp.LpProblem, i: int, graph: TaskGraph, flows: TaskVariables) -> None:
    """The constraints (5) and (7) to (9) of task i."""
    y, x = flows.y, flows.x
    for u in graph.workers:
        model += total(y, graph.out_of[u]) == 1, f"sends_{i}_{u}"  # (5)
    for (v, p), entering in graph.inps.items():
        m = min(most_children(graph.fabric, v), len(graph.workers))  # M
        model += total(y, entering) <= m * x[v, p], f"is_used_{i}_{v}_{p}"  # (7)
        model += total(y, entering) >= x[v, p], f"is_not_used_{i}_{v}_{p}"  # (7)
    for z in graph.aggregating:  # (8): each INP hands x to its OP
        handed = pulp.lpSum(x[inp] for inp in x if inp[0] == z)
        model += handed == total(y, graph.out_of[z]), f"op_forwards_{i}_{z}"  # (9)
    for z in graph.common:
        model += total(y, graph.into[z]) == total(y, graph.out_of[z]), f"cs_forwards_{i}_{z}"  # (9)


def total(y: dict[DirectedLink, Any], links: list[DirectedLink]) -> Any:
    return pulp.lpSum(y[link] for link in links)


def limit_aggregation(aro: PrintedModel) -> None:
    """The flows that a switch sums fit its `aggregation_rate_bps`: InArt's constraint, which ARO does not have.

    Those of each pipeline fit the recirculation of its chip. A flow that enters an INP alone is forwarded and uses no
    rate.
    """
    model, fabric, pipelines = aro.model, aro.problem.fabric, limited_pipelines(aro.problem.fabric)
    rates = {s.name: s.aggregation_rate_bps for s in fabric.switches if s.aggregation_rate_bps is not None}
    loads: dict[Inp, list[FlowTerm]] = defaultdict(list)
    for i, graph in enumerate(aro.graphs):
        most = len(graph.workers)
        for (switch, pipeline), links in graph.inps.items():
            if switch in rates or switch in pipelines:
                name, entering = f"{i}.{switch}.{pipeline}", total(aro.flows[i].y, links)
                summed = model.add_variable(f"summed.{name}", 0, most, pulp.LpInteger)
                alone = model.add_variable(f"alone.{name}", cat=pulp.LpBinary)
                model += summed >= entering - alone, f"is_summed.{name}"
                model += entering <= most - (most - 1) * alone, f"is_alone.{name}"
                loads[switch, pipeline].append((i, summed))
    for switch, rate in rates.items():
        terms = [term for inp, found in loads.items() if inp[0] == switch for term in found]
        if terms:
            aro.rates.limit(f"aggregation_rate_{switch}", terms, rate / aro.unit_bps)
    for (switch, pipeline), found in loads.items():
        if switch in pipelines:
            aro.rates.limit(f"recirculation_{switch}_{pipeline}", found, pipelines[switch] / aro.unit_bps)
