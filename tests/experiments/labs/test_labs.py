"""Solutions keep all points, wrong solutions lose those of one item, and a grade is the same twice."""

from __future__ import annotations

import errno
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tiers import long_unless
from typer.testing import CliRunner

from inakit.experiments.cli.app import app
from inakit.experiments.labs.course import pool_lab
from inakit.experiments.labs.course.pool_lab import Star
from inakit.experiments.labs.grading.bench import excerpt, in_order
from inakit.experiments.labs.grading.formats import FORMATS, text_of
from inakit.experiments.labs.grading.grade import ClassRequest, Request, grade, grade_class, task_lines
from inakit.experiments.labs.grading.lab import Grade, Lab
from inakit.experiments.labs.grading.p4c import read_archive
from inakit.experiments.labs.grading.teacher import (
    Mutant,
    Trial,
    grade_texts,
    program_in,
    read_mutants,
    solution_folders,
    try_mutant,
)
from inakit.experiments.labs.registry import COURSE, LABS, TEACHER, export_labs
from inakit.experiments.labs.sandbox.process import EndedError
from inakit.switch.program.bmv2_json import read_program, sha256
from inakit.switch.testing.ptf_platform import PtfOptions, run_ptf
from inakit.topo.errors import InputError, OutputError, RunError

P4C = pytest.mark.skipif(shutil.which("p4c-bm2-ss") is None, reason="needs p4c")
MUTANTS = {(lab, mutant.name): mutant for lab in LABS for mutant in read_mutants(TEACHER / lab)}
FIRST = {lab: (lab, name) for lab, name in reversed(MUTANTS)}.values()
"""A mutant of each lab."""
SLOW = ("3-pool", "4-loss", "6-plan", "7-measure")
"""Labs whose grading takes seconds."""
SOLUTIONS = [(lab, folder.name) for lab in LABS for folder in solution_folders(TEACHER / lab)]


@cache
def archive(lab: str) -> dict[str, str]:
    return read_archive(TEACHER / lab)


def texts_in(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir()) if path.is_file()}


def solution(lab: str) -> dict[str, str]:
    return texts_in(TEACHER / lab / "solutions")


def of_solution(lab: str, name: str = "solutions", seed: str = "0") -> Grade:
    folder = next(folder for folder in solution_folders(TEACHER / lab) if folder.name == name)
    return grade_texts(LABS[lab], COURSE, texts_in(folder), archive(lab), seed)


def of_mutant(lab: str, mutant: Mutant) -> Trial:
    """All items are graded."""
    return try_mutant(LABS[lab], COURSE, mutant, solution(lab), archive(lab), "0")


def only(lab: str, *items: str) -> Lab:
    """A lab of which some items are graded."""
    return replace(LABS[lab], items=tuple(each for each in LABS[lab].items if each.name in items))


@cache
def of_its_item(lab: str, name: str) -> Trial:
    """Only the item that the mutant breaks is graded."""
    mutant = MUTANTS[lab, name]
    return try_mutant(only(lab, *mutant.items), COURSE, mutant, solution(lab), archive(lab), "0")


@pytest.mark.parametrize(
    ("lab", "name"),
    [long_unless(lab not in (*SLOW, "5-tree") or name == "solutions", lab, name) for lab, name in SOLUTIONS],
)
def test_right_solutions_keep_all_points(lab: str, name: str) -> None:
    """Each with a seed of its own."""
    assert of_solution(lab, name, seed=name).points == 100


@pytest.mark.long
@pytest.mark.parametrize("seed", ["0", "autumn", "7"])
@pytest.mark.parametrize("lab", LABS)
def test_solutions_keep_all_points_with_other_seeds(lab: str, seed: str) -> None:
    assert of_solution(lab, seed=seed).points == 100


def by_tier() -> list[Any]:
    """The mutants: of those of one item, in slow labs of all, the first is always tried, and the others are long."""
    seen: set[tuple[str, tuple[str, ...]]] = set()
    labs: set[str] = set()
    found = []
    for (lab, name), mutant in MUTANTS.items():
        found.append(long_unless((lab, mutant.items) not in seen and (lab not in SLOW or lab not in labs), lab, name))
        labs.add(lab)
        seen.add((lab, mutant.items))
    return found


