"""LP-InArt, the linear relaxation of InArt's split, aggregation points and routes; L-InArt, the split; and R-InArt's
randomised rounding.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, floor, inf
from typing import Any, TypeVar

import pulp

from inakit.planner.core.loads import aggregated_flows, flow_counts, summed_flows
from inakit.planner.core.method import Options
from inakit.planner.core.plan import OPTIMAL, AggregationTree, SolverOptions
from inakit.planner.core.problem import Problem
from inakit.planner.core.slots import Inp, Resource, most_children, resource_bps
from inakit.planner.solvers import run, solve
from inakit.planner.trees.summed_once import SplitTask, Way, entrance, split_equally
from inakit.topo.fabric.fabric import DirectedLink, Fabric, Path

# -- LP-InArt: the linear relaxation of InArt's split, aggregation points and routes, Eq. (5), by edge flows in bit/s.
#
# Eq. (5) maximises f under products f x_s y. With every variable multiplied by f x_s, the rate of a task's flows, no
# product remains: y and z are rates, and capacities are constants. So the relaxation is linear even if the shares are
# free, as in Eq. (2): then the rates of a job's tasks need only sum to f (L-InArt).
#
# The paper has a variable for each path. This model has the rate on each link instead, one commodity for each
# destination: an INP that sums, or the PS, which receives sums and unsummed flows alike. Paths and edge flows describe
# the same loads (a flow in a graph without cycles is a sum of paths), so the optimum is the same.
#
# Workers that enter one INP of one ToR have the same ways and form one group in the model: the mean of an optimum over
# them is an optimum too, since the problem is convex and symmetric in them.
#
# Routes are the shortest up-down paths. In a Clos network every other up-down path passes some switch twice, so none is
# omitted; in a network with crossings the longer paths are omitted.

Entrance = Inp
"""Workers that enter the same INP of a ToR."""

Children = Callable[[SplitTask, Inp], int]
"""The maximum number of flows of a task that an INP sums."""

BISECTIONS = 7
"""The default number of bisections of the rate."""
FIRST_STEP = 0.9
"""Until some rate has a solution, a bisection tries this fraction of the upper bound."""

KeyT = TypeVar("KeyT", bound=Hashable)


@dataclass
class TaskFlows:
    """One task's variables, all of which are rates.

    `rate` is that of each worker's flow; `y[group][inp]` the part of it that the INP sums (None: no INP); `z[inp]` the
    rate of the INP's sum. On links they are `to[inp][link]` on the way to an INP, and `to[None][link]` to the PS.
    """

    rate: Any
    y: dict[Entrance, dict[Inp | None, Any]] = field(default_factory=lambda: defaultdict(dict))
    z: dict[Inp, Any] = field(default_factory=dict)
    to: dict[Inp | None, dict[DirectedLink, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskFractions:
    """A task's y and q of the solution, as probabilities, and its share x of the sending rate."""

    share: float
    y: dict[Entrance, dict[Inp | None, float]]
    to: dict[Inp | None, dict[DirectedLink, float]]

    @cached_property
    def leaving(self) -> dict[Inp | None, dict[str, dict[str, float]]]:
        """`to`, by the node that a link leaves: `leaving[place][node][next hop]`."""
        found: dict[Inp | None, dict[str, dict[str, float]]] = {place: defaultdict(dict) for place in self.to}
        for place, flow in self.to.items():
            for (node, following), rate in flow.items():
                found[place][node][following] = rate
        return found


@dataclass(frozen=True)
class Relaxed:
    """The solution of LP-InArt: f in bit/s, an upper bound for every plan, and the fractions of every task."""

    bound_bps: float
    tasks: list[TaskFractions]


