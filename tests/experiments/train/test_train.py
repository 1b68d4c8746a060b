"""Training: times of epochs follow from times of iterations; whole runs train as one process does."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import inakit, nothing_left
from made_up_record import planner
from rich.console import Console

from inakit.experiments.emulate.training_run import Curve, draw_training, epochs_of, training_table, write_curves
from inakit.experiments.run.record import Training
from inakit.experiments.run.run_folder import RunFolder
from inakit.traffic.measure.measured import Iteration, Measured
from inakit.traffic.training.training_task import Recipe, TrainingTask

TASK = TrainingTask(Recipe(hidden=(), epochs=2, batch=8, samples=96), 3)
COMPUTE_S = 0.5


def measured(communication_s: float) -> Measured:
    """Iterations that all take equally long."""
    period = COMPUTE_S + communication_s
    one = Iteration(1, 0, COMPUTE_S, communication_s, {}, {}, {}, exact=True)
    iterations = (replace(one, number=n, started_s=COMPUTE_S + n * period) for n in range(TASK.iterations))
    return Measured("reliable", tuple(iterations))


def curve(name: str, communication_s: float | None = None) -> Curve:
    epochs = () if communication_s is None else epochs_of(measured(communication_s), TASK)
    return Curve(name, np.array([2.0, 1.0]), np.array([0.1, 0.5, 0.9]), epochs)


def test_the_times_of_epochs() -> None:
    assert TASK.iterations_per_epoch == 4
    first, second = epochs_of(measured(1.5), TASK)
    assert (first.ended_s, second.ended_s) == (8.0, 16.0)
    assert first.time_s == second.time_s == 8.0
    assert first.samples_per_s == 96 / 8
    assert first.communication_share == 0.75


def test_the_table_has_a_row_per_epoch_and_what_was_found() -> None:
    found = Training(epochs=[], loss=[], accuracy=[], as_one_process=False, loss_off_floats=0.0)
    entry = planner(verdict="VALID", training=found)
    console = Console(width=150, record=True, file=Path("/dev/null").open("w"))  # noqa: SIM115
    console.print(training_table(TASK, [curve("one process"), curve("aro", 1.5)], {"aro": entry}))
    text = console.export_text()
    for words in ("144-10", "5.8 kB", "8.00", "75%", "2.0000", "90.0%", "VALID", "sums exact"):
        assert words in text
    assert text.count("sums exact") == 1


def test_files_say_the_same(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "train")
    write_curves(folder, [curve("one process"), curve("aro", 1.5)])
    with (folder.path / "aro" / "training.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["ended_s"] for row in rows] == ["8.0", "16.0"]
    assert [row["accuracy"] for row in rows] == ["0.5", "0.9"]
    with (folder.path / "one-process" / "training.csv").open() as file:
        assert [row["time_s"] for row in csv.DictReader(file)] == ["", ""]
    assert (folder.path / "training.png").stat().st_size > 10_000


def test_accuracy_is_drawn_over_time_a_line_per_planner() -> None:
    over_time, loss, throughput, epoch_time = draw_training(
        [curve("one process"), curve("aro", 1.5), curve("lbmm", 3.5)]
    ).axes
    assert [line.get_xdata()[-1] for line in over_time.lines] == [16.0, 32.0]  # type: ignore[index]
    assert [np.asarray(line.get_ydata()).tolist() for line in over_time.lines] == [[0.1, 0.5, 0.9]] * 2
    assert len(loss.lines) == 3
    assert [bar.get_height() for bar in throughput.patches] == [12.0, 6.0]  # type: ignore[attr-defined]
    assert [bar.get_height() for bar in epoch_time.patches] == [8.0, 6.0, 16.0, 14.0]  # type: ignore[attr-defined]


def train(at: Path, *arguments: str) -> dict[str, Any]:
    """A run on the fabric of a figure, and its `run.json`."""
    with nothing_left():
        answer = inakit("train", "--topo", "aro-figure1", "--keep-going", "--results", str(at), *arguments, at=at)
    run: dict[str, Any] = json.loads((at / "latest" / "run.json").read_text())
    assert answer.code == (0 if run["verdict"] == "VALID" else 1), answer
    return run


@pytest.mark.root
def test_training_through_switches_is_training_in_one_process(tmp_path: Path) -> None:
    run = train(
        tmp_path, "--switch", "fast", "--planners", "aro,lbmm", "--hidden", "48", "--epochs", "2", "--batch", "64",
        "--compute", "0.03", "--capacity", "20M",
    )  # fmt: skip
    assert run["verdict"] in ("VALID", "OVERLOADED")
    for entry in run["planners"].values():
        assert entry["measured"]["exact"]
        assert entry["training"]["as_one_process"]
        assert 0 < entry["training"]["loss_off_floats"] < 1e-6
        assert entry["training"]["accuracy"][0] < 0.2 < entry["training"]["accuracy"][-1]
    first, second = (entry["training"]["epochs"][-1]["ended_s"] for entry in run["planners"].values())
    assert first < second
    files = {str(path.relative_to(tmp_path / "latest")) for path in (tmp_path / "latest").rglob("*")}
    assert {"training.png", "one-process/training.csv", "aro/training.csv", "aro/iterations.csv"} <= files


@pytest.mark.root
@pytest.mark.beside
def test_training_bears_loss_under_any_slot_policy(tmp_path: Path) -> None:
    (tmp_path / "faults.yml").write_text("version: 1\nlinks: [{link: all, drop: 2%}]")
    run = train(
        tmp_path, "--switch", "fast", "--planners", "aro", "--policies", "p4inc-aoi,atp", "--hidden", "24",
        "--capacity", "20M", "--epochs", "1", "--batch", "128", "--faults", "faults.yml",
    )  # fmt: skip
    assert list(run["planners"]) == ["aro+p4inc-aoi", "aro+atp"]
    for entry in run["planners"].values():
        assert entry["training"]["as_one_process"]
        assert entry["interferences"][0]["counts"]["lost_on_arrival"] > 0


@pytest.mark.root
@pytest.mark.bmv2
def test_bmv2_trains_as_well(tmp_path: Path) -> None:
    run = train(
        tmp_path, "--switch", "bmv2", "--planners", "aro", "--capacity", "2M", "--hidden", "24", "--epochs", "1",
        "--batch", "128",
    )  # fmt: skip
    assert run["planners"]["aro"]["measured"]["exact"]
    assert run["planners"]["aro"]["training"]["as_one_process"]


@pytest.mark.root
@pytest.mark.beside
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--framework", "numpi"), "did you mean 'numpy'"),
        (("--batch", "4096"), "choose smaller batches"),
        (("--compute", "-1"), "--compute -1: expected a time"),
        (("--planners", ""), "--planners is empty"),
    ],
)
def test_mistakes_are_found_before_anything_is_made(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    with nothing_left(tmp_path):
        answer = inakit("train", "--results", str(tmp_path), *arguments, at=tmp_path)
    assert answer.code == 2
    assert message in answer.error