@pytest.mark.parametrize(("lab", "name"), by_tier())
def test_a_wrong_solution_loses_the_item_that_it_breaks_and_is_told_why(lab: str, name: str) -> None:
    trial = of_its_item(lab, name)
    assert trial.lost == trial.items
    assert trial.says in trial.cause


@pytest.mark.parametrize(
    ("lab", "name"), [long_unless((lab, name) in FIRST and lab not in SLOW, lab, name) for lab, name in MUTANTS]
)
def test_a_wrong_solution_keeps_the_points_of_all_other_items(lab: str, name: str) -> None:
    trial = of_mutant(lab, MUTANTS[lab, name])
    assert trial.lost == trial.items


@pytest.mark.parametrize("lab", LABS)
def test_every_lab_has_its_mutants_and_other_solutions(lab: str) -> None:
    assert len([name for of, name in MUTANTS if of == lab]) >= 15
    assert len([name for of, name in SOLUTIONS if of == lab]) >= 4


@pytest.mark.parametrize("lab", LABS)
def test_every_item_is_a_step_of_the_task(lab: str) -> None:
    for item in LABS[lab].items:
        assert task_lines(COURSE / lab, item.step), item.step
    assert sum(item.points for item in LABS[lab].items) == 100


@pytest.mark.parametrize(
    ("lab", "name"),
    [
        ("1-forward", "time to live kept"),
        ("2-sum", "sums not cleared"),
        ("3-pool", "never answered"),
        ("4-loss", "never answered"),
        ("5-tree", "pipelines mixed"),
    ],
)
def test_what_failed_is_shown_by_packets_trace_and_task(lab: str, name: str) -> None:
    trial = of_its_item(lab, name)
    finding = next(each.finding for each in trial.grade.graded if each.finding)
    assert finding.sent
    assert finding.trace[-1].startswith("> ")
    assert ".p4:" in finding.trace[-1]
    assert finding.task[0].startswith("README.md:")


def test_packets_that_are_alike_in_words_are_shown_with_all_their_bytes() -> None:
    trial = of_its_item("2-sum", "Ethernet addresses exchanged")
    finding = next(each.finding for each in trial.grade.graded if each.finding)
    assert all(re.fullmatch(r"port \d+: [0-9a-f]{112}", line) for line in (*finding.expected, *finding.got))
    assert finding.expected != finding.got


CURRENT_ROUND = "packet.round != self.rounds[slot]"


def test_an_exception_of_a_worker_is_shown_with_the_schedule_that_led_to_it() -> None:
    right = solution("4-loss")
    wrong = right["worker.py"].replace(CURRENT_ROUND, f"({CURRENT_ROUND} and 1 // 0)")
    found = grade_texts(only("4-loss", "results"), COURSE, right | {"worker.py": wrong}, archive("4-loss"), "0")
    finding = found.graded[0].finding
    assert finding is not None
    assert finding.cause.startswith("worker ")
    assert "worker.py:21: ZeroDivisionError" in finding.cause
    assert finding.sent[-1].endswith(("TWICE", "LATE"))
    assert finding.sent[-1].startswith("the result for worker")


def test_a_worker_that_cannot_start_is_told_once() -> None:
    right = solution("4-loss")
    wrong = right["worker.py"].replace("for slot in range(self.pool)", "for slot in range(self.slots)")
    lab = only("4-loss", "sending", "patience", "results")
    told = text_of(grade_texts(lab, COURSE, right | {"worker.py": wrong}, archive("4-loss"), "0"))
    assert told.count("AttributeError") == 1
    assert "sending, patience, results: worker 0: worker.py:17: AttributeError" in told


def test_a_grade_is_the_same_twice_and_other_seeds_have_other_tests() -> None:
    mutant = MUTANTS["2-sum", "sums not cleared"]
    once, twice = (text_of(of_mutant("2-sum", mutant).grade) for _ in range(2))
    assert once == twice
    other = try_mutant(LABS["2-sum"], COURSE, mutant, solution("2-sum"), archive("2-sum"), "1").grade
    assert text_of(other).splitlines()[1:] != once.splitlines()[1:]


