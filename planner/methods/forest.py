"""Several aggregation trees for each task, each with a share of the gradient: beyond ARO's one tree.

Every task of every job can have several trees, with one PS or many: a job's gradient is split over all its trees in
proportion to their rates. Trees that sum in one pipeline divide its slots like those of several jobs, so each has a
smaller window. With few slots, rates beyond window x fragment / round-trip time are planned but not reached.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from math import inf
from time import monotonic
from typing import ClassVar

from inakit.planner.core.fair_rates import in_closed_loop
from inakit.planner.core.method import AFTERWARDS, Options
from inakit.planner.core.plan import FEASIBLE, OPTIMAL, Plan, PlannedTree, SolverOutcome
from inakit.planner.core.problem import Problem
from inakit.planner.core.slots import assign_slots, is_link
from inakit.planner.methods.aro.aro import several
from inakit.planner.methods.aro.leaf_spine import leaf_spine
from inakit.planner.methods.aro.one_task import best_routing
from inakit.planner.methods.aro.reduced_network import ReducedNetwork, network, result_parents
from inakit.planner.methods.aro.several_routing import Question, Router, cut_up, deal
from inakit.planner.methods.aro.several_tasks import worker_paths
from inakit.planner.methods.aro.task_graphs import tasks_of
from inakit.planner.methods.tree_packing import (
    MOST_TREES,
    Forest,
    Ground,
    TreeColumn,
    TreeShape,
    add_worth,
    most_sums,
    pack,
    rate_bound,
    relax,
    spread,
    task_rates,
)
from inakit.planner.solvers import LinearProgram, Term
from inakit.planner.trees.from_paths import numbered
from inakit.topo.errors import SolverError
from inakit.topo.fabric.fabric import DirectedLink

# -- Column generation: the best forest of any number of trees, and an upper bound on all forests.
#
# The master packs the trees found so far. Its duals are prices w(e) of the links, and sigma_i of a unit of task i's
# rate. A tree is worth adding if its links cost less than sigma_i; the cheapest tree is found by a MILP of one task
# (pricing). If no tree is worth adding, the packing is optimal. If the cheapest costs 1/f of sigma_i, prices f w are
# dual feasible, which bounds every forest.
#
# All this is on the reduced network, where a node represents a class of twins and a link all links of the class. A tree
# that is distributed over the members in every rotation loads them evenly, so nothing is lost.

TIGHT = 1e-7
"""Relative: a result proven to this precision counts as optimal."""

SHORTER = 1e-12
"""Added to every price, so that a tree has no useless flows."""

ANY_RATE = (0.0,)
"""The rate of a test for a tree at any rate."""


@dataclass(frozen=True)
class Prices:
    """The optimum of the master problem.

    `links` and `tasks` are its duals; `of_links` is the part of its `value` that links account for; `rates` are those
    of the shapes.
    """

    value: float
    links: dict[DirectedLink, float]
    tasks: tuple[float, ...]
    of_links: float
    rates: tuple[float, ...]


def shape_of(net: ReducedNetwork, column: TreeColumn) -> TreeShape:
    """A tree's shape, which does not contain the member of a class that the tree uses."""
    first = {member: node for node, members in net.twins.items() for member in members}
    flows: Counter[DirectedLink] = Counter()
    for resource, n in column.flows.items():
        u, v = resource if is_link(resource) else ("", "")
        link = first.get(u, u), first.get(v, v)
        if column.task in net.tasks_on.get(link, ()):
            flows[link] += n
    return TreeShape(column.task, flows)


def trees_of(ground: Ground, net: ReducedNetwork, shape: TreeShape) -> Iterator[TreeColumn]:
    """The shape's trees in the fabric: one for each rotation of the members of all classes."""
    for k in range(max(net.size(node) for link in shape.flows for node in link)):
        turned = {z: (*members[k % len(members) :], *members[: k % len(members)]) for z, members in net.twins.items()}
        alone = replace(net.only([shape.task]), twins=turned)
        graph = alone.graphs[0]
        gradients = Counter({link: shape.flows[link] for link in graph.links if shape.flows[link]})
        dealt, _ = deal(alone, [gradients], ANY_RATE, 0)  # which `cut_up` consumes
        pieces = cut_up(net.fabric, graph, dealt[0])
        results = result_parents(net.fabric, graph, chain(*pieces.values()), shape.flows) if net.results else None
        yield ground.column(shape.task, list(worker_paths(alone, graph.task, pieces)), results)


