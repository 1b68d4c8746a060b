"""ARO, the default method, and its published accelerations SRO and APP by the same fast search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import chain
from time import monotonic

from inakit.planner.core.fair_rates import in_closed_loop
from inakit.planner.core.method import AFTERWARDS, ROUTED, Options
from inakit.planner.core.plan import Plan, SolverOptions
from inakit.planner.core.problem import Problem
from inakit.planner.core.slots import limits_summing
from inakit.planner.methods.aro.accelerations import (
    LiteralOptions,
    aggregators,
    first_stage,
    locations,
    plan_variant,
    pre_pruned,
)
from inakit.planner.methods.aro.leaf_spine import leaf_spine
from inakit.planner.methods.aro.one_task import best_choice, best_routing
from inakit.planner.methods.aro.printed_model import task_graphs
from inakit.planner.methods.aro.rate_objective import Rates
from inakit.planner.methods.aro.several_tasks import searched, several, with_least_loss
from inakit.planner.methods.aro.task_graphs import tasks_of
from inakit.planner.trees.from_paths import plan_from_paths
from inakit.topo.errors import SolverError
from inakit.topo.fabric.fabric import Fabric, Path

# -- SRO and APP before the fast search: the losses of ARO-ACC, ARO-SRO and ARO-APP in seconds instead of minutes.
#
# Rates are continuous, so only the two prunings can lose throughput. One task on a leaf-spine is solved in closed form
# and, as in the paper, with any number of flows at an aggregator. SRO's first stage can have several optima; the
# solver's choice among them decides which aggregators stay unused.

FIRST_STAGE_S = 3.0
"""The maximum seconds for SRO's first stage, which only estimates: its best result at this time decides."""


@dataclass(frozen=True)
class BestRates:
    """The best rates of all tasks in bit/s, their worth, a bound of the worth, and for each task the nodes that its
    flows pass.

    The worth equals its bound if it is proven to be the best. A single task with a closed form has `paths`.
    """

    rates: Rates
    value: float
    bound: float
    used: tuple[set[str], ...]
    paths: tuple[Path, ...] = ()


def accelerated(problem: Problem, options: SolverOptions, *, sro: bool, alpha: float = 1.0) -> BestRates:
    """The optimum with APP at `alpha`, where 1 disables APP, and with or without SRO.

    If SRO's first stage has no solution, its second stage removes only the switches of APP.
    """
    started = monotonic()
    graphs = task_graphs(problem)
    kept = pre_pruned(graphs, alpha) if alpha < 1 else graphs
    excluded = [{*graph.into} - {*own.into} for graph, own in zip(graphs, kept, strict=True)]
    if sro:
        limit = replace(options, time_limit_s=min(FIRST_STAGE_S, options.time_limit_s / 2))
        pruned = [graph.without(names) or graph for graph, names in zip(graphs, excluded, strict=True)]
        left_out = [{*graph.into} - {*first_stage(own).into} for graph, own in zip(graphs, pruned, strict=True)]
        try:
            first = best(problem, left_out, limit)
            above = {name for names in locations(problem.fabric) for name in aggregators(problem.fabric, names)}
            excluded = [names | (above - used) for names, used in zip(excluded, first.used, strict=True)]
        except SolverError:
            pass
    left = max(1.0, options.time_limit_s - (monotonic() - started))
    return best(problem, excluded, replace(options, time_limit_s=left))


def best(problem: Problem, excluded: Sequence[set[str]], options: SolverOptions) -> BestRates:
    """The optimum where each task avoids its `excluded` switches. One task on a leaf-spine has a closed form."""
    fabric, tasks = problem.fabric, tasks_of(problem)
    if len(tasks) == 1:
        names = excluded[0]
        switches = tuple(switch for switch in fabric.switches if switch.name not in names)
        links = tuple(link for link in fabric.links if not {link.a, link.b} & names)
        closed = leaf_spine(replace(fabric, switches=switches, links=links), tasks[0])
        if closed is not None:
            closed = replace(closed, most_children=closed.workers)
            choice = best_choice(closed, options)
            assert choice is not None
            paths = tuple(closed.paths(choice.solution))
            return BestRates((1 / choice.t,), 1 / choice.t, 1 / choice.bound, ({*chain.from_iterable(paths)},), paths)
    pruned = tuple(replace(task, without=frozenset(out)) for task, out in zip(tasks, excluded, strict=True))
    search = searched(fabric, pruned, options, monotonic())
    found = search.incumbent
    used = tuple(
        {node for paths in pieces.values() for path in paths for node in path} for pieces in found.routing.pieces
    )
    return BestRates(found.rates, found.value, search.bound, used)


