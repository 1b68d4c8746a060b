"""InArt with real packets: figures drawn from kept runs, one real run, and new plans beside background traffic."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from types import ModuleType

import pytest
from command import inakit, nothing_left
from rich.console import Console
from tolerance import assert_within
from valid_runs import valid_run

from inakit.experiments.papers.common.emulated_figure import PLANNED, compared_rates, is_near
from inakit.experiments.papers.common.figure_registry import FIGURES, Request
from inakit.experiments.papers.common.sweep import Result, Trial
from inakit.experiments.papers.inart import emulated as inart_emulated
from inakit.experiments.papers.inart import emulated as inart_replan
from inakit.experiments.papers.inart import emulated as inart_runs
from inakit.experiments.papers.inart import testbed as inart_testbed
from inakit.experiments.papers.inart.setting import LBMM, SETTINGS, drawn_problem
from inakit.experiments.run.controller import KIND
from inakit.planner.methods.inart.inart import background_of_flows, residual
from inakit.planner.methods.inart.inart_forest import rate_bps
from inakit.planner.registry import find_method
from inakit.planner.replan import rate_left_bps

VIEWS = [
    (inart_emulated, "fig8", "fig10"),
    (inart_emulated, "fig11", "fig12"),
    (inart_testbed, "fig2", "fig3"),
    (inart_testbed, "fig4", "fig5"),
]
"""A module, one of its figures, and another figure that is drawn from the same runs."""


class MadeUp:
    """Stands for the emulated network. `measured`: the measured rate over the planned one. `runs`: what was run."""

    def __init__(self, measured: float = 0.99, verdict: str = "VALID") -> None:
        self.measured, self.verdict = measured, verdict
        self.runs: list[Trial] = []

    def __call__(self, trial: Trial, **_: object) -> Result:
        self.runs.append(trial)
        planned = {
            "sending_rate_bps": 400e6 / int(trial["workers"]),
            "communication_time_s": 0.5,
            "ps_ingress_bytes": 1,
        }
        measured = planned | {"sending_rate_bps": self.measured * planned["sending_rate_bps"]}
        named = {PLANNED + name: value for name, value in planned.items()}
        return {**named, **measured, "iteration_s": 1.0, "exact": 1, "verdict": self.verdict, "folder": "somewhere"}


def shown(
    module: ModuleType, name: str, at: Path, *, quick: bool = False, switch: str = "fast", scale: float | None = None
) -> tuple[str, str]:
    console = Console(file=StringIO(), width=120)
    request = Request(at, quick, switch, scale, "inart", f"{name}-emulated")
    verdict = module.FIGURES[f"{name}-emulated"](console, request)
    return verdict, str(console.file.getvalue())  # type: ignore[attr-defined]


@pytest.mark.parametrize(("module", "name", "other"), VIEWS)
def test_a_figure_is_a_view_of_runs_that_are_kept(
    module: ModuleType, name: str, other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = MadeUp()
    monkeypatch.setattr(module, "emulate", network)
    verdict, said = shown(module, name, tmp_path)
    assert verdict in ("VALID", "CHANGED"), "made-up rates change claims"
    assert f"{len(network.runs)} runs: {len(network.runs)} valid, {len(network.runs)} with exact sums" in said
    assert "off by -1.00%" in said
    assert {path.suffix for path in tmp_path.glob(f"inart-{name}-emulated.*")} == {".csv", ".png", ".svg"}
    before = len(network.runs)
    shown(module, other, tmp_path)
    assert len(network.runs) == before


@pytest.mark.parametrize(("module", "name"), [(inart_emulated, "fig8"), (inart_testbed, "fig2")])
def test_runs_in_virtual_time_are_kept_apart(
    module: ModuleType, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []
    for switch in ("fast", "virtual"):
        network = MadeUp()
        monkeypatch.setattr(module, "emulate", network)
        shown(module, name, tmp_path, quick=True, switch=switch)
        counts.append(len(network.runs))
    assert counts[0] == counts[1] > 0
    drawn = {path.stem for path in tmp_path.glob("*.csv") if not path.stem.endswith("-claims")}
    assert drawn == {f"inart-{name}-emulated", f"inart-{name}-virtual"}


def test_runs_at_another_scale_are_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = MadeUp()
    monkeypatch.setattr(inart_emulated, "emulate", network)
    for scale in (None, 1 / 1000, 1.0):
        _, said = shown(inart_emulated, "fig8", tmp_path, quick=True, switch="virtual", scale=scale)
    assert [trial.get("scale") for trial in network.runs] == [None] * 5 + [1.0] * 5
    line = next(line for line in said.splitlines() if "InArt, as published" in line)
    assert [cell.strip() for cell in line.split("│")[1:-1]][3:5] == ["0.01", "0.0099"]


def test_the_papers_value_stands_beside_the_measured_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inart_emulated, "emulate", MadeUp())
    _, said = shown(inart_emulated, "fig8", tmp_path, quick=True)
    line = next(line for line in said.splitlines() if "InArt, as published" in line)
    cells = [cell.strip() for cell in line.split("│")[1:-1]]
    assert cells == ["LSTM", "InArt, as published", "10.8", "10", "9.9", "99.0%", "VALID"]


@pytest.mark.parametrize(
    ("network", "verdict"), [(MadeUp(0.94), "DIFFERS"), (MadeUp(verdict="OVERLOADED"), "OVERLOADED")]
)
def test_a_rate_that_is_missed_and_an_overloaded_run_are_no_success(
    network: MadeUp, verdict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inart_emulated, "emulate", network)
    assert shown(inart_emulated, "fig9", tmp_path, quick=True)[0] == verdict


def test_an_overloaded_run_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for network in (MadeUp(verdict="OVERLOADED"), MadeUp()):
        monkeypatch.setattr(inart_emulated, "emulate", network)
        verdict, _ = shown(inart_emulated, "fig9", tmp_path, quick=True)
        assert len(network.runs) == len(inart_emulated.EMULATED)
    assert verdict == "VALID"


def test_every_figure_of_the_evaluation_is_reachable() -> None:
    emulated = {f"fig{number}-emulated" for number in (2, 3, 4, 5, 8, 9, 10, 11, 12, 13)}
    assert emulated <= set(FIGURES["inart"])
    assert not any(FIGURES["inart"][name].simulated for name in emulated)


def test_sizes_are_those_of_whole_frames() -> None:
    assert inart_runs.gradient_bytes(326 * 10) == 256 * 10


def test_the_testbed_has_the_papers_rate_without_aggregation() -> None:
    plan = find_method("lbmm").plan(inart_testbed.testbed(6))
    assert rate_bps(plan) == pytest.approx(15.4e6)


def test_the_background_is_what_hurts_the_plan_most() -> None:
    problem = drawn_problem(SETTINGS["homogeneous"], 10, 0)
    plan = find_method(LBMM.lower()).plan(problem)
    flow = inart_replan.worst_flow(problem, plan)
    left = residual(problem.fabric, background_of_flows(problem, plan, [flow]))
    assert rate_left_bps(left, plan) < 0.7 * rate_bps(plan)


@pytest.mark.long
@pytest.mark.compiler
def test_one_change_of_plan_is_enough_where_traffic_begins(tmp_path: Path) -> None:
    """Full queues of the congested iteration are empty before counters are read: traffic is not underestimated."""
    console = Console(file=StringIO(), width=120)
    request = Request(tmp_path, quick=True, switch="virtual", paper="inart", figure="replan")
    assert FIGURES["inart"]["replan"].run(console, request) == "VALID"
    begins, ends = inart_emulated.BEGINS, inart_emulated.ENDS
    assert f"before iterations {begins + 1}, {ends + 2}\n" in console.file.getvalue()  # type: ignore[attr-defined]


IN_BOTH_WORLDS = pytest.mark.parametrize(
    "switch",
    [
        pytest.param("virtual", marks=pytest.mark.compiler),
        pytest.param("fast", marks=(pytest.mark.root, pytest.mark.long)),
    ],
)


@IN_BOTH_WORLDS
def test_a_run_has_its_planned_rate_and_is_in_its_folder(switch: str, tmp_path: Path) -> None:
    trial = inart_testbed.cell_of("InArt, as published", 2)
    for _ in range(3):
        found = inart_testbed.emulate({**trial, "seed": 0}, switch=switch, results=tmp_path)
        if found["verdict"] == "VALID":
            break
    else:
        pytest.skip("this machine is too busy for a valid run")
    assert found["exact"] == 1
    ((measured, planned),) = compared_rates([found])
    assert is_near(measured, planned)
    assert float(found["iteration_s"]) >= inart_testbed.COMPUTE_S["VGG19"] + float(found["communication_time_s"])
    record = json.loads((tmp_path / str(found["folder"]) / "run.json").read_text())
    assert record["planners"]["run"]["measured"]["sending_rate_bps"] == found["sending_rate_bps"]


@IN_BOTH_WORLDS
def test_new_routes_leave_a_link_to_other_traffic(switch: str, tmp_path: Path) -> None:
    """The plan happens to use the same spine as the background traffic; from iteration 1 on the other one is used."""
    (tmp_path / "faults.yml").write_text("version: 1\nbackground: [{from: h4, to: h6, rate: 3M}]")
    (tmp_path / "jobs.yml").write_text(
        "version: 1\njobs: [{number: 1, workers: [h1, h2, h3], servers: [h5], gradient_bytes: 102400, iterations: 6}]"
    )
    run = valid_run(
        tmp_path, "--topo", "leafspine", "--leaves", "2", "--spines", "2", "--hosts-per-leaf", "4", "--capacity", "4M",
        "--jobs", "jobs.yml", "--planners", "inart", "--seed", "1", "--switch", switch,
        "--faults", "faults.yml", "--replan",
    )  # fmt: skip
    rates = {name: entry["measured"]["sending_rate_bps"] for name, entry in run["planners"].items()}
    assert rates["inart"] < 2e6
    assert_within(rates["inart-replanned"], (rates["inart"] + 5 * 4e6) / 6, 0.1, "new routes", "bit/s")
    (controller,) = (each for each in run["planners"]["inart-replanned"]["interferences"] if each["kind"] == KIND)
    assert [change["iteration"] for change in controller["details"]["changes"]] == [1]
    assert all(entry["measured"]["exact"] for entry in run["planners"].values())


@pytest.mark.compiler
@pytest.mark.parametrize(
    ("faults", "iterations", "message"),
    [
        ("", 3, "--replan needs background traffic: give --faults a file with background traffic"),
        ("background: [{from: h4, to: h6, rate: 3M}]", 1, "give jobs 2 iterations or more"),
        (
            "background: [{from: h4, to: h5, rate: 3M}]",
            3,
            "background traffic to 'h5' follows the job's routes: send it to a host without a part in the job: choose "
            "one of h3, h4, h6, h7, h8",
        ),
        ("background: [{from: h4, to: h6, rate: 3M}]\nstragglers: {spread: 0.1}", 3, "knows no other faults"),
    ],
)
def test_a_run_without_anything_to_plan_anew_for_is_refused(
    faults: str, iterations: int, message: str, tmp_path: Path
) -> None:
    (tmp_path / "faults.yml").write_text(f"version: 1\n{faults}")
    job = f"{{number: 1, workers: [h1, h2], servers: [h5], gradient_bytes: 102400, iterations: {iterations}}}"
    (tmp_path / "jobs.yml").write_text(f"version: 1\njobs: [{job}]")
    with nothing_left():
        answer = inakit(
            "emulate", "--topo", "leafspine", "--planners", "inart", "--replan", "--faults", "faults.yml",
            "--jobs", "jobs.yml", "--switch", "virtual", at=tmp_path,
        )  # fmt: skip
    assert answer.code == 2
    assert message in " ".join(answer.error.split())


@pytest.mark.compiler
def test_routes_are_not_planned_anew_behind_a_panel(tmp_path: Path) -> None:
    (tmp_path / "fabric.yml").write_text("""\
name: panel
hosts: [h1, h2, h3, h4]
switches: {leaf1: {tier: 1}, leaf2: {tier: 1}}
links:
  - {a: h1, b: leaf1, capacity: 20M}
  - {a: h2, b: leaf1, capacity: 20M}
  - {a: h3, b: leaf2, capacity: 20M}
  - {a: h4, b: leaf2, capacity: 20M}
  - {a: leaf1, b: leaf2, capacity: 20M, optical: true}
""")
    (tmp_path / "faults.yml").write_text("version: 1\nbackground: [{from: h1, to: h4, rate: 3M}]")
    answer = inakit(
        "emulate", "--topo", "fabric.yml", "--planners", "inart", "--replan", "--faults", "faults.yml",
        "--workers", "2", "--switch", "virtual", "--patch-panel", at=tmp_path,
    )  # fmt: skip
    assert answer.code == 2
    assert "counters of links, which are others behind a panel: remove --patch-panel" in answer.error
