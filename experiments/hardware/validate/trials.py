"""The trials of a validation: what each does with a failure, and what it returns in JSON's types."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from inakit.experiments.hardware.validate.failures import Failure, for_jobs
from inakit.experiments.hardware.validate.packed_plan import packed, unpacked
from inakit.experiments.hardware.validate.prepared import (
    AS_BEFORE,
    NO_PLAN,
    NOTHING,
    load_planned,
    load_problem,
    load_remains,
    plan_under,
)
from inakit.experiments.run.outcome import Outcome
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.sweeps.one_trial import Given, Row
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.core.solving import FEASIBLE
from inakit.planner.install.data_plane_program import find_program
from inakit.topo.errors import InakitError
from inakit.topo.fabric.variations import with_scale


def withstand(given: Given) -> Row:
    """Plan under a failure: what becomes of the plan, which jobs are lost and why, and the rates of the others.

    A plan that is not as before is in the row, as `packed` writes it, and whether its solver stopped before it was
    proven the best.
    """
    folder, planner, failure = Path(given["folder"]), given["planner"], Failure(tuple(given["failure"]))
    lost = {str(number): why for number, why in load_remains(folder, planner, failure).lost.items()}
    try:
        found = plan_under(folder, planner, failure, given["mode"], given["seed"])
    except InakitError as error:
        return {"state": NO_PLAN, "lost": lost, "rates_bps": {}, "error": str(error)}
    if found is None:
        return {"state": NOTHING, "lost": lost, "rates_bps": {}, "error": None}
    left, made, state = found
    row = {"state": state, "lost": lost, "rates_bps": rates_of(left, made), "error": None}
    if state == AS_BEFORE:
        return row
    return row | {"plan": packed(made), "unproven": made.outcome.status == FEASIBLE}


def rates_of(problem: Problem, plan: Plan) -> dict[str, float]:
    """The sending rate of each job, by its number as a text."""
    return {str(number): job.sending_rate_bps for number, job in evaluate(problem, plan).jobs.items()}


def simulate(given: Given) -> Row:
    """Run in virtual time, at true rates, a plan without a failure (`failure` None) or under one.

    `plan` is the packed plan under the failure; None for one that is as before.
    """
    folder, planner = Path(given["folder"]), given["planner"]
    problem, plan = load_problem(folder), load_planned(folder, planner)
    if given["failure"] is not None:
        left = load_remains(folder, planner, Failure(tuple(given["failure"]))).problem
        assert left is not None, "only failures under which jobs go on are simulated"
        problem, plan = left, for_jobs(plan, {job.number for job in left.jobs})
    if given["plan"] is not None:
        plan = unpacked(given["plan"])
    return ran(cut_short(problem, given["fragments"]), plan, given, "virtual")


def emulate(given: Given) -> Row:
    """Run a plan without failures in the kernel's emulated network, every rate times `scale`."""
    folder = Path(given["folder"])
    problem, plan = load_problem(folder), load_planned(folder, given["planner"])
    scaled = replace(problem, fabric=with_scale(problem.fabric, given["scale"]))
    slower = plan.with_rates_times(given["scale"])
    return ran(cut_short(scaled, given["fragments"]), slower, given, "fast")


def cut_short(problem: Problem, fragments: int) -> Problem:
    """The problem with gradients of at most so many fragments, that all jobs send at the same time, once."""
    most = fragments * problem.fragment.values * 4
    jobs = (
        replace(job, gradient_bytes=min(job.gradient_bytes, most), iterations=1, arrival_s=0.0, compute_s=0.0)
        for job in problem.jobs
    )
    return replace(problem, jobs=tuple(jobs))


def ran(problem: Problem, plan: Plan, given: Given, world: str) -> Row:
    """What running a plan in a world gives: the verdict, its reasons, and rates by job."""
    return run_row(run_plan(Run(problem, plan, given["mode"]), find_world(world, find_program(given["program"]))))


def run_row(outcome: Outcome) -> Row:
    """An outcome in JSON's types: planned and measured rates by job, its number as a text."""
    jobs = [pair for pair in outcome.pairs if pair.job is not None]
    return {
        "verdict": str(outcome.verdict),
        "reasons": list(outcome.reasons),
        "exact": outcome.measured.exact,
        "planned_bps": {pair.name: pair.planned.sending_rate_bps for pair in jobs},
        "measured_bps": {pair.name: pair.measured.sending_rate_bps for pair in jobs},
    }
