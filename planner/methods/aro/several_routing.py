"""The feasibility of given rates: whether a routing exists under the paper's constraints (4) to (10), linear at fixed
r.

Feasibility is decided much faster than the best rates are found, so this is the only question about the whole network;
`inakit.planner.methods.aro.several_tasks` chooses the rates.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, cycle, islice, pairwise
from math import floor, inf
from time import monotonic

from inakit.planner.core.plan import INFEASIBLE
from inakit.planner.core.slots import Inp, most_children
from inakit.planner.methods.aro.bisection import ROUNDING
from inakit.planner.methods.aro.rate_objective import Rates
from inakit.planner.methods.aro.reduced_network import ONE, ReducedGraph, ReducedNetwork, result_columns, result_parents
from inakit.planner.methods.aro.task_graphs import grouped
from inakit.planner.solvers import LinearProgram, Solution
from inakit.planner.trees.from_paths import sums_of
from inakit.topo.fabric.fabric import DirectedLink, Fabric, Path

# -- Distributes the flows of a class of common switches over its members, so that no link is overloaded.
#
# The class as a whole carries them. But flows are integral and have different rates, so a distribution may not exist.
# Then they are distributed in turn, some member is overloaded, the rates that the routing allows are lower, and the
# class is reported.

LinkFlows = Counter[DirectedLink]
"""A task's y: the flows on every link that has some."""


@dataclass(frozen=True)
class Hand:
    """The flows of a class for one task: `into[u]` come from node u, and `out[v]` go to node v."""

    task: int
    into: Counter[str]
    out: Counter[str]


def deal(
    net: ReducedNetwork, flows: Sequence[LinkFlows], rates: Sequence[float], time_limit_s: float
) -> tuple[list[LinkFlows], tuple[str, ...]]:
    """The flows with every class replaced by its members, and the classes with an overloaded member.

    Switches that sum have no twins here.
    """
    dealt = list(flows)
    overloaded: list[str] = []
    for z, members in net.twins.items():
        hands = []
        for i, y in enumerate(dealt):
            into = Counter({u: n for (u, v), n in y.items() if v == z})
            if into:
                hands.append(Hand(i, into, Counter({v: n for (u, v), n in y.items() if u == z})))
        if len(members) > 1 and hands:
            dealer = Dealer(net, members, hands, rates)
            shares = dealer.share(time_limit_s)
            if not dealer.fits(shares):
                overloaded.append(z)
            for hand, share in zip(hands, shares, strict=True):
                kept = {link: n for link, n in dealt[hand.task].items() if z not in link}
                dealt[hand.task] = Counter(kept) + share
    return dealt, tuple(overloaded)


@dataclass(frozen=True)
class Dealer:
    """The members of one class, and the flows to distribute over them."""

    net: ReducedNetwork
    members: Sequence[str]
    hands: Sequence[Hand]
    rates: Sequence[float]

    def share(self, time_limit_s: float) -> list[LinkFlows]:
        """For each hand, the flows on the members' links: in turn, or by a program if that overloads a link."""
        shares = [self.by_turns(hand) for hand in self.hands]
        return shares if self.fits(shares) else self.solved(time_limit_s) or shares

    def capacity(self, link: DirectedLink) -> float:
        """The capacity in bit/s of a link with a member at one end and possibly another class at the other."""
        return self.net.fabric.capacities_bps[self.net.members(link[0])[0], self.net.members(link[1])[0]]

    def by_turns(self, hand: Hand) -> LinkFlows:
        """One task's flows, those of each sender to successive members. For one task no distribution is more even."""
        share: LinkFlows = Counter()
        turn = islice(cycle(self.members), hand.task, None)
        for u in sorted(hand.into):
            for _ in range(hand.into[u]):
                share[u, next(turn)] += 1
        leaving = iter([v for v in sorted(hand.out) for _ in range(hand.out[v])])
        for m in self.members:
            for _ in range(sum(share[u, m] for u in hand.into)):
                share[m, next(leaving)] += 1
        return share

    def fits(self, shares: Sequence[LinkFlows]) -> bool:
        loads: dict[DirectedLink, float] = defaultdict(float)
        for hand, share in zip(self.hands, shares, strict=True):
            for link, n in share.items():
                loads[link] += n * self.rates[hand.task]
        return all(load <= self.capacity(link) * (1 + ROUNDING) for link, load in loads.items())

    def solved(self, time_limit_s: float) -> list[LinkFlows] | None:
        """The flows on the members' links by a program; None if it finds none in the given time."""
        program = LinearProgram()
        columns = []
        for hand in self.hands:
            links = [(u, m) for u in hand.into for m in self.members] + [(m, v) for v in hand.out for m in self.members]
            flows, rate = hand.into.total(), self.rates[hand.task]
            most = {link: min(flows, whole(self.capacity(link), rate)) if rate else flows for link in links}
            y = {link: program.variable(0, most[link], integral=True) for link in links}
            for u, n in hand.into.items():
                program.equal([(1, y[u, m]) for m in self.members], n)
            for v, n in hand.out.items():
                program.at_most([(1, y[m, v]) for m in self.members], n)
            for m in self.members:
                program.equal([*((1, y[u, m]) for u in hand.into), *((-1, y[m, v]) for v in hand.out)], 0)
            columns.append(y)
        for link in dict.fromkeys(link for column in columns for link in column):
            on_link = [
                (self.rates[hand.task], column[link])
                for hand, column in zip(self.hands, columns, strict=True)
                if link in column
            ]
            fit(program, on_link, self.capacity(link))
        solution = program.solve(time_limit_s)
        if not solution.found:
            return None
        return [+Counter({link: round(solution.values[k]) for link, k in column.items()}) for column in columns]


