"""ARO for several tasks (SJMT, MJMT): the best routes and rates by Eqs. (2) and (3), proven, with continuous rates.

First every task is planned alone: this bounds its rate, and all these routes together are already a plan. Then branch
and bound searches for the best rates of all.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count, cycle, permutations
from math import inf
from time import monotonic

from inakit.planner.core.loads import flow_counts
from inakit.planner.core.method import Options
from inakit.planner.core.plan import FEASIBLE, INFEASIBLE, OPTIMAL, AggregationTree, Plan, SolverOptions, SolverOutcome
from inakit.planner.core.problem import Problem
from inakit.planner.core.slots import Inp, most_children
from inakit.planner.methods.aro.bisection import ROUNDING, Least, Steps, least_t
from inakit.planner.methods.aro.box_model import BoxModel
from inakit.planner.methods.aro.rate_objective import STRICT, Box, Rates, Worth, levels
from inakit.planner.methods.aro.reduced_network import ReducedNetwork, network
from inakit.planner.methods.aro.several_routing import (
    Columns,
    Question,
    Router,
    Routing,
    cut_up,
    extract,
    share_capacity,
    task_columns,
    with_results,
)
from inakit.planner.methods.aro.task_graphs import Task, tasks_of
from inakit.planner.solvers import LinearProgram
from inakit.planner.trees.from_paths import Sender, Summing, plan_from_paths
from inakit.topo.errors import SolverError
from inakit.topo.fabric.fabric import DirectedLink, Path

# -- The best rates of several tasks: branch and bound on boxes of rates.
#
# Feasible rates are downward closed: if some rates are feasible, so are all lower ones. If rates just above the lower
# end of a box are infeasible, the box is empty; and the objective at its upper end bounds the whole box. First the
# lower end of a box rises to the rates that it needs to be worth more than the incumbent. A box that is not proven
# empty is then split at a level; a box within a cell is solved.

IMPROVEMENT = 5e-7
"""Relative: the search ignores smaller improvements."""
CUT = 0.1
"""In the first descent, each failed probe lowers its target by at least this fraction of its distance to the incumbent.
With a tenth, the eight probes cover more than half of this distance.
"""
QUICK, QUICK_S = 0.1, 0.2
"""The time to test whether a box is empty that could also be split: this fraction of the patience, but at least these
seconds.
"""
EASY, CLOSE, LONGER = 1 / 2, 1 / 16, 3
"""Before the search, routings are sought at growing fractions of the best rates, for an early plan: the first fraction;
the distance at which a possible and an impossible one are close enough; and how many times as long as the slowest
success an attempt may take.
"""
TURN = 1 / 8
"""The part of the remaining time that one question of the search may take."""
SHAKING, SHAKING_S = 1 / 4, 1.0
"""The part of the time in which pairs of tasks are routed anew; at most these seconds before the search for a proof."""
NARROW = 1e-5
"""A cell whose sides are all shorter than this fraction of its rates is not halved."""
WHOLE_S, LONG, WHOLE = 1.0, 3, 2
"""Everything is given to one program again and again: for these seconds at first, then `LONG` times as long as the last
time, when the search has lasted `WHOLE` times as long as that.
"""
FEW_LINKS, LAST = 300, 1 / 3
"""If all tasks together have no more links than this, one program is as good as any search: it is tried before the
search, and after this part of the time it has all the remaining time.
"""
PROBES = 8
"""The maximum number of tests in the first descent."""


@dataclass(frozen=True)
class Incumbent:
    """The best routing so far, with its best rates and their worth."""

    routing: Routing
    rates: Rates
    value: float


@dataclass
class BoxSearch:
    """The state of the search: incumbent, open boxes by their bound, and rates known to be possible or impossible.

    `ceiling` is a known upper bound on the worth, if there is one.
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
    parts: dict[str, int] = field(default_factory=dict)
    whole_s: float = WHOLE_S
    last: Incumbent = field(init=False)
    settled: Incumbent | None = None
    shaking_s: float = 0.0

    def __post_init__(self) -> None:
        self.levels = levels(self.net)
        self.numbers, self.last = count(), self.incumbent
        self.pairs = cycle(permutations(range(len(self.worth.tasks)), 2))

    def run(self, high: Rates) -> None:
        """Search all rates up to `high`. Afterwards `bound` is an upper bound on the worth."""
        box, begun = Box((0.0,) * len(high), high), monotonic()
        best, limit = BoxModel.of(self.net, self.worth, box).relax()
        self.ceiling = min(self.ceiling, limit)
        few = sum(len(graph.links) for graph in self.net.graphs) <= FEW_LINKS
        if few:
            self.whole_s = min(self.whole_s, self.turn)
            self.solve_whole(box)
        self.reroute()
        self.climb(best)
        self.settle(self.last)
        self.shake_all(monotonic() + min(SHAKING_S, SHAKING * (self.deadline - begun)))
        self.descend(box)
        self.push(box)
        while self.open and min(self.ceiling, -self.open[0][0]) > self.enough and monotonic() < self.deadline:
            lasted = monotonic() - begun
            if few and lasted > LAST * (self.deadline - begun):
                self.whole_s = inf
            if (few and self.whole_s == inf) or lasted > WHOLE * self.whole_s:
                self.solve_whole(box)
            value, _, part = heapq.heappop(self.open)
            self.process(part, -value)
            self.reroute()
            if self.shaking_s < SHAKING * lasted:
                self.shake()
        self.bound = min(self.ceiling, max([self.bound, self.incumbent.value, *(-item[0] for item in self.open)]))

    def solve_whole(self, box: Box) -> None:
        """Give the box of all rates to one program."""
        low = self.worth.tighten(box, self.enough - self.worth.mu * self.worth.ceiling(box.high))
        self.ceiling = min(self.ceiling, self.solve_box(Box(low, box.high), self.whole_s))
        self.whole_s *= LONG

    @property
    def enough(self) -> float:
        """The worth that a box must exceed to be searched."""
        return self.incumbent.value * (1 + max(self.gap, IMPROVEMENT))

    @property
    def base(self) -> float:
        """A rate that all tasks have in some optimum; 0 where none is known."""
        return self.levels.base(self.worth, self.worth.least(self.incumbent.rates))

    @property
    def net(self) -> ReducedNetwork:
        """The network, with the current number of nodes for its twins."""
        return self.router.net

    def push(self, box: Box, limit: float = inf) -> None:
        """Add a box to the open ones, unless it is empty or cannot be worth more than enough."""
        if all(low < high * (1 - ROUNDING) or low == 0 for low, high in zip(box.low, box.high, strict=True)):
            value = min(limit, self.worth.best(box.high)[1])
            if value > self.enough:
                heapq.heappush(self.open, (-value, next(self.numbers), box))
            else:
                self.dismiss(value)

    def dismiss(self, value: float) -> None:
        """Raise `bound` for a box that is dropped: to its `value`, but at most to `enough`."""
        self.bound = max(self.bound, min(value, self.enough))

    def climb(self, rates: Rates) -> None:
        """Find routings for higher and higher fractions of these rates, by short questions."""
        low, high, part, slowest = 0.0, 1.0, EASY, 0.0
        while high - low > CLOSE and self.ceiling > self.enough and monotonic() < self.deadline:
            started = monotonic()
            limit_s = max(QUICK_S, LONGER * slowest) if slowest else self.turn
            if self.ask(tuple(part * rate for rate in rates), limit_s, exact=False) in (OPTIMAL, FEASIBLE):
                low, slowest = part, max(slowest, monotonic() - started)
            else:
                high = part
            part = (low + high) / 2

    def reroute(self) -> None:
        """Settle a new incumbent."""
        while self.settled is not self.incumbent and self.is_open:
            self.settled = self.incumbent
            self.settle(self.incumbent)

    def settle(self, found: Incumbent) -> None:
        """Route the tasks of a plan anew, one after the other, as long as that makes it better."""
        before = 0.0
        while found.value > before * (1 + IMPROVEMENT) and self.is_open:
            before = found.value
            for i in range(len(found.rates)):
                found = max(found, self.routed_anew(found, [i]), key=lambda plan: plan.value)
            self.consider(found)

    def shake(self) -> None:
        """Take two tasks out of the incumbent, route both anew, and settle this plan; a different pair each time."""
        started = monotonic()
        self.settle(self.routed_anew(self.incumbent, next(self.pairs)))
        self.shaking_s += monotonic() - started

    def shake_all(self, until: float) -> None:
        """Shake until no pair of tasks improves the incumbent, at most until this time."""
        failed, tasks = 0, len(self.worth.tasks)
        while failed < tasks * (tasks - 1) and self.is_open and monotonic() < until:
            before = self.incumbent
            self.shake()
            failed = failed + 1 if self.incumbent is before else 0

    def improve(self, routing: Routing, deadline: float) -> None:
        """Improve the incumbent, or the routing of another search if that is better, until the deadline."""
        self.deadline = deadline
        self.settle(with_best_rates(self.net, self.worth, routing))
        self.shake_all(deadline)
        self.bound = max(self.bound, self.incumbent.value)

    @property
    def is_open(self) -> bool:
        """Whether a better plan is possible, and there is time to search for it."""
        return self.ceiling > self.enough and monotonic() < self.deadline

    def routed_anew(self, plan: Incumbent, tasks: Sequence[int]) -> Incumbent:
        """The plan with these tasks routed anew, each in turn at its highest rate beside the rates of the others."""
        found, rates = plan.routing, list(plan.rates)
        for i in tasks[1:]:
            rates[i] = 0.0
        for i in tasks:
            beside: Counter[DirectedLink] = Counter()
            for link, flows in found.loads():
                beside[link] += sum(n * rates[k] for k, n in flows.items() if k != i)  # type: ignore[assignment]
            known = Least(found.only(i), 1 / rates[i], 0.0) if rates[i] > 0 else None
            net = self.apart.only([i]).beside(beside)
            try:
                best = fastest(net, min(self.deadline, monotonic() + self.turn), next(self.numbers), known)
            except SolverError:  # the time is over
                return plan
            found, rates[i] = found.with_task(i, best.solution), 1 / best.t
        return with_best_rates(self.net, self.worth, found)

    @cached_property
    def apart(self) -> ReducedNetwork:
        """The network without twins, for links that other tasks load differently."""
        return network(
            self.net.fabric,
            self.worth.tasks,
            dict.fromkeys(self.net.class_of.values(), len(self.net.class_of)),
            results=self.net.results,
        )

    def descend(self, box: Box) -> None:
        """Find a first good incumbent: lower the target of the least throughput until its rates have a routing."""
        best, _ = self.worth.best(box.high)
        least = self.worth.least(best)
        for _ in range(PROBES):
            if self.ceiling <= self.enough:
                return
            rates = self.worth.trim(box, self.levels, least)
            if self.worth.of(rates) <= self.enough:
                return
            if self.ask(rates, self.turn) in (OPTIMAL, FEASIBLE):
                return
            hope = least - self.worth.least(self.incumbent.rates)
            low = self.worth.tighten(box, least)
            sinking = [0.0]  # targets at which a task's lower end first sinks to its next level
            for job, tasks in self.worth.jobs.items():
                total = sum(box.high[i] for i in tasks)
                raised = [i for i in tasks if low[i] > box.low[i]]
                below = [total - box.high[i] + self.levels.below(i, low[i]) for i in raised]
                sinking += [self.worth.weights[job] * rate for rate in below]
            least = min(max(sinking), least - CUT * hope)

    def process(self, box: Box, limit: float) -> None:
        """Drop the box if its part above the incumbent is empty, solve it if it is a cell, otherwise split it.

        No rates in the box are worth more than `limit`.
        """
        wanted = self.enough - self.worth.mu * self.worth.ceiling(box.high)
        low = tuple(max(rate, self.base * (1 - STRICT)) for rate in self.worth.tighten(box, wanted))
        limit = min(limit, BoxModel.of(self.net, self.worth, Box(low, box.high)).relax()[1])
        cut = self.cut_at(low, box.high, wanted)
        if limit <= self.enough:
            self.dismiss(limit)
        elif cut is None:
            self.solve_cell(Box(low, box.high), limit)
        elif self.is_empty(low, box.high, max(QUICK_S, QUICK * self.patience)):
            self.dismiss(inf)
        else:
            for part in box.split(*cut):
                self.push(part, limit)

    def cut_at(self, low: Rates, high: Rates, least: float) -> tuple[int, float] | None:
        """The level at which to split: on the widest side of the job with the least slack; None within a cell."""
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
        return any(is_up_to(known, rates) for known in self.impossible)

    def ask(self, rates: Rates, time_limit_s: float, *, exact: bool = True) -> str:
        """Test for a routing and remember the answer; return its status.

        If `exact`, classes whose flows cannot be distributed are halved, and the test is repeated.
        """
        while True:
            status, routing = self.router.route(rates, min(time_limit_s, self.deadline - monotonic()))
            if status == INFEASIBLE:
                self.impossible.append(rates)
            if routing is None:
                return status
            self.last = with_best_rates(self.net, self.worth, routing)
            self.consider(self.last)
            if not routing.overloaded:
                self.possible.append(rates)
            if not (routing.overloaded and exact):
                return status
            self.halve(routing.overloaded)

    def halve(self, nodes: Iterable[str]) -> None:
        """Double the number of nodes for the classes of `nodes`.

        Once a class has a node for each member, no flows of it remain to be distributed.
        """
        for z in {self.net.class_of[node] for node in nodes}:
            self.parts[z] = 2 * self.parts.get(z, 1)
        self.router.net = network(self.net.fabric, self.worth.tasks, self.parts, results=self.net.results)

    @property
    def patience(self) -> float:
        """The seconds for one question: half of the remaining time."""
        return (self.deadline - monotonic()) / 2

    def consider(self, plan: Incumbent) -> None:
        if plan.value > self.incumbent.value:
            self.incumbent = plan

    def solve_cell(self, cell: Box, limit: float) -> None:
        """Drop the cell if it is empty or if its best corner is feasible; otherwise find its best rates.

        A cell that takes longer than its share of the time is halved: its parts have closer bounds.
        """
        self.dismiss(inf)
        if self.is_empty(cell.low, cell.high, self.turn):
            return
        best, _ = self.worth.best(cell.high)
        if not self.known_impossible(best):
            self.ask(best, self.turn)
        if self.worth.of(best) <= self.enough:
            return
        limit = min(limit, self.solve_box(cell, self.turn))
        if limit > self.enough:
            i = max(range(len(cell.low)), key=lambda i: cell.high[i] - cell.low[i])
            if cell.high[i] - cell.low[i] > NARROW * cell.high[i]:
                for part in cell.split(i, (cell.low[i] + cell.high[i]) / 2):
                    self.push(part, limit)
                return
        self.bound = max(self.bound, limit)

    def solve_box(self, box: Box, time_limit_s: float) -> float:
        """Search the best rates of a box by one program; return an upper bound on what is not found."""
        while True:
            model = BoxModel.of(self.net.fine, self.worth, box)
            found = model.solve(self.enough, min(time_limit_s, self.deadline - monotonic()), self.router.seed)
            if found.routing is None:
                return found.bound
            self.consider(with_best_rates(self.net, self.worth, found.routing))
            if not found.routing.overloaded or self.enough >= found.bound:
                return found.bound
            self.halve(found.routing.overloaded)

    @property
    def turn(self) -> float:
        """The seconds for one question."""
        return max(QUICK_S, (self.deadline - monotonic()) * TURN)


