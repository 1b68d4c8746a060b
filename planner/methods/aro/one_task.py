"""ARO for one task (SJST): the routes with the highest rate, proven, by the fastest exact method for the fabric.

A leaf-spine with equal links has a closed form (`leaf_spine`), if no INP has to make several sums; for everything else
a solver decides which INPs are used. Both test whether the flows fit at a given t = 1 / r, and `bisection` finds the
least such t.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil, inf
from time import monotonic
from typing import Any

import pulp

from inakit.planner.core.plan import ERROR, FEASIBLE, INFEASIBLE, OPTIMAL, SolverOptions, SolverOutcome
from inakit.planner.core.slots import Inp, most_children
from inakit.planner.methods.aro.bisection import Least, Steps, flows_within, least_t
from inakit.planner.methods.aro.leaf_spine import LeafSpine, SpineChoice, leaf_spine
from inakit.planner.methods.aro.task_graphs import Task, TaskGraph, task_graph
from inakit.planner.solvers import PROVEN_GAP, proven, run
from inakit.planner.trees.from_paths import Summing
from inakit.topo.errors import SolverError
from inakit.topo.fabric.fabric import DirectedLink, Fabric, Path

# -- Whether a task's flows fit at a given t = 1 / r, on any fabric: ARO's model, in which only x is integral.
#
# At a fixed t, constraint (10) is y <= floor(b t) for each link. At a fixed x, an INP in use receives any number of
# flows and sends one. The rest is a flow problem with integral capacities, which has an integral solution if it has
# any. So y can be continuous, and the solver only has to decide which INPs are used.

ANY_GAP = 1e9
"""A relative gap so wide that the first solution is accepted."""

TIDY_GAP = 0.01
"""The relative tolerance of the sum of a task's flows over all links above the minimum."""

FEW_INPS = 100
"""With more reachable INPs than this, the sum of flows over links is lowered step by step instead of minimised."""

WHOLE = 1e-6
"""The distance to a whole number below which a flow counts as whole."""

FlowCounts = dict[DirectedLink, int]
"""By link, a number of flows."""


@dataclass(frozen=True)
class FlowModel:
    """The model at one t. `y[u, v]`: flows on a link; `x[inp]`: the number of sums that the INP may make, usually 0 or
    1.
    """

    model: pulp.LpProblem
    y: dict[DirectedLink, Any]
    x: dict[Inp, Any]


def build(graph: TaskGraph, t: float, children_per_sum: int | None = None) -> FlowModel:
    """Build the constraints (4) to (10) at `t`. An INP sums up to `children_per_sum` flows into one, by default as many
    as its slots' bitmaps have bits.

    One side of (7) is enough: an INP with x = 1 that no flow enters only adds a flow. Beyond the paper, a sum has a
    limited number of children, and switches and pipelines a limited rate; a flow that enters an INP alone uses none of
    this rate.
    """
    fabric, local, b = graph.fabric, graph.local, graph.capacities_bps
    model = pulp.LpProblem("aro_flows", pulp.LpMinimize)

    # Variables. The flows on a link are limited by its capacity at t (10) and by its sender's output (4). An INP makes
    # at least the sums of the workers that send to it directly (6).
    limits = {(u, v): min(flows_within(b[u, v], t), graph.most_flows[u]) for u, v in graph.inner_links}
    y = {(u, v): model.add_variable(f"y_{u}_{v}", 0, limit) for (u, v), limit in limits.items()}
    children = {(v, p): children_per_sum or most_children(fabric, v) for v, p in graph.inps}
    most = {inp: local[inp] + sum(limits.get(link, 0) for link in links) for inp, links in graph.inps.items()}
    x = {
        (v, p): model.add_variable(f"x_{v}_{p}", ceil(local[v, p] / n), ceil(most[v, p] / n), pulp.LpInteger)
        for (v, p), n in children.items()
    }

    def total(links: Iterable[DirectedLink]) -> Any:
        return pulp.lpSum(y[link] for link in links if link in y)

    # Constraints
    entering = {inp: total(links) + local[inp] for inp, links in graph.inps.items()}
    for (v, p), links in graph.inps.items():
        for link in links:
            if link in y:
                used = min(limits[link], children[v, p]) * x[v, p]
                model += y[link] <= used, f"is_used_{link[0]}_{v}_{p}"  # (7)
        if most[v, p] > children[v, p]:
            model += entering[v, p] <= children[v, p] * x[v, p], f"children_{v}_{p}"
    for z in graph.aggregating:
        handed = pulp.lpSum(x[inp] for inp in graph.inps_of[z])  # (8)
        model += handed == total(graph.out_of[z]), f"op_forwards_{z}"  # (9)
    for z in graph.common:
        received = total(graph.into[z]) + graph.starting[z]
        model += received == total(graph.out_of[z]), f"cs_forwards_{z}"  # (9)
    workers, switches, pipelines = len(graph.workers), graph.aggregation_rates_bps, graph.pipeline_rates_bps
    for z in dict.fromkeys([*switches, *pipelines]):
        summed = {}  # all flows that enter an INP, or none if only one enters
        for v, p in graph.inps_of[z]:
            alone = model.add_variable(f"alone_{v}_{p}", cat=pulp.LpBinary)
            model += entering[v, p] >= alone, f"alone_is_used_{v}_{p}"
            model += entering[v, p] <= workers - (workers - 1) * alone, f"alone_is_one_{v}_{p}"
            summed[v, p] = entering[v, p] - alone
        if z in switches:
            model += pulp.lpSum(summed.values()) <= flows_within(switches[z], t), f"aggregation_rate_{z}"
        if z in pipelines:
            for (v, p), flows in summed.items():
                model += flows <= flows_within(pipelines[z], t), f"recirculation_{v}_{p}"
    return FlowModel(model, y, x)


