"""What teachers use: the autograder for Gradescope, formats for GitHub, tables of similarity, exports of Moodle."""

from __future__ import annotations

import base64
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from inakit.experiments.labs.grading import grade as grading
from inakit.experiments.labs.grading import p4c, submission
from inakit.experiments.labs.grading.formats import as_classroom, as_gradescope, text_of
from inakit.experiments.labs.grading.grade import Request, grade
from inakit.experiments.labs.grading.handing_over import collect, similarities, write_bundle
from inakit.experiments.labs.grading.submission import submissions_in
from inakit.experiments.labs.registry import COURSE, LABS, TEACHER
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


def test_the_workflow_for_github_has_the_names_that_classroom_reads_and_hands_its_reporter_the_result(
    tmp_path: Path,
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "teaching.md").read_text()
    (text,) = (each for each in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "autograding" in each)
    workflow = yaml.safe_load(text)
    assert workflow["name"] == "Autograding Tests"
    assert list(workflow["jobs"]) == ["run-autograding-tests"]
    *_, lab, reporter = workflow["jobs"]["run-autograding-tests"]["steps"]
    assert reporter["with"] == {"runners": lab["id"]}
    assert reporter["env"] == {f"{lab['id'].upper()}_RESULTS": f"${{{{ steps.{lab['id']}.outputs.result }}}}"}
    shutil.copy(COURSE / "2-sum" / "sum.p4", tmp_path)
    outputs = tmp_path / "outputs"
    run = lab["run"].replace("inakit ", f"{sys.executable} -m inakit ")
    given = {**os.environ, "GITHUB_OUTPUT": str(outputs)}
    subprocess.run(["bash", "-e", "-c", run], cwd=tmp_path, env=given, check=True)
    name, _, value = outputs.read_text().partition("=")
    result = json.loads(base64.b64decode(value))
    assert name == "result"
    assert result["status"] == "fail"
    assert result["max_score"] == 100
    assert [test["status"] for test in result["tests"]] == ["fail"] * len(LABS["2-sum"].items)


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


PLATFORMS = {
    "Moodle": ["Ann Lee_4711_assignsubmission_file_/loss.p4", "Ann Lee_4711_assignsubmission_file_/deep/worker.py"],
    "Moodle since 4.1": ["Ann Lee_4711_assignsubmission_file/loss.p4", "Ann Lee_4711_assignsubmission_file/worker.py"],
    "Moodle's flat": ["Ann Lee_4711_assignsubmission_file_loss.p4", "Ann Lee_4711_assignsubmission_file_worker.py"],
    "Canvas": ["Ann Lee_LATE_12_345_loss-1.p4", "Ann Lee_12_346_worker.py"],
    "Blackboard": [
        "Lab 4_Ann Lee_attempt_2026-11-29-10-00-00_loss.p4",
        "Lab 4_Ann Lee_attempt_2026-11-30-10-00-00_loss.p4",
        "Lab 4_Ann Lee_attempt_2026-11-30-10-00-00_worker.py",
        "Lab 4_Ann Lee_attempt_2026-11-30-10-00-00.txt",
    ],
}


def export_of(folder: Path, *names: str, text: str = "x") -> Path:
    """The zip of a platform, with files that have their names in them."""
    path = folder / "export.zip"
    with zipfile.ZipFile(path, "a") as archive:
        for name in names:
            archive.writestr(name, f"{text}{name if text else ''}")
    return path


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_zip_of_a_platform_becomes_a_folder_for_each_student(platform: str, tmp_path: Path) -> None:
    export = export_of(tmp_path, *PLATFORMS[platform], "__MACOSX/Ann Lee_4711_assignsubmission_file_/._loss.p4")
    (ann,) = collect(export, tmp_path / "handed", "2026-11-30 09:59")
    files = {path.name: path.read_text() for path in (tmp_path / "handed" / "Ann Lee").rglob("*") if path.is_file()}
    assert set(files) == {"loss.p4", "worker.py"}
    assert "2026-11-29" not in files["loss.p4"]
    rows = list(csv.DictReader((tmp_path / "handed.csv").read_text().splitlines()))
    assert [(row["student"], row["late"]) for row in rows] == [("Ann Lee", "late" if ann.late else "")]
    assert ann.late == (platform in ("Canvas", "Blackboard"))


def test_groups_have_one_folder_and_students_of_one_name_their_own(tmp_path: Path) -> None:
    names = [f"{name}_assignsubmission_file_/planner.py" for name in ("Red-Ann_1", "Red-Bob_2", "Jo-Ann_3", "Al_4")]
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        for name in (*names, "Al_5_assignsubmission_file_/planner.py"):
            archive.writestr(name, "of the group" if name.startswith("Red") else name)
    collect(tmp_path / "export.zip", tmp_path / "handed")
    assert sorted(each.name for each in (tmp_path / "handed").iterdir()) == ["Al (4)", "Al (5)", "Jo-Ann", "Red"]
    rows = csv.DictReader((tmp_path / "handed.csv").read_text().splitlines())
    assert {row["student"]: row["group"] for row in rows if row["group"]} == {"Red-Ann": "Red", "Red-Bob": "Red"}


