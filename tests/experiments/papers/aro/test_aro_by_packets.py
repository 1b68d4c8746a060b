"""ARO's Figures 7 to 10 by packets, on a small network: rates are the simulated figures', with and without results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from inakit.experiments.papers.aro import effectiveness, emulated
from inakit.experiments.papers.aro.emulated import run_trial
from inakit.experiments.papers.aro.setting import CAPACITY_BPS, SCHEMES, AroSetting, Ask, measure
from inakit.experiments.papers.aro.setting import verdict as proven
from inakit.experiments.papers.common import emulated_figure
from inakit.experiments.papers.common.claims import Claim, Ledger
from inakit.experiments.papers.common.emulated_figure import ByPackets, rates_as_planned
from inakit.experiments.papers.common.figure_engine import Findings, Part
from inakit.experiments.papers.common.figure_registry import Request
from inakit.experiments.papers.common.statements import Statement
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.traffic.measure.verdict import Verdict, worst_of

LITTLE = AroSetting(workers=30, leaves=5, share=0.7)
SEVERAL = replace(LITTLE, jobs=2, tasks=2, workers=12)


def trial(setting: AroSetting, scheme: str, seed: int = 0) -> Trial:
    return {**asdict(setting), "scheme": scheme, "seed": seed}


@pytest.mark.compiler
@pytest.mark.parametrize("setting", [LITTLE, SEVERAL], ids=["one task", "two jobs of two tasks"])
@pytest.mark.parametrize("scheme", ["ARO", "ARO-ACC", "RANDOM", "GRID", "AggTree"])
def test_a_scheme_sends_at_the_rates_of_the_simulated_figure(scheme: str, setting: AroSetting, tmp_path: Path) -> None:
    found, simulated = run_trial(trial(setting, scheme), "virtual", tmp_path), measure(trial(setting, scheme))
    assert found["verdict"] == "VALID"
    for key in ("least_bps", "least_job_bps", "total_bps"):
        assert found[f"planned_{key}"] == pytest.approx(simulated[key])
        assert found[key] == pytest.approx(found[f"planned_{key}"], rel=0.02)
        assert found[f"closed_{key}"] == pytest.approx(found[f"planned_closed_{key}"], rel=0.02)


@pytest.mark.compiler
def test_results_lower_the_rates_of_several_tasks_and_gradients_alone_keep_them(tmp_path: Path) -> None:
    """The best routes of two jobs with two PSs each leave no room for results on their way back."""
    found = run_trial(trial(SEVERAL, "ARO"), "virtual", tmp_path)
    assert found["folder"] != found["closed_folder"]
    assert float(found["closed_total_bps"]) < 0.9 * float(found["total_bps"])
    found = run_trial(trial(LITTLE, "ARO"), "virtual", tmp_path)
    assert found["folder"] == found["closed_folder"]


@pytest.mark.parametrize("scheme", ["ARO", "ARO-ACC"])
def test_the_plan_of_one_task_has_the_rounded_rate_of_the_figure(scheme: str) -> None:
    found = SCHEMES[scheme](LITTLE.problem(0), Ask())
    assert found.plan is not None
    assert [found.plan.trees[0].rate_bps] == found.rates_bps[1]
    assert found.rates_bps[1][0] % (CAPACITY_BPS / 100) == pytest.approx(0)


def made_up(rate_bps: float, **other: float) -> Result:
    rates = {f"{kind}{key}": 1e9 for kind in ("planned_", "planned_closed_", "closed_", "") for key in KEYS}
    return {**rates, "total_bps": rate_bps, "gap": 0.0, "exact": 1, "verdict": "VALID", **other}


KEYS = ("least_bps", "least_job_bps", "total_bps")


@pytest.mark.parametrize(
    ("result", "verdict"),
    [
        (made_up(1.04e9), "VALID"),
        (made_up(0.94e9), Verdict.DIFFERS),
        (made_up(1e9, closed_total_bps=0.94e9), Verdict.DIFFERS),
        (made_up(1e9, gap=0.01), Verdict.UNPROVEN),
    ],
)
def test_a_figure_is_valid_if_rates_are_planned_and_aros_are_proven(result: Result, verdict: str) -> None:
    found = Findings({'{"scheme": "ARO"}': result}, Request(), 1)
    assert worst_of((rates_as_planned(found, []), proven(found, []))) == verdict


@pytest.mark.compiler
def test_a_figure_shows_planned_beside_measured_and_judges_the_measured_rates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [replace(LITTLE, workers=12, tasks=number) for number in (1, 2, 3, 4)]
    monkeypatch.setattr(effectiveness, "TASKS", tasks)
    judged: list[Result] = []

    def simulated(found: Findings) -> Iterator[Part]:
        judged.extend(found.results.values())
        yield from effectiveness.several(9, found)

    figure = emulated.FIGURES["fig9-emulated"]
    assert isinstance(figure, ByPackets)
    console = Console(file=StringIO(), width=160)
    assert replace(figure, simulated=simulated)(console, Request(tmp_path, quick=True)) in ("VALID", "CHANGED")
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "ARO, planned" in text
    assert "ARO, results return, measured" in text
    assert "RANDOM, results return" not in text
    assert all(result["verdict"] == "VALID" for result in judged)
    assert {path.suffix for path in tmp_path.glob("aro-fig9-emulated-virtual.*")} == {".csv", ".png", ".svg"}


def test_claims_are_judged_by_packets_under_names_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Claim(id="a-by-packets", where="", says="", kind="fact", figure="fig9-emulated", state="reproduced")
    monkeypatch.setattr(emulated_figure, "read_ledger", lambda _: Ledger("aro", [known]))

    def simulated(_: Findings) -> Iterator[Part]:
        yield [Statement(name, "", holds=True, claim=name) for name in ("a", "b", "")]

    figure = ByPackets("aro", "fig9-emulated", run_trial, lambda _: [], (1, 1), simulated=simulated)
    parts = list(figure.show(Findings({}, Request(), 1)))
    assert [one.claim for part in parts if isinstance(part, list) for one in part] == ["a-by-packets", ""]
