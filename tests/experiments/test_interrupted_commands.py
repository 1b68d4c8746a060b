"""What a person keeps of a command that measures for long when it is ended, or when one of its rows fails."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from inakit.experiments.bench.agreement import Combination, Compared, Extent, run_agreement
from inakit.experiments.bench.exactness import Cell, Tried, cells, run_matrix
from inakit.experiments.calibrate.capacity import Load, Use
from inakit.experiments.calibrate.limit import Calibration, verify
from inakit.experiments.calibrate.rate_probe import Trial
from inakit.experiments.cli.app import app
from inakit.experiments.cli.commands.calibrate import CalibrationRequest, run_curve
from inakit.experiments.labs.course import leaderboard as board
from inakit.experiments.labs.grading.grade import ClassRequest, Request, grade_class
from inakit.experiments.labs.grading.lab import Grade, Graded
from inakit.experiments.labs.registry import COURSE, LABS
from inakit.experiments.papers.common.figure_registry import FIGURES, Figure, run_simulated
from inakit.experiments.papers.common.figure_registry import Request as FigureRequest
from inakit.experiments.run.scenario import FabricChoice, JobChoice, build_problem
from inakit.experiments.study.commands import run_file
from inakit.experiments.worlds.virtual import VirtualWorld
from inakit.topo.errors import InakitError, MachineError, RunError

ENDINGS = [KeyboardInterrupt, SystemExit]
DIED = RunError("switch 's1' died")


@dataclass
class Ended:
    """Answers calls by `answer`, and raises an exception at the calls of these numbers, from 1."""

    answer: Callable[..., Any]
    raised: BaseException
    at: tuple[int, ...] = (3,)
    calls: int = 0

    def __call__(self, *given: Any, **named: Any) -> Any:
        self.calls += 1
        if self.calls in self.at:
            raise self.raised
        return self.answer(*given, **named)


class Screen(Console):
    """A console whose text can be read."""

    def __init__(self) -> None:
        self.text = StringIO()
        super().__init__(file=self.text, width=120)

    def __contains__(self, text: str) -> bool:
        return text in self.text.getvalue()


# -- exactness

CELLS = cells(["atp", "goat"], [1], ["no loss", "1 % loss"])


def exact(cell: Cell, *_: object) -> Tried:
    return Tried(cell, 100, time_s=1.25, again=0.5)


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_matrix_of_what_was_tried_is_printed(monkeypatch: pytest.MonkeyPatch, ending: type[BaseException]) -> None:
    monkeypatch.setattr("inakit.experiments.bench.exactness.attempt", Ended(exact, ending()))
    screen = Screen()
    with pytest.raises(ending):
        run_matrix(CELLS, 100, screen)
    assert "2 of 4: virtual, atp, 1 levels, 1 % loss: 1.2s ×1.5" in screen
    assert "2 of 2 exact" in screen


@pytest.mark.parametrize("error", [MachineError("no memory"), DIED])
def test_a_cell_that_cannot_be_tried_has_failed_and_others_are_tried(
    monkeypatch: pytest.MonkeyPatch, error: InakitError
) -> None:
    monkeypatch.setattr("inakit.experiments.bench.exactness.attempt", Ended(exact, error))
    screen = Screen()
    found = run_matrix(CELLS, 100, screen)
    assert [tried.exact for tried in found] == [True, True, False, True]
    assert f"3 of 4: virtual, goat, 1 levels, no loss: failed: {error}" in screen
    assert "3 of 4 exact" in screen


# -- agree

COMBINATIONS = [Combination("aro-figure1", planner) for planner in ("lbmm", "aro", "atp", "ecmp")]


def agreeing(combination: Combination, *_: object) -> Compared:
    return Compared(combination, "VALID")


def rows_kept(results: Path) -> list[tuple[str, str]]:
    (folder,) = (path for path in results.iterdir() if path.is_dir() and not path.is_symlink())
    written = json.loads((folder / "agreement.json").read_text())["combinations"]
    with (folder / "agreement.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(written)
    return [(each["planner"], each["verdict"]) for each in written]


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_was_compared_is_printed_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: type[BaseException]
) -> None:
    monkeypatch.setattr("inakit.experiments.bench.agreement.compare", Ended(agreeing, ending()))
    screen = Screen()
    with pytest.raises(ending):
        run_agreement(COMBINATIONS, (VirtualWorld(), VirtualWorld()), Extent(), tmp_path, screen)
    assert rows_kept(tmp_path) == [("lbmm", "VALID"), ("aro", "VALID")]
    assert "2 of 2 agree" in screen


def test_a_comparison_that_breaks_is_a_row_and_no_agreement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inakit.experiments.bench.agreement.compare", Ended(agreeing, MachineError("no memory")))
    screen = Screen()
    found = run_agreement(COMBINATIONS, (VirtualWorld(), VirtualWorld()), Extent(), tmp_path, screen)
    assert rows_kept(tmp_path) == [("lbmm", "VALID"), ("aro", "VALID"), ("atp", "FAILED"), ("ecmp", "VALID")]
    assert "aro-figure1 atp: FAILED: no memory" in screen
    assert not found.agrees


# -- calibrate


def trial(scale: float = 1.0) -> Trial:
    verdict = "VALID" if scale < 1 else "OVERLOADED"
    return Trial(scale, verdict, (), Load(1.0, 1.0), 1e6, Use(0.5, 0.5))


class Bed:
    """A network of which only the fabric is there, and trials whose fifth is ended."""

    def __init__(self, raised: BaseException) -> None:
        self.problem = build_problem(FabricChoice("aro-figure1"), JobChoice())
        self.trial = Ended(trial, raised, at=(5,))


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_runs_of_a_verification_are_printed_that_were_made(ending: type[BaseException]) -> None:
    screen = Screen()
    bed: Any = Bed(ending())
    with pytest.raises(ending):
        verify(bed, 1.0, 3, screen)
    assert "4 of 12: 1.5 times the calibrated, links of 30 Mbit/s: OVERLOADED" in screen
    assert "kept" in screen


def test_a_run_of_a_verification_that_breaks_is_no_promise_kept() -> None:
    screen = Screen()
    bed: Any = Bed(DIED)
    assert verify(bed, 1.0, 3, screen) is False
    assert "5 of 12: 1.5 times the calibrated, links of 30 Mbit/s: failed: switch 's1' died" in screen
    assert bed.trial.calls == 12


def calibration(command: CalibrationRequest, _: Console) -> Calibration:
    return Calibration(command.fabric.build(), command.job.workers or 0, trial(0.5), 1.0, 1_000_000)


@pytest.mark.parametrize("ended", [KeyboardInterrupt(), SystemExit(143), MachineError("too slow")])
def test_the_curve_of_the_sizes_that_were_measured_is_printed_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: BaseException
) -> None:
    monkeypatch.setattr("inakit.experiments.cli.commands.calibrate.calibrated", Ended(calibration, ended, at=(2,)))
    screen, command = Screen(), CalibrationRequest(FabricChoice(), JobChoice(), "aro", "fast", 0)
    if isinstance(ended, InakitError):
        assert run_curve(command, "2,4", tmp_path, screen) == 1
        assert "2 of 2: k = 4: failed: too slow" in screen
    else:
        with pytest.raises(type(ended)):
            run_curve(command, "2,4", tmp_path, screen)
    (table,) = tmp_path.rglob("curve.csv")
    assert [row.split(",")[0] for row in table.read_text().splitlines()] == ["fabric", "fattree-2"]


# -- the course


def graded(request: Request, *_: object) -> Grade:
    return Grade(request.lab.name, tuple(Graded(item, item.points) for item in request.lab.items))


def class_of(folder: Path, monkeypatch: pytest.MonkeyPatch, raised: BaseException) -> tuple[Iterator[object], Path]:
    """The grading of four students, of whom the third's ends so; and its table."""
    for student in ("ann", "bob", "cid", "dan"):
        (folder / "handed" / student).mkdir(parents=True)
    monkeypatch.setattr("inakit.experiments.labs.grading.grade.grade_apart", Ended(graded, raised))
    table = folder / "grades.csv"
    lab = LABS["2-sum"]
    return grade_class(ClassRequest(lab, COURSE / lab.name, folder / "handed", "0", False, table, None, 1)), table


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_grades_that_were_found_are_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: type[BaseException]
) -> None:
    lines, table = class_of(tmp_path, monkeypatch, ending())
    with pytest.raises(ending):
        list(lines)
    assert [row.split(",")[0] for row in table.read_text().splitlines()] == ["student", "ann", "bob"]


