"""The best rates of several tasks: branch and bound on boxes of rates.

Feasible rates are downward closed: whoever can have them can have less. So if the rates just above the lower end of a
box are not feasible, the box is empty; and the objective at its upper end bounds all of it. A box's lower end first
rises to what its rates need to be worth more than the incumbent. A box that is not proven empty then is split at a
level; one that lies within a cell is solved.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from math import inf
from time import monotonic

from inakit.planner.methods.aro.several.cell import best_of_cell
from inakit.planner.methods.aro.several.rates import ROUNDING, STRICT, Box, Rates, Worth, levels
from inakit.planner.methods.aro.several.reduced import Network, network
from inakit.planner.methods.aro.several.routing import Router, Routing
from inakit.planner.solvers.columns import FEASIBLE, INFEASIBLE, OPTIMAL

IMPROVEMENT = 5e-7
"""Relative; the search looks for nothing that is better by less than this."""
CUT = 0.1
"""In the first descent, each failed probe lowers its target by at least this part of its distance to the incumbent.
With a tenth, the eight probes cover more than half of that distance."""
QUICK, QUICK_S = 0.1, 0.2
"""The time for asking whether a box is empty that could also be split: this part of the patience, but at least these
seconds."""
EASY, EASY_S = (1 / 2, 2 / 3), 2.0
"""Before the search all tasks are asked for these parts of the rates that they have alone, to have a plan soon; and the
seconds for each question."""
PROBES = 8
"""The most questions of the first descent."""


@dataclass(frozen=True)
class Incumbent:
    """The best routing so far, with the best rates for it and their worth."""

    routing: Routing
    rates: Rates
    value: float


@dataclass
class Search:
    """The state of the search: incumbent, open boxes by their bound, and rates known to be possible or impossible.

    `ceiling` is a worth that nothing exceeds, where one is known beforehand.
    """

    router: Router
    worth: Worth
    deadline: float
    gap: float
    incumbent: Incumbent
    open: list[tuple[float, int, Box]] = field(default_factory=list)
    bound: float = 0.0
    ceiling: float = inf
    possible: list[Rates] = field(default_factory=list)
    impossible: list[Rates] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    parts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.levels = levels(self.net)
        self.numbers = count()

    def run(self, high: Rates) -> None:
        """Search all rates up to `high`. Afterwards nothing is worth more than `bound`."""
        if self.ceiling <= self.enough:
            self.bound = self.ceiling
            return
        box = Box((0.0,) * len(high), high)
        for share in EASY:
            self.ask(tuple(share * rate for rate in high), EASY_S, exact=False)
        self.descend(box)
        self.push(box)
        while self.open and min(self.ceiling, -self.open[0][0]) > self.enough and monotonic() < self.deadline:
            self.process(heapq.heappop(self.open)[2])
        self.bound = min(self.ceiling, max([self.bound, self.incumbent.value, *(-item[0] for item in self.open)]))

    @property
    def enough(self) -> float:
        """The worth that a box must exceed to be looked at."""
        return self.incumbent.value * (1 + max(self.gap, IMPROVEMENT))

    @property
    def base(self) -> float:
        """A rate that all tasks have in some optimum; 0 where none is known."""
        return self.levels.base(self.worth, self.worth.least(self.incumbent.rates))

    @property
    def net(self) -> Network:
        """The network, with as many nodes for its twins as are in use now."""
        return self.router.net

    def push(self, box: Box) -> None:
        """Add a box to the open ones, if it is not empty and may be worth more than enough."""
        if all(low < high * (1 - ROUNDING) or low == 0 for low, high in zip(box.low, box.high, strict=True)):
            _, value = self.worth.best(box.high)
            if value > self.enough:
                heapq.heappush(self.open, (-value, next(self.numbers), box))
            else:
                self.dismiss(value)

    def dismiss(self, value: float) -> None:
        """Raise `bound` for something that is not looked at: to its `value`, but not beyond what is enough."""
        self.bound = max(self.bound, min(value, self.enough))

    def descend(self, box: Box) -> None:
        """Find a first good incumbent: lower the target of the least throughput until its rates have a routing."""
        best, _ = self.worth.best(box.high)
        least = self.worth.least(best)
        for _ in range(PROBES):
            rates = self.worth.trim(box, self.levels, least)
            if self.worth.of(rates) <= self.enough:
                return
            if self.ask(rates, self.patience) in (OPTIMAL, FEASIBLE):
                return
            hope = least - self.worth.least(self.incumbent.rates)
            least = min(self.same_cell(box, least), least - CUT * hope)

    def same_cell(self, box: Box, least: float) -> float:
        """The target of the least throughput at which some task's lower end first sinks to its next level."""
        low = self.worth.tighten(box, least)
        found = [0.0]
        for job, tasks in self.worth.jobs.items():
            total = sum(box.high[i] for i in tasks)
            raised = [i for i in tasks if low[i] > box.low[i]]
            found += [self.worth.weights[job] * (total - box.high[i] + self.levels.below(i, low[i])) for i in raised]
        return max(found)

    def process(self, box: Box) -> None:
        """Drop the box if its part above the incumbent is empty, solve it if it is a cell, else split it."""
        wanted = self.enough - self.worth.mu * self.worth.ceiling(box.high)
        low = tuple(max(rate, self.base * (1 - STRICT)) for rate in self.worth.tighten(box, wanted))
        cut = self.cut_at(low, box.high, wanted)
        if cut is None:
            self.solve_cell(Box(low, box.high))
        elif self.is_empty(low, box.high, max(QUICK_S, QUICK * self.patience)):
            self.dismiss(inf)
        else:
            self.push(box.below(*cut))
            self.push(box.above(*cut))

    def cut_at(self, low: Rates, high: Rates, least: float) -> tuple[int, float] | None:
        """Where to split: at a level of the widest side of the job with the least to spare; None within a cell."""
        spare = {
            i: self.worth.weights[job] * sum(high[k] for k in tasks) - least
            for job, tasks in self.worth.jobs.items()
            for i in tasks
        }
        for i in sorted(spare, key=lambda i: (spare[i], low[i] - high[i])):
            level = self.levels.between(i, low[i], high[i])
            if level is not None:
                return i, level
        return None

    def is_empty(self, low: Rates, high: Rates, time_limit_s: float) -> bool:
        """Whether it is proven in the given time that no rates above `low` are feasible."""
        if any(one >= other * (1 - ROUNDING) and one > 0 for one, other in zip(low, high, strict=True)):
            return True
        least = self.levels.raised(low, self.base)
        if any(is_up_to(least, known) for known in self.possible):
            return False
        return self.known_impossible(least) or self.ask(least, time_limit_s, exact=False) == INFEASIBLE

    def known_impossible(self, rates: Rates) -> bool:
        """Whether rates no higher than these are known to be infeasible."""
        return any(is_up_to(known, rates) for known in self.impossible)

    def ask(self, rates: Rates, time_limit_s: float, *, exact: bool = True) -> str:
        """Ask for a routing and remember the answer; returns its status.

        If `exact`, classes whose flows cannot be dealt out are halved and the question is asked again.
        """
        while True:
            status, routing = self.router.route(rates, min(time_limit_s, self.deadline - monotonic()))
            self.asked[status] += 1
            if status == INFEASIBLE:
                self.impossible.append(rates)
            if routing is None:
                return status
            self.consider(routing)
            if not routing.overloaded:
                self.possible.append(rates)
            if not (routing.overloaded and exact):
                return status
            self.halve(routing.overloaded)

    def halve(self, nodes: Iterable[str]) -> None:
        """Double the number of nodes for the classes of `nodes`.

        Once a class has a node for each member, nothing of it is left to deal out.
        """
        for z in {self.net.class_of[node] for node in nodes}:
            self.parts[z] = 2 * self.parts.get(z, 1)
        self.router.net = network(self.net.fabric, self.worth.tasks, self.parts, results=self.net.results)

    @property
    def patience(self) -> float:
        """The seconds for one question: half of what is left."""
        return (self.deadline - monotonic()) / 2

    def consider(self, routing: Routing) -> None:
        """Make a routing the incumbent if its best rates are worth more."""
        found = with_best_rates(self.net, self.worth, routing)
        if found.value > self.incumbent.value:
            self.incumbent = found

    def solve_cell(self, cell: Box) -> None:
        """Drop the cell if it is empty, or if its best corner is feasible; else find the best rates in it."""
        self.dismiss(inf)
        if self.is_empty(cell.low, cell.high, self.patience):
            return
        best, _ = self.worth.best(cell.high)
        if not self.known_impossible(best):
            self.ask(best, self.patience)
        if self.worth.of(best) <= self.enough:
            return
        found = best_of_cell(self.net, self.worth, cell, self.deadline, self.router.seed)
        self.asked["cells"] += 1
        if self.net.fine is not self.net and found.bound > self.enough:
            found = best_of_cell(self.net.fine, self.worth, cell, self.deadline, self.router.seed)
            self.asked["fine cells"] += 1
        if found.routing is not None:
            self.consider(found.routing)
            if found.routing.overloaded and self.incumbent.value < found.bound:
                self.halve(found.routing.overloaded)
                self.solve_cell(cell)
                return
        self.bound = max(self.bound, found.bound)


def is_up_to(rates: Rates, others: Rates) -> bool:
    """Whether no rate is higher than its counterpart."""
    return all(less <= more * (1 + ROUNDING) for less, more in zip(rates, others, strict=True))


def with_best_rates(net: Network, worth: Worth, routing: Routing) -> Incumbent:
    """The routing with the best rates that its loads allow."""
    loads = {
        tuple((i, n / net.fabric.capacities_bps[link]) for i, n in sorted(flows.items()))
        for link, flows in routing.loads()
    }
    high = [inf] * len(worth.tasks)
    for load in loads:
        for i, share in load:
            high[i] = min(high[i], 1 / share)
    rates, value = worth.best(tuple(high), map(Counter, map(dict, shared(loads))))
    return Incumbent(routing, rates, value)


def shared(loads: Iterable[tuple[tuple[int, float], ...]]) -> list[tuple[tuple[int, float], ...]]:
    """The loads of those links that several tasks use."""
    return [load for load in loads if len(load) > 1]