def generate(
    ground: Ground, net: ReducedNetwork, start: Sequence[TreeColumn], bound: float, deadline: float, gap: float
) -> tuple[list[TreeColumn], float]:
    """The trees of the best packing, and an upper bound on the worth of any forest, initially `bound`.

    Shapes are added to those of `start`, which has a tree for every task, until none is missing, the gap is small
    enough, or the time is over.
    """
    shapes = [shape_of(net, column) for column in start]
    # With more workers than the bits of a slot, pricing leaves out trees whose sums part, so it bounds nothing.
    bounding = all(most_sums(net, graph, z) == 1 for graph in net.graphs for z in graph.aggregating)
    while monotonic() < deadline:
        prices = master(ground, net, shapes)
        if bound <= prices.value * (1 + max(gap, TIGHT)):
            break
        factor = 1.0
        for task in range(len(net.graphs)):
            if prices.tasks[task] > TIGHT:
                shape, cost = price(net, task, prices, deadline)
                factor = max(factor, prices.tasks[task] / cost if cost > 0 else inf)
                if shape is not None:
                    shapes.append(shape)
        if bounding:
            bound = min(bound, prices.value + (factor - 1) * prices.of_links)
        if factor <= 1 + TIGHT:
            break
    rates = master(ground, net, shapes).rates
    used = [shape for shape, rate in zip(shapes, rates, strict=True) if rate > TIGHT]
    return [tree for shape in used for tree in trees_of(ground, net, shape)], bound


def master(ground: Ground, net: ReducedNetwork, shapes: Sequence[TreeShape]) -> Prices:
    """Pack the trees, ignoring limits of aggregators. Raises `SolverError` if there are no best rates."""
    program = LinearProgram()
    r = [program.variable(0, inf) for _ in shapes]
    loads: dict[DirectedLink, list[Term]] = defaultdict(list)
    for shape, rate in zip(shapes, r, strict=True):
        for link, n in shape.flows.items():
            loads[link].append((n, rate))
    capacities = {link: net.width(link) * ground.capacity_bps(link) for link in loads}
    for link, terms in loads.items():
        program.at_most(terms, capacities[link] / ground.unit)
    add_worth(program, ground, shapes, r)
    solution = program.solve()
    if solution.status != OPTIMAL:
        raise SolverError(f"{len(shapes)} trees have no best rates: the solver reports {solution.status}")
    duals = [max(0.0, dual) for dual in solution.duals]
    links = dict(zip(loads, duals, strict=False))
    of_links = sum(dual * capacities[link] for link, dual in links.items())
    sigma = tuple(duals[len(loads) : len(loads) + len(ground.tasks)])
    return Prices(solution.objective * ground.unit, links, sigma, of_links, tuple(solution.values[k] for k in r))


def price(net: ReducedNetwork, task: int, prices: Prices, deadline: float) -> tuple[TreeShape | None, float]:
    """The cheapest tree of a task, None if the time is over; and a lower bound on the price of its trees."""
    question = Question.of(net.only([task]), ANY_RATE)
    question.make_whole()
    program, (columns,) = question.program, question.columns
    program.maximise([(-prices.links.get(link, 0.0) - SHORTER, k) for link, k in columns.flows.items()])
    solution = program.solve(deadline - monotonic())
    if not solution.found:
        return None, 0.0
    flows = +Counter({link: round(solution.values[k]) for link, k in columns.flows.items()})
    return TreeShape(task, flows), -solution.bound


# -- A few trees in the place of many: whole trees for given rates, for all tasks at once.
#
# The best packing of any number of trees gives the possible rates of the tasks. Divided over a few trees each, these
# rates can be too high for whole trees; then lower ones are tried, in proportion. Several trees of one task are routed
# like several tasks (`inakit.planner.methods.aro.several_routing`).

