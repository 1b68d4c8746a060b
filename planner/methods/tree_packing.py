"""Parts of the search for a forest: the best rates of given trees, trees in closed form, and upper bounds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations
from math import inf

from inakit.planner.core.loads import aggregated_flows, flow_counts, summed_flows
from inakit.planner.core.plan import AggregationTree
from inakit.planner.core.slots import Resource, most_children, resource_bps
from inakit.planner.methods.aro.bisection import Steps, least_t
from inakit.planner.methods.aro.box_model import BoxModel
from inakit.planner.methods.aro.leaf_spine import LeafSpine, SpineChoice, Spines
from inakit.planner.methods.aro.rate_objective import Box, Worth
from inakit.planner.methods.aro.reduced_network import ReducedGraph, ReducedNetwork, access_links
from inakit.planner.methods.aro.task_graphs import Task
from inakit.planner.solvers import LinearProgram, Term
from inakit.planner.trees.from_paths import sums_of, tree_from_paths
from inakit.topo.errors import SolverError
from inakit.topo.fabric.fabric import DirectedLink, Fabric, Path

# -- Packing: the best rates of given trees. A task's gradient is divided over its trees in proportion to their rates.
#
# With flows y_k(e) of tree k on link e: maximise the worth of the tasks' rates (ARO's Eqs. (2), (3)), where a task's
# rate is the sum of its trees' rates r_k, subject to sum_k r_k y_k(e) <= b(e) for every link, and likewise for every
# switch and pipeline whose aggregators have a limited rate.

NEGLIGIBLE = 1e-7
"""A tree with a smaller part of its task's rate is omitted."""


@dataclass(frozen=True)
class TreeShape:
    """A tree of a task, given by the task's position among the ground's tasks, as flows on links of a reduced network.

    If results count, they are flows too.
    """

    task: int
    flows: Counter[DirectedLink]


@dataclass(frozen=True)
class TreeColumn:
    """A tree of a task, given by the task's position among the ground's tasks, and its flows on every resource."""

    task: int
    tree: AggregationTree
    flows: dict[Resource, int]


@dataclass(frozen=True)
class Forest:
    """Trees with a rate each, and the worth of all tasks' rates."""

    columns: tuple[TreeColumn, ...]
    rates_bps: tuple[float, ...]
    value: float

    def fits(self, most: float) -> bool:
        """Whether every task has at most `most` trees."""
        return max(Counter(column.task for column in self.columns).values()) <= most


@dataclass(frozen=True)
class Ground:
    """The input of a forest: the fabric, and the tasks that share it. With `results` links carry these too."""

    fabric: Fabric
    tasks: tuple[Task, ...]
    results: bool = False

    @cached_property
    def worth(self) -> Worth:
        return Worth(self.tasks, access_links(self.fabric, self.tasks, results=self.results))

    @cached_property
    def aggregate_at(self) -> frozenset[str]:
        return frozenset(switch.name for switch in self.fabric.switches if switch.ina)

    @cached_property
    def unit(self) -> float:
        """The highest capacity in bit/s, the unit of rates in a solver."""
        return max(self.fabric.capacities_bps.values())

    def capacity_bps(self, resource: Resource) -> float:
        """The capacity of a link, or the summing rate of a switch or pipeline; infinite if unlimited."""
        return resource_bps(self.fabric, resource)

    def column(self, task: int, paths: Sequence[Path], results: dict[str, str] | None = None) -> TreeColumn:
        """The tree of one path for every worker of the task; `results` have the form of a tree's."""
        tree = tree_from_paths(self.fabric, 1, paths, self.aggregate_at)
        return self.column_of(task, replace(tree, results=results or {}))

    def column_of(self, task: int, tree: AggregationTree) -> TreeColumn:
        """A tree with its flows on links, and on switches and pipelines with a limited rate."""
        summed: list[tuple[Resource, int]] = [*aggregated_flows([tree]).items(), *summed_flows([tree]).items()]
        limited = ((resource, n) for resource, n in summed if self.capacity_bps(resource) < inf)
        flows: Counter[Resource] = Counter(dict([*flow_counts([tree]).items(), *limited]))
        if self.results:
            flows.update((above, node) for node, above in tree.result_parents.items())
        return TreeColumn(task, tree, dict(flows))


