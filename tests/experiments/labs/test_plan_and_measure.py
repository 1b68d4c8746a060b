"""Labs 6 and 7: partial points, messages in the student's words, hostile files, the leaderboard, the notebook."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
from rich.console import Console
from tiers import long_unless

from inakit.experiments.labs.course import leaderboard as board
from inakit.experiments.labs.course import plan_lab as student_planner
from inakit.experiments.labs.course import plan_networks
from inakit.experiments.labs.course.measure_lab import Claim, Interval, check_claims, intervals, own_fabric
from inakit.experiments.labs.course.plan_networks import bound_bps, optimum_bps
from inakit.experiments.labs.grading.grade import Request, grade
from inakit.experiments.labs.grading.lab import Grade, WrongError
from inakit.experiments.labs.registry import COURSE, LABS, TEACHER
from inakit.experiments.labs.sandbox.confinement import MIB, landlock_version

LANDLOCK = pytest.mark.skipif(not landlock_version(), reason="needs Landlock: nothing keeps files away without it")


def graded(lab: str, folder: Path, items: tuple[str, ...] = (), student: str = "") -> Grade:
    """The grade of a folder, for some of the items."""
    chosen = tuple(each for each in LABS[lab].items if not items or each.name in items)
    return grade(Request(replace(LABS[lab], items=chosen), COURSE / lab, folder, student=student))


def causes(found: Grade) -> str:
    """All that is said."""
    return "\n".join([found.problem, *(each.finding.cause for each in found.graded if each.finding)])


# -- lab 6


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planners with small limits."""
    limits = replace(student_planner.planner_limits(), cpu_s=1, wall_s=2.0, memory_bytes=192 * MIB)
    monkeypatch.setattr(student_planner, "planner_limits", lambda: limits)


HOSTILE = {
    "endless loop": ("while True: pass", "took longer"),
    "endless loop in plan": ("def plan(fabric, jobs):\n    while True: pass", "took longer"),
    "memory": ("x = bytearray(1 << 36)", "memory"),
    "fork": ("import os\nos.fork()", "Operation not permitted"),
    "network": ("import sys\nassert sys.modules['ctypes'].CDLL(None).socket(2, 1, 0) >= 0, 'no socket'", "no socket"),
    "reads the solution": (f"open({str(TEACHER / '6-plan' / 'solutions' / 'planner.py')!r})", "Permission denied"),
    "imports the kit's planners": ("import inakit.planner.methods.aro", "No module named"),
    "writes": ("open('/tmp/inakit-hostile', 'w')", "Permission denied"),
    "kills the grader": ("import os\nos.kill(os.getppid(), 9)", "Operation not permitted"),
    "prints points": ("print('100 of 100 points')", "no function plan"),
    "answers itself": (
        "import os, struct\ntext = b'[\"ok\", []]'\n"
        "for n in range(3, 20):\n    try: os.write(n, struct.pack('!I', len(text)) + text)\n    except OSError: pass\n",
        "0 trees",
    ),
    "leaves": ("import os\nos._exit(0)", "ended by itself"),
    "no number": ("def plan(fabric, jobs):\n    return float('nan')", "plain lists"),
    "an object": ("def plan(fabric, jobs):\n    return object()", "plain lists"),
    "a megabyte": ("def plan(fabric, jobs):\n    return 'x' * (1 << 21)", "bytes: at most"),
    "nested too deep": (
        "def plan(fabric, jobs):\n    x = []\n    for _ in range(10 ** 5): x = [x]\n    return x",
        "recursion",
    ),
    "terminal codes": ("def plan(fabric, jobs):\n    raise ValueError('\\x1b[2J 100 points')", "\\x1b[2J"),
    "names with terminal codes": ("def plan(fabric, jobs):\n    return [{'\\x1b[2J': 1}]", "the jobs are"),
    "syntax error": ("def plan(:", "planner.py:1: SyntaxError"),
    "a module of the same name": ("import sys\nsys.exit('100 points')", "ended by itself"),
}


@LANDLOCK
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", [long_unless(name != "endless loop", name) for name in HOSTILE])
def test_hostile_planners_get_nothing_and_are_told_why(name: str, tmp_path: Path) -> None:
    text, told = HOSTILE[name]
    (tmp_path / "planner.py").write_text(text)
    found = graded("6-plan", tmp_path, ("paths", "slots"))
    assert found.points == 0
    assert told in causes(found)
    assert all(character.isprintable() or character == "\n" for character in causes(found))
    assert not Path("/tmp/inakit-hostile").exists()


def tree(**changes: Any) -> dict[str, Any]:
    """A tree of the job of `one_worker`."""
    return {"job": 1, "rate_bps": 1.0, "aggregators": {}, "paths": []} | changes