PRECISION = 0.01
"""The search ends within this relative distance of the highest rates that have whole trees."""

PATIENCE_S = 5.0
"""The seconds for a test that can be repeated with lower rates."""

MOST_ASKED = 4
"""The maximum number of trees that are sought: the search gets harder, and a few trees are nearly as good as many."""


def rounded(best: Forest, every: Forest, ground: Ground, most: float, deadline: float) -> Forest:
    """At most `most` trees for each task, with rates near those of `every`; or `best`, if its worth is higher."""
    rates = task_rates(ground, every.columns, every.rates_bps)
    for split in splits(most):
        low, high, part = best.value / every.value, 1.0, 1.0
        while low < high * (1 - PRECISION) and monotonic() < deadline:
            wanted = [rate * part for rate in rates]
            trees = whole_trees(ground, wanted, split, min(PATIENCE_S, deadline - monotonic()))
            if trees:
                best = max(best, pack(ground, trees), key=lambda forest: forest.value)
                low = max(part, best.value / every.value)
            else:
                high = part
            part = (low + high) / 2
    return best


def splits(most: float) -> Iterator[tuple[float, ...]]:
    """The ways to divide a task's rate over its trees."""
    yield from ((1 / 2, 1 / 2), (3 / 5, 2 / 5))
    if most > 2:
        count = int(min(most, MOST_ASKED))
        yield (1 / count,) * count


def whole_trees(
    ground: Ground, rates_bps: Sequence[float], split: Sequence[float], time_limit_s: float
) -> list[TreeColumn]:
    """For each task with a rate, one tree for each part of it. The list is empty if no routing is found."""
    wanted = [(task, rate * part) for task, rate in enumerate(rates_bps) if rate > 0 for part in split]
    net = network(ground.fabric, [ground.tasks[task] for task, _ in wanted], results=ground.results)
    _, routing = Router(net).route(tuple(rate for _, rate in wanted), time_limit_s)
    if routing is None:
        return []
    return [
        ground.column(task, list(worker_paths(net, ground.tasks[task], pieces)), results)
        for (task, _), pieces, results in zip(wanted, routing.pieces, routing.results, strict=True)
    ]


# -- The best forest for a problem: ARO's trees first, then more, packed again each time; and a bound on all forests.

NEAR = 0.01
"""A packing of many trees with this relative gap is good enough for rounding to a few trees."""


@dataclass(frozen=True)
class BestForest:
    """The best forest found so far, and an upper bound on the worth of any forest."""

    ground: Ground
    forest: Forest
    bound: float

    @property
    def gap(self) -> float:
        return max(0.0, self.bound / self.forest.value - 1)

    def with_better(self, forest: Forest) -> BestForest:
        return replace(self, forest=forest) if forest.value > self.forest.value * (1 + TIGHT) else self


def best_forest(problem: Problem, most: float, options: Options) -> BestForest:
    """The best forest with at most `most` trees for each task. Raises `SolverError` if none is found."""
    deadline = monotonic() + options.time_limit_s
    ground = Ground(problem.fabric, tasks_of(problem), options.with_results)
    closed = [leaf_spine(ground.fabric, task) for task in ground.tasks]
    if len(ground.tasks) == 1:
        columns = [ground.column(0, best_routing(ground.fabric, ground.tasks[0], options.for_solver).paths)]
    else:  # ARO's tree of each task
        plan = several(problem, replace(options, time_limit_s=options.time_limit_s / 2))
        keys = [task.key for task in ground.tasks]
        columns = [ground.column_of(keys.index((each.job, each.tree.root)), each.tree) for each in plan.trees]
    counted = rate_bound(closed[0]) if len(closed) == 1 and closed[0] is not None else inf
    best = BestForest(ground, pack(ground, columns), counted)
    if most > 1 and None not in closed:
        spread_out = [
            ground.column(task, tree.paths)
            for task, shape in enumerate(closed)
            for tree in (spread(shape, int(min(most, MOST_TREES))) if shape is not None else ())
        ]
        best = best.with_better(pack(ground, spread_out)) if spread_out else best
        columns += spread_out
    if best.gap <= max(options.gap, TIGHT):
        return best
    net = network(ground.fabric, ground.tasks, results=ground.results)
    best = replace(best, bound=min(best.bound, relax(ground, net)))
    if most == 1 or (most < inf and len(closed) == 1 and closed[0] is not None):
        return best  # one tree comes from ARO, a few trees for one task from the closed form
    return searched(best, net.fine, columns, most, options, deadline)


