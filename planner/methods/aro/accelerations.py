"""The variants of ARO in Table II by name: by the model as printed, or by the kit's fast search.

`aro-raw` and `aro-qsr` are the printed model; `aro-qsr` is also the paper's plain ARO, since both have the same row.
`aro-acc`, `aro-sro` and `aro-app` prune as the paper does; what is left is searched, or given to the printed model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import floor, inf
from typing import ClassVar

import pulp

from inakit.planner.core.method import Options
from inakit.planner.core.plan import OPTIMAL, Plan, SolverOptions, SolverOutcome
from inakit.planner.core.problem import Problem
from inakit.planner.core.slots import limits_summing
from inakit.planner.methods.aro.bisection import ROUNDING
from inakit.planner.methods.aro.one_task import best_routing, generate_routes
from inakit.planner.methods.aro.printed_model import (
    Form,
    OneRate,
    PrintedModel,
    build,
    highest_capacity_bps,
    task_graphs,
)
from inakit.planner.methods.aro.rate_objective import Rates, Worth
from inakit.planner.methods.aro.reduced_network import network
from inakit.planner.methods.aro.several_routing import Routing
from inakit.planner.methods.aro.several_tasks import searched, with_best_rates, worker_paths
from inakit.planner.methods.aro.task_graphs import TaskGraph, TaskKey, reached, tasks_of
from inakit.planner.solvers import proven, solve
from inakit.planner.trees.from_paths import plan_from_paths
from inakit.topo.errors import InputError, SolverError, unknown_name
from inakit.topo.fabric.fabric import Fabric, Path

# -- Two prunings at a small loss: aggregator pre-pruning (APP), staged optimisation (SRO).
#
# Both remove switches from a task's graph. They work on groups of alternative aggregators (AAs): the INA switches of
# one location, any of which a flow can take. A switch without which a worker cannot reach its PS always stays.


def locations(fabric: Fabric) -> list[tuple[str, ...]]:
    """The switches above the ToRs by location: switches of one tier with the same neighbours among switches not above
    it.

    In a leaf-spine these are all spines; in a fat-tree the aggregation switches of each pod, and all cores.
    """
    found: dict[tuple[int, str], list[str]] = {}
    for tier in sorted({switch.tier for switch in fabric.switches if switch.tier > 1}):
        inside = {switch.name for switch in fabric.switches if switch.tier <= tier}
        links = [(u, v) for u, v in fabric.capacities_bps if u in inside and v in inside]
        members = [switch.name for switch in fabric.switches if switch.tier == tier]
        for name in members:
            found.setdefault((tier, min(reached([name], links))), []).append(name)
    return [tuple(names) for names in found.values()]


def pre_pruned(graphs: Sequence[TaskGraph], alpha: float) -> list[TaskGraph]:
    """APP: of each group of n AAs a task may use floor(alpha n), at least one.

    A task takes those whose INPs' scores differ least. Tasks choose in turn: a switch that one task has taken is
    offered to the next tasks again only when the list of all AAs is used up.
    """
    groups = [tuple(aggregators(graphs[0].fabric, names)) for names in locations(graphs[0].fabric)]
    offered = {group: list(group) for group in groups}
    pruned = []
    for graph in graphs:
        kept = graph
        for group in groups:
            candidates = [name for name in group if name in graph.into]
            count = max(1, floor(alpha * len(candidates) + ROUNDING))
            chosen = take(offered[group], group, candidates, count, partial(unevenness, graph))
            kept = excluding(kept, [name for name in candidates if name not in chosen])
        pruned.append(kept)
    return pruned


def aggregators(fabric: Fabric, names: Iterable[str]) -> list[str]:
    return [name for name in names if fabric.switch_by_name[name].ina]


def take(
    offered: list[str], group: Sequence[str], candidates: Collection[str], count: int, score: Callable[[str], float]
) -> list[str]:
    """Take `count` candidates, those in `offered` with the lowest scores first; remove them from `offered`."""
    chosen: list[str] = []
    while len(chosen) < min(count, len(candidates)):
        usable = [name for name in offered if name in candidates and name not in chosen]
        if not usable:
            offered[:] = group
            continue
        best = min(usable, key=score)
        offered.remove(best)
        chosen.append(best)
    return chosen


def unevenness(graph: TaskGraph, switch: str) -> float:
    """The spread of the scores of a switch's INPs: the sum of squares that Figure 6 of the paper calls variance.

    An INP's score is the maximum number of flows that can enter it.
    """
    scores = [
        sum(graph.most_flows[u] for u, _ in entering) for (name, _), entering in graph.inps.items() if name == switch
    ]
    mean = sum(scores) / len(scores)
    return sum((score - mean) ** 2 for score in scores)


def excluding(graph: TaskGraph, switches: Iterable[str]) -> TaskGraph:
    """The graph without these switches, removed one after another, except those that it needs."""
    for switch in switches:
        graph = graph.without([switch]) or graph
    return graph


def first_stage(graph: TaskGraph) -> TaskGraph:
    """SRO's first stage: the graph without the common switches of every location that has AAs."""
    for names in locations(graph.fabric):
        present = [name for name in names if name in graph.into]
        common = [name for name in present if not graph.fabric.switch_by_name[name].ina]
        if len(common) < len(present):
            graph = graph.without(common) or graph
    return graph


