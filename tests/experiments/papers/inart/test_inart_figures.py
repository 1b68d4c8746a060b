"""InArt's figures: the example, the values that the paper's text gives, and how a sweep becomes a figure."""

from __future__ import annotations

import csv
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from inakit.experiments.papers.common.figure_registry import FIGURES, Figure, Request, run_simulated
from inakit.experiments.papers.common.sweep import Result, Trial, sweep
from inakit.experiments.papers.inart import example as inart_example
from inakit.experiments.papers.inart import example as inart_lp
from inakit.experiments.papers.inart import setting as inart
from inakit.experiments.papers.inart import simulated as inart_figures
from inakit.experiments.papers.inart import testbed as inart_testbed
from inakit.experiments.papers.inart.as_published import KINDS, overloads
from inakit.experiments.papers.inart.setting import (
    ATP,
    FITTED,
    INART,
    LBMM,
    LIMITED_ATP,
    LP,
    R_INART,
    SCHEMES,
    SETTINGS,
    drawn_problem,
    measure,
)
from inakit.planner.core.plan import SolverOptions
from inakit.planner.methods.inart.inart_forest import rate_bps
from inakit.planner.methods.inart.relaxation import LpInart, split_model
from inakit.planner.trees.summed_once import split_equally
from inakit.topo.errors import InputError


def silent() -> Console:
    return Console(file=StringIO(), width=160)


def printed(console: Console) -> str:
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def test_figure_1_gives_the_papers_rates_and_allows_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inart_example, "ROUNDINGS", 3)
    rates = {scheme: ours.value for scheme, (_, ours) in inart_example.rates().items()}
    published = rates.pop(inart_example.PUBLISHED)
    assert list(rates.values()) == pytest.approx([4 / 3, 2, 2.5, 8 / 3], rel=1e-5)
    assert 4 / 3 <= published < 2.5, "one rounding loads some PS with more flows than the figure's plan"


def rate_mbps(setting: str, scheme: str, workers: int = 50) -> float:
    return float(measure({"setting": setting, "scheme": scheme, "workers": workers, "seed": 0})["rate_bps"]) / 1e6


@pytest.mark.parametrize("setting", ["homogeneous", "heterogeneous"])
def test_with_50_workers_the_baselines_have_what_their_pss_take_in(setting: str) -> None:
    """InArt has ATP's 4.44 Mbit/s in Figure 9, and LBMM's 13 Mbit in 8.13 s in Figure 11."""
    assert rate_mbps(setting, ATP) == pytest.approx(4 * 20 / 18)
    assert rate_mbps(setting, LBMM) == pytest.approx(4 * 20 / 50)
    assert rate_mbps(setting, LIMITED_ATP) < 3.3
    assert rate_mbps(setting, LP) == pytest.approx(8.73, rel=0.15)


def test_servers_with_slow_links_get_less() -> None:
    assert rate_mbps("heterogeneous, the PSs' links too", LBMM) < rate_mbps("heterogeneous", LBMM)


def test_filled_racks_send_pss_a_third_of_what_workers_send() -> None:
    trial: Trial = {"setting": "homogeneous, racks filled", "scheme": ATP, "workers": 39, "seed": 0}
    assert measure(trial)["arrivals"] == pytest.approx(13)


@pytest.mark.parametrize("setting", ["homogeneous", "heterogeneous"])
def test_pss_that_are_alike_get_equal_parts(setting: str) -> None:
    """This is why InArt need not split in the figures: Eq. (2) has only switches and PSs, and those are alike here."""
    problem = drawn_problem(SETTINGS[setting], 40, 0)
    tasks, _ = split_model(problem.fabric, split_equally(problem), SolverOptions())
    assert [task.share for task in tasks] == pytest.approx([0.25] * 4)


def test_the_lp_of_the_largest_network_is_small() -> None:
    """The LP has flows of worker groups on edges. A variable per worker and path would make hundreds of thousands."""
    problem = inart_lp.large_problem(10e6, 30e6)
    assert len(problem.fabric.switches) == 45
    assert LpInart(problem.fabric, split_equally(problem)).model.numVariables() < 10_000


def made_up(trial: Trial) -> Result:
    """A made-up result: rates fall with the workers, InArt's is best, and a quarter of the gradients arrive at PSs."""
    rank = list(SCHEMES).index(str(trial["scheme"])) + 1
    return {"rate_bps": 400e6 / rank / int(trial["workers"]), "arrivals": int(trial["workers"]) / 4, "crossings": 1.0}