def test_formats_of_gradescope_classroom_and_junit() -> None:
    found = of_mutant("2-sum", MUTANTS["2-sum", "bitmap not cleared"]).grade
    scores = json.loads(FORMATS["gradescope"](found))
    assert (scores["score"], len(scores["tests"])) == (90, len(found.graded))
    assert [test["name"] for test in json.loads(FORMATS["classroom"](found))["tests"] if test["status"] == "fail"] == [
        "rounds"
    ]
    suite = ET.fromstring(FORMATS["junit"](found))
    assert [case.get("name") for case in suite if case.find("failure") is not None] == ["rounds"]
    assert json.loads(FORMATS["json"](found))["points"] == 90


def test_a_wrong_counter_is_shown_as_a_counter() -> None:
    graded = of_mutant("1-forward", MUTANTS["1-forward", "counted twice"]).grade.graded
    finding = next(each.finding for each in graded if each.finding)
    (expected,), (got,) = finding.expected, finding.got
    assert re.fullmatch(r"sent\[\d+\]: 3 packets, \d+ bytes", expected)
    assert got.startswith(expected.replace("3 packets, ", "6 packets, ").partition(",")[0])


def test_a_field_that_is_set_to_a_constant_is_not_said_to_be_decided_by_the_constant() -> None:
    """p4c gives such a statement the line of the constant, and what stands there."""
    lines = ["Primitive sum.p4:14 2; ...: agg.kind = 0x2", "Primitive sum.p4:20 a = b;...: agg.slot = 0x2"]
    assert excerpt(lines[:1], "agg.kind") == ("> sum.p4: agg.kind = 0x2 (the constant of line 14)",)
    assert excerpt(lines, "agg.slot")[-1] == "> sum.p4:20: a = b;...: agg.slot = 0x2"


def test_what_leaves_is_listed_in_the_order_of_what_is_expected() -> None:
    got = [(1, b"a"), (2, b"b"), (3, b"c")]
    assert in_order(got, [3, 1]) == [(3, b"c"), (1, b"a"), (2, b"b")]
    assert in_order(got, []) == got


# -- the tests that students see


@pytest.mark.long
@pytest.mark.parametrize(
    ("lab", "name", "wrong"),
    [("1-forward", "forward.p4", "time to live kept"), ("2-sum", "sum.p4", "bitmap not cleared")],
)
def test_visible_tests_pass_with_the_solution_and_fail_with_a_mutant(
    tmp_path: Path, lab: str, name: str, wrong: str
) -> None:
    (course,) = export_labs(tmp_path, (lab,))
    program = course / name.replace(".p4", ".json")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    for text, code in ((solution(lab)[name], 0), (MUTANTS[lab, wrong].text, 1)):
        program.write_text(program_in(archive(lab), text, name))
        assert subprocess.run(command, cwd=course, check=False, capture_output=True).returncode == code


# -- throughput


def test_each_size_of_a_pool_has_its_own_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "pool.json"
    program.write_text(program_in(archive("3-pool"), solution("3-pool")["pool.p4"], "pool.p4"))
    switches = []

    def measured(switch: Any, star: Star, slots: int) -> float:
        switches.append(switch)
        if slots == 3:
            raise EndedError("it took longer")
        return star.rate_bps

    monkeypatch.setattr(pool_lab, "throughput", measured)
    with pytest.raises(RunError, match=r"pool.json with 3 slots: it took longer"):
        list(pool_lab.curve(program, Star(), (1, 2, 3)))
    assert len(set(map(id, switches))) == 3


def test_the_throughput_of_source_is_that_of_what_p4c_makes_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    text = solution("3-pool")["pool.p4"]
    for name, content in {"pool.p4": text, "pool.json": program_in(archive("3-pool"), text, "pool.p4")}.items():
        (folder / name).write_text(content)
    record = (f"{sha256(folder / name)}  mine/{name}\n" for name in ("pool.p4", "pool.json"))
    (folder / "pool.sha256").write_text("".join(record))
    monkeypatch.setattr(pool_lab, "throughput", lambda *_: 1e8)
    done = CliRunner().invoke(app, ["labs", "throughput", str(folder / "pool.p4"), "--slots", "4"])
    assert (done.exit_code, "4    100.000" in done.output) == (0, True), done.output


# -- PTF


