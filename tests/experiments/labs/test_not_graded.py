"""What cannot be graded, or not all of it: in every lab one clear message for each part, told once."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from inakit.experiments.labs.grading.formats import text_of, told_once
from inakit.experiments.labs.grading.grade import Request, grade
from inakit.experiments.labs.grading.lab import Grade
from inakit.experiments.labs.grading.p4c import read_archive
from inakit.experiments.labs.grading.submission import submissions_in
from inakit.experiments.labs.grading.teacher import program_in
from inakit.experiments.labs.registry import COURSE, LABS, TEACHER
from inakit.switch.program import p4_source
from inakit.topo.errors import InputError, MachineError

P4C = pytest.mark.skipif(shutil.which("p4c-bm2-ss") is None, reason="needs p4c")
WITH_P4 = [lab for lab in LABS if LABS[lab].files[0].endswith(".p4")]
NOT_TRIED = "not tried"
"""How the finding of an item begins that needs both parts of a submission."""


def graded(lab: str, path: Path, items: tuple[str, ...] = ()) -> Grade:
    """The grade of a submission, for some of the items."""
    chosen = tuple(each for each in LABS[lab].items if not items or each.name in items)
    return grade(Request(replace(LABS[lab], items=chosen), COURSE / lab, path))


def messages(found: Grade) -> list[str]:
    """All that the report says of a submission without points, which is the same in each format."""
    assert found.points == 0
    told = [found.problem] if found.problem else [finding.cause for _, finding in told_once(found)]
    text = text_of(found)
    assert all(text.count(each.splitlines()[0]) == 1 for each in told)
    return [each for each in told if not each.startswith(NOT_TRIED)]


def write_solution(lab: str, folder: Path, *, compiled: bool = True) -> None:
    """Write the solution of a lab with a line that the kit's programs lack, its P4 also in its compiled form."""
    for path in sorted((TEACHER / lab / "solutions").glob("*.*")):
        text = path.read_text()
        (folder / path.name).write_text(text + "// mine\n" * (path.suffix == ".p4"))
        if compiled and path.suffix == ".p4":
            program = program_in(read_archive(TEACHER / lab), text, path.name)
            (folder / path.name).with_suffix(".json").write_text(program)


# -- nothing, or something else, was handed in


@pytest.mark.parametrize("lab", LABS)
def test_a_submission_that_is_not_there(lab: str, tmp_path: Path) -> None:
    assert messages(graded(lab, tmp_path / "nobody")) == [
        f"{tmp_path / 'nobody'}: no such file or folder; expected a submission"
    ]


@pytest.mark.parametrize("lab", LABS)
def test_an_empty_folder(lab: str, tmp_path: Path) -> None:
    wanted = " and ".join(LABS[lab].files)
    assert messages(graded(lab, tmp_path)) == [f"the submission is empty: it has no files, where {wanted} is expected"]


@pytest.mark.parametrize("lab", LABS)
def test_empty_files(lab: str, tmp_path: Path) -> None:
    for name in LABS[lab].files:
        (tmp_path / name).touch()
    (told,) = messages(graded(lab, tmp_path))
    assert told.startswith("the submission is empty: its files are empty, where")


@pytest.mark.parametrize("lab", LABS)
def test_wrong_file_names(lab: str, tmp_path: Path) -> None:
    for name in LABS[lab].files:
        (tmp_path / f"mine{Path(name).suffix}").write_text("mine")
    for name, told in zip(LABS[lab].files, messages(graded(lab, tmp_path)), strict=False):
        assert name in told
        assert f"mine{Path(name).suffix}" in told


def test_names_that_a_terminal_obeys(tmp_path: Path) -> None:
    (tmp_path / "\x1b[2J.p4").write_text("parser")
    (told,) = messages(graded("2-sum", tmp_path))
    assert "but \\x1b[2J.p4" in told


# -- mistakes in a file

NO_PYTHON = "def broken(:\n"
NO_YAML = "version: [\n"
BROKEN = {
    "1-forward": {"forward.p4": "forward.p4(2)"},
    "2-sum": {"sum.p4": "sum.p4(2)"},
    "3-pool": {"pool.p4": "pool.p4(2)", "answers.yml": "answers.yml line 2"},
    "4-loss": {"loss.p4": "loss.p4(2)", "worker.py": "worker.py:1: SyntaxError"},
    "5-tree": {"tree.p4": "tree.p4(2)", "entries.py": "entries.py:1: SyntaxError"},
    "6-plan": {"planner.py": "planner.py:1: SyntaxError"},
    "7-measure": {"answers.yml": "answers.yml line 2"},
}
TEXTS = {".p4": "#include <core.p4>\nparser p( {\n", ".py": NO_PYTHON, ".yml": NO_YAML}


@pytest.mark.parametrize("lab", [pytest.param(lab, marks=[P4C] if lab in WITH_P4 else []) for lab in LABS])
def test_a_syntax_error_has_its_line(lab: str, tmp_path: Path) -> None:
    for name in BROKEN[lab]:
        (tmp_path / name).write_text(TEXTS[Path(name).suffix])
    told = messages(graded(lab, tmp_path))
    for name, where in BROKEN[lab].items():
        assert [where in each for each in told].count(True) == 1, name


def test_a_study_with_a_syntax_error(tmp_path: Path) -> None:
    (tmp_path / "answers.yml").write_text("student: ann\n")
    (tmp_path / "study.yml").write_text(NO_YAML)
    (told,) = messages(graded("7-measure", tmp_path, ("own", "design", "table")))
    assert "study.yml line 2" in told
    assert "line 2" in told