def pack(ground: Ground, columns: Sequence[TreeColumn]) -> Forest:
    """The best rates of these trees; a task without a tree has the rate 0. Raises `SolverError` if none are found."""
    unit = ground.unit
    program = LinearProgram()
    r = [program.variable(0, inf) for _ in columns]
    for shares in distinct_loads(ground, columns):
        program.at_most([(share, r[k]) for k, share in shares], 1)
    add_worth(program, ground, columns, r)
    solution = program.solve()
    if not solution.found:
        raise SolverError(f"{len(columns)} trees have no best rates: the solver reports {solution.status}")
    return forest(ground, columns, [max(0.0, solution.values[column]) * unit for column in r])


def distinct_loads(ground: Ground, columns: Sequence[TreeColumn]) -> Iterable[tuple[tuple[int, float], ...]]:
    """For every resource, each tree's flows divided by its capacity; equal rows of several resources only once."""
    loads: dict[Resource, list[tuple[int, float]]] = defaultdict(list)
    for k, column in enumerate(columns):
        for resource, n in column.flows.items():
            loads[resource].append((k, n * ground.unit / ground.capacity_bps(resource)))
    return dict.fromkeys(map(tuple, loads.values()))


def add_worth(
    program: LinearProgram, ground: Ground, columns: Sequence[TreeColumn | TreeShape], r: Sequence[int]
) -> None:
    """Add the objective to the program, where a task's rate is at most the sum of its trees'."""
    rates = [program.variable(0, inf) for _ in ground.tasks]
    for task, rate in enumerate(rates):
        own: list[Term] = [(-1, r[k]) for k, column in enumerate(columns) if column.task == task]
        program.at_most([(1, rate), *own], 0)
    ground.worth.add_objective(program, rates, ground.unit)


def forest(ground: Ground, columns: Sequence[TreeColumn], rates_bps: Sequence[float]) -> Forest:
    """The forest of the trees with non-negligible rates. Rates are lowered, if necessary, to fit the links."""
    totals = task_rates(ground, columns, rates_bps)
    kept = [k for k, column in enumerate(columns) if rates_bps[k] > NEGLIGIBLE * totals[column.task]]
    chosen = tuple(columns[k] for k in kept)
    loads: dict[Resource, float] = defaultdict(float)
    for resource, n in chain.from_iterable(((x, n * rates_bps[k]) for x, n in columns[k].flows.items()) for k in kept):
        loads[resource] += n
    factor = min([1.0, *(ground.capacity_bps(resource) / load for resource, load in loads.items())])
    rates = tuple(rates_bps[k] * factor for k in kept)
    return Forest(chosen, rates, ground.worth.of(task_rates(ground, chosen, rates)))


def task_rates(ground: Ground, columns: Sequence[TreeColumn], rates_bps: Sequence[float]) -> list[float]:
    totals = [0.0] * len(ground.tasks)
    for column, rate in zip(columns, rates_bps, strict=True):
        totals[column.task] += rate
    return totals


# -- Several trees for one task on a leaf-spine with equal links, in closed form: each has its own spines.
#
# Trees that use different pipelines of the PS's leaf give the PS fewer flows each than one that uses all. So each such
# pipeline, with the spines behind it, goes to one tree, or its spines are distributed over all trees. For every such
# division, each tree has the best rate that its spines allow; the trees share only the PS's link and the workers'.

Gates = Mapping[int, Spines]

MOST_TREES = 4
"""The maximum number of trees that is tried: the number of divisions is that of the partitions of a switch's pipelines.
"""


@dataclass(frozen=True)
class Tree:
    """A task with the spines of this tree alone, its routes, and the rate that these spines allow."""

    task: LeafSpine
    choice: SpineChoice
    rate_bps: float

    @property
    def flows_to_server(self) -> int:
        if self.task.tor_sums:
            return len({*self.task.local, *self.task.gates})
        return flows_to_tor(self.task, self.choice) + sum(map(len, self.task.local.values()))

    @property
    def paths(self) -> list[Path]:
        return self.task.paths(self.choice)


def spread(task: LeafSpine, most: int) -> list[Tree]:
    """At most `most` trees with the highest total rate; none if an INP would have more flows than bits."""
    best: list[Tree] = []
    known: dict[tuple[tuple[int, Spines], ...], Tree | None] = {}
    for dealt in deals(task.gates, min(most, MOST_TREES)):
        for gates in dealt:
            if gates not in known:
                known[gates] = tree_on(task, dict(gates))
        trees = [tree for gates in dealt if (tree := known[gates])]
        best = max(best, trees, key=lambda trees: total_rate(task, trees))
    return best