@pytest.mark.parametrize(
    ("name", "ours", "ratio"),
    [("fig8", "5", "0.465"), ("fig9", "4", "0.458"), ("fig11", "3.25", "2.14"), ("fig12", "200", "0.476"),
     ("fig13", "5.48", "1.59")],
)  # fmt: skip
def test_a_figure_is_printed_beside_the_paper_and_drawn(name: str, ours: str, ratio: str, tmp_path: Path) -> None:
    console, figure = silent(), replace(inart_figures.FIGURES[name], measure=made_up, processes=1)
    figure(console, Request(tmp_path, quick=True, paper="inart", figure=name))
    line = next(line for line in printed(console).splitlines() if line.startswith("│ InArt, as published  "))
    assert [cell.strip() for cell in line.split("│")[3:5]] == [ours, ratio]
    pictures = {f"inart-{name}.{suffix}" for suffix in ("csv", "png", "svg")}
    assert {path.name for path in tmp_path.iterdir()} == {*pictures, f"inart-{name}-quick-claims.csv", "inart-trials"}


@pytest.mark.parametrize(("better", "state"), [(1.0, "differs"), (1.97, "reproduced")])
def test_two_equal_schemes_are_no_advantage(better: float, state: str, tmp_path: Path) -> None:
    def equal_or_not(trial: Trial) -> Result:
        rate_bps = 4.44e6 * (better if trial["scheme"] == INART else 1.0)
        return {**made_up(trial), "rate_bps": rate_bps * 50 / int(trial["workers"])}

    figure = replace(inart_figures.FIGURES["fig9"], measure=equal_or_not, processes=1)
    figure(silent(), Request(tmp_path, quick=True, paper="inart", figure="fig9"))
    with (tmp_path / "inart-fig9-quick-claims.csv").open() as file:
        states = {row["claim"]: row["state"] for row in csv.DictReader(file)}
    assert (states["fig9-over-atp"], states["fig9-best"]) == (state, state)
    assert states["fig9-atp"] == "reproduced"


def test_faster_pss_get_larger_parts() -> None:
    problem = drawn_problem(SETTINGS["PSs 1 to 4"], 40, 0)
    tasks, _ = split_model(problem.fabric, split_equally(problem), SolverOptions())
    intakes = [problem.fabric.capacities_bps[problem.fabric.tor_of(name), name] for name in problem.jobs[0].servers]
    assert intakes == pytest.approx([2e6, 4e6, 6e6, 8e6])
    shares = [task.share for task in tasks]
    assert shares[0] == min(shares)
    assert shares[-1] > 1.5 * shares[0]


def test_a_rounding_at_the_relaxations_rate_exceeds_capacities() -> None:
    found = overloads({"setting": "homogeneous", "workers": 50, "seed": 0})
    assert all(float(found[kind]) > 1.2 for kind in KINDS)
    assert 2 < float(found["PSs, factor"]) < float(found["switches, factor"]) < float(found["links, factor"])


def test_the_split_that_suits_a_rounding_is_never_slower() -> None:
    problem = inart_testbed.testbed(6)
    for seed in range(3):
        equal, fitted = (inart.PLANNED[scheme].of(problem, seed) for scheme in (R_INART, FITTED))
        assert rate_bps(fitted) >= rate_bps(equal) * (1 - 1e-6)


def test_two_processes_measure_as_one_does(tmp_path: Path) -> None:
    trials: list[Trial] = [
        {"setting": "homogeneous", "scheme": scheme, "workers": 10, "seed": seed}
        for scheme in (ATP, LBMM)
        for seed in (0, 1)
    ]
    found = [sweep(trials, inart.measure, tmp_path / str(n), silent(), n) for n in (1, 2)]
    assert found[0] == found[1]


def test_all_simulated_figures_run_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def noted(console: Console, request: Request) -> str:
        console.print(f"at {request.results.name}")
        return "VALID"

    def failed(*_: object) -> str:
        return "WRONG"

    found = {"a": Figure("first", noted, simulated=True), "b": Figure("emulated", failed)}
    monkeypatch.setitem(FIGURES, "made-up", found)
    console = silent()
    assert run_simulated("made-up", console, Request(tmp_path / "here")) == "VALID"
    assert "made-up a: first" in printed(console) and "at here" in printed(console)
    monkeypatch.setitem(found, "c", Figure("third", failed, simulated=True))
    assert run_simulated("made-up", silent(), Request(tmp_path)) == "WRONG"
    monkeypatch.setitem(FIGURES, "made-up", {"b": found["b"]})
    with pytest.raises(InputError, match=r"'made-up' has no simulated figure: .*b"):
        run_simulated("made-up", silent(), Request(tmp_path))
