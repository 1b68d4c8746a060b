"""Is there a routing for given rates? The paper's constraints (4) to (10) with r fixed, hence linear, and its answer.

Whether rates are feasible is decided much faster than which rates are best, so this is the only question that is
asked of the whole network; `planner.aro.search` chooses the rates to ask about.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor

from planner.aro.deal import Flows, deal
from planner.aro.program import Program
from planner.aro.reduced import Network, Reduced, grouped
from planner.routes import MAX_CHILDREN, Inp
from planner.unfold import DirectedLink, Path
from topo.fabric import Fabric

ROUNDING = 1e-9
STRICT = 1e-7
DEALING_TIME_S = 2.0


@dataclass(frozen=True)
class Ask:
    """Is there a routing in which every task has its rate; or, `above`, any rate higher than that?"""

    rates: tuple[float, ...]
    above: bool = False

    def flows(self, capacity: float, rate: float) -> int:
        """How many flows of `rate`, or of more, fit a link."""
        return ceil(capacity / rate * (1 - ROUNDING)) - 1 if self.above else floor(capacity / rate * (1 + ROUNDING))


@dataclass(frozen=True)
class Columns:
    """The variables of one task: y by link, x by INP."""

    y: dict[DirectedLink, int]
    x: dict[Inp, int]


@dataclass(frozen=True)
class Routing:
    """`pieces[i][start]`: what leaves a start of task i, as paths to the next INP or the PS.

    A start is an INP, with one path, or a common switch with workers, with one for each. The classes of twins in
    `overloaded` could not be dealt out at the rates that were asked for.
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


def route(net: Network, ask: Ask, time_limit_s: float, seed: int = 0) -> tuple[str, Routing | None]:
    """Ask it of the solver: its status, and a routing of the fabric's own links if there is one.

    A routing of the reduced network is dealt out to the twins, as far as that goes.
    """
    program = Program()
    columns = [task_columns(program, net, i, ask) for i in range(len(net.graphs))]
    share_capacity(program, net, columns, ask)
    solution = program.solve(time_limit_s, seed)
    if not solution.found:
        return solution.status, None
    return solution.status, extract(net, columns, solution.values, ask.rates)


def task_columns(program: Program, net: Network, i: int, ask: Ask) -> Columns:
    """Variables and constraints (4) to (9) of a task."""
    graph = net.graphs[i]
    y = {
        link: program.variable(0, own_capacity(net, i, link, ask, net.width(link)), integral=True)
        for link in graph.links
    }
    x = {inp: program.variable(min(1, graph.local[inp]), net.size(inp[0]), integral=True) for inp in graph.entering}
    for inp, entering in graph.entering.items():
        room = MAX_CHILDREN - graph.local[inp]
        program.at_most([(1, y[link]) for link in entering] + [(-room, x[inp])], 0)  # (7)
        for link in entering:
            most = own_capacity(net, i, link, ask, net.width(link) // net.size(inp[0]))
            program.at_most([(1, y[link]), (-most, x[inp])], 0)  # (7), link by link
    for z in graph.aggregating:
        out = [(-1.0, y[link]) for link in graph.out_of[z]]
        program.equal([(1.0, column) for inp, column in x.items() if inp[0] == z] + out, 0)  # (8), (9)
    for z in graph.common:
        out = [(-1.0, y[link]) for link in graph.out_of[z]]
        program.equal([(1.0, y[link]) for link in graph.into.get(z, ())] + out, -graph.starting[z])  # (5), (9)
    return Columns(y, x)


def own_capacity(net: Network, i: int, link: DirectedLink, ask: Ask, width: int) -> int:
    """The most flows of task i that so many such links carry, were it alone."""
    workers = len(net.graphs[i].task.job.workers)
    if ask.rates[i] == 0:
        return workers
    return min(workers, width * ask.flows(net.fabric.capacities_bps[link], ask.rates[i]))


def share_capacity(program: Program, net: Network, columns: Sequence[Columns], ask: Ask) -> None:
    """(10), for every link that several tasks may use."""
    for link, tasks in net.tasks_on.items():
        rates = {i: ask.rates[i] for i in tasks if ask.rates[i] > 0}
        if len(rates) < 2:
            continue
        capacity, width, least = net.fabric.capacities_bps[link], net.width(link), min(rates.values())
        whole = [(float(floor(rate / least * (1 + ROUNDING))), columns[i].y[link]) for i, rate in rates.items()]
        program.at_most(whole, width * ask.flows(capacity, least))  # flows are whole: (10) divided by the least rate
        if max(rates.values()) > least * (1 + ROUNDING):
            room = width * (1 - STRICT if ask.above else 1 + ROUNDING)
            program.at_most([(rate / capacity, columns[i].y[link]) for i, rate in rates.items()], room)


def extract(net: Network, columns: Sequence[Columns], values: Sequence[float], rates: Sequence[float]) -> Routing:
    """The solved y as pieces of paths: the paper's Algorithm 1, up to the next INP."""
    flows = [+Counter({link: round(values[k]) for link, k in column.y.items()}) for column in columns]
    dealt, overloaded = deal(net, flows, rates, DEALING_TIME_S)
    pieces = tuple(cut_up(net.fabric, graph, y) for graph, y in zip(net.graphs, dealt, strict=True))
    return Routing(pieces, overloaded)


def cut_up(fabric: Fabric, graph: Reduced, y: Flows) -> dict[Inp | str, list[Path]]:
    """All flows of a task, by where they start; they use up y."""
    sums = {node for link in y for node in link if node in fabric.switch_by_name and fabric.switch_by_name[node].ina}
    inps = {(v, fabric.ingress_pipeline(v, u)) for u, v in y if v in sums} | set(graph.local)
    starts: list[tuple[Inp | str, int]] = [*((inp, 1) for inp in inps), *graph.starting.items()]
    out_of = grouped(y, 0)

    def walk(path: Path) -> Path:
        last = path[-1]
        if last == graph.task.server or (len(path) > 1 and last in sums):
            return path
        link = next(link for link in out_of[last] if y[link] > 0)
        y[link] -= 1
        return walk((*path, link[1]))

    return {start: [walk((start if isinstance(start, str) else start[0],)) for _ in range(n)] for start, n in starts}