def deals(gates: Gates, most: int) -> Iterator[list[tuple[tuple[int, Spines], ...]]]:
    """The ways to give each gate to one tree, or to distribute its spines over all trees in turn."""
    for count in range(len(gates) + 1):
        for divided in combinations(gates, count):
            whole = [gate for gate in gates if gate not in divided]
            for groups in partitions(whole, most):
                trees = most if divided else len(groups)
                dealt = []
                for k, group in enumerate([*groups, *[[]] * (trees - len(groups))]):
                    own = {gate: gates[gate] for gate in group}
                    for gate in divided:
                        own[gate] = Spines(gates[gate].aggregating[k::trees], gates[gate].common[k::trees])
                    dealt.append(tuple(own.items()))
                yield dealt


def partitions(gates: Sequence[int], most: int) -> Iterator[list[list[int]]]:
    """The ways to divide the gates into at most `most` groups."""
    if not gates:
        yield []
        return
    first, *others = gates
    for groups in partitions(others, most):
        for k, group in enumerate(groups):
            yield [*groups[:k], [first, *group], *groups[k + 1 :]]
        if len(groups) < most:
            yield [[first], *groups]


def tree_on(task: LeafSpine, gates: Gates) -> Tree | None:
    """The best tree over the spines of these gates; None without spines, or if an INP would get too many flows."""
    own = replace(task, gates={gate: spines for gate, spines in gates.items() if spines.aggregating or spines.common})
    if task.leaves and not own.gates:
        return None

    def fits(t: float) -> SpineChoice | None:
        choice = own.fits(t)
        if choice is None:
            return None
        through_one = flows_to_tor(own, choice) + max(map(len, own.local.values()), default=0)
        children = min(own.most_children_at_tor(choice), through_one)  # or the flows into an INP at the PS's leaf
        return choice if children <= own.most_children else None

    highest = task.workers / min(task.capacities_bps)
    least = least_t(fits, Steps(task.capacities_bps), 1 / task.worker_bps, highest)
    return Tree(own, least.solution, 1 / least.t) if least else None


def flows_to_tor(task: LeafSpine, choice: SpineChoice) -> int:
    """The flows that the spines send to the PS's leaf: one for each INP, and those that INPs leave over."""
    taken = 0
    for pipeline, sizes in task.sizes.items():
        n = choice.inps[pipeline]
        taken += min(sum(min(size, choice.link_flows * n) for size in sizes), task.most_children * n)
    return choice.inps.total() + sum(map(sum, task.sizes.values())) - taken


def total_rate(task: LeafSpine, trees: Sequence[Tree]) -> float:
    """The bit/s of all trees together; trees with the fewest flows to the PS come first."""
    to_server, of_workers, total = task.server_bps, task.worker_bps, 0.0
    for tree in sorted(trees, key=lambda tree: tree.flows_to_server):
        rate = min(tree.rate_bps, to_server / tree.flows_to_server, of_workers)
        to_server -= rate * tree.flows_to_server
        of_workers -= rate
        total += rate
    return total


def rate_bound(task: LeafSpine) -> float:
    """An upper bound on the rate of any forest, by counting: workers' links, flows out of a leaf, flows into the PS.

    The PS's leaf sums the flows of each pipeline, a spine the flows of the leaves that enter it by one pipeline.
    """
    fewest = task.workers  # flows from a tree to the PS
    if task.tor_sums:
        through_local = not task.leaves or any(gate in task.local for gate in task.gates)
        fewest = len(task.local) + (0 if through_local else 1)
    elif task.most_aggregating:
        fewest = len(task.sizes) + sum(map(len, task.local.values()))
    spine_count = sum(len(spines.aggregating) + len(spines.common) for spines in task.gates.values())
    uplinks = [task.spine_bps * spine_count / len(leaf.flows) for leaf in task.leaves]
    return min(task.worker_bps, *uplinks, task.server_bps / fewest)


# -- An upper bound on all forests by the linear relaxation of tree packing: ARO's (4) to (9), multiplied by a rate.
#
# Multiplied by a rate these constraints are homogeneous. With any rate, and continuous variables, they describe all
# fractional packings and a little more. The links carry all tasks' flows together.


def relax(ground: Ground, net: ReducedNetwork) -> float:
    """An upper bound on the worth of any forest, whose tasks have at most the rate of a link."""
    none, high = (0.0,) * len(net.graphs), (ground.unit,) * len(net.graphs)
    return BoxModel.of(net, ground.worth, Box(none, high)).relax()[1]


def most_sums(net: ReducedNetwork, graph: ReducedGraph, switch: str) -> int:
    """The most flows that an INP of the switch sends: one, unless all workers are more than the bits of a slot."""
    return sums_of(len(graph.task.job.workers), most_children(net.fabric, switch))
