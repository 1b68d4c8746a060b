"""What `plan` shows and writes is what `emulate` runs."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from command import inakit
from rich.console import Console

from inakit.experiments.emulate.emulate import Emulation, make_plans
from inakit.experiments.run.console import Screen
from inakit.experiments.run.planning import plan_to_run, print_comparison, print_plan
from inakit.experiments.run.run import MODES
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.planner.core.evaluate import evaluate
from inakit.planner.core.files import load_plan
from inakit.planner.core.problem import Problem
from inakit.planner.trees.headroom import RESULTS_RETURN

CASES = Path(__file__).parents[1] / "cases"
CASE = ("--topo", str(CASES / "two-pods.yml"), "--jobs", str(CASES / "two-pods-jobs.yml"))
SAID = "aggtree-balanced: results of job 3 (root h12) share link agg2_1 → leaf2_2 with gradients of job 1 (root h24)"


def problem() -> Problem:
    fabric, jobs = CASES / "two-pods.yml", CASES / "two-pods-jobs.yml"
    return build_problem(FabricChoice(str(fabric)), JobChoice(jobs))


def console() -> Screen:
    return Screen(file=StringIO(), width=80)


def text_of(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("mode", MODES)
def test_plan_and_emulate_plan_the_same_rates(mode: str) -> None:
    one, told = problem(), console()
    emulated = make_plans(Emulation(one, ("aggtree-balanced",), mode=mode), told)["aggtree-balanced"]
    shown = plan_to_run(one, "aggtree-balanced", 0, mode).plan
    assert emulated.plan.trees == shown.trees
    rate = {"reliable": 5e6 / 3, "replay": 2.5e6}[mode]
    assert evaluate(one, shown).sending_rate_bps == pytest.approx(rate)
    assert (SAID in text_of(told)) == (mode == "reliable")


def test_every_mode_says_whether_results_return() -> None:
    assert MODES.keys() == RESULTS_RETURN.keys()


def test_a_plan_is_shown_job_by_job_with_the_reason_for_its_rates() -> None:
    told, run = console(), plan_to_run(problem(), "aggtree-balanced", 0)
    print_plan(told, run)
    text = text_of(told)
    for number in (1, 2, 3):
        assert f"job {number}: sending rate 1.667 Mbit/s, PS ingress 127.5 kB, communication time 611.8 ms" in text
    assert SAID in text


def test_a_comparison_is_of_the_rates_that_run() -> None:
    told = console()
    print_comparison(told, {name: plan_to_run(problem(), name, 0) for name in ("aggtree-balanced", "lbmm")})
    rows = [line.split("│") for line in text_of(told).splitlines() if "aggtree-balanced │" in line]
    assert [row[2].strip() for row in rows] == ["1.667"]
    assert SAID in text_of(told)


def test_the_plan_that_is_written_is_the_one_that_runs(tmp_path: Path) -> None:
    arguments = (*CASE, "--planners", "aggtree-balanced", "--output", str(tmp_path / "plan"))
    answer = inakit("plan", *arguments, at=tmp_path)
    assert answer.code == 0, answer
    rates = {planned.job: planned.rate_bps for planned in load_plan(tmp_path / "plan" / "plan.json").trees}
    assert rates == {number: pytest.approx(5e6 / 3) for number in (1, 2, 3)}


def test_a_picture_has_the_loads_of_the_plan_that_runs(tmp_path: Path) -> None:
    answer = inakit("topo", *CASE, "--planners", "aggtree-balanced", "--output", str(tmp_path / "picture"), at=tmp_path)
    assert answer.code == 0, answer
    assert SAID in answer.output
