"""Rates, gradients and other traffic that the user leaves open are made to fit; a run that is too slow ends early."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import slow_switch
from command import Answer, inakit, nothing_left

from experiments.emulate.defaults import LEAST_FRAGMENTS, faults_at, problem_at, rate_to_try, rate_words
from experiments.faults.fault_plan import FaultPlan
from experiments.run.planning import make_plan
from experiments.run.scenario import FabricChoice, JobChoice, build_problem
from planner.core.check import check
from planner.core.evaluate import evaluate
from planner.core.problem import Problem
from planner.install.background_entries import Flow
from traffic.faults.hostile import Attack

TRIES = 3
"""How often a run is tried. A busy machine makes a run OVERLOADED, which is no failure of the kit."""
SOONER = "import experiments.run.pace; experiments.run.pace.WINDOW_S = 1.5; "
"""Python code that lets a run which clearly falls behind end after fewer seconds, to make the test shorter."""


def problem(**size: Any) -> Problem:
    return build_problem(FabricChoice("aro-figure1"), JobChoice(**size))


@pytest.mark.parametrize(
    ("fabric", "given"),
    [
        (FabricChoice("fattree", 4), False),
        (FabricChoice("units:units=6,servers=8"), False),
        (FabricChoice("units:port_bps=40M"), True),
        (FabricChoice("leafspine:capacity_bps=1M"), True),
        (FabricChoice("fattree", capacity="20M"), True),
        (FabricChoice("fattree", scale="1/10"), True),
        (FabricChoice("my.yml"), True),
    ],
)
def test_rates_are_free_unless_something_says_them(fabric: FabricChoice, given: bool) -> None:
    assert fabric.gives_rates == given


def test_sizes_are_free_unless_something_says_them() -> None:
    assert not JobChoice(model="resnet50").gives_size
    assert JobChoice(gradient_bytes=1000).gives_size
    assert JobChoice(Path("jobs.yml")).gives_size


def test_gradients_get_smaller_as_rates_do_so_that_times_stay() -> None:
    one = problem()
    plan = make_plan(one, "aro", 0)
    slower, slowed = problem_at(one, 0.1, gradients=True), plan.with_rates_times(0.1)
    check(slower, slowed)
    before, after = evaluate(one, plan), evaluate(slower, slowed)
    assert after.sending_rate_bps == pytest.approx(0.1 * before.sending_rate_bps)
    assert after.communication_time_s == pytest.approx(before.communication_time_s, rel=0.01)


def test_a_gradient_that_was_asked_for_stays() -> None:
    one = problem(gradient_bytes=1000)
    assert problem_at(one, 0.1, gradients=False).jobs == one.jobs


@pytest.mark.parametrize(("asked", "left"), [(10**6, LEAST_FRAGMENTS), (10 * 256, 10)])
def test_a_gradient_is_never_made_so_small_that_its_time_means_nothing(asked: int, left: int) -> None:
    """A gradient that has fewer fragments from the start keeps its size."""
    (job,) = problem_at(problem(gradient_bytes=asked), 1e-4, gradients=True).jobs
    assert job.gradient_bytes == left * 256


def test_other_traffic_gets_slower_with_the_links() -> None:
    faults = FaultPlan(background=(Flow("w0", "w4", 5e6),), hostile=(Attack("w1", 1, ("spoof",), 2e6),))
    slower = faults_at(faults, 0.1)
    assert slower is not None
    assert [flow.rate_bps for flow in slower.background] == [500e3]
    assert [attack.rate_bps for attack in slower.hostile] == [200e3]
    assert faults_at(None, 0.1) is None


@pytest.mark.parametrize(
    ("rate_bps", "words"), [(20e6, "20 Mbit/s"), (250e3, "250 kbit/s"), (1e11, "100 Gbit/s"), (50, "50 bit/s")]
)
def test_rates_in_words(rate_bps: float, words: str) -> None:
    assert rate_words(rate_bps) == words


def test_a_rate_to_try_leaves_room() -> None:
    """A machine that carried half of 20 Mbit/s was full, so 6 Mbit/s are advised, as a scale of the described rates."""
    assert rate_to_try(problem(), 1.0, 0.5).startswith("try links of 6 Mbit/s (--scale 0.3)")
    assert "(--scale 0.06)" in rate_to_try(problem(), 0.2, 0.5)


def slow(at: Path, *arguments: str, entry: str = slow_switch.ENTRY) -> tuple[Answer, dict[str, Any]]:
    """A run on a target as slow as BMv2, and its `run.json`."""
    environment = {"PYTHONPATH": slow_switch.PYTHONPATH, "XDG_CACHE_HOME": str(at / "cache")}
    with nothing_left():
        answer = inakit(
            "emulate", "--topo", "aro-figure1", "--planners", "aro", "--results", str(at), *arguments,
            at=at, environment=environment, entry=entry,
        )  # fmt: skip
    assert answer.code in (0, 1), answer
    return answer, json.loads((at / "latest" / "run.json").read_text())


@pytest.mark.root
def test_a_slow_target_gets_links_that_it_carries(tmp_path: Path) -> None:
    for _ in range(TRIES):
        answer, run = slow(tmp_path, "--iterations", "1")
        said = re.search(
            r"^links of (\d+) (k|M)bit/s: what bmv2 carries here; --switch fast carries [\d.]+ [kM]bit/s\n",
            answer.output,
            re.MULTILINE,
        )
        assert said, answer
        assert answer.output.startswith("switch auto took bmv2, which is installed; --switch fast gives the same")
        if run["verdict"] == "VALID":
            break
    else:
        pytest.skip(f"this machine is too busy for a valid run: {run['reasons'][:3]}")
    rates = {link["capacity"] for link in run["fabric"]["description"]["links"]}
    assert rates == {f"{said[1]}{said[2]}"}
    link_bps = float(said[1]) * {"k": 1e3, "M": 1e6}[said[2]]
    assert link_bps <= 5e6, "20,000 packets/s on all switches together do not carry more"
    assert run["planners"]["aro"]["measured"]["exact"]
    assert run["configuration"]["jobs"][0]["gradient_bytes"] < 548_000


@pytest.mark.root
def test_a_run_that_cannot_be_saved_ends_early_with_a_rate_to_try(tmp_path: Path) -> None:
    answer, run = slow(tmp_path, "--capacity", "20M", entry=SOONER + slow_switch.ENTRY)
    entry = run["planners"]["aro"]
    assert (answer.code, entry["verdict"], entry["measured"]) == (1, "OVERLOADED", {})
    assert re.fullmatch(r"ended after \d+ s: it did \d+% of what is planned", entry["reasons"][0])
    tried = re.match(r"try links of ([\d.]+) ([kM])bit/s \(--scale ([\d.]+)\)", entry["reasons"][-1])
    assert tried
    assert float(tried[1]) * {"k": 1e3, "M": 1e6}[tried[2]] <= 10e6
    assert "ended after" in answer.output


@pytest.mark.root
def test_who_wants_the_whole_run_gets_it(tmp_path: Path) -> None:
    _, run = slow(
        tmp_path, "--capacity", "20M", "--keep-going", "--gradient-bytes", "400000", entry=SOONER + slow_switch.ENTRY
    )
    assert run["planners"]["aro"]["measured"]["exact"]