def is_up_to(rates: Rates, others: Rates) -> bool:
    return all(less <= more * (1 + ROUNDING) for less, more in zip(rates, others, strict=True))


def routing_of(net: ReducedNetwork, trees: Sequence[AggregationTree]) -> Routing:
    pieces = []
    for graph, tree in zip(net.graphs, trees, strict=True):
        above = {link: n for link, n in flow_counts([tree]).items() if link[0] not in graph.task.job.workers}
        pieces.append(cut_up(net.fabric, graph, Counter(above)))
    return Routing(tuple(pieces), tuple({} for _ in pieces))


def with_best_rates(net: ReducedNetwork, worth: Worth, routing: Routing, step_bps: float = 0.0) -> Incumbent:
    """The routing with the best rates that its loads allow; with a step, the best multiples of it."""
    loads = {
        tuple((i, n / net.fabric.capacities_bps[link]) for i, n in sorted(flows.items()))
        for link, flows in routing.loads()
    }
    high = [inf] * len(worth.tasks)
    for load in loads:
        for i, share in load:
            high[i] = min(high[i], 1 / share)
    rates, value = worth.best(tuple(high), [dict(load) for load in loads if len(load) > 1], step_bps)
    return Incumbent(routing, rates, value)


# -- The plan of all tasks.

