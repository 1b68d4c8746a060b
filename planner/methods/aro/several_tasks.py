"""ARO for several tasks (SJMT, MJMT): the best routes and rates by Eqs. (2) and (3), proven, with continuous rates.

First every task is planned alone: this bounds its rate, and all these routes together are already a plan. Then branch
and bound searches for the best rates of all.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from math import inf
from time import monotonic

from inakit.planner.core.method import Options
from inakit.planner.core.plan import FEASIBLE, INFEASIBLE, OPTIMAL, Plan, SolverOptions, SolverOutcome
from inakit.planner.core.problem import Problem
from inakit.planner.core.slots import Inp, most_children
from inakit.planner.methods.aro.bisection import ROUNDING, Least, Steps, least_t
from inakit.planner.methods.aro.rate_objective import STRICT, Box, Rates, Worth, levels
from inakit.planner.methods.aro.reduced_network import ReducedNetwork, network
from inakit.planner.methods.aro.several_routing import (
    Columns,
    Question,
    Router,
    Routing,
    extract,
    share_capacity,
    task_columns,
    with_results,
)
from inakit.planner.methods.aro.task_graphs import Task, tasks_of
from inakit.planner.solvers import LinearProgram, Term, proven
from inakit.planner.trees.from_paths import Sender, Summing, plan_from_paths
from inakit.topo.errors import SolverError
from inakit.topo.fabric.fabric import Fabric, Path

# -- The best rates of one cell, exactly: within a cell, rates differ only on links that tasks share.
#
# The rates are variables here. Eq. (10) of a shared link is omitted until a solution violates it, with n[i] flows of
# each task i. Then it is added for these numbers: either the link has fewer flows of some task, or the n[i] r[i] fit
# it.

TOLERANCE = 1e-9


@dataclass(frozen=True)
class BestOfCell:
    """The best routing of a cell, None if there is none. `bound` is an upper bound on the worth in the cell."""

    routing: Routing | None
    bound: float


def best_of_cell(net: ReducedNetwork, worth: Worth, box: Box, deadline: float, seed: int = 0) -> BestOfCell:
    """The cell's best routing, if its twins are not overloaded; at the deadline no routing, and the current bound.

    Rates are in units of the highest. The constraints (4) to (9) come first, then the necessary parts of (10).
    """
    unit = max(box.high)
    question = Question.of(net, box.low)
    question.make_whole()
    columns, program = question.columns, question.program
    r = [program.variable(low / unit, high / unit) for low, high in zip(box.low, box.high, strict=True)]
    worth.add_objective(program, r, unit)
    while True:
        solution = program.solve(deadline - monotonic(), seed)
        if solution.status == INFEASIBLE:
            return BestOfCell(None, 0.0)
        bound = solution.bound * unit
        if solution.status != OPTIMAL:
            return BestOfCell(None, min(bound, worth.of(box.high)))
        rates = [solution.values[column] * unit for column in r]
        broken = False
        for link, tasks in net.tasks_on.items():
            flows = +Counter({i: round(solution.values[columns[i].flows[link]]) for i in tasks})
            capacity = net.fabric.capacities_bps[link] * net.width(link)
            if sum(rates[i] * n for i, n in flows.items()) <= capacity * (1 + TOLERANCE):
                continue
            broken = True
            excess = sum(n * box.high[i] for i, n in flows.items()) / unit - capacity / unit
            terms: list[Term] = []
            for i, n in flows.items():
                y, at_least = columns[i].flows[link], program.variable(0, 1, integral=True)
                program.at_most([(1, y), (-(program.upper[y] - n + 1), at_least)], n - 1)
                terms += [(n, r[i]), (excess, at_least)]  # `at_least` is 1 if task i has its number of flows
            program.at_most(terms, capacity / unit + excess * len(flows))
        if not broken:
            return BestOfCell(extract(net, columns, solution.values, rates) if net.fine is net else None, bound)


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
EASY, EASY_S = (1 / 2, 2 / 3), 2.0
"""Before the search, routings are sought at these fractions of the rates that tasks have alone, for an early plan; and
the seconds for each attempt.
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
    asked: Counter[str] = field(default_factory=Counter)
    parts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.levels = levels(self.net)
        self.numbers = count()

    def run(self, high: Rates) -> None:
        """Search all rates up to `high`. Afterwards `bound` is an upper bound on the worth."""
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

    def push(self, box: Box) -> None:
        """Add a box to the open ones, unless it is empty or cannot be worth more than enough."""
        if all(low < high * (1 - ROUNDING) or low == 0 for low, high in zip(box.low, box.high, strict=True)):
            _, value = self.worth.best(box.high)
            if value > self.enough:
                heapq.heappush(self.open, (-value, next(self.numbers), box))
            else:
                self.dismiss(value)

    def dismiss(self, value: float) -> None:
        """Raise `bound` for a box that is dropped: to its `value`, but at most to `enough`."""
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
            low = self.worth.tighten(box, least)
            sinking = [0.0]  # targets at which a task's lower end first sinks to its next level
            for job, tasks in self.worth.jobs.items():
                total = sum(box.high[i] for i in tasks)
                raised = [i for i in tasks if low[i] > box.low[i]]
                below = [total - box.high[i] + self.levels.below(i, low[i]) for i in raised]
                sinking += [self.worth.weights[job] * rate for rate in below]
            least = min(max(sinking), least - CUT * hope)

    def process(self, box: Box) -> None:
        """Drop the box if its part above the incumbent is empty, solve it if it is a cell, otherwise split it."""
        wanted = self.enough - self.worth.mu * self.worth.ceiling(box.high)
        low = tuple(max(rate, self.base * (1 - STRICT)) for rate in self.worth.tighten(box, wanted))
        cut = self.cut_at(low, box.high, wanted)
        if cut is None:
            self.solve_cell(Box(low, box.high))
        elif self.is_empty(low, box.high, max(QUICK_S, QUICK * self.patience)):
            self.dismiss(inf)
        else:
            for part in box.split(*cut):
                self.push(part)

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

        Once a class has a node for each member, no flows of it remain to be distributed.
        """
        for z in {self.net.class_of[node] for node in nodes}:
            self.parts[z] = 2 * self.parts.get(z, 1)
        self.router.net = network(self.net.fabric, self.worth.tasks, self.parts, results=self.net.results)

    @property
    def patience(self) -> float:
        """The seconds for one question: half of the remaining time."""
        return (self.deadline - monotonic()) / 2

    def consider(self, routing: Routing) -> None:
        """Make a routing the incumbent if its best rates are worth more."""
        found = with_best_rates(self.net, self.worth, routing)
        if found.value > self.incumbent.value:
            self.incumbent = found

    def solve_cell(self, cell: Box) -> None:
        """Drop the cell if it is empty or if its best corner is feasible; otherwise find its best rates."""
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
    """Whether no rate exceeds its counterpart."""
    return all(less <= more * (1 + ROUNDING) for less, more in zip(rates, others, strict=True))


def with_best_rates(net: ReducedNetwork, worth: Worth, routing: Routing) -> Incumbent:
    """The routing with the best rates that its loads allow."""
    loads = {
        tuple((i, n / net.fabric.capacities_bps[link]) for i, n in sorted(flows.items()))
        for link, flows in routing.loads()
    }
    high = [inf] * len(worth.tasks)
    for load in loads:
        for i, share in load:
            high[i] = min(high[i], 1 / share)
    rates, value = worth.best(tuple(high), [dict(load) for load in loads if len(load) > 1])
    return Incumbent(routing, rates, value)


# -- The plan of all tasks.

PATIENCE = 4
"""The divisor of the remaining time that gives the time for one test of a single task."""


def several(problem: Problem, options: Options) -> Plan:
    """The best plan by Eq. (3), or by (2) for one job: optimal only if proven, otherwise with its gap.

    Raises `InputError` for a worker that cannot reach its PS, `SolverError` if no routes are found in time.
    """
    started = monotonic()
    search = searched(problem.fabric, tasks_of(problem), options.for_solver, started, results=options.with_results)
    found = search.incumbent
    outcome = proven(max(0.0, search.bound / found.value - 1), started, "highs")
    return plan_of(problem, search.net, found.routing, found.rates, outcome, options.window)


def plan_of(
    problem: Problem, net: ReducedNetwork, routing: Routing, rates: Rates, outcome: SolverOutcome, window: int
) -> Plan:
    """The plan of a routing with these rates of its tasks."""
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
    fabric: Fabric, tasks: tuple[Task, ...], options: SolverOptions, started: float, *, results: bool = False
) -> BoxSearch:
    """The finished search for the best rates of all tasks; with `results`, which return at the same rates.

    The best rates of gradients alone are found first. They bound those with results, their routing is a starting point,
    and usually there is another one where results cost nothing.
    """

    def begin(net: ReducedNetwork, routing: Routing, deadline: float) -> BoxSearch:
        worth = Worth(tasks, net.access)
        return BoxSearch(Router(net, options.seed), worth, deadline, options.gap, with_best_rates(net, worth, routing))

    deadline = started + options.time_limit_s
    net = network(fabric, tasks)
    alone = [fastest(net.only([i]), deadline, options.seed) for i in range(len(tasks))]
    high = tuple(1 / least.bound for least in alone)
    together = Routing(tuple(least.solution.pieces[0] for least in alone), tuple({} for _ in alone))
    search = begin(net, together, started + options.time_limit_s / 2 if results else deadline)
    search.run(high)
    if not results:
        return search
    both = network(fabric, tasks, results=True)
    again = begin(both, with_results(both, search.incumbent.routing), deadline)
    again.ceiling = search.bound
    if again.ceiling > again.enough:
        again.ask(search.incumbent.rates, again.patience)
    again.run(high)
    return again


def fastest(net: ReducedNetwork, deadline: float, seed: int) -> Least[Routing]:
    """The routing of a single task with the highest rate, 1 / t, or any routing if time is short."""
    graph, router = net.graphs[0], Router(net, seed)
    b = net.fabric.capacities_bps
    access = min(b[worker, net.fabric.tor_of(worker)] for worker in graph.task.job.workers)
    capacities = {access, *(b[link] for link in graph.links)}

    def fits(t: float) -> Routing | None:
        status, routing = router.route((1 / t,), (deadline - monotonic()) / PATIENCE)
        if routing is None and status != INFEASIBLE:
            raise SolverError("no routes were found in time: raise the time limit, or make the problem smaller")
        return routing

    leaving = (n / sum(b[link] * net.width(link) for link in graph.out_of[z]) for z, n in graph.starting.items())
    lowest = max([1 / access, *leaving])
    highest = len(graph.task.job.workers) / min(capacities)
    try:
        least = least_t(fits, Steps(capacities), lowest, highest)
    except SolverError:  # too hard for the remaining time: any routing
        routing = fits(highest)
        least = Least(routing, highest, lowest) if routing else None
    assert least is not None  # at the highest t, every link carries all flows
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
