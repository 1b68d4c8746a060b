"""New routes of jobs that a failure touches: the others keep theirs, and nobody becomes slower."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inakit.experiments.hardware.failures import (
    Failure,
    after,
    for_jobs,
    links_of_jobs,
    plan_beside,
    what_is_left,
)
from inakit.experiments.run.scenario import FabricChoice
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Job, Problem
from inakit.planner.core.used_limits import used_limits
from inakit.planner.registry import find_method
from inakit.topo.errors import InputError
from inakit.traffic.wire.packet_format import FRAGMENT

LINK = 100e9


def two_jobs(*, spines: int = 3, chip: str | None = None) -> Problem:
    """Three leaves of two hosts, links of 100 Gbit/s; each job has workers under leaves 1 and 2, its PS under 3."""
    topo = f"leafspine:leaves=3,spines={spines},hosts_per_leaf=2"
    fabric = FabricChoice(topo, capacity="100G", chip=chip).build()
    return Problem(fabric, (Job(1, ("h1", "h3"), ("h5",), 4096), Job(2, ("h2", "h4"), ("h6",), 4096)), FRAGMENT)


def aro(problem: Problem, _: Plan | None = None) -> Plan:
    """ARO's plan."""
    return find_method("aro").plan(problem)


def spine_of(plan: Plan, job: int) -> str:
    """A spine that a job's plan passes."""
    return next(node for link in sorted(links_of_jobs(plan)[job]) for node in link if node.startswith("spine"))


@pytest.mark.parametrize("chip", [None, "tofino1"])
def test_the_touched_job_keeps_its_rate_and_the_other_its_trees(chip: str | None) -> None:
    problem = two_jobs(chip=chip)
    plan = aro(problem)
    left = after(problem, links_of_jobs(plan), Failure((spine_of(plan, 1),)))
    assert left.problem is not None
    assert left.touched == {1}
    made = plan_beside(left.problem, plan, left.touched, aro, "reliable")
    assert made is not None
    assert for_jobs(made, {2}).trees == for_jobs(plan, {2}).trees
    before, now = (evaluate(problem, each).jobs for each in (plan, made))
    assert {n: job.sending_rate_bps for n, job in now.items()} == pytest.approx(
        {n: job.sending_rate_bps for n, job in before.items()}
    )
    assert all(limit.share <= 1 + 1e-9 for limit in used_limits(left.problem, made))


def test_where_the_touched_job_would_be_slower_there_is_no_such_plan() -> None:
    problem = two_jobs(spines=2)
    plan = aro(problem)
    assert spine_of(plan, 1) != spine_of(plan, 2)
    left = after(problem, links_of_jobs(plan), Failure((spine_of(plan, 1),)))
    assert left.problem is not None
    assert plan_beside(left.problem, plan, left.touched, aro, "reliable") is None
    together = evaluate(left.problem, aro(left.problem)).jobs
    assert [job.sending_rate_bps for job in together.values()] == pytest.approx([LINK / 2] * 2)


def test_a_planner_that_finds_nothing_gives_no_such_plan() -> None:
    def refuse(*_: object) -> Plan:
        raise InputError("no routes")

    problem = two_jobs()
    assert plan_beside(problem, aro(problem), {1}, refuse, "reliable") is None


def test_what_is_left_is_what_the_others_do_not_use() -> None:
    problem = two_jobs(chip="tofino1")
    one = replace(problem, jobs=problem.jobs[:1])
    plan = aro(one)
    used = evaluate(one, plan)
    left = what_is_left(problem.fabric, used, 1e9)
    for link, load in used.loads_with_results_bps.items():
        if load < LINK:
            assert left.capacities_bps[link] == pytest.approx(LINK - load)
        else:
            assert link not in left.capacities_bps
    for (switch, _), load in used.summed_bps.items():
        if load < LINK:
            assert left.switch_by_name[switch].pipeline_summing_bps == pytest.approx(LINK - load)
        else:
            assert switch not in left.ina_names


def test_plans_of_different_jobs_become_one() -> None:
    plan = aro(two_jobs())
    assert [{planned.job for planned in for_jobs(plan, {job}).trees} for job in (1, 2)] == [{1}, {2}]
