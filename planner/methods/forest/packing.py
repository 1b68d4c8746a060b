"""Packing: the best rates of given trees. A task's gradient is divided over its trees in proportion to their rates.

With flows y_k(e) of tree k on link e: maximise what the tasks' rates are worth (ARO's Eqs. (2), (3)), where a task's
rate is the sum of its trees' rates r_k, subject to sum_k r_k y_k(e) <= b(e) for every link, and likewise for every
switch and pipeline whose aggregators have a limited rate.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import inf

from inakit.planner.core.limits.switch_limits import Resource, resource_bps
from inakit.planner.core.plan import AggregationTree
from inakit.planner.core.rates.loads import aggregated_flows, flow_counts, summed_flows
from inakit.planner.methods.aro.several.rates import Worth
from inakit.planner.methods.aro.several.reduced import access_links
from inakit.planner.methods.aro.task import Task
from inakit.planner.solvers.columns import LinearProgram, Term
from inakit.planner.trees.from_paths import tree_from_paths
from inakit.planner.trees.unfolding import Path
from inakit.topo.errors import SolverError
from inakit.topo.fabric.fabric import Fabric

NEGLIGIBLE = 1e-7
"""A tree with less than this part of its task's rate is left out."""


@dataclass(frozen=True)
class Column:
    """A tree of a task, which is a position among the ground's tasks, and its flows on every resource."""

    task: int
    tree: AggregationTree
    flows: dict[Resource, int]


@dataclass(frozen=True)
class Forest:
    """Trees with a rate each, and what all tasks' rates together are worth."""

    columns: tuple[Column, ...]
    rates_bps: tuple[float, ...]
    value: float

    def fits(self, most: float) -> bool:
        """Whether no task has more trees than `most`."""
        return max(Counter(column.task for column in self.columns).values()) <= most


@dataclass(frozen=True)
class Ground:
    """What a forest grows on: the fabric, and the tasks that share it. With `results` links carry these too."""

    fabric: Fabric
    tasks: tuple[Task, ...]
    results: bool = False

    @cached_property
    def worth(self) -> Worth:
        """The objective of all tasks' rates."""
        return Worth(self.tasks, access_links(self.fabric, self.tasks, results=self.results))

    @cached_property
    def aggregate_at(self) -> frozenset[str]:
        """The names of the INA switches."""
        return frozenset(switch.name for switch in self.fabric.switches if switch.ina)

    @cached_property
    def unit(self) -> float:
        """The highest capacity in bit/s; a solver gets rates in units of it."""
        return max(self.fabric.capacities_bps.values())

    def capacity_bps(self, resource: Resource) -> float:
        """The capacity of a link, or what a switch or a pipeline sums, infinite where that is not limited."""
        return resource_bps(self.fabric, resource)

    def column(self, task: int, paths: Sequence[Path], results: dict[str, str] | None = None) -> Column:
        """The tree of one path for every worker of the task; `results` as a tree has them."""
        tree = tree_from_paths(self.fabric, 1, paths, self.aggregate_at)
        return self.column_of(task, replace(tree, results=results or {}))

    def column_of(self, task: int, tree: AggregationTree) -> Column:
        """A tree with its flows on links, and on switches and pipelines with a limited rate."""
        summed: list[tuple[Resource, int]] = [*aggregated_flows([tree]).items(), *summed_flows([tree]).items()]
        limited = ((resource, n) for resource, n in summed if self.capacity_bps(resource) < inf)
        flows: Counter[Resource] = Counter(dict([*flow_counts([tree]).items(), *limited]))
        if self.results:
            flows.update((above, node) for node, above in tree.result_parents.items())
        return Column(task, tree, dict(flows))


def pack(ground: Ground, columns: Sequence[Column]) -> Forest:
    """The best rates of these trees; a task without a tree has the rate 0. Raises `SolverError` if none are found."""
    unit = ground.unit
    program = LinearProgram()
    r = [program.variable(0, inf) for _ in columns]
    for shares in distinct_loads(ground, columns):
        program.at_most([(share, r[k]) for k, share in shares], 1)
    add_worth(program, ground, columns, r)
    solution = program.solve()
    if not solution.found:
        raise SolverError(f"{len(columns)} trees have no best rates: the solver says {solution.status}")
    return forest(ground, columns, [max(0.0, solution.values[column]) * unit for column in r])


def distinct_loads(ground: Ground, columns: Sequence[Column]) -> Iterable[tuple[tuple[int, float], ...]]:
    """For every resource, each tree's flows divided by its capacity; equal rows of several resources only once."""
    loads: dict[Resource, list[tuple[int, float]]] = defaultdict(list)
    for k, column in enumerate(columns):
        for resource, n in column.flows.items():
            loads[resource].append((k, n * ground.unit / ground.capacity_bps(resource)))
    return dict.fromkeys(map(tuple, loads.values()))


def add_worth(program: LinearProgram, ground: Ground, columns: Sequence[Column], r: Sequence[int]) -> None:
    """Add the objective to the program, where a task's rate is at most the sum of its trees'."""
    rates = [program.variable(0, inf) for _ in ground.tasks]
    for task, rate in enumerate(rates):
        own: list[Term] = [(-1, r[k]) for k, column in enumerate(columns) if column.task == task]
        program.at_most([(1, rate), *own], 0)
    ground.worth.add_objective(program, rates, ground.unit)


def forest(ground: Ground, columns: Sequence[Column], rates_bps: Sequence[float]) -> Forest:
    """The forest of the trees whose rates count. Rates are lowered, where needed, to what the links carry."""
    totals = task_rates(ground, columns, rates_bps)
    kept = [k for k, column in enumerate(columns) if rates_bps[k] > NEGLIGIBLE * totals[column.task]]
    chosen = tuple(columns[k] for k in kept)
    loads: dict[Resource, float] = defaultdict(float)
    for resource, n in chain.from_iterable(((x, n * rates_bps[k]) for x, n in columns[k].flows.items()) for k in kept):
        loads[resource] += n
    factor = min([1.0, *(ground.capacity_bps(resource) / load for resource, load in loads.items())])
    rates = tuple(rates_bps[k] * factor for k in kept)
    return Forest(chosen, rates, ground.worth.of(task_rates(ground, chosen, rates)))


def task_rates(ground: Ground, columns: Sequence[Column], rates_bps: Sequence[float]) -> list[float]:
    """By task, the sum of its trees' rates."""
    totals = [0.0] * len(ground.tasks)
    for column, rate in zip(columns, rates_bps, strict=True):
        totals[column.task] += rate
    return totals