PATIENCE = 4
"""The divisor of the remaining time that gives the time for one test of a single task."""


def plan_of(
    problem: Problem, net: ReducedNetwork, routing: Routing, rates: Rates, outcome: SolverOutcome, window: int
) -> Plan:
    keys = [graph.task.key for graph in net.graphs]
    paths: dict[int, list[Path]] = {job.number: [] for job in problem.jobs}
    for graph, pieces in zip(net.graphs, routing.pieces, strict=True):
        paths[graph.task.job.number] += worker_paths(net, graph.task, pieces)
    return plan_from_paths(
        problem,
        paths,
        problem.fabric.ina_names,
        rates_bps=dict(zip(keys, rates, strict=True)),
        method="aro",
        outcome=outcome,
        window=window,
        results=dict(zip(keys, routing.results, strict=True)),
    )


def searched(
    net: ReducedNetwork, options: SolverOptions, started: float, *, results: bool = False, start: Routing | None = None
) -> BoxSearch:
    """The finished search for the best rates of all tasks; with `results`, which return at the same rates.

    The best rates of gradients alone are found first. They bound those with results, their routing is a starting point,
    and usually there is another one where results cost nothing. With a routing to `start` from the search has a
    plan however short the time is.
    """
    tasks = tuple(graph.task for graph in net.graphs)

    def begin(net: ReducedNetwork, routing: Routing, deadline: float) -> BoxSearch:
        worth = Worth(tasks, net.access)
        return BoxSearch(Router(net, options.seed), worth, deadline, options.gap, with_best_rates(net, worth, routing))

    deadline = started + options.time_limit_s
    alone = []
    for i in range(len(tasks)):
        one, known, until = net.only([i]), None, deadline
        if start:
            rate = with_best_rates(one, Worth(tasks[i : i + 1], {}), start.only(i)).rates[0]
            known, until = Least(start.only(i), 1 / rate, 0.0), monotonic() + (deadline - monotonic()) * TURN
        alone.append(fastest(one, until, options.seed, known))
    high = tuple(1 / least.bound for least in alone)
    together = Routing(tuple(least.solution.pieces[0] for least in alone), tuple({} for _ in alone))
    search = begin(net, together, started + options.time_limit_s / 2 if results else deadline)
    if start:
        search.consider(with_best_rates(net, search.worth, start))
    search.run(high)
    if not results:
        return search
    both = network(net.fabric, tasks, results=True)
    again = begin(both, with_results(both, search.incumbent.routing), deadline)
    again.ceiling = search.bound
    if again.ceiling > again.enough:
        again.ask(search.incumbent.rates, again.patience)
    again.run(high)
    return again