def fit(program: LinearProgram, terms: Iterable[tuple[float, int]], capacity: float) -> None:
    """Add the row by which flows of these rates fit a link.

    Flows are integral, so a second row can be divided by the least rate and rounded down.
    """
    terms = [term for term in terms if term[0] > 0]
    if len(terms) > 1:
        least = min(rate for rate, _ in terms)
        program.at_most([(float(whole(rate, least)), k) for rate, k in terms], whole(capacity, least))
        program.at_most([(rate / capacity, k) for rate, k in terms], 1 + ROUNDING)


# -- The question, and its answer.

WHOLE = 1e-6
"""The distance to a whole number below which a count of flows is whole."""
DEALING_TIME_S = 2.0
"""The maximum seconds for the distribution of flows over twins."""


@dataclass(frozen=True)
class Columns:
    """The variables of one task: y by link; x by INP, the number of its sums; z by link, the copies of results."""

    y: dict[DirectedLink, int]
    x: dict[Inp, int]
    z: dict[DirectedLink, int] = field(default_factory=dict)

    @cached_property
    def flows(self) -> dict[DirectedLink, int]:
        return self.y | self.z


@dataclass(frozen=True)
class Routing:
    """`pieces[i][start]`: the flows that leave a start of task i, as paths to the next INP or the PS.

    A start is an INP, with a path for each of its sums, or a common switch with workers, with a path for each worker.
    `results[i][node]` is the node that sends it the results of task i; it is empty where results are not routed. The
    classes of twins in `overloaded` could not be distributed at the requested rates.
    """

    pieces: tuple[dict[Inp | str, list[Path]], ...]
    results: tuple[dict[str, str], ...]
    overloaded: tuple[str, ...] = ()

    def only(self, i: int) -> Routing:
        return Routing((self.pieces[i],), (self.results[i],))

    def with_task(self, i: int, alone: Routing) -> Routing:
        (pieces,), (results,) = alone.pieces, alone.results
        return Routing(
            (*self.pieces[:i], pieces, *self.pieces[i + 1 :]), (*self.results[:i], results, *self.results[i + 1 :])
        )

    def loads(self) -> Iterator[tuple[DirectedLink, Counter[int]]]:
        """Every link's flows of gradients and results, by task."""
        found: dict[DirectedLink, Counter[int]] = defaultdict(Counter)
        for i, pieces in enumerate(self.pieces):
            for paths in pieces.values():
                for path in paths:
                    for link in pairwise(path):
                        found[link][i] += 1
        for i, above in enumerate(self.results):
            for node, sender in above.items():
                found[sender, node][i] += 1
        return iter(found.items())


@dataclass(frozen=True)
class Conflict:
    """Rates that certain tasks cannot all have while each uses only these INPs of certain switches."""

    rates: dict[int, float]
    used: dict[int, frozenset[Inp]]

    def holds(self, rates: Rates) -> bool:
        return all(rates[i] >= rate for i, rate in self.rates.items())


