"""ARO, the default method: the routes with the highest rates, by the fastest exact method for the number of tasks."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from time import monotonic

from inakit.planner.core.fair_rates import in_closed_loop
from inakit.planner.core.method import AFTERWARDS, ROUTED, Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.core.slots import limits_summing
from inakit.planner.methods.aro.accelerations import VARIANTS, LiteralOptions, accelerated, plan_variant
from inakit.planner.methods.aro.one_task import best_routing
from inakit.planner.methods.aro.reduced_network import network
from inakit.planner.methods.aro.several_tasks import plan_of, routing_of, searched, with_least_loss
from inakit.planner.methods.aro.task_graphs import tasks_of
from inakit.planner.methods.panama import PanamaOptions, routed
from inakit.planner.solvers import proven
from inakit.planner.trees.from_paths import plan_from_paths
from inakit.topo.fabric.fabric import Fabric, Path


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


PRUNED = 1 / 8
"""The part of the time in which several tasks are searched after ARO-ACC's prunings, if the whole search ends without a
proof.
"""


def several(problem: Problem, options: Options) -> Plan:
    """The best plan by Eq. (3), or by (2) for one job: optimal only if proven, otherwise with its gap.

    The search begins with PANAMA's routes, one tree for each task, so there is always a plan. If it proves nothing in
    its part of the time, ARO-ACC's smaller search for a better plan follows. Raises `InputError` for a worker that
    cannot reach its PS.
    """
    started, net, asked = monotonic(), network(problem.fabric, tasks_of(problem)), options.for_solver
    greedy = routing_of(net, [tree for _, tree in routed(problem, PanamaOptions(options.seed, trees=1))])
    if options.with_results:
        search = searched(net, asked, started, results=True, start=greedy)
    else:
        deadline = started + options.time_limit_s
        part = replace(asked, time_limit_s=options.time_limit_s * (1 - PRUNED))
        search = searched(net, part, started, start=greedy)
        left = deadline - monotonic()
        if search.bound > search.enough and left > 0:
            limited = LiteralOptions(options.seed, time_limit_s=left / 2, gap=options.gap)
            found = accelerated(problem, VARIANTS["aro-acc"], limited, search.incumbent.routing)
            search.improve(found.routing or greedy, deadline)
    best = search.incumbent
    outcome = proven(max(0.0, search.bound / best.value - 1), started, "highs")
    return plan_of(problem, search.net, best.routing, best.rates, outcome, options.window)


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