def fastest(net: ReducedNetwork, deadline: float, seed: int, known: Least[Routing] | None = None) -> Least[Routing]:
    """The routing of a single task with the highest rate, 1 / t; or any routing, or the `known` one, if time is short.

    Raises `SolverError` if there is not even time for any routing.
    """
    graph, router = net.graphs[0], Router(net, seed)
    b = net.fabric.capacities_bps
    access = min(b[worker, net.fabric.tor_of(worker)] for worker in graph.task.job.workers)
    slowest = (1 - ROUNDING) / known.t if known else 0.0  # links of less capacity are of no use
    capacities = {access, *(b[link] for link in graph.links if b[link] > slowest)}

    def fits(t: float) -> Routing | None:
        status, routing = router.route((1 / t,), (deadline - monotonic()) / PATIENCE)
        if routing is None and status != INFEASIBLE:
            raise SolverError("no routes were found in time: raise the time limit, or make the problem smaller")
        return routing

    leaving = (n / sum(b[link] * net.width(link) for link in graph.out_of[z]) for z, n in graph.starting.items())
    lowest = max([1 / access, *leaving])
    highest = len(graph.task.job.workers) / min(capacities)
    try:
        least = least_t(fits, Steps(capacities), lowest, highest, known=known)
    except SolverError:  # too hard for the remaining time: any routing
        routing = fits(highest)
        least = Least(routing, highest, lowest) if routing else None
    if least is None:
        raise SolverError("other tasks leave no capacity")
    return least