@dataclass
class Router:
    """Tests whether a routing for given rates exists, and remembers conflicts."""

    net: ReducedNetwork
    seed: int = 0
    conflicts: list[Conflict] = field(default_factory=list)

    def route(self, rates: Rates, time_limit_s: float) -> tuple[str, Routing | None]:
        """The answer's status, and a routing over the fabric's own links if one exists.

        The outline comes first, with y continuous, and x too where a node represents several switches. If the outline
        is infeasible, the whole is. Otherwise it selects INPs of switches without twins, and the same question is asked
        in detail with only these INPs. If that is infeasible, the outline has to use another INP.
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
            # This objective only guides the solver: the more INPs are used, the more flows they receive.
            detail.program.maximise((1, k) for column in detail.columns for k in column.x.values())
            solution = detail.solve(deadline, self.seed)
            if solution.status != INFEASIBLE:
                return self.complete(detail, solution, rates, deadline)
            self.conflicts.append(self.conflict(rates, used, deadline))
            outline.avoid(self.conflicts[-1])

    def conflict(self, rates: Rates, used: Mapping[int, frozenset[Inp]], deadline: float) -> Conflict:
        """A conflict with as few tasks as possible: each task is removed tentatively."""
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
        """The routing with integral y: as solved, or with the same INPs in use, or else with any INPs."""
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
    """The model at fixed rates. y is continuous at first, and so is x where a node represents several switches."""

    net: ReducedNetwork
    columns: list[Columns]
    program: LinearProgram

    @classmethod
    def of(cls, net: ReducedNetwork, rates: Rates) -> Question:
        """Build the model of these rates on this network: constraints (4) to (10), without an objective."""
        program = LinearProgram()
        columns = [task_columns(program, net, i, rates[i]) for i in range(len(net.graphs))]
        share_capacity(program, net, columns, rates)
        return cls(net, columns, program)

    def used(self, solution: Solution) -> dict[int, frozenset[Inp]]:
        """For each task, the INPs in use of the switches without twins."""
        return {
            i: frozenset(
                inp for inp, k in column.x.items() if self.net.size(inp[0]) == 1 and solution.values[k] > WHOLE
            )
            for i, column in enumerate(self.columns)
        }

    def use_only(self, used: Mapping[int, frozenset[Inp]]) -> None:
        """Forbid these tasks all other INPs of the same switches."""
        for k in self.others(used):
            self.program.fix(k, 0)

    def avoid(self, conflict: Conflict) -> None:
        """Require that one of the other INPs of the conflict's switches is used."""
        self.program.at_least([(1, k) for k in self.others(conflict.used)], 1)

    def others(self, used: Mapping[int, frozenset[Inp]]) -> list[int]:
        """The columns x of all other INPs of these INPs' switches, of the same tasks."""
        switches = {inp[0] for inps in used.values() for inp in inps}
        return [
            k
            for i, inps in used.items()
            for inp, k in self.columns[i].x.items()
            if inp[0] in switches and inp not in inps
        ]

    def is_whole(self, solution: Solution) -> bool:
        counts = (solution.values[k] for column in self.columns for k in column.flows.values())
        return all(abs(count - round(count)) < WHOLE for count in counts)

    def make_whole(self) -> None:
        for column in self.columns:
            for k in (*column.flows.values(), *column.x.values()):
                self.program.integral[k] = True

    def solve(self, deadline: float, seed: int) -> Solution:
        """The first solution that the solver finds before the deadline, with any gap."""
        return self.program.solve(deadline - monotonic(), seed, gap=inf)


def task_columns(program: LinearProgram, net: ReducedNetwork, i: int, rate: float) -> Columns:
    """Add the variables and the constraints (4) to (9) of task i to the program."""
    graph = net.graphs[i]
    y = {link: program.variable(0, most_flows(net, graph, link, rate)) for link in graph.links}
    x: dict[Inp, int] = {}
    for inp, entering in graph.entering.items():
        local, size = graph.local[inp], net.size(inp[0])
        arriving = local + sum(most_flows(net, graph, link, rate, into=inp[0]) for link in entering)
        children = most_children(net.fabric, inp[0])
        x[inp] = program.variable(sums_of(local, children), size * sums_of(arriving, children), integral=size == 1)
        if arriving > children:
            program.at_most([*((1.0, y[link]) for link in entering), (-children, x[inp])], -local)  # (7)
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
    if not net.results:
        return Columns(y, x)
    capacities = net.fabric.capacities_bps
    copies = {(v, u): net.width((v, u)) * (rate == 0 or whole(capacities[v, u], rate) > 0) for u, v in y}
    return Columns(y, x, result_columns(program, net, graph, y, copies))


