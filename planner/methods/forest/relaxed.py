"""What no forest exceeds, from the linear relaxation of tree packing: ARO's (4) to (9), multiplied by a rate.

Multiplied by a rate these constraints are homogeneous. With any rate, and without whole numbers, they describe all
fractional packings and a little more. The links carry all tasks' flows together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from math import inf

from inakit.planner.core.limits.switch_limits import most_children
from inakit.planner.methods.aro.several.reduced import Network, Reduced
from inakit.planner.methods.aro.several.results import limit_copies
from inakit.planner.methods.forest.packing import Ground
from inakit.planner.solvers.columns import OPTIMAL, LinearProgram, Term
from inakit.planner.trees.unfolding import DirectedLink
from inakit.topo.errors import SolverError


def relax(ground: Ground, net: Network) -> float:
    """A worth that no forest exceeds: the optimum of a linear program."""
    program = LinearProgram()
    loads: dict[DirectedLink, list[Term]] = defaultdict(list)
    rates = []
    for graph in net.graphs:
        rates.append(program.variable(0, inf))
        for link, column in add_trees(program, net, graph, rates[-1]).items():
            loads[link].append((1, column))
    for link, terms in loads.items():
        program.at_most(terms, net.width(link) * ground.capacity_bps(link) / ground.unit)
    ground.worth.add_objective(program, rates, ground.unit)
    solution = program.solve()
    if solution.status != OPTIMAL:
        raise SolverError(f"the relaxation of tree packing has no best rates: the solver says {solution.status}")
    return solution.objective * ground.unit


def add_trees(program: LinearProgram, net: Network, graph: Reduced, rate: int) -> dict[DirectedLink, int]:
    """Add a task's flows, and its results where the network has them, to the program; returns their columns by link.

    Workers' own links carry the rate.
    """
    most = most_flows(net, graph)
    y = {link: program.variable(0, inf) for link in graph.links}
    x = {inp: program.variable(0, inf) for inp in graph.entering}
    for inp, entering in graph.entering.items():
        program.row([(1, x[inp]), (-net.size(inp[0]), rate)], -inf, 0)  # (6)
        if graph.local[inp]:
            program.at_least([(1, x[inp]), (-1, rate)], 0)
        children = most_children(net.fabric, inp[0])
        for link in entering:
            program.at_most([(1, y[link]), (-min(most[link[0]], children), x[inp])], 0)  # (7)
        program.at_most([*total(y, entering), (graph.local[inp], rate), (-children, x[inp])], 0)
    for z in graph.aggregating:
        handed: list[Term] = [(1, column) for inp, column in x.items() if inp[0] == z]  # (8)
        program.equal([*handed, *total(y, graph.out_of[z], -1)], 0)  # (9)
    for z in graph.common:
        received = [*total(y, graph.into.get(z, [])), (float(graph.starting[z]), rate)]
        program.equal([*received, *total(y, graph.out_of[z], -1)], 0)  # (9)
    return y | add_results(program, net, graph, y, rate) if net.results else y


def add_results(
    program: LinearProgram, net: Network, graph: Reduced, y: Mapping[DirectedLink, int], rate: int
) -> dict[DirectedLink, int]:
    """Add a task's results to the program, multiplied by its rate; returns their columns by link."""
    z = {(v, u): program.variable(0, inf) for u, v in graph.links}
    for (v, u), column in z.items():
        program.at_most([(1, column), (-1, y[u, v])], 0)
        program.at_most([(1, column), (-net.width((v, u)), rate)], 0)
    limit_copies(program, net, graph, z, rate)
    return z | {(v, u): rate for u, v in graph.both_roles}


def total(y: Mapping[DirectedLink, int], links: Iterable[DirectedLink], sign: float = 1) -> list[Term]:
    """The terms of y on these links, with a sign."""
    return [(sign, y[link]) for link in links]


def most_flows(net: Network, graph: Reduced) -> dict[str, int]:
    """The most flows that leave each node: one for each INP, or all that enter a common switch."""
    inps = Counter(switch for switch, _ in graph.entering)
    most: dict[str, int] = {}

    def count(node: str) -> int:
        if node not in most:
            entering = graph.starting[node] + sum(count(u) for u, _ in graph.into.get(node, ()))
            most[node] = inps[node] * net.size(node) or min(len(graph.task.job.workers), entering)
        return most[node]

    return {node: count(node) for node in graph.out_of}