def unused(graph: TaskGraph, used: Collection[str]) -> list[str]:
    """The INA switches above the ToRs that are in the task's graph and not in `used`."""
    above = [name for names in locations(graph.fabric) for name in names if name in graph.into]
    return [name for name in aggregators(graph.fabric, above) if name not in used]


# -- The variants.

LEAST = 1e-9
"""The relative tolerance of the second stage below a rate that is known to be possible: the solver rounds."""


@dataclass(frozen=True)
class LiteralOptions(Options):
    """The paper's N (`levels`) and alpha, for the variants with QSR or APP. `two_way` adds footnote 3."""

    levels: int = 100
    alpha: float = 0.6
    two_way: bool = False
    LEAST: ClassVar[Mapping[str, int]] = {"levels": 1}

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.alpha <= 1:
            raise InputError(f"alpha {self.alpha:g}: a fraction of aggregators, above 0 and at most 1, is expected")


@dataclass(frozen=True)
class Variant:
    """A row of Table II: staged optimisation, aggregator pre-pruning, quantized sending rates."""

    sro: bool
    app: bool
    qsr: bool


VARIANTS = {
    "aro-acc": Variant(sro=True, app=True, qsr=True),
    "aro-sro": Variant(sro=True, app=False, qsr=True),
    "aro-app": Variant(sro=False, app=True, qsr=True),
    "aro-raw": Variant(sro=False, app=False, qsr=False),
    "aro-qsr": Variant(sro=False, app=False, qsr=True),
}
"""Table II by planner name."""


def plan_variant(name: str, problem: Problem, options: LiteralOptions) -> Plan:
    """The plan of a variant of Table II, given by its planner name."""
    variant = VARIANTS[name]
    aro, outcome = optimise(problem, variant, options)
    paths = (generate_routes(graph, aro.counts(i)) for i, graph in enumerate(aro.graphs))  # Algorithm 1
    found = Found(tuple(paths), tuple(aro.rates_bps), outcome)
    return plan_found(name, problem, found, judged(aro, outcome, variant, options), options)


def plan_found(name: str, problem: Problem, found: Found, outcome: SolverOutcome, options: LiteralOptions) -> Plan:
    """The plan of what was found, with this outcome. Raises if a job has no rate, as `check_rates` does."""
    tasks = tasks_of(problem)
    rates = dict(zip((task.key for task in tasks), found.rates_bps, strict=True))
    check_rates(problem, found.outcome, rates, options)
    paths: dict[int, list[Path]] = {job.number: [] for job in problem.jobs}
    for task, own in zip(tasks, found.paths, strict=True):
        paths[task.job.number] += own
    return plan_from_paths(
        problem, paths, problem.fabric.ina_names, rates_bps=rates, method=name, outcome=outcome, window=options.window
    )


plan_raw = partial(plan_variant, "aro-raw")
plan_qsr = partial(plan_variant, "aro-qsr")


