"""What teachers use: the autograder for Gradescope, formats for GitHub, tables of similarity, exports of Moodle."""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from inakit.experiments.labs.grading import grade as grading
from inakit.experiments.labs.grading.formats import as_classroom, as_gradescope
from inakit.experiments.labs.grading.grade import Request, grade
from inakit.experiments.labs.grading.handing_over import similarities, write_bundle
from inakit.experiments.labs.grading.submission import submissions_in
from inakit.experiments.labs.registry import COURSE, LABS, TEACHER
from inakit.switch.program import p4_source
from inakit.topo.errors import InputError

SOLUTION = TEACHER / "6-plan" / "solutions" / "planner.py"


def test_an_autograder_for_gradescope_has_the_kit_the_seed_and_two_scripts(tmp_path: Path) -> None:
    wheel = tmp_path / "inakit-0.1.0-py3-none-any.whl"
    wheel.write_bytes(b"kit")
    made = write_bundle(tmp_path / "a.zip", LABS["6-plan"], wheel, "autumn", "after_due_date")
    with zipfile.ZipFile(made) as archive:
        assert sorted(archive.namelist()) == [wheel.name, "run_autograder", "seed.txt", "setup.sh"]
        for name in ("setup.sh", "run_autograder"):
            subprocess.run(["bash", "-n"], input=archive.read(name), check=True)
        run = archive.read("run_autograder").decode()
        assert "grade 6-plan /autograder/submission" in run
        assert "--visibility after_due_date" in run
    with pytest.raises(InputError, match="seed"):
        write_bundle(tmp_path / "a.zip", LABS["6-plan"], wheel, None, "visible")
    with pytest.raises(InputError, match="did you mean 'hidden'"):
        write_bundle(tmp_path / "a.zip", LABS["6-plan"], wheel, "autumn", "hiden")


def test_results_say_when_they_are_seen_and_which_line_states_the_task(tmp_path: Path) -> None:
    (tmp_path / "planner.py").write_text("def plan(:")
    found = grade(Request(LABS["6-plan"], COURSE / "6-plan", tmp_path))
    assert json.loads(as_gradescope(found, "after_due_date"))["visibility"] == "after_due_date"
    readme = (COURSE / "6-plan" / "README.md").read_text().splitlines()
    for test, item in zip(json.loads(as_classroom(found))["tests"], LABS["6-plan"].items, strict=True):
        assert item.step in readme[test["line_no"] - 1]


def test_copies_of_a_solution_are_found_and_the_skeleton_does_not_count(tmp_path: Path) -> None:
    text = SOLUTION.read_text()
    renamed = re.sub(r"#.*", "", text).replace("Planner:", "Planner:\n    # mine")
    other = (TEACHER / "6-plan" / "solutions" / "annealing" / "planner.py").read_text()
    for student, own in {"ann": text, "bob": renamed, "eve": other}.items():
        (tmp_path / student).mkdir()
        (tmp_path / student / "planner.py").write_text(own)
    (first, *others) = similarities(LABS["6-plan"], COURSE / "6-plan", tmp_path)
    assert first[:2] == ("ann", "bob")
    assert first[2] > 0.95
    assert all(share < 0.6 for *_, share in others)


def test_names_in_an_export_of_moodle_are_those_of_students(tmp_path: Path) -> None:
    (tmp_path / "Ann Lee_4711_assignsubmission_file_").mkdir()
    (tmp_path / "Bob Ray_4712_assignsubmission_file_planner.py").touch()
    assert list(submissions_in(tmp_path)) == ["Ann Lee", "Bob Ray"]


def test_the_task_states_the_points_of_the_grader() -> None:
    for name, lab in LABS.items():
        readme = (COURSE / name / "README.md").read_text()
        rows = re.findall(r"^\| `(\w+)` \|.*?\| (\d+) \|", readme.partition("## What is graded")[2], re.M)
        assert [(item, int(points)) for item, points in rows] == [(item.name, item.points) for item in lab.items], name


def test_without_p4c_the_python_parts_are_graded_and_the_report_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (p4_source, grading):
        monkeypatch.setattr(module, "find_compiler", lambda: None)
    for name in ("loss.p4", "worker.py"):
        (tmp_path / name).write_text((TEACHER / "4-loss" / "solutions" / name).read_text())
    found = grade(Request(LABS["4-loss"], COURSE / "4-loss", tmp_path))
    points = {each.item.name: None if each.failed else each.points for each in found.graded}
    assert [points[name] for name in ("plain", "again", "answer", "stale")] == [None] * 4
    assert [points[name] for name in ("sending", "patience", "results")] == [10, 10, 10]
    assert any("without p4c" in note for note in found.notes)
