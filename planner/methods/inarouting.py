"""INARouting's planners: `inarouting-opt`, its integer program, and `inarouting`, rounded from the relaxation.

Nie et al., INARouting: Efficient Multi-Job Routing Optimization for Hierarchical In-Network Aggregation; its models are
those of the public code. A job with several parameter servers (PSs) is several tasks here. The rates of a plan are
max-min fair, as the paper's evaluation has them, per weight of their job, which routes ignore. A job's gradient is
split in proportion to its tasks' rates.

The published model has switches with one pipeline; here each pipeline sums only what arrives in it, up to the bits of a
slot. The model counts the load of a switch by the rate of its sums, which is never more than the input of aggregators,
which the kit counts. Rates and gaps of plans follow from the trees by the kit's counts: a plan is optimal only if they
give it the best total of the model.
"""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import inf
from typing import Any, NamedTuple

import numpy as np
import pulp
from numpy.typing import NDArray

from inakit.planner.core import fair_rates
from inakit.planner.core.loads import aggregated_flows, flow_counts, summed_flows
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan, SolverOptions, SolverOutcome
from inakit.planner.core.problem import Problem
from inakit.planner.core.slots import Resource, most_children, resource_bps
from inakit.planner.solvers import proven, solve
from inakit.planner.trees.from_paths import plan_from_paths, sums_of, tree_from_paths
from inakit.planner.trees.summed_once import SplitTask, split_equally
from inakit.topo.fabric.fabric import DirectedLink, Fabric, Path

# -- Routes of tasks as next hops, their use of links and switches, and the rates that fair shares give them.
#
# A task (a job with one of its parameter servers, PSs) has one next hop at every switch, so its routes form a tree, and
# every INA switch where two of its flows meet in a pipeline sums them: INARouting's hierarchical aggregation. `usage`
# counts flows on links, and the sums of a switch.

NextHops = dict[str, str]
"""The next hop of each switch that a task passes."""
Flows = dict[str, dict[int, int]]
"""By switch, the number of flows that arrive in each of its pipelines."""
Usage = Mapping[Resource, float]


@dataclass(frozen=True)
class SharedFabric:
    """A fabric and the tasks that share it."""

    fabric: Fabric
    tasks: tuple[SplitTask, ...]

    @cached_property
    def capacities_bps(self) -> dict[Resource, float]:
        """The capacity of every directed link, and the summing rate of every switch and pipeline, or infinite."""
        links: list[Resource] = [*self.fabric.capacities_bps]
        inps = [(s.name, pipeline) for s in self.fabric.switches for pipeline in range(len(s.pipelines))]
        switches = [switch.name for switch in self.fabric.switches]
        return {resource: resource_bps(self.fabric, resource) for resource in (*switches, *links, *inps)}

    @cached_property
    def pipelines(self) -> dict[DirectedLink, int]:
        """The pipeline in which packets of each link to a switch arrive."""
        switches, links = self.fabric.switch_by_name, self.fabric.capacities_bps
        return {(tail, head): self.fabric.ingress_pipeline(head, tail) for tail, head in links if head in switches}

    @cached_property
    def children(self) -> dict[str, int]:
        """The number of flows that one aggregator of each switch sums; 1 if it cannot sum."""
        ina = self.fabric.ina_names
        return {s.name: most_children(self.fabric, s.name) if s.name in ina else 1 for s in self.fabric.switches}

    def entering(self, task: SplitTask) -> Flows:
        """The workers behind each pipeline of the task's ToRs."""
        found: Flows = {}
        for worker in task.job.workers:
            self.send(found, 1, worker, self.fabric.tor_of(worker))
        return found

    def send(self, flows: Flows, count: int, node: str, peer: str) -> None:
        """Add flows from a node to those that a switch gets; for a PS they are not counted."""
        pipeline = self.pipelines.get((node, peer))
        if pipeline is not None:
            own = flows.setdefault(peer, {})
            own[pipeline] = own.get(pipeline, 0) + count

    def leaving(self, node: str, arrived: Mapping[int, int]) -> tuple[int, int]:
        """The flows that leave a switch, and the sums among them, if it gets so many flows by pipeline."""
        children = self.children[node]
        leaving = sums = 0
        for flows in arrived.values():
            leaving += sums_of(flows, children)
            sums += sums_of(flows - 1, children)  # a flow that is left over is forwarded
        return leaving, sums if children > 1 else 0


