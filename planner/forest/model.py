"""A task's trees as linear constraints: ARO's (4) to (9), all multiplied by the tree's rate.

So multiplied they are homogeneous. With the rate 1 and whole x and y they describe a tree; with any rate and without
wholeness all fractional packings, and a little more: the rate that they allow bounds that of any forest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf

from planner.aro.flow import Demand
from planner.aro.paths import generate_routes
from planner.aro.program import Program, Solution, Term
from planner.decouple import task_graph
from planner.forest.packing import Column, Ground
from planner.routes import MAX_CHILDREN, Inp
from planner.unfold import DirectedLink


@dataclass(frozen=True)
class TreeColumns:
    """The variables: the rate, x by INP, and y by link (the workers' own links apart, whose flow is the rate)."""

    rate: int
    x: dict[Inp, int]
    y: dict[DirectedLink, int]


def demands(ground: Ground) -> tuple[Demand, ...]:
    """Every task's graph."""
    return tuple(Demand(task_graph(ground.fabric, task.job.workers, task.server)) for task in ground.tasks)


def add_tree(program: Program, demand: Demand, *, whole: bool) -> TreeColumns:
    """One tree of the rate 1 if `whole`; else any packing of trees."""
    graph, most = demand.graph, inf if not whole else 1
    rate = program.variable(1 if whole else 0, most)
    x = {inp: program.variable(0, most, integral=whole) for inp in graph.inps}
    y = {
        link: program.variable(0, inf if not whole else graph.most_flows[link[0]], integral=whole)
        for link in demand.links
    }
    for inp, column in x.items():
        program.row([(1, column), (-1, rate)], 0 if demand.local[inp] else -inf, 0)  # (6)
        entering = [link for link in graph.inps[inp] if link in y]
        for link in entering:
            program.at_most([(1, y[link]), (-min(graph.most_flows[link[0]], MAX_CHILDREN), column)], 0)  # (7)
        if demand.local[inp] + sum(graph.most_flows[u] for u, _ in entering) > MAX_CHILDREN:
            program.at_most([*total(y, entering), (demand.local[inp], rate), (-MAX_CHILDREN, column)], 0)
    for z in graph.aggregating:
        handed = [(1.0, x[inp]) for inp in graph.inps_of[z]]  # (8)
        program.equal([*handed, *total(y, graph.out_of[z], -1)], 0)  # (9)
    for z in graph.common:
        received = [*total(y, graph.into[z]), (float(demand.starting[z]), rate)]
        program.equal([*received, *total(y, graph.out_of[z], -1)], 0)  # (9)
    return TreeColumns(rate, x, y)


def total(y: Mapping[DirectedLink, int], links: Iterable[DirectedLink], sign: float = 1) -> list[Term]:
    return [(sign, y[link]) for link in links if link in y]


def column_of(ground: Ground, task: int, demand: Demand, tree: TreeColumns, solution: Solution) -> Column:
    """The tree that the solver found, by the paper's Algorithm 1."""
    flows = {link: round(solution.values[column]) for link, column in tree.y.items()}
    return ground.column(task, generate_routes(demand.graph, dict.fromkeys(demand.access, 1) | flows))
