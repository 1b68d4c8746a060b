"""INARouting's planners: `inarouting-opt`, its integer program, and `inarouting`, rounded from the relaxation.

Nie et al., INARouting: Efficient Multi-Job Routing Optimization for Hierarchical In-Network Aggregation; its models are
those of the public code. A job with several parameter servers (PSs) is several tasks here. The rates of a plan are
max-min fair, as the paper's evaluation has them, and a job's gradient is split in proportion to its tasks' rates.

The model counts what a switch sums by the rate of its sum, and switches with one pipeline. The kit counts what
aggregators take in, pipeline by pipeline. Rates follow from the trees as the kit counts, so plans keep every capacity.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.core.rates.loads import aggregated_flows, flow_counts
from inakit.planner.core.solving import FEASIBLE, OPTIMAL, SolverOptions, SolverOutcome
from inakit.planner.methods.inarouting.bound import total_bound_bps
from inakit.planner.methods.inarouting.model import build, extract
from inakit.planner.methods.inarouting.rerouting import rerouted, total_rates
from inakit.planner.methods.inarouting.rounding import relax_and_round
from inakit.planner.methods.inarouting.routes import (
    Network,
    NextHops,
    Resource,
    max_min_rates,
    network_of,
    worker_paths,
)
from inakit.planner.solvers.solve import PROVEN_GAP, solve
from inakit.planner.trees.from_paths import plan_from_paths, tree_from_paths
from inakit.planner.trees.unfolding import Path


def plan(problem: Problem, options: Options) -> Plan:
    """INARouting-Relax, rounded and re-routed, with its gap. Raises `InputError` for a PS that a worker misses."""
    started = time.monotonic()
    network = network_of(problem)
    hops = heuristic_routes(network, options.for_solver)
    outcome = judged(network, hops, time.monotonic() - started)
    return plan_of(problem, network, hops, "inarouting", outcome, options)


def plan_optimum(problem: Problem, options: Options) -> Plan:
    """INARouting-Opt: the integer program, whose total rate has to be at least that of the heuristic.

    Raises `SolverError` if the solver finds no routes in its time.
    """
    network = network_of(problem)
    hops, outcome = optimal_routes(network, options.for_solver)
    return plan_of(problem, network, hops, "inarouting-opt", outcome, options)


def judged(network: Network, hops: Sequence[NextHops], seconds: float) -> SolverOutcome:
    """What is proven of routes: their total of fair rates beside what no routes exceed."""
    gap = total_bound_bps(network) / total_rates(network, hops)[0] - 1
    proven = gap < PROVEN_GAP
    return SolverOutcome(OPTIMAL if proven else FEASIBLE, seconds, 0.0 if proven else gap)


def heuristic_routes(network: Network, options: SolverOptions) -> list[NextHops]:
    """The rounded relaxation, re-routed."""
    rounded, _ = relax_and_round(network, options)
    return rerouted(network, rounded, options.seed)


def optimal_routes(network: Network, options: SolverOptions) -> tuple[list[NextHops], SolverOutcome]:
    """The best routes of the integer program, and how good they are proven to be."""
    known = heuristic_routes(network, options)
    model = build(network, at_least_bps=total_rates(network, known)[0])
    outcome = solve(model.program, options)
    return extract(network, model), outcome


def plan_of(
    problem: Problem, network: Network, hops: Sequence[NextHops], method: str, outcome: SolverOutcome, options: Options
) -> Plan:
    """The plan of every task's next hops, with max-min fair rates."""
    ina = problem.fabric.ina_names
    paths = [worker_paths(network, task, own) for task, own in zip(network.tasks, hops, strict=True)]
    usages = []
    for own in paths:
        tree = tree_from_paths(problem.fabric, 1, own, ina)
        used: Counter[Resource] = Counter(flow_counts([tree]))
        used.update(aggregated_flows([tree]))
        usages.append(used)
    rates = max_min_rates(usages, network.capacities_bps)
    by_task = {(task.job.number, task.server): rate for task, rate in zip(network.tasks, rates, strict=True)}
    by_job: dict[int, list[Path]] = {job.number: [] for job in problem.jobs}
    for task, own in zip(network.tasks, paths, strict=True):
        by_job[task.job.number] += own
    return plan_from_paths(
        problem, by_job, ina, rates_bps=by_task, method=method, outcome=outcome, window=options.window
    )