class Relaxation:
    """A model of rates in units of `unit_bps`: its variables by task, and the constraints that LP- and L-InArt share.

    `groups` are the groups of each task's workers, and how many are in each. Without `routed` links have no variables.
    """

    def __init__(self, model: pulp.LpProblem, fabric: Fabric, tasks: Sequence[SplitTask], *, routed: bool) -> None:
        self.model, self.fabric, self.tasks = model, fabric, tasks
        self.unit_bps = max(fabric.capacities_bps.values())
        self.groups = [Counter(entrances(fabric, task)) for task in tasks]
        self.flows = [self.variables(number, routed) for number in range(len(tasks))]

    def variables(self, number: int, routed: bool) -> TaskFlows:
        """The variables of a task; on links only if it is `routed`, never on workers' own, which carry all flows."""
        model, fabric, task, groups = self.model, self.fabric, self.tasks[number], self.groups[number]
        flow = TaskFlows(model.add_variable(f"rate_{number}", 0))
        links = [link for link in task.unfolded.links(task.job.workers) if link[0] not in fabric.host_names]
        inps = [*groups, *((v, fabric.ingress_pipeline(v, u)) for u, v in links if v in fabric.switch_by_name)]
        for inp in dict.fromkeys(inp for inp in inps if fabric.switch_by_name[inp[0]].ina):
            name = f"{number}_{inp[0]}_{inp[1]}"
            upstream = links_to(fabric, inp, links)
            flow.z[inp] = model.add_variable(f"z_{name}", 0)
            if routed:
                flow.to[inp] = {(u, v): model.add_variable(f"q_{name}_{u}_{v}", 0) for u, v in upstream}
            for group in groups:
                if group == inp or any(group[0] == link[0] for link in upstream):
                    flow.y[group][inp] = model.add_variable(f"y_{name}_{group[0]}_{group[1]}", 0)
        if routed:
            flow.to[None] = {(u, v): model.add_variable(f"q_{number}_{u}_{v}", 0) for u, v in links}
        for group in groups:
            flow.y[group][None] = model.add_variable(f"y_{number}_{group[0]}_{group[1]}", 0)
        return flow

    def constrain(self, number: int, children: Children | None = None) -> None:
        """Each gradient of a task is summed at most once, and reaches the INP that sums it, or the PS.

        An INP with more flows than a slot's bitmap has bits makes several sums, and z is the rate of all.
        """
        model, flow, groups = self.model, self.flows[number], self.groups[number]
        for group, parts in flow.y.items():
            model += pulp.lpSum(parts.values()) == flow.rate, f"one_place_{number}_{group[0]}_{group[1]}"
        for inp, z in flow.z.items():
            name = f"{number}_{inp[0]}_{inp[1]}"
            senders = {group: parts[inp] for group, parts in flow.y.items() if inp in parts}
            sums = -(-sum(groups[group] for group in senders) // most_children(self.fabric, inp[0])) or 1
            model += z <= sums * flow.rate, f"sum_{name}"
            for group, y in senders.items():
                model += y <= z, f"sums_{name}_{group[0]}_{group[1]}"
            count = pulp.lpSum(groups[group] * y for group, y in senders.items())
            most = children(self.tasks[number], inp) if children else most_children(self.fabric, inp[0])
            model += count <= most * z, f"children_{name}"
        for place, links in flow.to.items():  # flows that reach a node, or start there, leave it
            into, out = defaultdict(list), defaultdict(list)
            for (u, v), variable in links.items():
                out[u].append(variable)
                into[v].append(variable)
            for group, parts in flow.y.items():
                if place in parts and group != place:
                    into[group[0]].append(groups[group] * parts[place])
            for inp, z in flow.z.items() if place is None else ():
                into[inp[0]].append(z)
            for node, leaving in out.items():
                name = f"goes_on_{number}_{'_'.join(map(str, place or ()))}_{node}"
                model += pulp.lpSum(into[node]) == pulp.lpSum(leaving), name

    def link_loads(self) -> dict[DirectedLink, Any]:
        """The load of each link. A worker's own link always carries everything that the worker sends."""
        terms: dict[DirectedLink, list[Any]] = defaultdict(list)
        for task, flow in zip(self.tasks, self.flows, strict=True):
            for worker in task.job.workers:
                terms[worker, self.fabric.tor_of(worker)].append(flow.rate)
            for links in flow.to.values():
                for link, variable in links.items():
                    terms[link].append(variable)
        return {link: pulp.lpSum(found) for link, found in terms.items()}

    def limit_links(self) -> None:
        """Flows fit every link, also those into the PSs."""
        for link, load in self.link_loads().items():
            limit = self.fabric.capacities_bps[link] / self.unit_bps
            self.model += load <= limit, f"link_capacity_{'_'.join(link)}"

    def limit_summing(self) -> None:
        """Flows that a switch sums fit its aggregation rate, those of a pipeline the recirculation of its chip."""
        loads: dict[Resource, list[Any]] = defaultdict(list)
        for groups, flow in zip(self.groups, self.flows, strict=True):
            for group, parts in flow.y.items():
                for inp, y in parts.items():
                    if inp is not None:
                        loads[inp[0]].append(groups[group] * y)
                        loads[inp].append(groups[group] * y)
        for resource, load in loads.items():
            limit = resource_bps(self.fabric, resource)
            if limit < inf:
                name = resource if isinstance(resource, str) else "_".join(map(str, resource))
                self.model += pulp.lpSum(load) <= limit / self.unit_bps, f"switch_capacity_{name}"


def links_to(fabric: Fabric, inp: Inp, links: Sequence[DirectedLink]) -> list[DirectedLink]:
    """The links by which flows reach the INP: those that enter it, and all before them."""
    found = [(u, v) for u, v in links if v == inp[0] and fabric.ingress_pipeline(v, u) == inp[1]]
    behind = list(dict.fromkeys(u for u, _ in found))
    for node in behind:  # the list grows in the loop
        before = [link for link in links if link[1] == node]
        found += before
        behind += [u for u in dict.fromkeys(u for u, _ in before) if u not in behind]
    return found


class LpInart(Relaxation):
    """Eq. (5) for tasks with their shares, each constraint multiplied by the rates; `f` is the sending rate.

    `children` gives the number of flows that an INP sums, if a bound beside its bitmaps is known.
    """

    def __init__(self, fabric: Fabric, tasks: Sequence[SplitTask], children: Children | None = None) -> None:
        model = pulp.LpProblem("lp_inart", pulp.LpMaximize)
        self.f = model.add_variable("f", lowBound=0)
        super().__init__(model, fabric, tasks, routed=True)
        model += self.f, "sending_rate"
        for number in range(len(tasks)):
            self.constrain(number, children)
        self.limit_links()
        self.limit_summing()
        for number, (task, flow) in enumerate(zip(tasks, self.flows, strict=True)):
            model += flow.rate == task.share * self.f, f"share_{number}"

    def extract(self) -> Relaxed:
        """The values of the solved model. A task's share is the fraction of f that its rate has."""

        def values(variables: Mapping[KeyT, Any]) -> dict[KeyT, float]:  # without those below 0 by rounding
            return {key: max(0.0, variable.varValue) for key, variable in variables.items()}

        f = self.f.varValue
        fractions = [
            TaskFractions(
                flow.rate.varValue / f,
                {group: values(parts) for group, parts in flow.y.items()},
                {place: values(links) for place, links in flow.to.items()},
            )
            for flow in self.flows
        ]
        return Relaxed(f * self.unit_bps, fractions)


def relax(fabric: Fabric, tasks: Sequence[SplitTask], options: SolverOptions) -> Relaxed:
    """Solve LP-InArt with the tasks' shares."""
    relaxation = LpInart(fabric, tasks)
    solve(relaxation.model, options)
    return relaxation.extract()


def relax_whole(
    fabric: Fabric, tasks: Sequence[SplitTask], options: SolverOptions, bisections: int = BISECTIONS
) -> Relaxed:
    """LP-InArt with the tasks' shares, tightened for whole flows.

    At a rate f an INP sums at most C / (f x) flows of a task with the share x, a whole number n: so its input is at
    most n times its sum. And if all shares are equal, every link has a whole number of flows. If that has no solution,
    no higher rate has one, because it allows only fewer flows: so f is found by bisection.
    """
    relaxed = relax(fabric, tasks, options)
    upper = relaxed.bound_bps
    lower = 0.0
    for _ in range(bisections):
        middle = (lower + upper) / 2 if lower else upper * FIRST_STEP
        found = relax_at(fabric, tasks, middle, options)
        if found is None:
            upper = middle
        else:
            relaxed, lower = found, middle
    if alike(tasks):  # whole flows fill some capacity at the highest rate
        limits = {resource_bps(fabric, switch.name) for switch in fabric.switches} | set(fabric.capacities_bps.values())
        limits |= {switch.pipeline_summing_bps for switch in fabric.switches}
        rates = [limit / tasks[0].share for limit in limits if 0 < limit < inf]
        upper = max(rate / max(1, ceil(rate / upper - 1e-9)) for rate in rates)
    return replace(relaxed, bound_bps=upper)


def relax_at(fabric: Fabric, tasks: Sequence[SplitTask], rate_bps: float, options: SolverOptions) -> Relaxed | None:
    """The tightened relaxation at a given rate; None if it has no solution."""

    def whole_flows(capacity_bps: float, share: float) -> int:
        return floor(capacity_bps / (share * rate_bps) + 1e-9)

    def children(task: SplitTask, inp: Inp) -> int:
        most = most_children(fabric, inp[0])
        limit = min(resource_bps(fabric, inp[0]), resource_bps(fabric, inp))
        return most if limit == inf else min(most, whole_flows(limit, task.share))

    relaxation = LpInart(fabric, tasks, children)
    model, f, unit = relaxation.model, relaxation.f, relaxation.unit_bps
    f.lowBound = f.upBound = rate_bps / unit
    if alike(tasks):
        share = tasks[0].share
        for link, load in relaxation.link_loads().items():
            most = whole_flows(fabric.capacities_bps[link], share) * (share * rate_bps) / unit
            model += load <= most, f"whole_flows_{'_'.join(link)}"
    return relaxation.extract() if run(model, options).status == OPTIMAL else None


def alike(tasks: Sequence[SplitTask]) -> bool:
    return len({task.share for task in tasks}) == 1


def entrances(fabric: Fabric, task: SplitTask) -> list[Entrance]:
    return [entrance(fabric, worker) for worker in task.job.workers]


# -- L-InArt: the part of the gradient for each PS, Eq. (2), and the same for given routes.
#
# Eq. (2) keeps the switches and the PSs of Eq. (1) and relaxes y and z. The paper solves its KKT system, whose
# equations contain products f x y. Written in rates the same program is linear: an optimum of the linear program, with
# its dual prices as multipliers, is a KKT point of Eq. (2), and as a convex program it has no other optima. With f
# fixed, Eq. (2) is linear in rates too, and a bisection over f could test the feasibility of such programs; it would
# end at the f that the one program, with f as a variable, finds at once.

SLACK = 0.02
"""The relative loss of rate that the most even split may cause: whole flows lose more if the split is uneven."""
ROUNDING = 1e-6
"""The same for known routes, where only rounding can cause a loss."""
LEAST_SHARE = 1e-4
"""A task with a smaller share is omitted."""


def split_model(
    fabric: Fabric, tasks: Sequence[SplitTask], options: SolverOptions, *, routed: bool = False
) -> tuple[list[SplitTask], float]:
    """The tasks with the shares of L-InArt, without those that get none; and the bound on f in bit/s.

    Among all optimal splits it is the most even, whose largest share is the least: small flows fill capacities best.
    With `routed` links are limited too: the split, and the bound, are those of LP-InArt with free shares.
    """
    model = pulp.LpProblem("l_inart", pulp.LpMaximize)
    relaxation = Relaxation(model, fabric, tasks, routed=routed)
    unit = relaxation.unit_bps
    for number, (task, flow) in enumerate(zip(tasks, relaxation.flows, strict=True)):
        relaxation.constrain(number)
        if not routed:
            unsummed = [relaxation.groups[number][group] * parts[None] for group, parts in flow.y.items()]
            access = fabric.capacities_bps[fabric.tor_of(task.server), task.server]
            model += pulp.lpSum([*flow.z.values(), *unsummed]) <= access / unit, f"server_capacity_{number}"
    if routed:
        relaxation.limit_links()
    relaxation.limit_summing()
    shares, f = best_rates(model, fabric, tasks, [flow.rate for flow in relaxation.flows], options, SLACK)
    return with_shares(tasks, shares), f * unit


def first_splits(problem: Problem, options: Options) -> tuple[list[list[SplitTask]], float]:
    """The equal split, so that no plan is below that of equal parts, L-InArt's, and that of LP-InArt with free shares,
    each once; and the bound on f of any split, in bit/s.
    """
    fabric, equal = problem.fabric, split_equally(problem)
    own, _ = split_model(fabric, equal, options.for_solver)
    free, bound = split_model(fabric, equal, options.for_solver, routed=True)
    distinct = {tuple((*destination(task), task.share) for task in tasks): tasks for tasks in (equal, own, free)}
    return list(distinct.values()), bound


def destination(task: SplitTask) -> tuple[int, str]:
    """The task's job, by its number, and its PS."""
    return task.job.number, task.server


def split_routes(
    fabric: Fabric, tasks: Sequence[SplitTask], trees: Sequence[AggregationTree], options: SolverOptions
) -> list[float]:
    """The best shares for given trees, one for each task."""
    unit = max(fabric.capacities_bps.values())
    model = pulp.LpProblem("l_inart_routed", pulp.LpMaximize)
    rates = [model.add_variable(f"rate_{number}", 0) for number, _ in enumerate(tasks)]
    loads: dict[Resource, list[Any]] = defaultdict(list)
    for rate, tree in zip(rates, trees, strict=True):
        for counts in (flow_counts([tree]), aggregated_flows([tree]), summed_flows([tree])):
            for resource, count in counts.items():
                loads[resource].append(count * rate)
    for number, (resource, load) in enumerate(loads.items()):
        limit = resource_bps(fabric, resource)
        if limit < inf:
            model += pulp.lpSum(load) <= limit / unit, f"capacity_{number}"
    return best_rates(model, fabric, tasks, rates, options, ROUNDING)[0]


def best_rates(
    model: pulp.LpProblem,
    fabric: Fabric,
    tasks: Sequence[SplitTask],
    rates: Sequence[Any],
    options: SolverOptions,
    slack: float,
) -> tuple[list[float], float]:
    """The most even shares whose f is at most `slack` below the highest; and the highest f.

    `rates` has a variable for each task: the rate at which every worker sends to its PS. Rates are in units of the
    highest capacity.
    """
    b = fabric.capacities_bps
    f = model.add_variable("f", 0)
    model += f, "sending_rate"
    for job, found in by_job(tasks, rates).items():
        model += pulp.lpSum(found) == f, f"shares_{job}"
    f.upBound = min(b[worker, fabric.tor_of(worker)] for task in tasks for worker in task.job.workers) / max(b.values())
    solve(model, options)
    best = f.varValue
    f.lowBound = f.upBound = best * (1 - slack)
    largest = model.add_variable("largest_rate", 0)
    for number, rate in enumerate(rates):
        model += rate <= largest, f"largest_rate_{number}"
    model.setObjective(-1 * largest)
    solve(model, options)
    return [rate.varValue / f.varValue for rate in rates], best


def by_job(tasks: Sequence[SplitTask], rates: Sequence[Any]) -> Mapping[int, list[Any]]:
    found: dict[int, list[Any]] = defaultdict(list)
    for task, rate in zip(tasks, rates, strict=True):
        found[task.job.number].append(rate)
    return found


def with_shares(tasks: Sequence[SplitTask], shares: Sequence[float]) -> list[SplitTask]:
    """The tasks with new shares, rounded so that nearly equal ones become equal.

    Tasks with negligible shares are omitted.
    """
    kept = [(task, round(share, 6)) for task, share in zip(tasks, shares, strict=True) if share > LEAST_SHARE]
    totals = {job: sum(found) for job, found in by_job([task for task, _ in kept], [x for _, x in kept]).items()}
    return [replace(task, share=share / totals[task.job.number]) for task, share in kept]


# -- R-InArt's randomised rounding (Algorithm 2): one aggregation point and one path for each flow, by fractions.

TaskWays = tuple[Way, ...]
"""One way for each worker of a task."""

OnwardPaths = dict[Inp, Path]
"""The path to the PS from each INP that sums."""

TaskRouting = tuple[TaskWays, OnwardPaths]
"""R-InArt's decisions for one task."""

Rounding = Callable[[Fabric, SplitTask, TaskFractions, random.Random], TaskRouting]


@dataclass(frozen=True)
class InartRouting:
    """R-InArt's decisions: by task, the ways of its flows, and the paths of the sums."""

    ways: tuple[TaskWays, ...]
    onward: tuple[OnwardPaths, ...]


def round_off(
    fabric: Fabric, tasks: Sequence[SplitTask], relaxed: Relaxed, draw: random.Random, rounding: Rounding
) -> InartRouting:
    parts = zip(tasks, relaxed.tasks, strict=True)
    ways, onward = zip(*(rounding(fabric, task, part, draw) for task, part in parts), strict=True)
    return InartRouting(ways, onward)


def round_apart(fabric: Fabric, task: SplitTask, part: TaskFractions, draw: random.Random) -> TaskRouting:
    """For each flow of a task, draw the place of its sum by the probabilities y, then its path by q (Algorithm 2)."""
    odds = [part.y[group] for group in entrances(fabric, task)]
    return routed(fabric, task, part, [draw.choices(list(y), list(y.values()))[0] for y in odds], draw)


def round_together(fabric: Fabric, task: SplitTask, part: TaskFractions, draw: random.Random) -> TaskRouting:
    """The same with one draw for all flows of a task, so that flows with the same fractions go to the same place.

    Then the number of INPs with a sum is about the sum of z; with a draw for each flow nearly all INPs have one. The
    draw selects a place when a flow's fractions are laid side by side, in an order that all flows share.
    """
    order = list(dict.fromkeys(place for y in part.y.values() for place in y))
    draw.shuffle(order)
    lot = draw.random()
    places = []
    for y in (part.y[group] for group in entrances(fabric, task)):
        left, chosen = lot * sum(y.values()), None
        for place in order:
            if y.get(place, 0.0) > 0:
                chosen = place
                left -= y[place]
                if left < 0:
                    break
        places.append(chosen)
    return routed(fabric, task, part, places, draw)


def routed(
    fabric: Fabric, task: SplitTask, part: TaskFractions, places: Sequence[Inp | None], draw: random.Random
) -> TaskRouting:
    """Drawn paths for the workers' flows to the places that sum them, and from there to the PS."""

    def way_to(place: Inp | None, group: Entrance) -> Way:
        if place == group:
            return Way(place, (group[0],))
        return Way(place, walk(part.leaving[place], group[0], place[0] if place else task.server, draw))

    ways = tuple(way_to(place, group) for place, group in zip(places, entrances(fabric, task), strict=True))
    summing = dict.fromkeys(filter(None, places))
    return ways, {inp: walk(part.leaving[None], inp[0], task.server, draw) for inp in summing}


def walk(leaving: Mapping[str, Mapping[str, float]], start: str, end: str, draw: random.Random) -> Path:
    """A path from `start` to `end`. Each link is drawn with the fraction of its node's flow on it."""
    path: Path = (start,)
    while path[-1] != end:
        links = leaving[path[-1]]
        amounts = list(links.values()) if sum(links.values()) > 0 else None
        path += tuple(draw.choices(list(links), amounts))
    return path