MISSHAPEN: dict[str, tuple[Any, str]] = {
    "no list": ({}, "trees, one for each job, is expected"),
    "unknown job": ([tree(job=7)], "a tree is of job 7"),
    "no rate": ([tree(rate_bps=0)], "a number greater than 0"),
    "rate of text": ([tree(rate_bps="20M")], "'rate_bps': '20M'"),
    "one key missing": ([{"job": 1, "rate_bps": 1, "paths": []}], "has no 'aggregators'"),
    "a path to nowhere": ([tree(paths=[{"from": "h1", "to": "x", "path": ["h1"]}])], "no aggregator of this tree"),
    "aggregator on no switch": (
        [tree(aggregators={"a": {"switch": "moon", "pipeline": 9, "first_slot": 0, "slots": 2}})],
        "has 0 paths",
    ),
    "a stranger": ([tree(paths=[{"from": "h99", "to": "SERVER", "path": ["h99"]}])], "no worker of this job"),
}


@pytest.mark.parametrize("name", MISSHAPEN)
def test_a_misshapen_plan_is_told_in_the_students_names(name: str, tmp_path: Path) -> None:
    given, told = MISSHAPEN[name]
    program = f"import json\nTREES = json.loads({json.dumps(json.dumps(given))})\n"
    program += (
        "def plan(fabric, jobs):\n    return json.loads(json.dumps(TREES).replace('SERVER', jobs[0]['server']))\n"
    )
    (tmp_path / "planner.py").write_text(program)
    found = graded("6-plan", tmp_path, ("paths",))
    assert told in causes(found)


def test_an_aggregator_on_a_switch_that_is_not_there_is_no_crash(tmp_path: Path) -> None:
    (tmp_path / "planner.py").write_text(
        "def plan(fabric, jobs):\n"
        "    about = {'switch': 'moon', 'pipeline': 99, 'first_slot': 10 ** 9, 'slots': 2}\n"
        "    paths = lambda job: [{'from': w, 'to': 'a', 'path': [w, 'moon']} for w in job['workers']]\n"
        "    last = lambda job: [{'from': 'a', 'to': job['server'], 'path': ['moon', job['server']]}]\n"
        "    tree = lambda job: {'job': job['job'], 'rate_bps': 1e17, 'aggregators': {'a': about}}\n"
        "    return [tree(job) | {'paths': paths(job) + last(job)} for job in jobs]\n"
    )
    found = graded("6-plan", tmp_path, ("paths", "sums", "where", "slots"))
    assert found.points == 0
    assert "has no such link" in causes(found)


def test_points_grow_with_nearness(tmp_path: Path) -> None:
    text = (TEACHER / "6-plan" / "solutions" / "planner.py").read_text()
    old = "return min(results, key=lambda each: each[:2])[2]"
    new = "return {key: ways[n % 7 % len(ways)] for n, (key, ways) in enumerate(self.routes.items())}"
    assert old in text
    (tmp_path / "planner.py").write_text(text.replace(old, new).replace("range(4)", "range(0)"))
    found = graded("6-plan", tmp_path, ("near",))
    assert 0 < found.points < 20
    (note,) = found.notes
    assert re.match(r"near: .*\d\d\.\d%", note)


def test_no_optimum_exceeds_the_bound() -> None:
    for problem in plan_networks.for_slots(Random(3)):
        assert optimum_bps(problem) <= bound_bps(problem) * (1 + 1e-6)


@pytest.mark.usefixtures("small")
def test_the_leaderboard_ranks_by_what_trees_are_worth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_networks, "for_the_board", lambda random: plan_networks.for_slots(random)[:1])
    for student, text in {
        "ann": (TEACHER / "6-plan" / "solutions" / "planner.py").read_text(),
        "bob": (COURSE / "6-plan" / "planner.py").read_text(),
    }.items():
        (tmp_path / student).mkdir()
        (tmp_path / student / "planner.py").write_text(text)
    (tmp_path / "eve").mkdir()
    shown: list[board.Standing] = []
    entries = board.leaderboard(tmp_path, "0", Console(file=StringIO()), shown.extend)
    assert shown == entries
    assert [(rank, entry.student) for rank, entry in board.ranked(entries)] == [(1, "ann"), (2, "bob"), (2, "eve")]
    assert 0.5 < entries[0].mean <= 1
    assert "0 paths" in entries[1].problem
    assert board.board_of(entries).splitlines()[0] == "rank,student,mean,worst,network 1,problem"


# -- lab 7


def test_every_student_has_another_fabric_and_the_same_one_twice() -> None:
    names = ["ann", "bob", "eve", "Ada Lovelace"]
    fabrics = {own_fabric(name) for name in names}
    assert len(fabrics) == len(names)
    assert own_fabric(" ann ") == own_fabric("ann")