def least_bound(problem: Problem) -> float:
    """An upper bound in bit/s on the rate per weight of the worst served job in any forest, with results."""
    ground = Ground(problem.fabric, tasks_of(problem), results=True)
    worth, jobs = ground.worth, len(ground.worth.jobs)
    return relax(ground, network(ground.fabric, ground.tasks, results=True)) / (1 + worth.mu * jobs)


def searched(
    best: BestForest, net: ReducedNetwork, columns: Sequence[TreeColumn], most: float, options: Options, deadline: float
) -> BestForest:
    """The best forest of the trees that column generation adds; if few trees are allowed, one rounded from it."""
    ground, few = best.ground, most < inf
    enough = max(options.gap, NEAR if few else 0.0)
    stop = monotonic() + (deadline - monotonic()) / 2 if few else deadline
    trees, bound = generate(ground, net, columns, best.bound, stop, enough)
    every = pack(ground, [*columns, *trees])
    best = replace(best, bound=bound)
    if every.fits(most):
        return best.with_better(every)
    return best.with_better(rounded(best.forest, every, ground, most, deadline))


# -- The planners.


@dataclass(frozen=True)
class ForestOptions(Options):
    """`trees`: the maximum for each task; 0 for any number, 1 for ARO's tree. The gap always refers to any number of
    trees.

    With any number of trees the search ends with a proof or at the time limit. Only its ARO part uses `solver`.
    """

    trees: int = 2
    LEAST: ClassVar[Mapping[str, int]] = {"trees": 0}


def plan(problem: Problem, options: ForestOptions) -> Plan:
    """The plan whose tasks' rates are worth most; a task's rate is the sum of its trees' rates.

    If the best plan for gradients alone loses nothing to results, it is also the best with them.
    """
    if not options.with_results:
        return packed(problem, options)
    alone = packed(problem, replace(options, headroom=AFTERWARDS, time_limit_s=options.time_limit_s / 2))
    lossless = in_closed_loop(problem, alone) is alone
    return alone if lossless else packed(problem, replace(options, time_limit_s=options.time_limit_s / 2))


def plan_any(problem: Problem, options: Options) -> Plan:
    known = {field.name: getattr(options, field.name) for field in fields(Options)}
    return replace(plan(problem, ForestOptions(**known, trees=0)), method="forest-any")


def packed(problem: Problem, options: ForestOptions) -> Plan:
    """The plan of the best forest for gradients alone, or for gradients and results.

    A tree's share is its fraction of its job's rate. Trees in one pipeline divide its slots.
    """
    started = monotonic()
    best = best_forest(problem, options.trees or inf, options)
    forest, tasks = best.forest, best.ground.tasks
    jobs = [tasks[column.task].job.number for column in forest.columns]
    totals: defaultdict[int, float] = defaultdict(float)
    for job, rate in zip(jobs, forest.rates_bps, strict=True):
        totals[job] += rate
    trees = numbered((job, column.tree) for job, column in zip(jobs, forest.columns, strict=True))
    placed = assign_slots(problem.fabric, trees, options.window)
    planned = tuple(
        PlannedTree(job, rate / totals[job], rate, tree)
        for job, rate, tree in zip(jobs, forest.rates_bps, placed, strict=True)
    )
    proven = best.gap <= 2 * TIGHT
    seconds, gap = monotonic() - started, 0.0 if proven else best.gap
    outcome = SolverOutcome(OPTIMAL if proven else FEASIBLE, seconds, gap, "highs")
    return Plan("forest", problem.fabric.name, planned, outcome)