# -- ARO, the default method: the routes with the highest rates, exact, by the fastest algorithm for the number of
# tasks.


@dataclass(frozen=True)
class AroOptions(Options):
    """`pipeline_aware=False` plans as if every switch had one pipeline.

    The switches of the plan then sum only what their real pipelines allow, and the plan has the resulting rate. The
    difference to the aware plan is the benefit of awareness.
    """

    pipeline_aware: bool = True


def plan(problem: Problem, options: AroOptions) -> Plan:
    """The plan with the highest throughput: Eq. (1) for one task, (2) for one job, (3) for several."""
    if options.pipeline_aware:
        return plan_aware(problem, options)
    known = replace(problem, fabric=without_pipelines(problem.fabric))
    return with_real_pipelines(problem, plan_aware(known, options), options)


def plan_aware(problem: Problem, options: AroOptions) -> Plan:
    """ARO's plan for the real pipelines.

    Several tasks are planned by the model as printed if switches limit the rate that they sum, or if another solver
    than HiGHS is requested. Its footnote 3 counts more results than are sent, so it proves nothing where results count.
    """
    if options.headroom == ROUTED:
        plan = plan_aware(problem, replace(options, headroom=AFTERWARDS))
        return plan if in_closed_loop(problem, plan) is plan else with_least_loss(problem, plan, options)
    task, *others = tasks_of(problem)
    if others and (options.solver != "highs" or limits_summing(problem.fabric)):
        known = {field.name: getattr(options, field.name) for field in fields(Options)}
        made = plan_variant("aro-raw", problem, LiteralOptions(**known, two_way=options.with_results))
        outcome = replace(made.outcome, status="heuristic", gap=None) if options.with_results else made.outcome
        return replace(made, method="aro", outcome=outcome)
    if others:
        return several(problem, options)
    routing = best_routing(problem.fabric, task, options.for_solver)
    paths = {task.job.number: routing.paths}
    ina = problem.fabric.ina_names
    plan = plan_from_paths(problem, paths, ina, method="aro", outcome=routing.outcome, window=options.window)
    if options.with_results and in_closed_loop(problem, plan) is not plan:  # equal links never need this
        return several(problem, options)
    return plan


def plan_unaware(problem: Problem, options: Options) -> Plan:
    """The plan of a method that treats every switch as one pipeline, at the rate that the real pipelines allow."""
    made = plan(problem, AroOptions(**asdict(options), pipeline_aware=False))
    return replace(made, method="aro-unaware")


def with_real_pipelines(problem: Problem, plan: Plan, options: Options) -> Plan:
    """The routes of a plan that was made for other pipelines, at the rates that the real pipelines allow."""
    paths: dict[int, list[Path]] = {job.number: [] for job in problem.jobs}
    for planned in plan.trees:
        paths[planned.job] += [planned.tree.way(label) for label in planned.tree.workers]
    return plan_from_paths(
        problem,
        paths,
        problem.fabric.ina_names,
        rates_bps={(planned.job, planned.tree.root): planned.rate_bps for planned in plan.trees},
        method=plan.method,
        outcome=replace(plan.outcome, status="heuristic", gap=None),
        window=options.window,
    )


def without_pipelines(fabric: Fabric) -> Fabric:
    """The fabric with all ports of each switch in one pipeline without chip limits."""
    return replace(fabric, switches=tuple(replace(s, pipelines=(s.ports,), chip=None) for s in fabric.switches))
