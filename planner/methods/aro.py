"""ARO, the default method: the routes with the highest rates, exact, by the fastest way for the number of tasks."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from planner.aro.single import best_routing
from planner.aro.task import Task, tasks_of
from planner.methods.method import Options
from planner.plan import Plan
from planner.problem import Problem
from planner.routes import plan_from_paths
from topo.errors import InputError
from topo.fabric import Fabric


@dataclass(frozen=True)
class AroOptions(Options):
    """`pipeline_aware=False` plans as if every switch had one pipeline.

    The switches then sum only what they really can, and the plan has the rate that this leaves: the
    difference is what awareness is worth.
    """

    pipeline_aware: bool = True


def plan(problem: Problem, options: AroOptions) -> Plan:
    """The plan with the highest throughput. Raises `InputError` for more than one job or PS."""
    task = single_task(problem)
    fabric = problem.fabric if options.pipeline_aware else without_pipelines(problem.fabric)
    routing = best_routing(fabric, task, options.for_solver)
    outcome = routing.outcome
    return plan_from_paths(
        problem,
        {task.job.number: routing.paths},
        {switch.name for switch in problem.fabric.switches if switch.ina},
        method="aro",
        outcome=outcome if options.pipeline_aware else replace(outcome, status="heuristic", gap=None),
        window=options.window,
    )


def plan_unaware(problem: Problem, options: Options) -> Plan:
    """The plan of one who takes every switch for a single pipeline; its rate is what the pipelines then leave of it."""
    made = plan(problem, AroOptions(**asdict(options), pipeline_aware=False))
    return replace(made, method="aro-unaware")


def single_task(problem: Problem) -> Task:
    first, *others = tasks_of(problem)
    if others:
        raise InputError(
            f"aro plans a single task, {1 + len(others)} are given: give one job with one parameter server, "
            "or take planner 'atp' or 'lbmm'"
        )
    return first


def without_pipelines(fabric: Fabric) -> Fabric:
    return replace(fabric, switches=tuple(replace(s, pipelines=(s.ports,)) for s in fabric.switches))