def optimise(problem: Problem, variant: Variant, options: LiteralOptions) -> tuple[PrintedModel, SolverOutcome]:
    """Build the model and solve it, in one stage or, with SRO, in two.

    SRO's first stage has half of the time. The second stage keeps the AAs that tasks pass in the first one, and demands
    the common rate of all tasks there. If the first stage has no solution, the second one gets all graphs unchanged.
    """
    started = time.monotonic()
    form = Form(options.levels if variant.qsr else None, options.two_way)
    graphs: Sequence[TaskGraph] = task_graphs(problem)
    unit = highest_capacity_bps(graphs)
    if variant.app:
        graphs = pre_pruned(graphs, options.alpha)
    least = 0.0
    if variant.sro:
        first = build(problem, [first_stage(graph) for graph in graphs], form, unit)
        try:
            solve_literal(first, replace(options.for_solver, time_limit_s=options.time_limit_s / 2))
            passed = [{switch for (switch, _), x in flows.x.items() if round(x.varValue)} for flows in first.flows]
            graphs = [excluding(graph, unused(graph, used)) for graph, used in zip(graphs, passed, strict=True)]
            least = min(first.rates.values) * (1 - LEAST)
        except SolverError:
            pass
    aro = build(problem, graphs, form, unit)
    aro.rates.at_least(least)
    left = max(1.0, options.time_limit_s - (time.monotonic() - started))
    outcome = solve_literal(aro, replace(options.for_solver, time_limit_s=left))
    return aro, replace(outcome, seconds=time.monotonic() - started)


def solve_literal(aro: PrintedModel, options: SolverOptions) -> SolverOutcome:
    """Solve the model, then solve it again with all integers fixed, so that rates are exact for the flows that were
    found.

    The gap is one of the rates: where the model minimises t = 1 / r, its own gap g allows a rate of r / (1 - g).
    """
    inverse = isinstance(aro.rates, OneRate)
    outcome = solve(aro.model, replace(options, gap=options.gap / (1 + options.gap)) if inverse else options)
    if inverse and outcome.gap:
        outcome = replace(outcome, gap=outcome.gap / (1 - outcome.gap) if outcome.gap < 1 else inf)
    for variable in aro.model.variables():
        if variable.cat == pulp.LpInteger:
            variable.lowBound = variable.upBound = round(variable.varValue)
    solve(aro.model, options)
    return outcome


def check_rates(
    problem: Problem, outcome: SolverOutcome, rates: Mapping[TaskKey, float], options: LiteralOptions
) -> None:
    """Raise unless every job has a rate: `SolverError` if time was too short, `InputError` if levels are too coarse."""
    for job in problem.jobs:
        if any(rates[job.number, server] > 0 for server in job.servers):
            continue
        if outcome.status != OPTIMAL:
            limit = f"{options.time_limit_s:g} s"
            raise SolverError(f"job {job.number} has the rate 0 in the best plan of {limit}; raise the time limit")
        raise InputError(
            f"job {job.number} gets the rate 0: {options.levels} levels are too coarse for its flows; raise levels"
        )


def judged(aro: PrintedModel, outcome: SolverOutcome, variant: Variant, options: LiteralOptions) -> SolverOutcome:
    """The outcome of a plan: optimal, feasible with a gap, or heuristic.

    SRO and APP prove nothing about the whole problem. QSR costs each task less than one step of its best rate, so its
    optimum lies below the best by less than one step for each task: this is the gap.
    """
    if variant.sro or variant.app:
        return replace(outcome, status="heuristic", gap=None)
    if not variant.qsr:
        return outcome
    worth = Worth(aro.tasks, {})
    steps = worth.throughputs([1 / options.levels] * len(aro.tasks))
    most, found = max(steps) + worth.mu * sum(steps), worth.of(aro.rates.values)
    return replace(outcome, status="feasible", gap=(outcome.gap or 0.0) + (most / found if found else inf))


# -- The same prunings before the fast search: the losses of ARO-ACC, ARO-SRO and ARO-APP in seconds instead of minutes.
#
# SRO's first stage can have several optima; the solver's choice among them decides which aggregators stay unused.

FIRST_STAGE_S = 3.0
"""The maximum seconds for SRO's first stage, which only estimates: its best result at this time decides."""
SEARCH, PRINTED = "search", "printed"


