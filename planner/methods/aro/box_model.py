"""ARO's model for rates within a box, on the reduced network: its relaxation bounds the box, its optimum is the box's.

The load of a task on a link is its number of flows there times its rate, y r in constraint (10). The constraints (5) to
(10) hold for loads as they hold for flows, and are linear in them: these and the objective are the relaxation. The
model itself adds the integral flows, and ties the load of each link to their product with the rate. Flows in binary
make this exact, as in `inakit.planner.methods.aro.printed_model`; the narrower the box, the closer the relaxation.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from inakit.planner.core.plan import INFEASIBLE
from inakit.planner.core.slots import most_children
from inakit.planner.methods.aro.rate_objective import Box, Rates, Worth
from inakit.planner.methods.aro.reduced_network import ReducedNetwork, result_columns
from inakit.planner.methods.aro.several_routing import Routing, extract, most_flows, share_capacity, task_columns
from inakit.planner.solvers import TOLERANCE, LinearProgram, Solution, Term
from inakit.planner.trees.from_paths import sums_of
from inakit.topo.fabric.fabric import DirectedLink


@dataclass(frozen=True)
class BoxModel:
    """The relaxation for the rates of a box, in units of `unit_bps`. `rates` and `loads` are columns, by task."""

    net: ReducedNetwork
    box: Box
    unit_bps: float
    program: LinearProgram
    rates: list[int]
    loads: list[dict[DirectedLink, int]]

    @classmethod
    def of(cls, net: ReducedNetwork, worth: Worth, box: Box) -> BoxModel:
        """Build the relaxation: the constraints (5) to (10) for loads, and the objective."""
        program, unit = LinearProgram(), max(box.high)
        rates = [program.variable(low / unit, high / unit) for low, high in zip(box.low, box.high, strict=True)]
        loads = [task_loads(program, net, i, rate, box.low[i]) for i, rate in enumerate(rates)]
        for link, tasks in net.tasks_on.items():
            capacity = net.width(link) * net.fabric.capacities_bps[link] / unit
            program.at_most([(1, loads[i][link]) for i in tasks], capacity)  # (10)
        worth.add_objective(program, rates, unit)
        return cls(net, box, unit, program, rates, loads)

    def relax(self) -> tuple[Rates, float]:
        """The best rates of the relaxation, and their worth, which bounds that of the box; 0 if the box is empty."""
        solution = self.program.solve()
        if solution.status == INFEASIBLE:
            return self.box.low, 0.0
        if not solution.found:  # the solver has failed, which says nothing
            return self.box.high, inf
        return self.rates_of(solution), solution.objective * self.unit_bps

    def rates_of(self, solution: Solution) -> Rates:
        """The rates of a solution; those that are only the solver's rounding are 0."""
        values = (solution.values[rate] for rate in self.rates)
        return tuple(value * self.unit_bps if value > TOLERANCE else 0.0 for value in values)

    def solve(self, least: float, time_limit_s: float, seed: int) -> BoxOptimum:
        """The best routing of the box, if it is worth more than `least`. The relaxation becomes the whole model."""
        program, net = self.program, self.net
        columns = [task_columns(program, net, i, low) for i, low in enumerate(self.box.low)]
        for column, rate, loads in zip(columns, self.rates, self.loads, strict=True):
            for link, y in column.flows.items():
                if loads[link] == rate:  # a worker's own link has one copy of the results
                    continue
                capacity = net.width(link) * net.fabric.capacities_bps[link] / self.unit_bps
                tight = len(net.tasks_on[link]) > 1 or program.upper[y] * program.upper[rate] > capacity
                multiply(program, y, rate, loads[link], exact=tight)
            for k in (*column.flows.values(), *column.x.values()):
                program.integral[k] = True
        share_capacity(program, net, columns, self.box.low)
        program.at_least(program.objective, least / self.unit_bps)
        solution = program.solve(time_limit_s, seed)
        if solution.status == INFEASIBLE:
            return BoxOptimum(None, least)
        routing = None
        if solution.found:
            routing = extract(net, columns, solution.values, self.rates_of(solution))
        return BoxOptimum(routing, max(least, solution.bound * self.unit_bps))


@dataclass(frozen=True)
class BoxOptimum:
    """The best routing found in a box, None if there is none; and an upper bound on the worth of all others."""

    routing: Routing | None
    bound: float


def task_loads(program: LinearProgram, net: ReducedNetwork, i: int, rate: int, low: float) -> dict[DirectedLink, int]:
    """Add a task's loads to the program, with results if the network has them; return their columns by link.

    `rate` is the column of its rate, which is at least `low` bit/s.
    """
    graph = net.graphs[i]
    f = {link: program.variable(0, inf) for link in graph.links}
    for link in graph.links if low > 0 else ():
        program.at_most([(1, f[link]), (-most_flows(net, graph, link, low), rate)], 0)  # (4)
    g = {inp: program.variable(0, inf) for inp in graph.entering}
    for inp, entering in graph.entering.items():
        local, size, children = graph.local[inp], net.size(inp[0]), most_children(net.fabric, inp[0])
        most = {link: most_flows(net, graph, link, low, into=inp[0]) for link in entering}
        sums = size * sums_of(local + sum(most.values()), children)
        program.at_most([(1, g[inp]), (-sums, rate)], 0)  # (6)
        program.at_least([(1, g[inp]), (-sums_of(local, children), rate)], 0)
        for link in entering:
            program.at_most([(1, f[link]), (-min(most[link], children), g[inp])], 0)  # (7)
        program.at_most([*((1, f[link]) for link in entering), (local, rate), (-children, g[inp])], 0)
    for z in graph.aggregating:
        handed: list[Term] = [(1, column) for inp, column in g.items() if inp[0] == z]  # (8)
        program.equal([*handed, *((-1, f[link]) for link in graph.out_of[z])], 0)  # (9)
    for z in graph.common:
        received: list[Term] = [(1, f[link]) for link in graph.into.get(z, ())]
        program.equal([*received, (graph.starting[z], rate), *((-1, f[link]) for link in graph.out_of[z])], 0)  # (9)
    return f | result_columns(program, net, graph, f, rate=rate) if net.results else f


def multiply(program: LinearProgram, y: int, rate: int, load: int, *, exact: bool) -> None:
    """Tie a load to y r, the product of two columns: in the convex hull of the products, or exactly for integral y."""
    length = int(program.upper[y]).bit_length()
    if not exact or length < 2:
        envelop(program, y, rate, load)
        return
    bits = [program.variable(0, 1, integral=True) for _ in range(length)]
    parts = [program.variable(0, inf) for _ in bits]
    for bit, part in zip(bits, parts, strict=True):
        envelop(program, bit, rate, part)
    program.equal([(-1, y), *((2**k, bit) for k, bit in enumerate(bits))], 0)
    program.equal([(-1, load), *((2**k, part) for k, part in enumerate(parts))], 0)


def envelop(program: LinearProgram, y: int, rate: int, load: int) -> None:
    """The convex hull of all load = y r, with y from 0 to its upper bound (McCormick): exact where y is at a bound."""
    most, low, high = program.upper[y], program.lower[rate], program.upper[rate]
    program.at_most([(1, load), (-high, y)], 0)
    program.at_least([(1, load), (-low, y)], 0)
    program.at_most([(1, load), (-most, rate), (-low, y)], -low * most)
    program.at_least([(1, load), (-most, rate), (-high, y)], -high * most)
