"""Plans in virtual time: planned rates and times, exact sums, and the same run twice."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from command import inakit
from driven_network import driven_network
from tolerance import assert_within

from inakit.experiments.run.faults import Event, When
from inakit.experiments.run.faults_file import FaultPlan
from inakit.experiments.run.outcome import Outcome
from inakit.experiments.run.run import Run, run_plan
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.experiments.worlds.registry import find_world
from inakit.planner.core.evaluate import evaluate
from inakit.planner.install.fault_entries import LinkFaults
from inakit.planner.prepared import with_headroom
from inakit.planner.registry import METHODS

pytestmark = pytest.mark.compiler


def planned(topo: str, planner: str, capacity: str | None = None) -> Run:
    """A run of one iteration of a plan for the default job, with room for results."""
    problem = build_problem(FabricChoice(topo, capacity=capacity), JobChoice(gradient_bytes=128_000, iterations=1))
    return Run(with_headroom(problem, METHODS[planner].plan(problem)))


def ran(run: Run) -> Outcome:
    return run_plan(run, find_world("virtual"))


@pytest.mark.parametrize("planner", ["aro", "atp", "lbmm"])
@pytest.mark.parametrize("topo", ["fattree", "aro-figure1"])
def test_rates_and_times_are_those_of_the_plan(topo: str, planner: str) -> None:
    run = planned(topo, planner)
    outcome, prediction = ran(run), evaluate(run.problem, run.plan)
    assert (outcome.verdict, outcome.reasons, outcome.measured.exact) == ("VALID", (), True)
    assert_within(outcome.measured.sending_rate_bps, prediction.sending_rate_bps, 0.02, "sending rate", "bit/s")
    assert outcome.measured.ps_ingress_bytes == prediction.ps_ingress_bytes
    # The last result takes some hops more than the plan, which knows no way.
    assert 0 <= outcome.measured.communication_time_s - prediction.communication_time_s < 0.0015


def test_a_run_is_the_same_again() -> None:
    """All but the seconds of this machine that setting up took."""
    first, second = (ran(planned("aro-figure1", "atp")).results.repeatable() for _ in range(2))
    assert first == second


def test_losses_and_a_link_that_fails_cost_time_and_no_sum() -> None:
    run = planned("aro-figure1", "aro")
    lossy = {direction: LinkFaults(drop=0.02) for direction in run.problem.fabric.capacities_bps}
    down = Event(When(0.02), "down", ("w0", run.problem.fabric.tor_of("w0")), lasting_s=0.05)
    outcome = ran(replace(run, interferences=FaultPlan(links=lossy, events=(down,)).interferences))
    assert outcome.measured.exact
    assert outcome.measured.retransmissions > 0
    lost, failed = outcome.interferences
    assert lost.counts["lost_on_arrival"] > 0
    assert failed.details["not_reached"] == []


def test_the_main_command_runs_at_the_described_rates_without_a_probe(tmp_path: Path) -> None:
    answer = inakit(
        "emulate", "--topo", "aro-figure1", "--planners", "aro,lbmm", "--switch", "virtual", "--iterations", "1",
        at=tmp_path,
    )  # fmt: skip
    assert answer.code == 0, answer
    assert answer.output.startswith(
        "virtual: time is simulated and links have the described rates, so that figures do "
    )
    record = json.loads(next(tmp_path.glob("results/2*/run.json")).read_text())
    assert (record["switch"], record["verdict"], record["fabric"]["scale"]) == ("virtual", "VALID", 1.0)
    assert_within(record["planners"]["aro"]["measured"]["sending_rate_bps"], 20e6, 0.01, "sending rate", "bit/s")


def test_switches_have_the_time_of_their_network() -> None:
    """Timestamps and meters of any program count from when the network came up, and are the same in each run."""
    run = planned("aro-figure1", "atp")
    with driven_network(run.problem, run.plan) as network:
        network.sleep(0.25)
        assert {switch.state.now_us() for switch in network.switches.values()} == {250_000}
