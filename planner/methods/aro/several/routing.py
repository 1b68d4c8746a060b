"""Is there a routing for given rates? The paper's constraints (4) to (10) with r fixed, hence linear, and its answer.

Whether rates are feasible is decided much faster than which rates are best, so this is the only question that is
asked of the whole network; `planner.methods.aro.single.search` chooses the rates to ask about.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import floor, inf
from time import monotonic

from planner.methods.aro.several.deal import Flows, deal
from planner.methods.aro.several.rates import Rates
from planner.methods.aro.several.reduced import Network, Reduced, grouped
from planner.solvers.columns import INFEASIBLE, Program, Solution
from planner.trees.from_paths import MAX_CHILDREN, Inp, sums_of
from planner.trees.unfolding import DirectedLink, Path
from topo.fabric.fabric import Fabric

ROUNDING = 1e-9
WHOLE = 1e-6
DEALING_TIME_S = 2.0


@dataclass(frozen=True)
class Columns:
    """The variables of one task: y by link; x by INP, the number of sums that leave it."""

    y: dict[DirectedLink, int]
    x: dict[Inp, int]


@dataclass(frozen=True)
class Routing:
    """`pieces[i][start]`: what leaves a start of task i, as paths to the next INP or the PS.

    A start is an INP, with a path for each of its sums, or a common switch with workers, with one for each. The classes
    of twins in `overloaded` could not be dealt out at the rates that were asked for.
    """

    pieces: tuple[dict[Inp | str, list[Path]], ...]
    overloaded: tuple[str, ...] = ()

    def loads(self) -> Iterator[tuple[DirectedLink, Counter[int]]]:
        """Every link's flows, by task."""
        found: dict[DirectedLink, Counter[int]] = defaultdict(Counter)
        for i, pieces in enumerate(self.pieces):
            for paths in pieces.values():
                for path in paths:
                    for link in pairwise(path):
                        found[link][i] += 1
        return iter(found.items())


@dataclass(frozen=True)
class Conflict:
    """Tasks with rates that they cannot all have where each uses no other than these INPs of some switches."""

    rates: dict[int, float]
    used: dict[int, frozenset[Inp]]

    def holds(self, rates: Rates) -> bool:
        return all(rates[i] >= rate for i, rate in self.rates.items())


@dataclass
class Router:
    """Asks whether there is a routing for given rates, and remembers conflicts."""

    net: Network
    seed: int = 0
    conflicts: list[Conflict] = field(default_factory=list)

    def route(self, rates: Rates, time_limit_s: float) -> tuple[str, Routing | None]:
        """The answer's status, and a routing of the fabric's own links if there is one.

        First in outline, with y continuous, and x where a node stands for several switches: where that is infeasible,
        all is. Else it says which INPs to use of switches without twins. With no others the same is asked in detail,
        and if that is infeasible, the outline has to use another one.
        """
        deadline = monotonic() + time_limit_s
        outline = Question.of(self.net, rates)
        if self.net.fine is self.net:
            outline.make_whole()
        for conflict in self.conflicts:
            if conflict.holds(rates):
                outline.avoid(conflict)
        while True:
            solution = outline.solve(deadline, self.seed)
            if not solution.found:
                return solution.status, None
            if self.net.fine is self.net:
                return self.complete(outline, solution, rates, deadline)
            detail = Question.of(self.net.fine, rates)
            used = outline.used(solution)
            detail.use_only(used)
            detail.use_many_inps()
            solution = detail.solve(deadline, self.seed)
            if solution.status != INFEASIBLE:
                return self.complete(detail, solution, rates, deadline)
            self.conflicts.append(self.conflict(rates, used, deadline))
            outline.avoid(self.conflicts[-1])

    def conflict(self, rates: Rates, used: Mapping[int, frozenset[Inp]], deadline: float) -> Conflict:
        """Of as few tasks as possible: each is left out for a try."""
        tasks = list(used)
        for i in sorted(used, key=lambda i: rates[i]):
            others = [k for k in tasks if k != i]
            question = Question.of(self.net.fine.only(others), tuple(rates[k] for k in others))
            question.use_only({n: used[k] for n, k in enumerate(others)})
            if others and question.solve(deadline, self.seed).status == INFEASIBLE:
                tasks = others
        return Conflict({i: rates[i] for i in tasks}, {i: used[i] for i in tasks})

    def complete(
        self, question: Question, solution: Solution, rates: Rates, deadline: float
    ) -> tuple[str, Routing | None]:
        """With y whole: as it is, or with the same INPs in use, or else with any."""
        if solution.found and not question.is_whole(solution):
            question.use_only(question.used(solution))
            question.make_whole()
            solution = question.solve(deadline, self.seed)
            if not solution.found:
                question = Question.of(question.net, rates)
                question.make_whole()
                solution = question.solve(deadline, self.seed)
        if not solution.found:
            return solution.status, None
        return solution.status, extract(question.net, question.columns, solution.values, rates)


