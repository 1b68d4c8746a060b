"""ARO, the default method: the routes with the highest rates, exact, by the fastest way for the number of tasks."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace

from inakit.planner.core.limits.switch_limits import limits_summing
from inakit.planner.core.method import AFTERWARDS, ROUTED, Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.core.rates.closed_loop import in_closed_loop
from inakit.planner.methods.aro.several.least_loss import with_least_loss
from inakit.planner.methods.aro.several.several_tasks import several
from inakit.planner.methods.aro.single.one_task import best_routing
from inakit.planner.methods.aro.task import Task, tasks_of
from inakit.planner.methods.aro.variants import LiteralOptions, plan_variant
from inakit.planner.trees.from_paths import plan_from_paths
from inakit.planner.trees.unfolding import Path
from inakit.topo.fabric.fabric import Fabric


@dataclass(frozen=True)
class AroOptions(Options):
    """`pipeline_aware=False` plans as if every switch had one pipeline.

    The switches of the plan then sum only what they really can, and its rate is what this leaves. The difference to the
    aware plan is what awareness is worth.
    """

    pipeline_aware: bool = True


def plan(problem: Problem, options: AroOptions) -> Plan:
    """The plan with the highest throughput: Eq. (1) for one task, (2) for one job, (3) for several."""
    if options.pipeline_aware:
        return plan_aware(problem, options)
    known = replace(problem, fabric=without_pipelines(problem.fabric))
    return with_real_pipelines(problem, plan_aware(known, options), options)


def plan_aware(problem: Problem, options: AroOptions) -> Plan:
    """ARO's plan for the real pipelines: by the model as printed where the fast method for several tasks does not
    apply.
    """
    if options.headroom == ROUTED:
        plan = plan_aware(problem, replace(options, headroom=AFTERWARDS))
        return plan if in_closed_loop(problem, plan) is plan else with_least_loss(problem, plan, options)
    task, *others = tasks_of(problem)
    if others and (options.solver != "highs" or limits_summing(problem.fabric)):
        return plan_literally(problem, options)
    if others:
        return several(problem, options)
    plan = plan_one_task(problem, task, options)
    if options.with_results and in_closed_loop(problem, plan) is not plan:
        return several(problem, options)
    return plan


def plan_one_task(problem: Problem, task: Task, options: Options) -> Plan:
    """The plan with the highest rate of gradients of a single task. Where links are alike, its results cost nothing."""
    routing = best_routing(problem.fabric, task, options.for_solver)
    return plan_from_paths(
        problem,
        {task.job.number: routing.paths},
        problem.fabric.ina_names,
        method="aro",
        outcome=routing.outcome,
        window=options.window,
    )


def plan_literally(problem: Problem, options: Options) -> Plan:
    """The plan of the model as printed, which knows aggregation rates and other solvers than HiGHS.

    Its footnote 3 counts more results than are sent, so that nothing is proven where results count.
    """
    known = {field.name: getattr(options, field.name) for field in fields(Options)}
    made = plan_variant("aro-raw", problem, LiteralOptions(**known, two_way=options.with_results))
    outcome = replace(made.outcome, status="heuristic", gap=None) if options.with_results else made.outcome
    return replace(made, method="aro", outcome=outcome)


def plan_unaware(problem: Problem, options: Options) -> Plan:
    """The plan of a method that takes every switch for a single pipeline, at the rate that the real pipelines leave."""
    made = plan(problem, AroOptions(**asdict(options), pipeline_aware=False))
    return replace(made, method="aro-unaware")


def with_real_pipelines(problem: Problem, plan: Plan, options: Options) -> Plan:
    """The routes of a plan that was made for other pipelines, at the rates that the real pipelines leave."""
    paths: dict[int, list[Path]] = {job.number: [] for job in problem.jobs}
    for shard in plan.shards:
        for tree in shard.trees:
            paths[shard.job] += [tree.way(label) for label in tree.workers]
    return plan_from_paths(
        problem,
        paths,
        problem.fabric.ina_names,
        rates_bps={(shard.job, tree.root): shard.rate_bps for shard in plan.shards for tree in shard.trees},
        method=plan.method,
        outcome=replace(plan.outcome, status="heuristic", gap=None),
        window=options.window,
    )


def without_pipelines(fabric: Fabric) -> Fabric:
    """The fabric with all ports of each switch in one pipeline, which no chip limits."""
    return replace(fabric, switches=tuple(replace(s, pipelines=(s.ports,), chip=None) for s in fabric.switches))