def most_flows(
    net: ReducedNetwork, graph: ReducedGraph, link: DirectedLink, rate: float, into: str | None = None
) -> int:
    """The maximum number of flows of one task alone on a link; with `into`, on the part that leads to one switch.

    `into` names the class that contains this switch.
    """
    most = graph.most_flows[link[0]]
    if rate == 0:
        return most
    width = net.width(link) // (1 if into is None else net.size(into))
    return min(most, width * whole(net.fabric.capacities_bps[link], rate))


def whole(capacity: float, rate: float) -> int:
    """The number of flows of a rate that fit a capacity."""
    return floor(capacity / rate * (1 + ROUNDING))


def share_capacity(program: LinearProgram, net: ReducedNetwork, columns: Sequence[Columns], rates: Rates) -> None:
    """Add (10) for every link that several tasks can use.

    Flows are integral, so the row can also be divided by a rate and rounded down.
    """
    for link, tasks in net.tasks_on.items():
        counts = [(rates[i], columns[i].flows[link]) for i in tasks if rates[i] > 0]
        if len(counts) < 2:
            continue
        capacity, width, least = net.fabric.capacities_bps[link], net.width(link), min(counts)[0]
        equal = max(counts)[0] <= least * (1 + ROUNDING)
        for part in (least,) if equal else (least, least / 2):
            program.at_most([(whole(rate, part), y) for rate, y in counts], width * whole(capacity, part))
        if not equal:
            program.at_most([(rate / capacity, y) for rate, y in counts], width * (1 + ROUNDING))


def extract(
    net: ReducedNetwork, columns: Sequence[Columns], values: Sequence[float], rates: Sequence[float]
) -> Routing:
    """The solved y as pieces of paths: the paper's Algorithm 1, up to the next INP."""
    flows = [+Counter({link: round(values[k]) for link, k in column.y.items()}) for column in columns]
    dealt, overloaded = deal(net, flows, rates, DEALING_TIME_S)
    pieces = tuple(cut_up(net.fabric, graph, y) for graph, y in zip(net.graphs, dealt, strict=True))
    if not net.results:
        return Routing(pieces, tuple({} for _ in pieces), overloaded)
    copies = [{link for link, k in column.z.items() if values[k] > ONE} for column in columns]
    return with_results(net, Routing(pieces, (), overloaded), copies)


def with_results(
    net: ReducedNetwork, routing: Routing, copies: Sequence[Collection[DirectedLink]] | None = None
) -> Routing:
    """The routing with results, which return over each task's `copies`, or on the first available way."""
    ways = (
        result_parents(net.fabric, graph, chain(*own.values()), known)
        for graph, own, known in zip(net.graphs, routing.pieces, copies or [()] * len(net.graphs), strict=True)
    )
    return replace(routing, results=tuple(ways))


def cut_up(fabric: Fabric, graph: ReducedGraph, y: LinkFlows) -> dict[Inp | str, list[Path]]:
    """Decompose all flows of a task into paths, by their starts. This consumes y."""
    sums = {node for link in y for node in link if node in fabric.switch_by_name and fabric.switch_by_name[node].ina}
    arriving = graph.local.copy()
    for (u, v), n in y.items():
        if v in sums:
            arriving[v, fabric.ingress_pipeline(v, u)] += n
    sums_made = ((inp, sums_of(n, most_children(fabric, inp[0]))) for inp, n in arriving.items())
    starts: list[tuple[Inp | str, int]] = [*sums_made, *graph.starting.items()]
    out_of = grouped(y, 0)

    def walk(path: Path) -> Path:
        last = path[-1]
        if last == graph.task.server or (len(path) > 1 and last in sums):
            return path
        link = next(link for link in out_of[last] if y[link] > 0)
        y[link] -= 1
        return walk((*path, link[1]))

    return {start: [walk((start if isinstance(start, str) else start[0],)) for _ in range(n)] for start, n in starts}