def shared_fabric(problem: Problem) -> SharedFabric:
    """The problem's fabric and tasks. Raises `InputError` for a worker that cannot reach a PS."""
    return SharedFabric(problem.fabric, tuple(split_equally(problem)))


def path_from(task: SplitTask, hops: NextHops, node: str) -> Path:
    path = [node]
    while path[-1] != task.server:
        path.append(hops[path[-1]])
    return tuple(path)


def worker_paths(network: SharedFabric, task: SplitTask, hops: NextHops) -> list[Path]:
    return [(worker, *path_from(task, hops, network.fabric.tor_of(worker))) for worker in task.job.workers]


def usage(network: SharedFabric, task: SplitTask, hops: NextHops) -> Counter[Resource]:
    """The usage of a task: its flows on every link, and the sums of every switch."""
    flows = network.entering(task)
    found: Counter[Resource] = Counter({(worker, network.fabric.tor_of(worker)): 1 for worker in task.job.workers})
    for node in farthest_first(task, hops, flows):
        found[node, hops[node]], sums = network.leaving(node, flows[node])
        if sums:
            found[node] = sums
        network.send(flows, found[node, hops[node]], node, hops[node])
    return found


def farthest_first(task: SplitTask, hops: NextHops, tors: Iterable[str]) -> list[str]:
    """The switches that the task passes, each before its next hop."""
    passed: set[str] = set()
    for tor in tors:
        node = tor
        while node != task.server and node not in passed:
            passed.add(node)
            node = hops[node]
    return sorted(passed, key=lambda node: -task.unfolded.rank[node])


def equal_shares(usages: Sequence[Usage], capacities: Mapping[Resource, float]) -> list[float]:
    """Each task's rate in bit/s if all flows on a resource have equal shares: INARouting's lambda of given routes."""
    total = totals(usages)
    return [min(capacities[r] / total[r] for r in used) for used in usages]


def totals(usages: Iterable[Usage]) -> Counter[Resource]:
    found: Counter[Resource] = Counter()
    for used in usages:
        found.update(used)
    return found


def water_filled(
    usages: Sequence[Usage], capacities: Mapping[Resource, float], weights: Sequence[float] = ()
) -> list[float]:
    """The max-min fair rates in bit/s: capacity that a task leaves goes to others (INARouting's water-filling).

    With `weights`, one for each task, rates per weight are max-min fair.
    """
    places = {resource: place for place, resource in enumerate(capacities)}
    own = weights or [1.0] * len(usages)
    scaled = ({resource: w * n for resource, n in used.items()} for used, w in zip(usages, own, strict=True))
    members = [fair_rates.Usage.of(used, places) for used in scaled]
    rates: list[float] = fair_rates.max_min_rates(members, np.array(list(capacities.values()))).tolist()
    return [w * rate for w, rate in zip(own, rates, strict=True)]


# -- An upper bound on all routes, by counting the flows whose place does not depend on the routes.
#
# A task enters the switches of its racks, is summed there if several of its workers are, and ends at its parameter
# server (PS). A switch with one next hop sends all flows there. The fair shares of these flows alone bound the rate of
# each task, and their sum the total. It takes milliseconds where the integer program's proof takes seconds to minutes.


def total_bound_bps(network: SharedFabric) -> float:
    """An upper bound in bit/s on the total fair rate of the tasks, for any routes."""
    usages = [certain_usage(network, task) for task in network.tasks]
    return sum(equal_shares(usages, network.capacities_bps))


