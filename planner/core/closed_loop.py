"""A plan's rates in a closed loop, where results come back by the trees while gradients still go up.

Each job keeps its shares and lowers its rates by one factor. The factors are max-min fair, found by progressive filling
(Bertsekas and Gallager, *Data Networks*, section 6.5.2): all jobs' weighted throughputs rise together until a link is
full; the jobs on that link stay there, and the others go on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from inakit.planner.core.evaluate import DirectedLink, link_loads, result_loads, tree_loads
from inakit.planner.core.plan import FEASIBLE, OPTIMAL, Plan, SolverOutcome
from inakit.planner.core.problem import Problem

ROUNDING = 1e-9
"""A factor so near to 1 counts as 1, since a plan may fill a link with gradients alone."""

JobLoads = dict[DirectedLink, dict[int, float]]
"""By directed link and job, the bit/s of its gradients and results."""


def in_closed_loop(problem: Problem, plan: Plan) -> Plan:
    """The plan with rates at which gradients and results fit every link: max-min fair over jobs, and none raised.

    What is proven of the plan's own rates bounds those in a closed loop, so that a proof becomes a gap.
    """
    factors = fair_factors(problem, plan)
    least = min(factors.values())
    if least >= 1 - ROUNDING:
        return plan
    trees = tuple(replace(planned, rate_bps=planned.rate_bps * factors[planned.job]) for planned in plan.trees)
    return replace(plan, trees=trees, outcome=lowered(plan.outcome, least))


def lowered(outcome: SolverOutcome, factor: float) -> SolverOutcome:
    """What is known of a plan after every rate was lowered, none by more than `factor`."""
    if outcome.status not in (OPTIMAL, FEASIBLE):
        return outcome
    return replace(outcome, status=FEASIBLE, gap=(1 + (outcome.gap or 0.0)) / factor - 1)


def fair_factors(problem: Problem, plan: Plan) -> dict[int, float]:
    """By job, the factor of its rates, at most 1."""
    loads, capacities = job_loads(problem, plan), problem.fabric.capacities_bps
    wanted = {
        job.number: job.weight * sum(planned.rate_bps for planned in plan.trees if planned.job == job.number)
        for job in problem.jobs
    }
    factors: dict[int, float] = {job: 1.0 for job, rate in wanted.items() if rate == 0}
    while rising := {job: rate for job, rate in wanted.items() if job not in factors}:
        levels = {link: level(of_jobs, capacities[link], rising, factors) for link, of_jobs in loads.items()}
        full = min([*rising.values(), *(found for found in levels.values() if found is not None)])
        reached = [job for job, rate in rising.items() if rate <= full * (1 + ROUNDING)]
        for link, found in levels.items():
            if found is not None and found <= full * (1 + ROUNDING):
                reached += [job for job in loads[link] if job in rising]
        factors |= {job: min(1.0, full / wanted[job]) for job in reached}
    return factors


def level(
    of_jobs: Mapping[int, float], capacity: float, rising: Mapping[int, float], factors: Mapping[int, float]
) -> float | None:
    """The weighted throughput of the rising jobs at which a link is full; None for a link without such a job."""
    slope = sum(load / rising[job] for job, load in of_jobs.items() if job in rising)
    taken = sum(load * factors[job] for job, load in of_jobs.items() if job in factors)
    return max(0.0, capacity - taken) / slope if slope else None


def job_loads(problem: Problem, plan: Plan) -> JobLoads:
    """What each job's gradients and results load every link with."""
    found: JobLoads = defaultdict(lambda: defaultdict(float))
    trees = list(tree_loads(problem, plan))
    for job in problem.jobs:
        own = [load for load in trees if load.job == job.number]
        for loads in (link_loads(own), result_loads(own)):
            for link, load in loads.items():
                found[link][job.number] += load
    return found