NAMES = {
    "Lab_4_a_lee_attempt_2026-11-30-10-00-00_planner.py": "a_lee",
    "Lab_4_b_lee_attempt_2026-11-30-10-00-00_planner.py": "b_lee",
    "Default group_assignsubmission_file/planner.py": "Default group",
    "Red_12_assignsubmission_file/planner.py": "Red",
    "red_team_LATE_7_80_planner.py": "red_team",
    "LATE_anon_x1Y2z_81_planner.py": "anon_x1Y2z",
    "anon_x1Y2w_82_planner.py": "anon_x1Y2w",
}


def test_names_are_told_from_what_platforms_write_around_them(tmp_path: Path) -> None:
    collect(export_of(tmp_path, *NAMES), tmp_path / "handed")
    written = {str(path.relative_to(tmp_path / "handed")): path.read_text() for path in tmp_path.glob("handed/*/*")}
    assert written == {f"{student}/planner.py": f"x{name}" for name, student in NAMES.items()}
    late = [row["student"] for row in csv.DictReader((tmp_path / "handed.csv").read_text().splitlines()) if row["late"]]
    assert sorted(late) == ["anon_x1Y2z", "red_team"]


HOSTILE_NAMES = [
    ".._1_assignsubmission_file_/planner.py",
    "eve_1_assignsubmission_file_/../../../planner.py",
    "eve_1_assignsubmission_file_//etc/planner.py",
    "eve_1_assignsubmission_file_/" + "x" * 5000,
    "eve_1_assignsubmission_file_/a",
    "eve_1_assignsubmission_file_/a/b",
    "eve_1_assignsubmission_file_/\x1b[2J\n.py",
    "=cmd|x_1_assignsubmission_file_/planner.py",
    "\udcff_1_assignsubmission_file_/planner.py".encode("utf-8", "replace").decode(),
    "x" * 3000 + "_1_assignsubmission_file_/planner.py",
]


def test_hostile_names_in_an_export_stay_in_their_folder(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    export = export_of(tmp_path, *HOSTILE_NAMES, "ann_2_assignsubmission_file_/planner.py")
    collect(export, inside / "handed")
    assert sorted(each.name for each in inside.iterdir()) == ["handed", "handed.csv"]
    assert {each.name for each in tmp_path.iterdir()} == {"inside", "export.zip"}
    assert (inside / "handed" / "ann" / "planner.py").is_file()
    cells = [cell for row in csv.reader((inside / "handed.csv").read_text().splitlines()) for cell in row]
    assert not [cell for cell in cells if cell[:1] in ("=", "+", "-", "@") or not cell.isprintable()]


def test_an_export_that_is_none_is_told(tmp_path: Path) -> None:
    export = export_of(tmp_path, "planner.py")
    with pytest.raises(InputError, match="no submissions in it"):
        collect(export, tmp_path / "handed")
    with pytest.raises(InputError, match="expected a date and a time"):
        collect(export, tmp_path / "handed", "tomorrow")
    with pytest.raises(InputError, match="exists already"):
        collect(export, tmp_path)


def test_the_task_states_the_points_of_the_grader() -> None:
    for name, lab in LABS.items():
        readme = (COURSE / name / "README.md").read_text()
        rows = re.findall(r"^\| `(\w+)` \|.*?\| (\d+) \|", readme.partition("## What is graded")[2], re.M)
        assert [(item, int(points)) for item, points in rows] == [(item.name, item.points) for item in lab.items], name


def test_without_p4c_the_python_parts_are_graded_and_the_report_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (p4c, submission, grading):
        monkeypatch.setattr(module, "find_compiler", lambda: None)
    for name, more in {"loss.p4": "// mine\n", "worker.py": ""}.items():
        (tmp_path / name).write_text((TEACHER / "4-loss" / "solutions" / name).read_text() + more)
    found = grade(Request(LABS["4-loss"], COURSE / "4-loss", tmp_path))
    points = {each.item.name: None if each.failed else each.points for each in found.graded}
    assert [points[name] for name in ("plain", "again", "answer", "stale")] == [None] * 4
    assert [points[name] for name in ("sending", "patience", "results")] == [10, 10, 10]
    assert any("without p4c" in note for note in found.notes)
    assert text_of(found).startswith("lab 4-loss: 40 of 40 points; the other items could not be graded\n")
    assert "the grader failed" not in text_of(found)
