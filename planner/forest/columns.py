"""Column generation: the best forest of any number of trees, and what no forest exceeds.

The master packs the trees found so far; its duals are prices w(e) of the links, and sigma_i of a unit of task i's rate.
A tree is worth adding if its links cost less than sigma_i; the cheapest is a MILP of one task (pricing). If none is,
the packing is optimal. If the cheapest costs 1/f of sigma_i, prices f w are dual feasible: a bound on every forest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from time import monotonic

from planner.aro.flow import Demand
from planner.aro.program import OPTIMAL, Program, Term
from planner.forest.model import add_tree, column_of
from planner.forest.packing import Column, Ground
from planner.unfold import DirectedLink
from topo.errors import SolverError

TIGHT = 1e-7
"""Relative; what is proven to this is optimal."""

SHORTER = 1e-12
"""Added to every price, so that no flows are in a tree that serve nothing."""


@dataclass(frozen=True)
class Prices:
    """The master's optimum, its duals by link and by task, and what of its value the links account for."""

    value: float
    links: dict[DirectedLink, float]
    tasks: tuple[float, ...]
    of_links: float


@dataclass(frozen=True)
class Generated:
    """All trees found so far, and what no forest exceeds."""

    columns: tuple[Column, ...]
    bound: float


def generate(
    ground: Ground, demands: Sequence[Demand], start: Generated, deadline: float, gap: float = 0.0
) -> Generated:
    """Add trees to those of `start`, which has one for every task, until none is missing, or the time is over."""
    columns, bound = list(start.columns), start.bound
    while monotonic() < deadline:
        prices = master(ground, columns)
        if bound <= prices.value * (1 + max(gap, TIGHT)):
            break
        factor = 1.0
        for task, demand in enumerate(demands):
            if prices.tasks[task] > TIGHT:
                column, cost = price(ground, task, demand, prices, deadline)
                factor = max(factor, prices.tasks[task] / cost if cost > 0 else inf)
                if column is not None:
                    columns.append(column)
        bound = min(bound, prices.value + (factor - 1) * prices.of_links)
        if factor <= 1 + TIGHT:
            break
    return Generated(tuple(columns), bound)


def master(ground: Ground, columns: Sequence[Column]) -> Prices:
    """Pack the trees, without regard to limits of aggregators."""
    program = Program()
    unit = ground.unit
    r = [program.variable(0, inf) for _ in columns]
    loads: dict[DirectedLink, list[Term]] = defaultdict(list)
    for column, rate in zip(columns, r, strict=True):
        for resource, n in column.flows.items():
            if isinstance(resource, tuple) and resource[0] not in ground.fabric.host_names:
                loads[resource].append((n, rate))
    for link, terms in loads.items():
        program.at_most(terms, ground.capacity_bps(link) / unit)
    rates = [program.variable(0, inf) for _ in ground.tasks]
    for task, rate in enumerate(rates):
        own: list[Term] = [(-1, r[k]) for k, column in enumerate(columns) if column.task == task]
        program.at_most([(1, rate), *own], 0)
    ground.worth.add_objective(program, rates, unit)
    solution = program.solve()
    if solution.status != OPTIMAL:
        raise SolverError(f"{len(columns)} trees have no best rates: the solver says {solution.status}")
    duals = [max(0.0, dual) for dual in solution.duals]
    links = dict(zip(loads, duals, strict=False))
    of_links = sum(dual * ground.capacity_bps(link) for link, dual in links.items())
    return Prices(solution.objective * unit, links, tuple(duals[len(loads) : len(loads) + len(rates)]), of_links)


def price(ground: Ground, task: int, demand: Demand, prices: Prices, deadline: float) -> tuple[Column | None, float]:
    """The cheapest tree of a task, None if the time is over, and what no tree costs less than."""
    program = Program()
    tree = add_tree(program, demand, whole=True)
    program.maximise([(-prices.links.get(link, 0.0) - SHORTER, column) for link, column in tree.y.items()])
    solution = program.solve(deadline - monotonic())
    if not solution.found:
        return None, 0.0
    return column_of(ground, task, demand, tree, solution), -solution.bound