@dataclass(frozen=True)
class FlowTest:
    """Tests whether flows fit at any t, until `deadline`, a time of the monotonic clock.

    A test takes at most `share` of the remaining time, so that a difficult t leaves time for greater ones.
    """

    graph: TaskGraph
    options: SolverOptions
    deadline: float = inf
    share: float = 0.5
    children_per_sum: int | None = None

    def build(self, t: float) -> FlowModel:
        return build(self.graph, t, self.children_per_sum)

    def fits(self, t: float) -> FlowCounts | None:
        """Integral flows on all links; None if there are none. Raises `SolverError` when time is over."""
        flows = self.build(t)
        flows.model.setObjective(self.guide(flows))
        return self.solve(flows, replace(self.options, gap=ANY_GAP))

    def guide(self, flows: FlowModel) -> Any:
        """An objective that only guides the solver; flows are found several times faster with it.

        The more INPs are used, the more flows they receive. But if all flows that reach the PS's leaf continue to the
        PS, too many INPs make too many flows: then it helps to keep flows away from switches that do not sum.
        """
        graph = self.graph
        if any(link[0] in graph.aggregating for link in graph.into[graph.server]):
            return -pulp.lpSum(flows.x.values())
        common = set(graph.common)
        return pulp.lpSum(y for (_, v), y in flows.y.items() if v in common)

    def tidy(self, t: float, found: FlowCounts) -> FlowCounts:
        """Flows at the same t with a small sum over all links, so that no flow circulates uselessly."""
        if len(self.graph.inps) <= FEW_INPS:
            return self.fewest(self.build(t)) or found
        used = self.graph.used(found)
        while True:
            flows = self.build(t)
            fix({x: 0 for inp, x in flows.x.items() if inp not in used})
            found = self.fewest(flows) or found
            left = self.graph.used(found)
            if left == used:
                return found
            used = left

    def fewest(self, flows: FlowModel) -> FlowCounts | None:
        """The flows with nearly the smallest sum over all links; None if no flows fit."""
        flows.model.setObjective(pulp.lpSum(flows.y.values()))
        return self.solve(flows, replace(self.options, gap=TIDY_GAP))

    def solve(self, flows: FlowModel, options: SolverOptions) -> FlowCounts | None:
        """The solved model's flows on all links; None if it is infeasible. Raises `SolverError` when time is over."""
        left = min(options.time_limit_s, self.share * (self.deadline - monotonic()))
        status = run(flows.model, replace(options, time_limit_s=left)).status if left > 0 else ERROR
        if status == INFEASIBLE:
            return None
        if status not in (OPTIMAL, FEASIBLE):
            raise SolverError(
                f"{options.solver} found no routes in {options.time_limit_s:g} s; "
                "raise the time limit, or make the problem smaller"
            )
        if any(abs(y.varValue - round(y.varValue)) > WHOLE for y in flows.y.values()):
            # The solver has stopped between two vertices: at its x, there are integral flows.
            fix({v: v.varValue for v in flows.model.variables() if v.cat == pulp.LpInteger})
            flows.model.setObjective(pulp.lpSum(flows.y.values()))
            run(flows.model, self.options)
        found = {link: round(y.varValue) for link, y in flows.y.items()}
        return dict.fromkeys(self.graph.access, 1) | found


