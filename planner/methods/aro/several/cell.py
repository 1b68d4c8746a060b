"""The best rates of one cell, exactly: in a cell only links that tasks share tell one rate from another.

The rates are variables here. Eq. (10) of a shared link is left out until a solution breaks it, with n[i] flows of each
task i. Then it is added for these numbers: either the link has fewer flows of some task, or the n[i] r[i] fit it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from inakit.planner.methods.aro.several.rates import Box, Rates, Worth
from inakit.planner.methods.aro.several.reduced import Network
from inakit.planner.methods.aro.several.routing import Columns, Question, Routing, extract
from inakit.planner.solvers.columns import INFEASIBLE, OPTIMAL, Term
from inakit.planner.trees.unfolding import DirectedLink

TOLERANCE = 1e-9


@dataclass(frozen=True)
class BestOfCell:
    """The best routing of a cell, None if it has none. Nothing in the cell is worth more than `bound`."""

    routing: Routing | None
    bound: float


def best_of_cell(net: Network, worth: Worth, box: Box, deadline: float, seed: int = 0) -> BestOfCell:
    """The cell's best routing, where its twins are not overloaded. At the deadline no routing and the bound so far."""
    cell = Cell(net, worth, box)
    while True:
        solution = cell.program.solve(deadline - monotonic(), seed)
        if solution.status == INFEASIBLE:
            return BestOfCell(None, 0.0)
        bound = solution.bound * cell.unit
        if solution.status != OPTIMAL:
            return BestOfCell(None, min(bound, worth.of(box.high)))
        rates = [solution.values[column] * cell.unit for column in cell.r]
        broken = cell.broken(solution.values, rates)
        if not broken:
            whole = net.fine is net
            return BestOfCell(extract(net, cell.columns, solution.values, rates) if whole else None, bound)
        for link, flows in broken:
            cell.fit(link, flows)


class Cell:
    """The model of a cell: rates in units of the highest, constraints (4) to (9), and what is known so far of (10)."""

    def __init__(self, net: Network, worth: Worth, box: Box) -> None:
        self.net, self.box = net, box
        self.unit = max(box.high)
        question = Question.of(net, box.low)
        question.make_whole()
        self.columns: list[Columns] = question.columns
        self.program = program = question.program
        self.r = [
            program.variable(low / self.unit, high / self.unit) for low, high in zip(box.low, box.high, strict=True)
        ]
        worth.add_objective(program, self.r, self.unit)

    def capacity(self, link: DirectedLink) -> float:
        """The bit/s of all links of the fabric together that a link of the reduced network stands for."""
        return self.net.fabric.capacities_bps[link] * self.net.width(link)

    def broken(self, values: Sequence[float], rates: Rates | list[float]) -> list[tuple[DirectedLink, Counter[int]]]:
        """The links that carry more than they can, with the flows of each task on them."""
        found = []
        for link, tasks in self.net.tasks_on.items():
            flows = Counter({i: round(values[self.columns[i].flows[link]]) for i in tasks})
            load = sum(rates[i] * n for i, n in flows.items())
            if load > self.capacity(link) * (1 + TOLERANCE):
                found.append((link, +flows))
        return found

    def fit(self, link: DirectedLink, flows: Counter[int]) -> None:
        """Add (10) for so many flows or more on the link: `at_least[i]` is 1 if task i has its number."""
        capacity = self.capacity(link) / self.unit
        excess = sum(n * self.box.high[i] for i, n in flows.items()) / self.unit - capacity
        terms: list[Term] = []
        for i, n in flows.items():
            y = self.columns[i].flows[link]
            at_least = self.program.variable(0, 1, integral=True)
            self.program.at_most([(1, y), (-(self.program.upper[y] - n + 1), at_least)], n - 1)
            terms += [(n, self.r[i]), (excess, at_least)]
        self.program.at_most(terms, capacity + excess * len(flows))