def certain_usage(network: SharedFabric, task: SplitTask) -> Usage:
    """The minimum usage of each resource by a task, counted like `usage`, over all choices of routes."""
    found: Counter[Resource] = Counter({(worker, network.fabric.tor_of(worker)): 1 for worker in task.job.workers})
    flows, last = network.entering(task), network.fabric.tor_of(task.server)
    own, racks = sum(flows.get(last, {}).values()), len(flows)
    one_way = network.children[last] == 1 or len(network.fabric.switch_by_name[last].pipelines) == 1
    switches = network.children.keys() & task.unfolded.next_hops
    for node in sorted(switches, key=lambda node: -task.unfolded.rank[node]):
        arrived = flows.setdefault(node, {})
        if node == last and sum(arrived.values()) == own and racks > bool(own) and (one_way or not own):
            arrived[0] = own + 1  # from the other racks, by an unknown link
        leaving, found[node] = network.leaving(node, arrived)
        if len(hops := task.unfolded.next_hops[node]) == 1:
            found[node, hops[0]] += leaving
            network.send(flows, leaving, node, hops[0])
    return +found


# -- INARouting's mixed-integer program, with the names of its published code, and its linear relaxation.
#
# For task j: x[j, l] = 1 if it uses link l, y[j, v] = 1 if it passes switch v, a[j, v] = 1 if switch v sums it,
# lambda[j] is its rate. Rates are in units of the largest capacity. `in flow` is the number of flows that enter v.
#
#     maximise sum of lambda[j]
#     out flow        sum of x[j, l] over links l out of v = y[j, v]
#     in flow         x[j, l] <= y[j, v] for links l into v; y[j, v] <= in flow of v
#     aggregation     2 a[j, v] <= in flow of v <= 1 + M a[j, v]
#     fair shares     lambda[j] n[r] <= C[r] where j uses r; n[r] = number of flows on link r, of tasks that r sums
#
# The published code gives the products of the last line to Gurobi. Here a count n[r] of at most N is written in
# binaries u[r, 1] >= u[r, 2] >= ... that sum to n[r], and 1 / n = 1 - sum of u[r, i] / (i (i - 1)) over i >= 2 is
# linear in them. In the relaxation that sum is its chord (n - 1) / N. Two kinds of switches, which INARouting does not
# have, send several flows, which variables f[j, l] count: one that cannot sum sends as many as enter; one with several
# pipelines, or with more flows than a slot has bits (K), sends s[j, v, p] flows of pipeline p, whose number of sums is
# a[j, v, p]:
#
#     sums            (in flow of v, p) / K <= s[j, v, p] <= (in flow of v, p + K - 1) / K
#     aggregation     2 a[j, v, p] <= in flow of v, p <= 1 + K a[j, v, p]

VariableKey = tuple[int, Any]
"""A task's place, and a link or a switch."""

ROUNDING = 1e-6
"""The relative amount by which a total rate that is known to be possible is lowered."""


@dataclass(frozen=True)
class RoutingModel:
    """The program and its variables by task and link or switch. `unit_bps` is the rate of lambda = 1."""

    program: pulp.LpProblem
    x: dict[VariableKey, Any]
    a: dict[VariableKey, Any]
    rate: list[Any]
    unit_bps: float


def build(network: SharedFabric, *, relaxed: bool = False, at_least_bps: float = 0.0) -> RoutingModel:
    """The program of a network. `at_least_bps` is a total rate that is known to be possible."""
    model = RoutingModel(
        pulp.LpProblem("inarouting", pulp.LpMaximize), {}, {}, [], max(network.fabric.capacities_bps.values())
    )
    program, unit = model.program, model.unit_bps
    users: dict[Resource, list[tuple[int, Any, Any, int]]] = defaultdict(list)
    for place in range(len(network.tasks)):
        add_routes(network, model, place, users, pulp.LpContinuous if relaxed else pulp.LpInteger)
    for number, (resource, using) in enumerate(users.items()):  # a task has at most the fair share of its flows
        most = sum(limit for _, _, _, limit in using)
        capacity = network.capacities_bps[resource] / unit
        if capacity == inf or (most == 1 and capacity >= 1):
            continue
        count = pulp.lpSum(flows for _, _, flows, _ in using)
        lost = (count - 1) * (1 / most)
        if not relaxed:  # 1 - 1 / n of a count n from 1 to `most`; 0 where it is 0
            u = [program.add_variable(f"u_{number}_{n}", 0, 1, pulp.LpInteger) for n in range(1, most + 1)]
            program += pulp.lpSum(u) == count, f"count_{number}"
            for n in range(1, most):
                program += u[n] <= u[n - 1], f"order_{number}_{n}"
            lost = pulp.lpSum(u[n - 1] * (1 / (n * (n - 1))) for n in range(2, most + 1))
        for position, (place, uses, _, _) in enumerate(using):
            rate = model.rate[place]
            fair = capacity * (1 - lost) + rate.upBound * (1 - uses)
            program += rate <= fair, f"fair_{number}_{position}"
    total = pulp.lpSum(model.rate)
    program += total, "total_rate"
    program += total >= at_least_bps / unit * (1 - ROUNDING), "known_total"
    return model


