"""Planned and measured figures are the same quantities, of each job and in total, and each job has its limits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inakit.planner.core.evaluate import Prediction, evaluate
from inakit.planner.core.files import load_jobs
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.prepared import with_headroom
from inakit.planner.registry import find_method
from inakit.planner.trees.headroom import with_policy
from inakit.topo.files.fabrics import load_fabric
from inakit.topo.files.quantities import in_words
from inakit.traffic.measure.comparison import TOLERANCE, off_plan, paired
from inakit.traffic.measure.fidelity import late_senders
from inakit.traffic.measure.measured import Iteration, Measured
from inakit.traffic.wire.packet_format import FRAGMENT

CASES = Path(__file__).resolve().parents[2] / "experiments" / "cases"


def three_jobs() -> tuple[Problem, Plan, Prediction]:
    """Of six, four and seven workers, at 1.667 Mbit/s each; 3, 3 and 2 iterations of 127.5 kB and 0.6 s."""
    problem = Problem(load_fabric(CASES / "two-pods.yml"), load_jobs(CASES / "two-pods-jobs.yml"), FRAGMENT)
    plan = with_headroom(problem, find_method("aggtree-balanced").plan(problem)).plan
    return problem, plan, evaluate(problem, plan)


def as_planned(problem: Problem, prediction: Prediction) -> Measured:
    """What a run measures that goes exactly by its plan."""
    iterations = [
        Iteration(
            job.number,
            number,
            job.arrival_s + number * prediction.jobs[job.number].communication_time_s,
            prediction.jobs[job.number].communication_time_s,
            dict.fromkeys(job.workers, prediction.jobs[job.number].sending_rate_bps),
            dict.fromkeys(job.workers, prediction.jobs[job.number].sent_bytes // len(job.workers)),
            {job.servers[0]: prediction.jobs[job.number].ps_ingress_bytes},
        )
        for job in problem.jobs
        for number in range(job.iterations)
    ]
    return Measured("reliable", tuple(iterations))


def with_job(measured: Measured, number: int, **changes: object) -> Measured:
    """The same with other figures in every iteration of a job."""
    changed = (replace(i, **changes) if i.job == number else i for i in measured.iterations)  # type: ignore[arg-type]
    return replace(measured, iterations=tuple(changed))


def test_a_run_that_goes_by_its_plan_has_no_difference_anywhere() -> None:
    problem, plan, prediction = three_jobs()
    measured = as_planned(problem, prediction)
    pairs = paired(prediction, measured)
    assert [pair.name for pair in pairs] == ["1", "2", "3", "total"]
    for pair in pairs:
        assert pair.measured.as_json() == pytest.approx(pair.planned.as_json())
    assert list(off_plan(prediction, measured, plan)) == []
    for figure in ("sending_rate_bps", "ps_ingress_bytes", "communication_time_s", "sent_bytes"):
        assert getattr(measured, figure) == pytest.approx(getattr(prediction, figure))


def test_totals_are_sums_over_workers_and_jobs() -> None:
    problem, _, prediction = three_jobs()
    *jobs, total = paired(prediction, as_planned(problem, prediction))
    for figures in (total.planned, total.measured):
        assert figures.sending_rate_bps == pytest.approx(17 * 5e6 / 3)
        assert figures.ps_ingress_bytes == 3 * 391 * FRAGMENT.wire_bytes
        assert figures.aggregation_ratio == pytest.approx(17 / 3)
        assert figures.communication_time_s is None
    assert [pair.measured.aggregation_ratio for pair in jobs] == [6, 4, 7]


def test_figures_of_a_job_are_its_own() -> None:
    """What one job measures changes neither another job's figures nor what was planned."""
    problem, _, prediction = three_jobs()
    one, two, three, total = paired(prediction, with_job(as_planned(problem, prediction), 3, communication_time_s=9.0))
    assert three.measured.communication_time_s == pytest.approx(9.0)
    assert three.row()["difference_communication_time_s"] == pytest.approx(9.0 / (391 * 326 * 8 / (5e6 / 3)) - 1)
    for pair in (one, two, total):
        assert pair.measured.as_json() == pytest.approx(pair.planned.as_json())


