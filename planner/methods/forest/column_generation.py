"""Column generation: the best forest of any number of trees, and what no forest exceeds.

The master packs the trees found so far. Its duals are prices w(e) of the links, and sigma_i of a unit of task i's rate.
A tree is worth adding if its links cost less than sigma_i; finding the cheapest is a MILP of one task (pricing). If
none is worth it, the packing is optimal. If the cheapest costs 1/f of sigma_i, prices f w are dual feasible, which
bounds every forest.

All this is on the reduced network, where a node stands for a class of twins and a link for all links of the class. A
tree that is dealt out to the members in every rotation loads them evenly, so nothing is lost.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import inf
from time import monotonic

from inakit.planner.core.limits.switch_limits import is_link
from inakit.planner.methods.aro.several.deal import deal
from inakit.planner.methods.aro.several.reduced import Network
from inakit.planner.methods.aro.several.results import result_parents
from inakit.planner.methods.aro.several.routing import Question, cut_up
from inakit.planner.methods.aro.several.several_tasks import worker_paths
from inakit.planner.methods.forest.packing import Column, Ground
from inakit.planner.solvers.columns import OPTIMAL, LinearProgram, Term
from inakit.planner.trees.unfolding import DirectedLink
from inakit.topo.errors import SolverError

TIGHT = 1e-7
"""Relative; what is proven to this precision counts as optimal."""

SHORTER = 1e-12
"""Added to every price, so that a tree has no flows that serve nothing."""

ANY_RATE = (0.0,)
"""The rate of a question that asks for a tree at any rate."""


@dataclass(frozen=True)
class Shape:
    """A tree of a task as flows on the links of the reduced network, and as results where these count."""

    task: int
    flows: Counter[DirectedLink]


@dataclass(frozen=True)
class Prices:
    """The master's optimum.

    `links` and `tasks` are its duals; `of_links` is the part of its `value` that links account for; `rates` are those
    of the shapes.
    """

    value: float
    links: dict[DirectedLink, float]
    tasks: tuple[float, ...]
    of_links: float
    rates: tuple[float, ...]


@dataclass(frozen=True)
class Generated:
    """All shapes found so far, and a worth that no forest exceeds."""

    shapes: tuple[Shape, ...]
    bound: float


def shape_of(net: Network, column: Column) -> Shape:
    """A tree's shape, which does not say which member of a class the tree uses."""
    first = {member: node for node, members in net.twins.items() for member in members}
    flows: Counter[DirectedLink] = Counter()
    for resource, n in column.flows.items():
        u, v = resource if is_link(resource) else ("", "")
        link = first.get(u, u), first.get(v, v)
        if column.task in net.tasks_on.get(link, ()):
            flows[link] += n
    return Shape(column.task, flows)


def trees_of(ground: Ground, net: Network, shape: Shape) -> Iterator[Column]:
    """The shape's trees in the fabric: one for each rotation of the members of all classes."""
    for k in range(max(net.size(node) for link in shape.flows for node in link)):
        turned = {z: (*members[k % len(members) :], *members[: k % len(members)]) for z, members in net.twins.items()}
        alone = replace(net.only([shape.task]), twins=turned)
        graph = alone.graphs[0]
        gradients = Counter({link: shape.flows[link] for link in graph.links if shape.flows[link]})
        dealt, _ = deal(alone, [gradients], ANY_RATE, 0)  # which `cut_up` uses up
        pieces = cut_up(net.fabric, graph, dealt[0])
        results = result_parents(net.fabric, graph, chain(*pieces.values()), shape.flows) if net.results else None
        yield ground.column(shape.task, list(worker_paths(alone, graph.task, pieces)), results)


def generate(ground: Ground, net: Network, start: Generated, deadline: float, gap: float = 0.0) -> Generated:
    """Add shapes to those of `start` until none is missing, the gap is small enough, or the time is over.

    `start` has a shape for every task.
    """
    shapes, bound = list(start.shapes), start.bound
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
        bound = min(bound, prices.value + (factor - 1) * prices.of_links)
        if factor <= 1 + TIGHT:
            break
    return Generated(tuple(shapes), bound)


def used(ground: Ground, net: Network, generated: Generated) -> list[Shape]:
    """The shapes of the best packing of all that were generated."""
    rates = master(ground, net, generated.shapes).rates
    return [shape for shape, rate in zip(generated.shapes, rates, strict=True) if rate > TIGHT]


def master(ground: Ground, net: Network, shapes: Sequence[Shape]) -> Prices:
    """Pack the trees, without regard to limits of aggregators. Raises `SolverError` where there are no best rates."""
    program = LinearProgram()
    unit = ground.unit
    r = [program.variable(0, inf) for _ in shapes]
    loads: dict[DirectedLink, list[Term]] = defaultdict(list)
    for shape, rate in zip(shapes, r, strict=True):
        for link, n in shape.flows.items():
            loads[link].append((n, rate))
    capacities = {link: net.width(link) * ground.capacity_bps(link) for link in loads}
    for link, terms in loads.items():
        program.at_most(terms, capacities[link] / unit)
    rates = [program.variable(0, inf) for _ in ground.tasks]
    for task, rate in enumerate(rates):
        own: list[Term] = [(-1, r[k]) for k, shape in enumerate(shapes) if shape.task == task]
        program.at_most([(1, rate), *own], 0)
    ground.worth.add_objective(program, rates, unit)
    solution = program.solve()
    if solution.status != OPTIMAL:
        raise SolverError(f"{len(shapes)} trees have no best rates: the solver says {solution.status}")
    duals = [max(0.0, dual) for dual in solution.duals]
    links = dict(zip(loads, duals, strict=False))
    of_links = sum(dual * capacities[link] for link, dual in links.items())
    sigma = tuple(duals[len(loads) : len(loads) + len(rates)])
    return Prices(solution.objective * unit, links, sigma, of_links, tuple(solution.values[k] for k in r))


def price(net: Network, task: int, prices: Prices, deadline: float) -> tuple[Shape | None, float]:
    """The cheapest tree of a task, None if the time is over; and a price below which no tree is."""
    question = Question.of(net.only([task]), ANY_RATE)
    question.make_whole()
    program, (columns,) = question.program, question.columns
    program.maximise([(-prices.links.get(link, 0.0) - SHORTER, k) for link, k in columns.flows.items()])
    solution = program.solve(deadline - monotonic())
    if not solution.found:
        return None, 0.0
    flows = +Counter({link: round(solution.values[k]) for link, k in columns.flows.items()})
    return Shape(task, flows), -solution.bound