def test_a_study_of_another_student_loses_its_first_item() -> None:
    solution = TEACHER / "7-measure" / "solutions"
    found = graded("7-measure", solution, ("own",), student="bob")
    assert "'bob' handed it in" in causes(found)


VALUES = [10.0, 12.0, 11.0, 9.0, 10.5, 11.5, 10.0, 9.5, 12.5, 11.7]
T, DRAWN = intervals(VALUES)


def scaled(interval: Interval, factor: float) -> Interval:
    """An interval whose ends are nearer to the mean, or farther."""
    mean, low, high = interval
    return Interval(mean, mean + factor * (low - mean), mean + factor * (high - mean))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (T, ""),
        (DRAWN, ""),
        (Interval(*(float(f"{each:.4g}") for each in T)), ""),
        (scaled(T, 1.0017), ""),
        (scaled(T, 2.306 / 2.262), "by Student's t"),
        (T._replace(low=min(VALUES)), "low end"),
        (T._replace(mean=12.0), "the mean is"),
        (scaled(T, 1.833 / 2.262), "by Student's t"),
        (scaled(DRAWN, 0.89), "of the width of those of 95 %"),
        (scaled(DRAWN, 1.645 / 1.96), "low end|high end"),
        (scaled(DRAWN, 2.576 / 1.96), "low end|high end"),
    ],
)
def test_intervals_of_95_percent_by_t_and_by_the_bootstrap_are_right_and_others_are_not(
    given: Interval, told: str
) -> None:
    claims = [Claim("aro", given, VALUES, 0.0)] * 4
    if told:
        with pytest.raises(WrongError, match=told):
            check_claims("", claims)
    else:
        check_claims("", claims)


HOSTILE_STUDIES = {
    "a billion runs": "version: 1\nvaries:\n  - seed: 0..1000000000\n    planner: [aro]\n",
    "an alias bomb": "version: 1\nvaries: &a [*a, *a]\n",
    "nested too deep": "[" * 5000,
    "a giant fabric": 'version: 1\nvaries:\n  - fabric: ["fattree:k=128"]\n',
    "a file of the teacher's": "version: 1\nvaries:\n  - jobs: [/etc/passwd]\n",
    "no YAML": "\t: [",
}


@LANDLOCK
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long) for name in HOSTILE_STUDIES])
def test_hostile_studies_get_nothing(name: str, tmp_path: Path) -> None:
    (tmp_path / "answers.yml").write_text("student: ann\n")
    (tmp_path / "study.yml").write_text(HOSTILE_STUDIES[name])
    found = graded("7-measure", tmp_path, ("own", "design"))
    assert found.points == 0
    assert "study.yml" in causes(found) or "memory" in causes(found) or "took longer" in causes(found)
    assert "root:" not in causes(found)


TABLES = {
    "no number": ("results.csv", "time_s\n", "time_s\naro,2048,77,soon\n", "a number greater than 0"),
    "not a number": ("results.csv", "time_s\n", "time_s\naro,2048,77,nan\n", "a number greater than 0"),
    "a run twice": ("results.csv", "aro,2048,1,", "aro,2048,0,", "is there twice"),
    "other columns": ("results.csv", "seed,", "", "the first line is"),
    "an unknown planner": ("results.csv", "aro,2048,0,", "magic,2048,0,", "aro or ring is expected"),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_cannot_be_read_is_told_with_its_line(name: str, tmp_path: Path) -> None:
    file, old, new, told = TABLES[name]
    for path in (TEACHER / "7-measure" / "solutions").glob("*.*"):
        text = path.read_text()
        assert path.name != file or old in text
        (tmp_path / path.name).write_text(text.replace(old, new, 1) if path.name == file else text)
    assert told in causes(graded("7-measure", tmp_path, ("intervals",)))


def test_cells_of_the_notebook_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = json.loads((COURSE / "7-measure" / "measure.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    chosen = [cell for cell in cells if "install" not in cell["metadata"].get("tags", [])]
    monkeypatch.chdir(tmp_path)
    assert len(chosen) >= 6
    for cell in chosen:
        compile("".join(cell["source"]), "measure.ipynb", "exec")
    scope: dict[str, Any] = {}
    for cell in chosen[:3]:
        exec("".join(cell["source"]), scope)
    assert (tmp_path / "study.yml").is_file()
    assert (tmp_path / "fabric.yml").is_file()


@pytest.mark.compiler
@pytest.mark.long
def test_the_notebook_runs_from_its_first_cell_to_its_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = json.loads((COURSE / "7-measure" / "measure.ipynb").read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    scope: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and "install" not in cell["metadata"].get("tags", []):
            exec("".join(cell["source"]), scope)
    assert (tmp_path / "results.csv").read_text().count("\n") == 9
