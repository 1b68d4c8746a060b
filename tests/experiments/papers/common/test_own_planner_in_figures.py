"""A planner that a user adds is in every figure that compares planners, with the rates of its own plans."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, replace
from io import StringIO
from pathlib import Path

import pytest
from made_up_sweeps import SWEEPING, made_up_sweep
from matplotlib.figure import Figure as Canvas
from own_planner import NAME, add_racks_in_turn
from rich.console import Console

from inakit.experiments.papers import atro
from inakit.experiments.papers.aro.setting import CAPACITY_BPS, SJST, AroSetting, measure
from inakit.experiments.papers.common.figure_registry import FIGURES, Request
from inakit.experiments.papers.common.sweep import Trial
from inakit.experiments.papers.goat import simulation as goat_simulation
from inakit.experiments.papers.goat.testbed import compared as on_goats_testbed
from inakit.experiments.papers.inart import setting as inart
from inakit.experiments.papers.inart.emulated import emulated as in_inarts_network
from inakit.experiments.papers.inart.testbed import compared as on_inarts_testbed
from inakit.planner.core.method import Options
from inakit.planner.core.plan import Plan
from inakit.planner.registry import METHODS

TAKES_PART = ["aro fig7", "aro fig8", "aro fig9", "aro fig10", "atro fig3", "atro fig4", "atro fig5"]
TAKES_PART += [f"goat fig{number}" for number in (10, 11, 12, 13)]
TAKES_PART += [f"inart fig{number}" for number in (8, 9, 10, 11, 12, 13)] + ["inart unequal"]
BY_PACKETS = [f"aro fig{number}-emulated" for number in (7, 8, 9, 10)]
LEFT_OUT = ["aro fig11", "aro fig12", "aro fig13", "aro studies", "aro readings"]
LEFT_OUT += ["inart fig1", "inart overloads"]
LEFT_OUT += ["goat fig2", "goat theorems", "goat readings", "atro readings"]
LEFT_OUT += [
    "p4inc-aoi table1",
    "p4inc-aoi readings",
    "p4inc-aoi reconfigurations",
    "p4inc-aoi testbed-readings",
    *(f"p4inc-aoi fig{number}" for number in (2, 6, 7, 8, 9, 10, 11, 12)),
]


NO_PLANNERS = {
    *("inart lp", "soar utilisation", "soar time", "inarouting instances"),
    *("collectives crossover", "collectives scale", "atro studies"),
}
"""Figures of models, of given instances, of collectives, and of a paper's ratios: no user's planner could take part."""
IN_ITS_TABLE = "frontier planners"


@pytest.fixture(autouse=True)
def racks_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    add_racks_in_turn(monkeypatch)


def shown(figure: str, at: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[set[str], str]:
    """Run a figure with a made-up sweep and no pictures; the methods in its CSV files, and what it prints."""
    monkeypatch.setattr(SWEEPING, "sweep", made_up_sweep)
    monkeypatch.setattr(Canvas, "savefig", lambda *_, **__: None)
    paper, name = figure.split()
    console = Console(file=StringIO(), width=200)
    FIGURES[paper][name].run(console, Request(at, quick=True))
    rows = (row for path in at.glob("*.csv") for row in csv.DictReader(path.open()))
    methods = {row["method"].split(",")[0] for row in rows if "method" in row}
    return methods, console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("figure", [*TAKES_PART, *BY_PACKETS])
def test_it_takes_part(figure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    methods, _ = shown(figure, tmp_path, monkeypatch)
    assert NAME in methods


@pytest.mark.parametrize("figure", LEFT_OUT)
def test_a_figure_without_it_says_why(figure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    methods, said = shown(figure, tmp_path, monkeypatch)
    assert NAME not in methods
    assert f"not in this figure: {NAME} (it compares" in said


def test_every_simulated_figure_that_compares_is_one_or_the_other() -> None:
    simulated = {
        f"{paper} {name}" for paper, own in FIGURES.items() for name, figure in own.items() if figure.simulated
    }
    assert simulated == {*TAKES_PART, *LEFT_OUT, *NO_PLANNERS, IN_ITS_TABLE}


def test_it_is_a_column_of_the_frontier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SWEEPING, "sweep", made_up_sweep)
    FIGURES["frontier"]["planners"].run(Console(file=StringIO()), Request(tmp_path, quick=True))
    (row, *_) = csv.DictReader((tmp_path / "frontier-table.csv").open())
    assert float(row[NAME]) > 0


def test_it_is_run_in_emulated_figures() -> None:
    assert all(NAME in compared() for compared in (on_goats_testbed, in_inarts_network, on_inarts_testbed))


def test_its_results_are_of_its_own_plans() -> None:
    trials: dict[str, Trial] = {
        "atro": {"workers": 20, "aggregators": 4, "scheme": NAME, "network": "leaf-spine", "seed": 1},
        "goat": {"workers": 20, "spread": 0.2, "scheme": NAME, "network": "leaf-spine", "seed": 1},
        "inart": {"workers": 10, "setting": "homogeneous", "scheme": NAME, "seed": 1},
    }
    found = goat_simulation.measure(trials["goat"])
    assert 0.221 <= float(found["ingress"]) < 20 * 0.221
    assert float(found["ingress"]) + float(found["aggregated"]) == pytest.approx(20 * 0.221)
    assert 0 < float(atro.measure(trials["atro"])["rate_bps"]) < 100e9
    assert 0 < float(inart.measure(trials["inart"])["rate_bps"]) <= 4 * 20e6


def rates_bps(setting: AroSetting, seed: int) -> dict[str, float]:
    return {
        name: float(measure({**asdict(setting), "scheme": name, "seed": seed})["least_bps"])
        for name in ("RANDOM", NAME)
    }


def plans(setting: AroSetting, seed: int) -> dict[str, Plan]:
    return {name: METHODS[name].plan(setting.problem(seed), Options(seed=seed)) for name in ("random", NAME)}


def spines(found: Plan) -> set[str]:
    nodes: Iterable[str] = (node for planned in found.trees for b in planned.tree.branches for node in b.path)
    return {node for node in nodes if node.startswith("spine")}


@pytest.mark.parametrize("setting", [SJST, replace(SJST, workers=400), replace(SJST, share=0.7)], ids=str)
def test_it_has_randoms_rate_where_the_fullest_common_leaf_decides(setting: AroSetting) -> None:
    """Both planners send all gradients of a rack over one link of its leaf, unsummed if the leaf is a common switch.

    That link of the fullest such leaf is the bottleneck of either plan, though RANDOM uses one spine and racks-in-turn
    nearly all spines. ARO says so of RANDOM in Section IV-B, on Figure 8b.
    """
    for seed in range(4):
        problem = setting.problem(seed)
        under = Counter(problem.fabric.tor_of(worker) for worker in problem.jobs[0].workers)
        fullest = max(count for leaf, count in under.items() if leaf not in problem.fabric.ina_names)
        assert rates_bps(setting, seed) == {
            "RANDOM": pytest.approx(CAPACITY_BPS / fullest),
            NAME: pytest.approx(CAPACITY_BPS / fullest),
        }
        found = plans(setting, seed)
        assert len(spines(found["random"])) == 1
        assert len(spines(found[NAME])) > 20


def test_it_has_another_rate_where_something_else_decides() -> None:
    """No spine has INA in this draw: RANDOM then sends all gradients over one link to the PS's leaf."""
    without = replace(SJST, share=0.1)
    assert not [name for name in without.problem(4).fabric.ina_names if name.startswith("spine")]
    found = rates_bps(without, 4)
    assert found[NAME] > 10 * found["RANDOM"]
