"""Chips in virtual time: plans at the rates of true links are kept, and no switch sums more than its chip can."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from command import inakit
from other_entries import OtherEntries
from tolerance import assert_within

from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.problem import Problem
from inakit.planner.install.plan_entries import entries
from inakit.planner.prepared import Prepared, with_headroom
from inakit.planner.registry import METHODS
from inakit.topo.fabric.variations import with_chip_as_wired, with_delay

pytestmark = pytest.mark.compiler


def problem_of(chip: str) -> Problem:
    return build_problem(
        FabricChoice("aro-figure1", capacity="100G", chip=chip), JobChoice(gradient_bytes=192_000, iterations=1)
    )


@pytest.mark.parametrize(("chip", "gbps"), [("tofino1", 50), ("tofino2", 100)])
def test_a_plan_has_its_rate(chip: str, gbps: float) -> None:
    problem = problem_of(chip)
    plan = METHODS["aro"].plan(problem)
    prediction, outcome = evaluate(problem, plan), run_plan(Run(Prepared(problem, plan)), find_world("virtual"))
    measured = outcome.measured
    assert (outcome.verdict, measured.exact, measured.retransmissions) == ("VALID", True, 0)
    assert prediction.sending_rate_bps == pytest.approx(gbps * 1e9)
    assert_within(measured.sending_rate_bps, prediction.sending_rate_bps, 0.02, "sending rate", "bit/s")
    assert_within(measured.communication_time_s, prediction.communication_time_s, 0.02, "time", "s")


def test_slots_limit_what_is_on_its_way() -> None:
    """Links of 5 us: 256 fragments fill less than a third of the round trip at the rate that recirculation allows."""
    problem = problem_of("tofino1")
    problem = replace(problem, fabric=with_delay(problem.fabric, 5e-6))
    run = with_headroom(problem, METHODS["aro"].plan(problem))
    assert "fragments are on their way, and slots at" in run.notes[0]
    assert run.factor < 0.6
    measured = run_plan(Run(Prepared(problem, run.plan)), find_world("virtual")).measured
    expected = evaluate(problem, run.plan).sending_rate_bps
    assert_within(measured.sending_rate_bps, expected, 0.02, "sending rate", "bit/s")


def test_a_plan_that_asks_too_much_gets_what_the_chip_recirculates() -> None:
    """The plan for generic switches sends three times what tofino1 sums; queues are deep enough to lose nothing."""
    problem = problem_of("tofino1")
    generic = replace(problem, fabric=with_chip_as_wired(problem.fabric, None))
    plan = METHODS["aro"].plan(generic)
    assert plan.trees[0].rate_bps == pytest.approx(100e9)
    run = Run(Prepared(problem, plan), interferences=(OtherEntries(entries(generic, plan)),), queue_packets=10_000)
    measured = run_plan(run, find_world("virtual")).measured
    assert (measured.exact, measured.retransmissions) == (True, 0)
    expected_s = 3 * evaluate(generic, plan).jobs[1].communication_time_s
    assert_within(measured.communication_time_s, expected_s, 0.02, "time", "s")


def test_the_report_of_a_run_names_the_chip_and_its_limit(tmp_path: Path) -> None:
    """With series of links and fragments, in which recirculation has links of its own."""
    done = inakit(
        *("emulate", "--topo", "aro-figure1", "--capacity", "100G", "--chip", "tofino1", "--switch", "virtual"),
        *("--planners", "aro", "--gradient-bytes", "64000", "--iterations", "1", "--details"),
        at=tmp_path,
    )
    assert done.code == 0, done.output + done.error
    assert "aro: with tofino1 in 3 switches 50 Gbit/s, 50.0% less than with generic" in done.output
    assert "binds: recirculation at " in done.output
    assert "l1 → l1" in done.output, "the port that takes packets in again is the most loaded link"