@pytest.mark.skipif(importlib.util.find_spec("ptf") is None, reason="needs PTF: pip install 'inakit[ptf]'")
def test_lab_2_in_the_form_of_ptf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "sum.json"
    program.write_text(program_in(archive("2-sum"), solution("2-sum")["sum.p4"], "sum.p4"))
    tests = COURSE / "2-sum" / "ptf"
    options = PtfOptions(str(program), str(tests / "commands.txt"))
    monkeypatch.chdir(tmp_path)
    assert run_ptf(tests, options, ()) == 0


# -- a class, and what students get


def test_a_class_is_graded_into_one_table_the_same_twice(tmp_path: Path) -> None:
    handed = tmp_path / "handed"
    handed.mkdir()
    for student, text in {"ann": solution("2-sum")["sum.p4"], "bob": MUTANTS["2-sum", "saturating sum"].text}.items():
        (handed / student).mkdir()
        (handed / student / "sum.json").write_text(program_in(archive("2-sum"), text, "sum.p4"))
    (handed / "eve").mkdir()
    tables = []
    for jobs in (1, 2):
        table, reports = tmp_path / f"grades{jobs}.csv", tmp_path / f"reports{jobs}"
        request = ClassRequest(LABS["2-sum"], COURSE / "2-sum", handed, "s", True, table, reports, jobs)
        lines = list(grade_class(request))
        assert [line.split()[:2] for line, _ in lines[:2]] == [["ann", "100"], ["bob", "80"]]
        tables.append((table.read_text(), (reports / "bob.txt").read_text()))
    assert tables[0] == tables[1]
    assert "the submission is empty" in tables[0][0]


def test_students_get_no_solutions(tmp_path: Path) -> None:
    folders = list(export_labs(tmp_path / "course", ()))
    assert [folder.name for folder in folders] == list(LABS)
    written = {path.name for path in (tmp_path / "course").rglob("*")}
    assert "mutants.yml" not in written
    assert "solutions" not in written
    right = {text for lab in LABS for text in solution(lab).values()}
    assert not right & {path.read_text() for path in (tmp_path / "course").rglob("*.p4")}


def test_labs_are_handed_out_one_after_the_other(tmp_path: Path) -> None:
    course = tmp_path / "autumn" / "course"
    assert export_labs(course, ("1-forward",)) == [course / "1-forward"]
    (course / "1-forward" / "forward.p4").write_text("mine")
    assert export_labs(course, ("2-sum", "2-sum")) == [course / "2-sum"]
    assert (course / "1-forward" / "forward.p4").read_text() == "mine"


def test_a_lab_that_is_there_is_not_written_over_and_no_other_is_written(tmp_path: Path) -> None:
    (tmp_path / "2-sum").mkdir()
    with pytest.raises(InputError, match="2-sum exists already"):
        export_labs(tmp_path, ("1-forward", "2-sum"))
    assert [path.name for path in tmp_path.iterdir()] == ["2-sum"]


def test_an_export_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = shutil.copytree

    def full_disk(source: Any, *others: Any, **named: Any) -> Any:
        if Path(source).name == "2-sum":
            raise OSError(errno.ENOSPC, "No space left on device")
        return copy(source, *others, **named)

    monkeypatch.setattr(shutil, "copytree", full_disk)
    with pytest.raises(OutputError):
        export_labs(tmp_path / "course", ("1-forward", "2-sum"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("p4c", ["kept", pytest.param("here", marks=P4C)])
@pytest.mark.parametrize("lab", LABS)
def test_skeletons_compile_also_without_p4c_and_have_no_points(
    lab: str, p4c: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if p4c == "kept":
        monkeypatch.setenv("PATH", str(tmp_path))
    found = grade(Request(LABS[lab], COURSE / lab, COURSE / lab))
    assert not found.problem
    assert not found.failed
    assert found.points == 0


def test_a_student_without_p4c_compiles_what_came_with_the_kit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (course,) = export_labs(tmp_path / "course", ("2-sum",))
    done = CliRunner().invoke(app, ["p4c", str(course / "sum.p4")])
    assert done.output.endswith("sum.json (kept in the kit: labs/compiled.json.xz)\n")
    assert read_program(course / "sum.json").actions
    (course / "sum.p4").write_text((course / "sum.p4").read_text() + "\n")
    assert "p4c is not installed" in str(CliRunner().invoke(app, ["p4c", str(course / "sum.p4")]).exception)