@dataclass(frozen=True)
class AcceleratedOptions(LiteralOptions):
    """`model`: what is left after the prunings is searched ("search"), or solved by the printed model ("printed").

    The printed model also plans where the search cannot: for `two_way`, and for several tasks where switches limit the
    rate that they sum or another solver than HiGHS is requested.
    """

    model: str = SEARCH

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model not in (SEARCH, PRINTED):
            raise unknown_name("model", self.model, (SEARCH, PRINTED))


@dataclass(frozen=True)
class Found:
    """By task, a path for every worker and the rate in bit/s; how well the rates are proven; several tasks' routing."""

    paths: tuple[list[Path], ...]
    rates_bps: Rates
    outcome: SolverOutcome
    routing: Routing | None = None


def plan_accelerated(name: str, problem: Problem, options: AcceleratedOptions) -> Plan:
    """The plan of a variant with SRO, APP or both, given by its planner name; QSR rounds its rates to steps.

    A single task's best multiple of a step is its best rate, rounded down. Several tasks have the best multiples that
    the routes of their best continuous rates allow.
    """
    several = len(tasks_of(problem)) > 1
    unsearched = several and (options.solver != "highs" or limits_summing(problem.fabric))
    if options.model == PRINTED or options.two_way or unsearched:
        return plan_variant(name, problem, options)
    started = time.monotonic()
    found = accelerated(problem, VARIANTS[name], options)
    outcome = replace(found.outcome, status="heuristic", gap=None, seconds=time.monotonic() - started)
    return plan_found(name, problem, found, outcome, options)


plan_acc = partial(plan_accelerated, "aro-acc")
plan_sro = partial(plan_accelerated, "aro-sro")
plan_app = partial(plan_accelerated, "aro-app")


def accelerated(problem: Problem, variant: Variant, options: LiteralOptions, start: Routing | None = None) -> Found:
    """The best routes after the variant's prunings, with rates in steps; or those of the routing to `start` from.

    If SRO's first stage has no solution, its second stage removes only the switches of APP.
    """
    started = time.monotonic()
    graphs = task_graphs(problem)
    step_bps = highest_capacity_bps(graphs) / options.levels
    kept = pre_pruned(graphs, options.alpha) if variant.app else graphs
    excluded = [{*graph.into} - {*own.into} for graph, own in zip(graphs, kept, strict=True)]
    if variant.sro:
        limit = replace(options, time_limit_s=min(FIRST_STAGE_S, options.time_limit_s / 2))
        left_out = [{*graph.into} - {*first_stage(own).into} for graph, own in zip(graphs, kept, strict=True)]
        try:
            first = best(problem, left_out, limit, step_bps)
            above = {name for names in locations(problem.fabric) for name in aggregators(problem.fabric, names)}
            passed = [{node for path in own for node in path} for own in first.paths]
            excluded = [names | (above - used) for names, used in zip(excluded, passed, strict=True)]
        except SolverError:
            pass
    left = max(options.time_limit_s / 4, options.time_limit_s - (time.monotonic() - started))
    return best(problem, excluded, replace(options, time_limit_s=left), step_bps, start)


def best(
    problem: Problem,
    excluded: Sequence[Collection[str]],
    options: Options,
    step_bps: float,
    start: Routing | None = None,
) -> Found:
    """The best routes where each task avoids its `excluded` switches, with their best rates in multiples of a step."""
    fabric, tasks, started = problem.fabric, tasks_of(problem), time.monotonic()
    if len(tasks) == 1:
        switches = tuple(switch for switch in fabric.switches if switch.name not in excluded[0])
        links = tuple(link for link in fabric.links if not {link.a, link.b} & {*excluded[0]})
        one = best_routing(replace(fabric, switches=switches, links=links), tasks[0], options.for_solver)
        return Found((one.paths,), (floor(one.rate_bps / step_bps * (1 + ROUNDING)) * step_bps,), one.outcome)
    pruned = tuple(replace(task, without=frozenset(out)) for task, out in zip(tasks, excluded, strict=True))
    search = searched(network(fabric, pruned), options.for_solver, started, start=start)
    found = with_best_rates(search.net, search.worth, search.incumbent.routing, step_bps)
    pieces = zip(tasks, found.routing.pieces, strict=True)
    paths = tuple(list(worker_paths(search.net, task, own)) for task, own in pieces)
    gap = max(0.0, search.bound / search.incumbent.value - 1)
    return Found(paths, found.rates, proven(gap, started, "highs"), found.routing)