def add_routes(
    network: SharedFabric,
    model: RoutingModel,
    place: int,
    users: dict[Resource, list[tuple[int, Any, Any, int]]],
    kind: str,
) -> None:
    """Add the tree of one task: out flow, in flow and aggregation of every switch that it can pass.

    `users` gets, by resource, the task, whether it uses the resource, its number of flows there, and the maximum of
    this number: 1 behind a switch that sums, otherwise all its workers. `kind` is the type of variables of 0 or 1.
    """
    task, program, b = network.tasks[place], model.program, network.capacities_bps
    entering = network.entering(task)
    links = list(task.unfolded.links(entering))
    access = [(worker, network.fabric.tor_of(worker)) for worker in task.job.workers]
    arriving, limits, most = flow_limits(network, task, links)

    # Variables
    model.rate.append(program.add_variable(f"lambda_{place}", 0, min(b[link] for link in access) / model.unit_bps))
    x = {link: program.add_variable(f"x_{place}_{number}", 0, 1, kind) for number, link in enumerate(links)}
    model.x.update({(place, link): used for link, used in x.items()})
    flows = {}
    for number, link in enumerate(links):
        flows[link] = x[link]  # if there can only be one
        if most[link] > 1:
            flows[link] = program.add_variable(f"f_{place}_{number}", 0, most[link])
            program += flows[link] <= most[link] * x[link], f"flows_{place}_{number}"
            program += flows[link] >= x[link], f"flow_{place}_{number}"

    # Constraints
    for number, node in enumerate(dict.fromkeys(tail for tail, _ in links)):
        name, workers = f"{place}_{number}", entering.get(node, {})
        into = [link for found in arriving[node].values() for link in found]
        out = [link for link in links if link[0] == node]
        y = 1 if workers else program.add_variable(f"y_{name}", 0, 1, kind)
        program += pulp.lpSum(x[link] for link in out) == y, f"out_flow_{name}"
        for position, link in enumerate(into):
            program += x[link] <= y, f"in_flow_{name}_{position}"
        program += pulp.lpSum(x[link] for link in into) + sum(workers.values()) >= y, f"active_{name}"
        arrivals = []
        for p, own in arriving[node].items():
            count = pulp.lpSum(flows[link] for link in own) + workers.get(p, 0)
            arrivals.append(Arrivals(count, limits[node][p], network.children[node], [x[link] for link in own]))
        if max(most[link] for link in out) > 1:
            leaving = pulp.lpSum(add_sums(program, f"{name}_{p}", own, kind) for p, own in enumerate(arrivals))
            program += pulp.lpSum(flows[link] for link in out) == leaving, f"passes_on_{name}"
        several = [(p, arrived) for p, arrived in enumerate(arrivals) if arrived.most > 1]
        if network.children[node] > 1 and several and b[node] < inf:
            added = [add_aggregation(program, f"{name}_{p}", arrived, kind) for p, arrived in several]
            model.a[place, node] = pulp.lpSum(a for _, a, _ in added)
            users[node].extend((place, *each) for each in added)
    for link in access:
        users[link].append((place, 1, 1, 1))
    for link in links:
        users[link].append((place, x[link], flows[link], most[link]))