def fix(values: Mapping[Any, float]) -> None:
    """Fix these variables at their rounded values."""
    for variable, value in values.items():
        variable.lowBound = variable.upBound = round(value)
        variable.cat = pulp.LpContinuous


# -- The paper's Algorithm 1: from the flows on the links of a task's graph to a path for every worker.


def generate_routes(graph: TaskGraph, flows: Mapping[DirectedLink, int]) -> list[Path]:
    """A path for every worker of the task, from y: `flows[u, v]` counts the flows on a link, and each is used once.

    Two lines of the printed algorithm are corrected: line 11 takes one flow from y[i], the task's (not y[k]), and line
    18 records an INP's path to the PS while it has none, R = nil (not R != nil). An INP that more flows enter than it
    can sum has a path for each of its sums.
    """
    y = dict(flows)
    rest: dict[Summing, Path] = {}  # R
    arrived: Counter[Inp] = Counter()
    found = []
    for worker in graph.workers:
        path: Path = (worker,)
        begun: dict[Summing, int] = {}  # sums that the path begins, with the position of their switch
        while path[-1] != graph.server:
            link = next(link for link in graph.out_of[path[-1]] if y[link] > 0)
            y[link] -= 1
            path = (*path, link[1])
            inp = graph.inp(link)
            if inp is None:
                continue
            summing = Summing(*inp, arrived[inp] // most_children(graph.fabric, inp[0]))
            arrived[inp] += 1
            if summing in rest:
                path = path[:-1] + rest[summing]
            else:
                begun[summing] = len(path) - 1
        rest |= {summing: path[position:] for summing, position in begun.items()}
        found.append(path)
    return found


# -- The choice between both methods.

TIDYING_TIME_S = 5.0
"""The maximum seconds for the removal of useless flows."""


@dataclass(frozen=True)
class ProvenPaths:
    """A path for every worker, their rate, and its proven quality."""

    paths: list[Path]
    rate_bps: float
    outcome: SolverOutcome


def best_routing(fabric: Fabric, task: Task, options: SolverOptions) -> ProvenPaths:
    """The routes with the highest rate. Raises `SolverError` if there are none or the time limit is too short."""
    started = monotonic()
    lowest = 0.0
    closed = leaf_spine(fabric, task)
    if closed is not None:
        choice = best_choice(closed, options)
        bound = best_choice(replace(closed, most_children=closed.workers), options)
        assert bound is not None
        lowest = bound.bound
        fits = choice is not None and closed.most_children_at_tor(choice.solution) <= closed.most_children
        if choice is not None and fits and choice.t <= bound.t:
            return ProvenPaths(closed.paths(choice.solution), 1 / choice.t, proven(choice.gap, started))
    graph = task_graph(fabric, task.job.workers, task.server)
    test = FlowTest(graph, options, started + options.time_limit_s)
    least = best_flows(test, lowest)
    tidying = replace(test, deadline=min(test.deadline, monotonic() + TIDYING_TIME_S))
    try:
        flows = tidying.tidy(least.t, least.solution)
    except SolverError:  # no time for it
        flows = least.solution
    return ProvenPaths(generate_routes(graph, flows), 1 / least.t, proven(least.gap, started, options.solver))


def best_choice(closed: LeafSpine, options: SolverOptions) -> Least[SpineChoice] | None:
    """The least t in closed form; None if at every t an INP receives more flows than it can sum."""
    capacities = closed.capacities_bps
    highest = closed.workers / min(capacities)
    return least_t(closed.fits, Steps(capacities), 1 / closed.worker_bps, highest, options.gap)


def best_flows(test: FlowTest, lowest: float) -> Least[FlowCounts]:
    """The least t, found by the solver. Below `lowest` there is none."""
    graph, b = test.graph, test.graph.capacities_bps
    capacities = {*b.values(), *graph.aggregation_rates_bps.values(), *graph.pipeline_rates_bps.values()}
    steps, highest, gap = Steps(capacities), len(graph.workers) / min(capacities), test.options.gap
    leaving = (count / sum(b[link] for link in graph.out_of[z]) for z, count in graph.starting.items())
    lowest = max(lowest, *(1 / b[link] for link in graph.access), *leaving)
    least = least_t(test.fits, steps, lowest, highest, gap)
    if least is not None and least.gap > max(gap, PROVEN_GAP):  # retry undecided values with all the remaining time
        least = least_t(replace(test, share=1.0).fits, steps, least.bound, highest, gap, known=least)
    assert least is not None  # at the highest t, every link carries all flows
    return least
