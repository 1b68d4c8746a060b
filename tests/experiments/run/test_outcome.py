"""Wrong sums, and jobs that are off their plan, are reasons of a run's verdict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from inakit.experiments.run.outcome import Outcome, watch
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.files import load_jobs
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.prepared import Prepared, with_headroom
from inakit.planner.registry import find_method
from inakit.topo.files.fabrics import load_fabric
from inakit.traffic.measure.counters import Watched
from inakit.traffic.measure.fidelity import Excuses
from inakit.traffic.measure.measured import Iteration, Measured
from inakit.traffic.measure.monitor import Monitor
from inakit.traffic.measure.verdict import Verdict
from inakit.traffic.wire.packet_format import FRAGMENT

CASES = Path(__file__).parents[1] / "cases"
NO_NETWORK: Any = SimpleNamespace(switches={}, monitor=lambda: Monitor(Watched([])))
WRONG_SUM = "1 element in 1 fragment is wrong at 1 host (h1); the first: element 5 (tree 1, fragment 0) at h1, ..."


def three_jobs() -> tuple[Problem, Plan]:
    problem = Problem(load_fabric(CASES / "two-pods.yml"), load_jobs(CASES / "two-pods-jobs.yml"), FRAGMENT)
    return problem, with_headroom(problem, find_method("aggtree-balanced").plan(problem)).plan


def as_planned(problem: Problem, plan: Plan) -> Measured:
    """One iteration of every job, exactly by the plan."""
    planned = evaluate(problem, plan).jobs
    iterations = []
    for job in problem.jobs:
        own = planned[job.number]
        rates = dict.fromkeys(job.workers, own.sending_rate_bps)
        sent = dict.fromkeys(job.workers, own.sent_bytes // len(job.workers))
        ingress = {job.servers[0]: own.ps_ingress_bytes}
        iterations.append(Iteration(job.number, 0, 0.0, own.communication_time_s, rates, sent, ingress, exact=True))
    return Measured("reliable", tuple(iterations))


def outcome_of(measured: Measured, excuses: Excuses | None = None) -> Outcome:
    """The outcome of a run on a network without switches, whose endpoints measure `measured`."""
    return watch(NO_NETWORK, Prepared(*three_jobs()), lambda: measured, excuses)


def test_wrong_sums_are_the_first_reason_with_job_and_iteration() -> None:
    measured = as_planned(*three_jobs())
    wrong = replace(measured.iterations[1], exact=False, wrong=(WRONG_SUM,))
    outcome = outcome_of(replace(measured, iterations=(measured.iterations[0], wrong, measured.iterations[2])))
    assert outcome.verdict == Verdict.WRONG
    assert outcome.results.verdict == Verdict.WRONG
    assert outcome.results.reasons[0] == f"job 2, iteration 0: {WRONG_SUM}"


def test_in_a_replay_a_wrong_sum_is_no_loss() -> None:
    """Fragments that never came make a replay OVERLOADED; a sum that is complete but wrong makes it WRONG."""
    measured = replace(as_planned(*three_jobs()), mode="replay", problems={"PS h24: incomplete fragments": 3})
    lossy = replace(measured.iterations[0], exact=False)
    assert outcome_of(replace(measured, iterations=(lossy, *measured.iterations[1:]))).verdict == "OVERLOADED"
    wrong = replace(lossy, wrong=(WRONG_SUM,))
    assert outcome_of(replace(measured, iterations=(wrong, *measured.iterations[1:]))).verdict == Verdict.WRONG


def test_a_job_off_its_plan_is_a_reason_unless_faults_excuse_rates() -> None:
    measured = as_planned(*three_jobs())
    slow = replace(measured.iterations[2], communication_time_s=1.0)
    run = replace(measured, iterations=(*measured.iterations[:2], slow))
    assert [reason for reason in outcome_of(run).reasons if reason.startswith("job 3 took 1 s an iteration")]
    assert not [reason for reason in outcome_of(run, Excuses(rates=True)).reasons if reason.startswith("job")]


def test_a_run_by_its_plan_has_pairs_of_all_jobs_and_totals_in_its_record() -> None:
    found = outcome_of(as_planned(*three_jobs()))
    assert [pair.name for pair in found.pairs] == ["1", "2", "3", "total"]
    assert not [reason for reason in found.reasons if reason.startswith(("job", "the PSs of"))]
    figures = found.results.as_json()["measured"]
    assert list(figures["jobs"]) == ["1", "2", "3"]
    assert figures["total"]["ps_ingress_bytes"] == figures["ps_ingress_bytes"] == 3 * 391 * FRAGMENT.wire_bytes


def test_bytes_on_links_are_unknown_where_jobs_have_other_numbers_of_iterations() -> None:
    """Switches count the gradients of all jobs together, so that the counts of one iteration are unknown."""
    measured = as_planned(*three_jobs())
    assert outcome_of(measured).results.as_json()["measured"]["overhead_bytes"] is not None
    again = replace(measured, iterations=(*measured.iterations, replace(measured.iterations[0], number=1)))
    assert outcome_of(again).results.as_json()["measured"]["overhead_bytes"] is None