def flow_limits(
    network: SharedFabric, task: SplitTask, links: Sequence[DirectedLink]
) -> tuple[dict[str, dict[int, list[DirectedLink]]], dict[str, dict[int, int]], dict[DirectedLink, int]]:
    """The links into each pipeline of each switch, and the most flows of a task in each pipeline and on each link."""
    entering, workers = network.entering(task), len(task.job.workers)
    nodes = sorted({tail for tail, _ in links}, key=lambda node: -task.unfolded.rank[node])
    arriving: dict[str, dict[int, list[DirectedLink]]] = {
        node: {pipeline: [] for pipeline in entering.get(node, ())} for node in nodes
    }
    for tail, head in links:
        if head in arriving:
            arriving[head].setdefault(network.pipelines[tail, head], []).append((tail, head))
    limits: dict[str, dict[int, int]] = {}
    most: dict[DirectedLink, int] = {}
    for node in nodes:
        own = entering.get(node, {})
        counts = {p: own.get(p, 0) + sum(most[link] for link in into) for p, into in arriving[node].items()}
        limits[node] = {p: min(count, workers) for p, count in counts.items()}
        leaving = min(network.leaving(node, limits[node])[0], workers)
        most.update({link: leaving for link in links if link[0] == node})
    return arriving, limits, most


class Arrivals(NamedTuple):
    """The flows of a task that enter one pipeline: their number, its maximum, those of a sum, and x of their links."""

    count: Any
    most: int
    children: int
    x: list[Any]


def add_sums(program: pulp.LpProblem, name: str, arrived: Arrivals, kind: str) -> Any:
    """The number of flows that leave a pipeline: all, or s of a switch that sums, which is added."""
    if arrived.children == 1:
        return arrived.count
    children = min(arrived.children, arrived.most)
    s = program.add_variable(f"s_{name}", 0, arrived.most, kind)
    program += children * s >= arrived.count, f"sums_{name}"
    program += children * s <= arrived.count + children - 1, f"no_more_sums_{name}"
    for position, x in enumerate(arrived.x):
        program += s >= x, f"sum_{name}_{position}"
    return s


def add_aggregation(program: pulp.LpProblem, name: str, arrived: Arrivals, kind: str) -> tuple[Any, Any, int]:
    """Add a, the number of sums of a pipeline; whether there are any; a; and its maximum."""
    children = min(arrived.children, arrived.most)
    most = sums_of(arrived.most - 1, children)
    uses = a = program.add_variable(f"a_{name}", 0, most, kind)
    program += arrived.count >= 2 * a, f"aggregation_needs_two_{name}"
    program += arrived.count <= 1 + children * a, f"aggregation_of_two_{name}"
    if most > 1:
        uses = program.add_variable(f"b_{name}", 0, 1, kind)
        program += a <= most * uses, f"sums_somewhere_{name}"
    return uses, a, most


def extract(network: SharedFabric, model: RoutingModel) -> list[NextHops]:
    """The next hops of every task in a solution of the integer program."""
    hops: list[NextHops] = [{} for _ in network.tasks]
    for (place, (tail, head)), x in model.x.items():
        if x.varValue > 0.5:
            hops[place][tail] = head
    return hops


# -- INARouting-Relax: the linear relaxation, rounded by scores, as in the published code.
#
# Tasks are routed in descending order of their rate in the relaxation. A link's score is its capacity times x, halved
# for each task that already uses it; a switch's score is the same with a, or unlimited if a is 0. A flow takes the path
# whose lowest score is highest. Here flows that meet stay together, so that routes are trees; in the published code
# they can part again.


def relax_and_round(network: SharedFabric, options: SolverOptions) -> tuple[list[NextHops], SolverOutcome]:
    """The routes of the rounded relaxation, and the relaxation's outcome."""
    model = build(network, relaxed=True)
    outcome = solve(model.program, options)
    taken: Counter[Resource] = Counter()
    chosen: list[NextHops] = [{} for _ in network.tasks]
    for place in sorted(range(len(network.tasks)), key=lambda place: -(model.rate[place].varValue or 0)):
        scores: dict[Resource, float] = {}  # for the links that the task can use and the switches that can sum it
        for variables in (model.x, model.a):
            for (owner, resource), variable in variables.items():
                part = pulp.value(variable) or 0.0
                if owner == place and (part > 0 or variables is model.x):
                    scores[resource] = network.capacities_bps[resource] * part / 2 ** taken[resource]
        chosen[place] = widest_tree(network, network.tasks[place], scores)
        taken.update(set(usage(network, network.tasks[place], chosen[place])))
    return chosen, outcome