def test_answers_that_are_not_filled_in(tmp_path: Path) -> None:
    shutil.copy(COURSE / "3-pool" / "answers.yml", tmp_path)
    told = messages(graded("3-pool", tmp_path, ("measured", "explained", "predicted")))
    assert told == ["answers.yml line 4: measured.one_slot_mbps: null: expected a number greater than 0"]


# -- what the switch, or the sandbox, refuses


def refused(lab: str, folder: Path) -> None:
    """Write the solution, with a primitive in its program that no switch has."""
    write_solution(lab, folder)
    (source,) = folder.glob("*.p4")
    source.unlink()
    path = source.with_suffix(".json")
    program = json.loads(path.read_text())
    program["actions"][0]["primitives"] = [{"op": "teleport", "parameters": []}]
    path.write_text(json.dumps(program))


@pytest.mark.parametrize("lab", WITH_P4)
def test_a_program_that_the_switch_refuses(lab: str, tmp_path: Path) -> None:
    refused(lab, tmp_path)
    (told,) = messages(graded(lab, tmp_path, tuple(item.name for item in LABS[lab].items[:3])))
    assert "teleport" in told


@pytest.mark.parametrize(("lab", "item"), [("3-pool", "explained"), ("4-loss", "sending"), ("5-tree", "ports")])
def test_a_refused_program_leaves_the_other_part_its_points(lab: str, item: str, tmp_path: Path) -> None:
    refused(lab, tmp_path)
    found = graded(lab, tmp_path, (LABS[lab].items[0].name, item))
    assert [each.points for each in found.graded] == [0, found.graded[1].item.points]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import numpy\ndef plan(fabric, jobs): pass\n", "planner.py:1: ModuleNotFoundError: No module named 'numpy'"),
        ("def planner(fabric, jobs): pass\n", "planner.py has no function plan(fabric, jobs)"),
    ],
)
def test_a_file_without_a_planner(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "planner.py").write_text(text)
    (found,) = messages(graded("6-plan", tmp_path))
    assert found.startswith(told)


# -- without p4c


@pytest.fixture
def no_programs(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A machine on which neither p4c, Docker nor Vagrant is found."""
    monkeypatch.setenv("PATH", str(tmp_path_factory.mktemp("empty")))


@pytest.mark.usefixtures("no_programs")
@pytest.mark.parametrize("lab", WITH_P4)
def test_without_p4c_the_way_to_get_it_is_said(lab: str, tmp_path: Path) -> None:
    write_solution(lab, tmp_path, compiled=False)
    told = r"p4c is not installed.*docker pull p4lang/p4c.*vagrant up"
    if len(LABS[lab].files) == 1:
        with pytest.raises(MachineError, match=told):
            graded(lab, tmp_path)
    else:
        assert re.search(told, graded(lab, tmp_path).failed)


@pytest.mark.usefixtures("no_programs")
@pytest.mark.parametrize("lab", WITH_P4)
def test_without_p4c_a_teacher_grades_the_solutions(lab: str) -> None:
    assert graded(lab, TEACHER / lab / "solutions", (LABS[lab].items[0].name,)).complete


@pytest.mark.usefixtures("no_programs")
@pytest.mark.parametrize("lab", WITH_P4)
def test_without_p4c_the_json_beside_is_graded(lab: str, tmp_path: Path) -> None:
    write_solution(lab, tmp_path)
    found = graded(lab, tmp_path, (LABS[lab].items[0].name,))
    assert found.complete
    stem = Path(LABS[lab].files[0]).stem
    assert found.notes[0] == f"p4c is not installed here: {stem}.json was graded, not {stem}.p4"


@pytest.mark.usefixtures("no_programs")
def test_without_p4c_the_skeletons_json_is_not_graded_for_what_the_student_wrote(tmp_path: Path) -> None:
    write_solution("4-loss", tmp_path, compiled=False)
    (tmp_path / "loss.json").write_text(next(iter(read_archive(COURSE).values())))
    found = graded("4-loss", tmp_path, ("plain", "sending"))
    assert [each.failed for each in found.graded] == [True, False]
    assert "p4c is not installed" in found.failed


@pytest.mark.usefixtures("no_programs")
@pytest.mark.parametrize(("lab", "item"), [("6-plan", "paths"), ("7-measure", "intervals")])
def test_labs_without_p4_need_no_p4c(lab: str, item: str, tmp_path: Path) -> None:
    write_solution(lab, tmp_path)
    assert graded(lab, tmp_path, (item,)).complete


def test_a_p4c_elsewhere_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(p4_source, "ELSEWHERE_S", 0.05)
    with pytest.raises(InputError, match=r"does not compile: p4c took longer than 0\.05 s"):
        p4_source.run_elsewhere(["sleep", "5"])


# -- a class


def test_students_are_told_apart(tmp_path: Path) -> None:
    for name in ("ann.lee", "ann.ray", ".hidden"):
        (tmp_path / name).mkdir()
    (tmp_path / "bob.p4").touch()
    assert list(submissions_in(tmp_path)) == ["ann.lee", "ann.ray", "bob"]
    (tmp_path / "bob.json").touch()
    assert list(submissions_in(tmp_path)) == ["ann.lee", "ann.ray", "bob.json", "bob.p4"]