@dataclass(frozen=True)
class Question:
    """The model at fixed rates. y is continuous at first, and x is where a node stands for several switches."""

    net: Network
    columns: list[Columns]
    program: Program

    @classmethod
    def of(cls, net: Network, rates: Rates) -> Question:
        program = Program()
        columns = [task_columns(program, net, i, rates[i]) for i in range(len(net.graphs))]
        share_capacity(program, net, columns, rates)
        return cls(net, columns, program)

    def used(self, solution: Solution) -> dict[int, frozenset[Inp]]:
        """The INPs in use of the switches without twins, task by task."""
        return {
            i: frozenset(
                inp for inp, k in column.x.items() if self.net.size(inp[0]) == 1 and solution.values[k] > WHOLE
            )
            for i, column in enumerate(self.columns)
        }

    def use_only(self, used: Mapping[int, frozenset[Inp]]) -> None:
        for k in self.others(used):
            self.program.fix(k, 0)

    def avoid(self, conflict: Conflict) -> None:
        self.program.at_least([(1, k) for k in self.others(conflict.used)], 1)

    def others(self, used: Mapping[int, frozenset[Inp]]) -> list[int]:
        """x of all other INPs of the switches that these are of, of the same tasks."""
        switches = {inp[0] for inps in used.values() for inp in inps}
        return [
            k
            for i, inps in used.items()
            for inp, k in self.columns[i].x.items()
            if inp[0] in switches and inp not in inps
        ]

    def use_many_inps(self) -> None:
        """An objective that only helps to find flows: the more INPs are used, the more flows they take in."""
        self.program.maximise((1, k) for column in self.columns for k in column.x.values())

    def is_whole(self, solution: Solution) -> bool:
        counts = (solution.values[k] for column in self.columns for k in column.y.values())
        return all(abs(count - round(count)) < WHOLE for count in counts)

    def make_whole(self) -> None:
        for column in self.columns:
            for k in (*column.y.values(), *column.x.values()):
                self.program.integral[k] = True

    def solve(self, deadline: float, seed: int) -> Solution:
        return self.program.solve(deadline - monotonic(), seed, gap=inf)


def task_columns(program: Program, net: Network, i: int, rate: float) -> Columns:
    """Variables and constraints (4) to (9) of a task."""
    graph = net.graphs[i]
    y = {link: program.variable(0, most_flows(net, graph, link, rate)) for link in graph.links}
    x: dict[Inp, int] = {}
    for inp, entering in graph.entering.items():
        local, size = graph.local[inp], net.size(inp[0])
        arriving = local + sum(most_flows(net, graph, link, rate, into=inp[0]) for link in entering)
        x[inp] = program.variable(sums_of(local), size * sums_of(arriving), integral=size == 1)
        if arriving > MAX_CHILDREN:
            program.at_most([*((1.0, y[link]) for link in entering), (-MAX_CHILDREN, x[inp])], -local)  # (7)
        for link in entering:
            most = program.upper[y[link]]
            if net.size(inp[0]) > 1:
                most = most_flows(net, graph, link, rate, into=inp[0])
            program.at_most([(1, y[link]), (-most, x[inp])], 0)  # (7), link by link
    for z in graph.aggregating:
        out = [(-1.0, y[link]) for link in graph.out_of[z]]
        program.equal([(1.0, column) for inp, column in x.items() if inp[0] == z] + out, 0)  # (8), (9)
    for z in graph.common:
        out = [(-1.0, y[link]) for link in graph.out_of[z]]
        program.equal([(1.0, y[link]) for link in graph.into.get(z, ())] + out, -graph.starting[z])  # (5), (9)
    return Columns(y, x)


def most_flows(net: Network, graph: Reduced, link: DirectedLink, rate: float, into: str | None = None) -> int:
    """The most flows of a task on a link, were it alone; or on the links of it to one of the switches `into`."""
    begun = graph.begun[link[0]]
    if rate == 0:
        return begun
    width = net.width(link) // (1 if into is None else net.size(into))
    return min(begun, width * whole(net.fabric.capacities_bps[link], rate))


def whole(capacity: float, rate: float) -> int:
    """How many flows of a rate fit."""
    return floor(capacity / rate * (1 + ROUNDING))


def share_capacity(program: Program, net: Network, columns: Sequence[Columns], rates: Rates) -> None:
    """(10), for every link that several tasks may use. Flows are whole: it may be divided by a rate, and rounded."""
    for link, tasks in net.tasks_on.items():
        counts = [(rates[i], columns[i].y[link]) for i in tasks if rates[i] > 0]
        if len(counts) < 2:
            continue
        capacity, width, least = net.fabric.capacities_bps[link], net.width(link), min(counts)[0]
        equal = max(counts)[0] <= least * (1 + ROUNDING)
        for part in (least,) if equal else (least, least / 2):
            program.at_most([(whole(rate, part), y) for rate, y in counts], width * whole(capacity, part))
        if not equal:
            program.at_most([(rate / capacity, y) for rate, y in counts], width * (1 + ROUNDING))


def extract(net: Network, columns: Sequence[Columns], values: Sequence[float], rates: Sequence[float]) -> Routing:
    """The solved y as pieces of paths: the paper's Algorithm 1, up to the next INP."""
    flows = [+Counter({link: round(values[k]) for link, k in column.y.items()}) for column in columns]
    dealt, overloaded = deal(net, flows, rates, DEALING_TIME_S)
    pieces = tuple(cut_up(net.fabric, graph, y) for graph, y in zip(net.graphs, dealt, strict=True))
    return Routing(pieces, overloaded)


def cut_up(fabric: Fabric, graph: Reduced, y: Flows) -> dict[Inp | str, list[Path]]:
    """All flows of a task, by where they start; they use up y."""
    sums = {node for link in y for node in link if node in fabric.switch_by_name and fabric.switch_by_name[node].ina}
    arriving = graph.local.copy()
    for (u, v), n in y.items():
        if v in sums:
            arriving[v, fabric.ingress_pipeline(v, u)] += n
    starts: list[tuple[Inp | str, int]] = [*((inp, sums_of(n)) for inp, n in arriving.items()), *graph.starting.items()]
    out_of = grouped(y, 0)

    def walk(path: Path) -> Path:
        last = path[-1]
        if last == graph.task.server or (len(path) > 1 and last in sums):
            return path
        link = next(link for link in out_of[last] if y[link] > 0)
        y[link] -= 1
        return walk((*path, link[1]))

    return {start: [walk((start if isinstance(start, str) else start[0],)) for _ in range(n)] for start, n in starts}