def widest_tree(network: SharedFabric, task: SplitTask, scores: Mapping[Resource, float]) -> NextHops:
    """Next hops whose way to the PS has the highest minimum score, for all switches that the task can pass."""
    width: dict[str, float] = {task.server: inf}
    best: NextHops = {}
    usable = {tail for tail, _ in task.unfolded.links(network.entering(task))}
    for node in (node for node in task.unfolded.next_hops if node in usable):  # each behind its next hops
        options = {
            peer: min(scores.get((node, peer), 0.0), scores.get(peer, inf), width[peer])
            for peer in task.unfolded.next_hops[node]
        }
        best[node] = max(options, key=lambda peer: options[peer])
        width[node] = options[best[node]]
    return best


# -- Re-routing, beyond the paper: one rack's flow of one task takes another path as long as all tasks together gain.
#
# All flows that the path meets follow it, so routes stay trees. A path is better if the total of the fair rates rises,
# or stays and loads are more even. The search restarts several times with one task's routes drawn at random.

RouteWorth = tuple[float, float]
"""The total rate of all tasks, and minus the squares of loads: the higher, the better."""

RESTARTS = 3
"""The number of restarts of the search, unless its total is the bound, as on INARouting's published leaf-spine."""
PRECISION = 9
"""The significant digits of a total rate, in units of the largest capacity."""


class Judge:
    """Computes the worth of routes, in units of the largest link's capacity. `bound` is an upper bound on the total
    rate.

    Usages are rows of numbers, one for each resource that has a finite capacity, at the resource's place.
    """

    def __init__(self, network: SharedFabric) -> None:
        self.network = network
        finite = {r: capacity for r, capacity in network.capacities_bps.items() if np.isfinite(capacity)}
        unit = max(network.fabric.capacities_bps.values())
        self.places = {r: place for place, r in enumerate(finite)}
        self.capacities = np.array(list(finite.values())) / unit
        self.bound = round(total_bound_bps(network) / unit, PRECISION)

    def row(self, task: SplitTask, hops: NextHops) -> NDArray[np.float64]:
        """The usage of every resource by a task, of the shape (resources,)."""
        found = np.zeros(len(self.places))
        for resource, count in usage(self.network, task, hops).items():
            if resource in self.places:
                found[self.places[resource]] = count
        return found

    def rows(self, hops: Sequence[NextHops]) -> NDArray[np.float64]:
        """The usages of all tasks, of the shape (tasks, resources)."""
        return np.array([self.row(task, own) for task, own in zip(self.network.tasks, hops, strict=True)])

    def worth(self, rows: NDArray[np.float64]) -> RouteWorth:
        """The worth of the usages of all tasks, of the shape (tasks, resources)."""
        total = rows.sum(axis=0)
        shares = self.capacities / np.maximum(total, 1)
        rates = np.where(rows > 0, shares, np.inf).min(axis=1)
        return round(float(rates.sum()), PRECISION), -round(float((total**2 / self.capacities).sum()), PRECISION)


def rerouted(network: SharedFabric, hops: Sequence[NextHops], seed: int, restarts: int = RESTARTS) -> list[NextHops]:
    """The routes after re-routing, the best of all restarts: by the total fair rate, then by the max-min rate."""
    draw, judge = random.Random(seed), Judge(network)
    best = climb(judge, list(hops))
    for _ in range(restarts):
        if judge.worth(judge.rows(best))[0] >= judge.bound:
            break
        start = list(best)
        place = draw.randrange(len(start))
        next_hops = network.tasks[place].unfolded.next_hops
        start[place] = {node: draw.choice(next_hops[node]) for node in start[place]}
        best = max(best, climb(judge, start), key=lambda found: total_rates(network, found))
    return best


def total_rates(network: SharedFabric, hops: Sequence[NextHops]) -> tuple[float, float]:
    """The total of the fair rates and that of the max-min rates, in whole bit/s."""
    usages = [usage(network, task, own) for task, own in zip(network.tasks, hops, strict=True)]
    capacities = network.capacities_bps
    return round(sum(equal_shares(usages, capacities))), round(sum(water_filled(usages, capacities)))


