"""ARO for a single job with a single task (SJST): the routes with the highest throughput, exact.

The paper states SJST as a mixed-integer quadratic program, because constraint (10), y r <= b, multiplies two
variables. With one task it need not be: r > 0, so dividing by it gives y <= b t with t = 1/r, which is
linear, and maximising r is minimising t. SJST thus is a mixed-integer linear program of the same size.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import floor
from typing import Any

import pulp

from planner.decouple import TaskGraph, task_graph
from planner.methods.method import Options
from planner.plan import Plan, SolverOutcome
from planner.problem import Job, Problem
from planner.routes import MAX_CHILDREN, Inp, plan_from_paths
from planner.solve import SolverOptions, solve
from planner.unfold import DirectedLink, Path
from topo.errors import InputError, SolverError
from topo.fabric import Fabric

TIDYING_TIME_S = 5.0
MORE_PIPELINES = (
    f"an input pipeline sums at most {MAX_CHILDREN} flows; give the switches more pipelines, or the job fewer workers"
)


@dataclass(frozen=True)
class AroOptions(Options):
    """`pipeline_aware=False` plans as if every switch had one pipeline.

    The switches then sum only what they really can, and the plan has the rate that this leaves: the
    difference is what awareness is worth.
    """

    pipeline_aware: bool = True


@dataclass(frozen=True)
class Sjst:
    """The model of equations (1) and (4) to (10), and its variables.

    `y[u, v]`: flows on the directed link; `x[inp]`: whether the task passes the INP; `t`: the inverse of
    the throughput, where `unit_bps` is 1.
    """

    graph: TaskGraph
    unit_bps: float
    model: pulp.LpProblem
    t: Any
    y: dict[DirectedLink, Any]
    x: dict[Inp, Any]


def plan(problem: Problem, options: AroOptions) -> Plan:
    """The plan with the highest throughput. Raises `InputError` for more than one job or PS."""
    job = single_task(problem)
    known = problem if options.pipeline_aware else replace(problem, fabric=without_pipelines(problem.fabric))
    sjst = build(known)
    outcome = optimise(sjst, options.for_solver)
    return plan_from_paths(
        problem,
        {job.number: extract(sjst)},
        {switch.name for switch in problem.fabric.switches if switch.ina},
        method="aro",
        outcome=outcome if options.pipeline_aware else replace(outcome, status="heuristic", gap=None),
        window=options.window,
    )


def plan_unaware(problem: Problem, options: Options) -> Plan:
    """The plan of one who takes every switch for a single pipeline; its rate is what the pipelines then leave of it."""
    made = plan(problem, AroOptions(**asdict(options), pipeline_aware=False))
    return replace(made, method="aro-unaware")


def single_task(problem: Problem) -> Job:
    job = problem.jobs[0]
    if len(problem.jobs) > 1:
        raise InputError(
            f"aro plans a single job, {len(problem.jobs)} are given: give one, or take planner 'atp' or 'lbmm'"
        )
    if len(job.servers) > 1:
        raise InputError(
            f"aro plans a single task, job {job.number} has {len(job.servers)} parameter servers: "
            "give it one, or take planner 'atp' or 'lbmm'"
        )
    return job


def without_pipelines(fabric: Fabric) -> Fabric:
    return replace(fabric, switches=tuple(replace(s, pipelines=(s.ports,)) for s in fabric.switches))


def build(problem: Problem) -> Sjst:
    """The SJST model of the problem's only job. Raises `InputError` when a worker cannot reach the PS.

    An INP sums all flows of the task that enter it: at most 64, the children of a slot.
    """
    job = single_task(problem)
    model = pulp.LpProblem("aro_sjst", pulp.LpMinimize)

    # Sets and parameters
    graph = task_graph(problem.fabric, job.workers, job.servers[0])
    b = {link: problem.fabric.capacities_bps[link] for link in graph.links}
    unit = max(b.values())
    most = min(MAX_CHILDREN, len(job.workers))  # M

    # Variables
    t = model.add_variable("t", lowBound=0)
    y = {(u, v): model.add_variable(f"y_{u}_{v}", 0, len(job.workers), pulp.LpInteger) for u, v in graph.links}  # (4)
    x = {(v, p): model.add_variable(f"x_{v}_{p}", cat=pulp.LpBinary) for v, p in graph.inps}  # (6)

    # Objective: (1) maximises r = 1 / t
    model += t, "inverse_throughput"

    # Constraints
    for u in graph.workers:
        model += flows(y, graph.out_of[u]) == 1, f"sends_{u}"  # (5)
    for (v, p), entering in graph.inps.items():
        model += flows(y, entering) <= most * x[v, p], f"is_used_{v}_{p}"  # (7)
        model += flows(y, entering) >= x[v, p], f"is_not_used_{v}_{p}"  # (7)
    for z in graph.aggregating:  # (8): each INP hands x to its OP
        model += pulp.lpSum(x[inp] for inp in x if inp[0] == z) == flows(y, graph.out_of[z]), f"op_forwards_{z}"  # (9)
    for z in graph.common:
        model += flows(y, graph.into[z]) == flows(y, graph.out_of[z]), f"cs_forwards_{z}"  # (9)
    for u, v in graph.links:
        model += y[u, v] <= b[u, v] / unit * t, f"capacity_{u}_{v}"  # (10), divided by r
    sjst = Sjst(graph, unit, model, t, y, x)
    limit_aggregation(sjst, most)
    return sjst


def limit_aggregation(sjst: Sjst, most: int) -> None:
    """The flows that a switch sums fit its `aggregation_rate_bps`: InArt's constraint, which ARO does not have.

    A flow that enters an INP alone is forwarded and costs nothing; `alone` is 1 there.
    """
    model = sjst.model
    for z in sjst.graph.aggregating:
        rate = sjst.graph.fabric.switch_by_name[z].aggregation_rate_bps
        if rate is None:
            continue
        summed = flows(sjst.y, sjst.graph.into[z])
        for (v, p), entering in sjst.graph.inps.items():
            if v == z:
                alone = model.add_variable(f"alone_{v}_{p}", cat=pulp.LpBinary)
                model += alone <= sjst.x[v, p], f"alone_is_used_{v}_{p}"
                model += flows(sjst.y, entering) <= most - (most - 1) * alone, f"alone_is_one_{v}_{p}"
                summed -= alone
        model += summed <= rate / sjst.unit_bps * sjst.t, f"aggregation_rate_{z}"


def flows(y: dict[DirectedLink, Any], links: list[DirectedLink]) -> Any:
    return pulp.lpSum(y[link] for link in links)


def optimise(sjst: Sjst, options: SolverOptions) -> SolverOutcome:
    """Minimise t; then, with t kept, the flows on all links together, as long as that is cheap.

    The outcome is that of t. The second step leaves no flow in the network that serves nothing.
    """
    outcome = solve(sjst.model, options, MORE_PIPELINES)
    found = {variable: variable.varValue for variable in sjst.model.variables()}
    t = found[sjst.t]
    sjst.t.upBound = t * (1 + 1e-9)
    for link, y in sjst.y.items():
        y.upBound = min(y.upBound, floor(sjst.graph.fabric.capacities_bps[link] / sjst.unit_bps * t + 1e-6))
    sjst.model.setObjective(pulp.lpSum(sjst.y.values()))
    try:
        tidied = solve(sjst.model, replace(options, time_limit_s=min(TIDYING_TIME_S, options.time_limit_s)))
    except SolverError:  # no time for it: the first solution stands
        for variable, value in found.items():
            variable.varValue = value
        return outcome
    return replace(outcome, seconds=outcome.seconds + tidied.seconds)


def extract(sjst: Sjst) -> list[Path]:
    """A path for every worker: the paper's Algorithm 1 on the solved y.

    Two lines of the printed algorithm are corrected: line 11 takes one flow from y[i], the task's (not
    y[k]), and line 18 records an INP's path to the PS while it has none, R = nil (not R != nil).
    """
    graph = sjst.graph
    y = {link: round(variable.varValue) for link, variable in sjst.y.items()}
    rest: dict[Inp, Path] = {}  # R
    found = []
    for worker in graph.workers:
        path: Path = (worker,)
        inps: dict[Inp, int] = {}  # the INPs on the path, and the position of their switch
        while path[-1] != graph.server:
            link = next(link for link in graph.out_of[path[-1]] if y[link] > 0)
            y[link] -= 1
            path = (*path, link[1])
            inp = graph.inp(link)
            if inp in rest:
                path = path[:-1] + rest[inp]
            elif inp is not None:
                inps[inp] = path.index(link[1])
        rest |= {inp: path[position:] for inp, position in inps.items()}
        found.append(path)
    return found