def test_who_could_not_be_graded_has_no_points_and_the_others_have_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, table = class_of(tmp_path, monkeypatch, ValueError("a fault of ours"))
    with pytest.raises(RunError, match="failed for 1 of 4, the first 'cid': the grader failed: ValueError: a fault"):
        list(lines)
    with table.open() as file:
        found = {row["student"]: (row["points"], row["problem"][:10]) for row in csv.DictReader(file)}
    assert found == {"ann": ("100", ""), "bob": ("100", ""), "cid": ("", "the grader"), "dan": ("100", "")}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_planners_that_were_measured_are_ranked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: type[BaseException]
) -> None:
    for student in ("ann", "bob", "cid"):
        (tmp_path / student).mkdir()
    monkeypatch.setattr("inakit.experiments.labs.course.plan_networks.for_the_board", lambda _: [])
    monkeypatch.setattr(board, "entry_of", Ended(lambda student, *_: board.Standing(student, (0.5,)), ending()))
    shown: list[board.Standing] = []
    with pytest.raises(ending):
        board.leaderboard(tmp_path, "0", Screen(), shown.extend)
    assert [entry.student for entry in shown] == ["ann", "bob"]


def test_a_mutant_that_breaks_the_grader_is_bad_and_the_others_are_graded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "inakit.experiments.labs.grading.teacher.grade", Ended(graded, ValueError("a fault of ours"), at=(1,))
    )
    answer = CliRunner().invoke(app, ["labs", "mutants", "1-forward"])
    first, second, *_ = answer.output.splitlines()
    assert "BAD solution" in first and "not graded: ValueError: a fault of ours" in first
    assert "not graded" not in second
    assert answer.exit_code == 1