def test_a_job_that_takes_longer_is_a_reason_though_another_is_planned_to_take_as_long() -> None:
    problem, plan, prediction = three_jobs()
    jobs = dict(prediction.jobs)
    jobs[1] = replace(jobs[1], communication_time_s=2.0)
    uneven = replace(prediction, jobs=jobs)
    measured = with_job(as_planned(problem, uneven), 2, communication_time_s=0.8)
    (reason,) = off_plan(uneven, measured, plan)
    assert reason.startswith("job 2 took 800 ms an iteration, planned were 612 ms: at most 70")
    assert list(off_plan(uneven, with_job(measured, 2, communication_time_s=0.7), plan)) == []


def test_the_way_of_the_last_fragment_is_no_delay() -> None:
    """On slow links that is more than what endpoints take: here 0.33 s each way at 10 kbit/s."""
    problem, plan, prediction = three_jobs()
    slow = replace(prediction, jobs={n: replace(job, way_s=0.66) for n, job in prediction.jobs.items()})
    measured = with_job(as_planned(problem, prediction), 2, communication_time_s=1.3)
    assert list(off_plan(prediction, measured, plan)) != []
    assert list(off_plan(slow, measured, plan)) == []


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_job_whose_server_receives_more_or_less_is_a_reason(factor: float) -> None:
    """Job 1's and 2's ingress make up for one another in the total, which is as planned in sum."""
    problem, plan, prediction = three_jobs()
    planned = prediction.jobs[1].ps_ingress_bytes
    measured = with_job(as_planned(problem, prediction), 1, ps_ingress_bytes={"h24": int(factor * planned)})
    (reason,) = off_plan(prediction, measured, plan)
    assert reason.startswith(
        f"the PSs of job 1 received {in_words(factor * planned, 'bytes')} an iteration, planned were 127.5"
    )


def test_collisions_in_shared_slots_bring_more_to_the_server_and_never_less() -> None:
    problem, plan, prediction = three_jobs()
    shared = with_policy(problem, plan, "atp")
    measured = as_planned(problem, prediction)
    more, less = (with_job(measured, 1, ps_ingress_bytes={"h24": count}) for count in (300_000, 60_000))
    assert list(off_plan(prediction, more, shared)) == []
    assert len(list(off_plan(prediction, less, shared))) == 1
    assert len(list(off_plan(prediction, more, plan))) == 1
    longer = with_job(measured, 1, communication_time_s=0.9)
    assert [len(list(off_plan(prediction, longer, each))) for each in (shared, plan)] == [0, 1]


def test_a_root_in_the_network_leaves_little_to_the_server_that_stands_by() -> None:
    problem, plan, _ = three_jobs()
    rooted = with_policy(problem, plan, "switchml")
    prediction = evaluate(problem, rooted)
    assert prediction.jobs[1].ps_ingress_bytes == 0
    measured = as_planned(problem, prediction)
    allowed = (TOLERANCE.relative + TOLERANCE.jitter_s / 0.6118) * 391 * FRAGMENT.wire_bytes
    few, many = (with_job(measured, 1, ps_ingress_bytes={"h24": int(allowed * part)}) for part in (0.9, 1.1))
    assert list(off_plan(prediction, few, rooted)) == []
    assert len(list(off_plan(prediction, many, rooted))) == 1


def test_a_worker_is_late_by_the_time_of_its_own_jobs() -> None:
    """0.1 s are more than 5 % of job 3's 1.2 s, and less than 5 % of all jobs' 4.9 s together."""
    problem, _, prediction = three_jobs()
    measured = replace(as_planned(problem, prediction), late_s={"h5": 0.1, "h1": 0.05})
    assert list(late_senders(measured, 0.05)) == ["worker 'h5' was 100 ms behind its pace in 1.22 s"]