def worker_paths(net: ReducedNetwork, task: Task, pieces: dict[Inp | str, list[Path]]) -> Iterator[Path]:
    """A path for every worker: the joined pieces from its switch on. Pieces of a common switch are consumed."""
    left = {start: list(paths) for start, paths in pieces.items()}
    part_of: dict[tuple[Sender, Inp], Summing] = {}
    arrived: Counter[Inp] = Counter()
    fabric = net.fabric
    for worker in task.job.workers:
        tor = fabric.tor_of(worker)
        path: Path = (worker, tor)
        if not fabric.switch_by_name[tor].ina:
            path = (worker, *left[tor].pop())
        sender: Sender = worker
        while path[-1] != task.server:
            inp = path[-1], fabric.ingress_pipeline(path[-1], path[-2])
            if (sender, inp) not in part_of:
                part_of[sender, inp] = Summing(*inp, arrived[inp] // most_children(fabric, inp[0]))
                arrived[inp] += 1
            sender = part_of[sender, inp]
            path += pieces[inp][sender.part][1:]
        yield path


# -- Of all routings that carry given rates of gradients, one on which results need the least capacity.
#
# The constraints (4) to (10) hold at the fixed rates, for gradients alone. With results each link has t times its
# capacity, and the least t is the loss of the rates to results in a closed loop: a mixed-integer linear program.


def with_least_loss(problem: Problem, plan: Plan, options: Options) -> Plan:
    """The plan of the same rates that loses least to results; the plan itself if none is found in time.

    In the program gradients keep to the capacities, gradients and results together to t times these; t is minimised.
    """
    tasks = tasks_of(problem)
    known = {(planned.job, planned.tree.root): planned.rate_bps for planned in plan.trees}
    rates = tuple(known.get(task.key, 0.0) for task in tasks)
    net = network(problem.fabric, tasks, results=True).fine
    program = LinearProgram()
    columns = [task_columns(program, net, i, rate) for i, rate in enumerate(rates)]
    gradients = [Columns(column.y, column.x) for column in columns]
    share_capacity(program, replace(net, results=False), gradients, rates)
    t = program.variable(1, len(rates) + 1)
    for link, own in net.tasks_on.items():
        loads = [(rates[i] / net.fabric.capacities_bps[link], columns[i].flows[link]) for i in own]
        program.at_most([*loads, (-net.width(link), t)], 0)
    Question(net, columns, program).make_whole()
    program.maximise([(-1, t)])
    solution = program.solve(options.time_limit_s, options.seed, options.gap)
    if not solution.found:
        return plan
    routing = extract(net, columns, solution.values, rates)
    return plan_of(problem, net, routing, rates, plan.outcome, options.window)