# -- figures and studies


def test_all_figures_of_a_paper_are_run_although_one_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise DIED

    found = {"a": Figure("one", broken, simulated=True), "b": Figure("two", lambda *_: "VALID", simulated=True)}
    monkeypatch.setitem(FIGURES, "made-up", found)
    screen = Screen()
    assert run_simulated("made-up", screen, FigureRequest(tmp_path)) == "FAILED"
    assert "made-up a failed: switch 's1' died" in screen
    assert "made-up b: two" in screen


STUDY = """\
version: 1
name: small
stays: {world: none, fabric: "leafspine:leaves=2,spines=1,hosts_per_leaf=2", gradient_bytes: 4096, workers: 2}
varies:
  - {planner: [atp, lbmm], seed: 0..1}
"""


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_study_that_is_ended_has_the_table_of_what_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: type[BaseException]
) -> None:
    file = tmp_path / "small.yml"
    file.write_text(STUDY)
    monkeypatch.setattr("inakit.experiments.sweeps.run_trials.keep_here", Ended(lambda *_: None, ending()))
    screen = Screen()
    with pytest.raises(ending) as ended:
        run_file(file, "loky", 1, "", tmp_path, screen)
    assert ended.value.__notes__ == ["small: 2 of 4 are kept, and the same command continues"]
    assert (tmp_path / "studies" / "small" / "results.parquet").is_file()
    assert "small: 3 runs" in screen