def climb(judge: Judge, hops: list[NextHops]) -> list[NextHops]:
    """The routes at which no other path of a rack is better. A better path is taken at once."""
    tasks = judge.network.tasks
    rows = judge.rows(hops)
    now, moved = judge.worth(rows), True
    while moved and now[0] < judge.bound:
        moved = False
        for place, task in enumerate(tasks):
            for other in neighbours(judge.network, task, hops[place]):
                kept, rows[place] = rows[place].copy(), judge.row(task, other)
                if (value := judge.worth(rows)) > now:
                    hops[place], now, moved = other, value, True
                else:
                    rows[place] = kept
    return hops


def neighbours(network: SharedFabric, task: SplitTask, hops: NextHops) -> Iterator[NextHops]:
    for tor in network.entering(task):
        known = path_from(task, hops, tor)
        for path in task.unfolded.paths(tor):
            if path != known:
                yield hops | dict(pairwise(path))


# -- The planners.


def plan(problem: Problem, options: Options) -> Plan:
    """INARouting-Relax, rounded and re-routed, with its gap. Raises `InputError` if a worker cannot reach a PS."""
    started = time.monotonic()
    network = shared_fabric(problem)
    hops = heuristic_routes(network, options.for_solver)
    return plan_of(problem, network, hops, "inarouting", total_bound_bps(network), started, options)


def plan_optimum(problem: Problem, options: Options) -> Plan:
    """INARouting-Opt: the integer program, whose total rate must be at least that of the heuristic.

    Raises `SolverError` if the solver finds no routes in its time.
    """
    started = time.monotonic()
    network = shared_fabric(problem)
    hops, outcome = optimal_routes(network, options.for_solver)
    bound_bps = total_rates(network, hops)[0] * (1 + (outcome.gap or 0.0))
    return plan_of(problem, network, hops, "inarouting-opt", bound_bps, started, options)


def judged(network: SharedFabric, hops: Sequence[NextHops], started: float) -> SolverOutcome:
    """The outcome of routes: the total of their fair rates compared with the upper bound."""
    return proven(total_bound_bps(network) / total_rates(network, hops)[0] - 1, started)


def heuristic_routes(network: SharedFabric, options: SolverOptions) -> list[NextHops]:
    return rerouted(network, relax_and_round(network, options)[0], options.seed)


def optimal_routes(network: SharedFabric, options: SolverOptions) -> tuple[list[NextHops], SolverOutcome]:
    """The best routes of the integer program, and their proven quality."""
    known = heuristic_routes(network, options)
    model = build(network, at_least_bps=total_rates(network, known)[0])
    outcome = solve(model.program, options)
    return extract(network, model), outcome


def plan_of(
    problem: Problem,
    network: SharedFabric,
    hops: Sequence[NextHops],
    method: str,
    bound_bps: float,
    started: float,
    options: Options,
) -> Plan:
    """The plan of every task's next hops, with max-min fair rates.

    `bound_bps` bounds the total of the model's fair rates. No route has a higher total by the kit's counts, which find
    as many flows on links, and more on what sums, as the model.
    """
    ina = problem.fabric.ina_names
    paths: dict[int, list[Path]] = {job.number: [] for job in problem.jobs}
    usages = []
    for task, own in zip(network.tasks, hops, strict=True):
        taken = worker_paths(network, task, own)
        paths[task.job.number] += taken
        tree = tree_from_paths(problem.fabric, 1, taken, ina)
        used: Counter[Resource] = Counter(flow_counts([tree]))
        used.update(aggregated_flows([tree]))
        used.update(summed_flows([tree]))
        usages.append(used)
    rates = water_filled(usages, network.capacities_bps, [task.job.weight for task in network.tasks])
    by_task = {(task.job.number, task.server): rate for task, rate in zip(network.tasks, rates, strict=True)}
    outcome = proven(bound_bps / sum(equal_shares(usages, network.capacities_bps)) - 1, started)
    if len({job.weight for job in problem.jobs}) > 1:  # which neither routes nor the bound know
        outcome = replace(outcome, status="heuristic", gap=None)
    return plan_from_paths(
        problem, paths, ina, rates_bps=by_task, method=method, outcome=outcome, window=options.window
    )
