"""Hostile submissions: none gets a point, changes a file or outlives its limits, and each is told what happened."""

from __future__ import annotations

import json
import lzma
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from tiers import long_unless

from inakit.experiments.labs.course import loss_network
from inakit.experiments.labs.course import tree_lab as student_entries
from inakit.experiments.labs.grading import grade as grading
from inakit.experiments.labs.grading import p4c
from inakit.experiments.labs.grading.grade import Request, grade
from inakit.experiments.labs.grading.lab import Grade
from inakit.experiments.labs.grading.p4c import key_of
from inakit.experiments.labs.registry import COURSE, LABS, TEACHER
from inakit.experiments.labs.sandbox import sandboxed_switch
from inakit.experiments.labs.sandbox.confinement import MIB, landlock_version

pytestmark = pytest.mark.skipif(not landlock_version(), reason="needs Landlock: nothing keeps files away without it")

SMALL = replace(loss_network.student_limits(), cpu_s=1, wall_s=2.0, memory_bytes=192 * MIB)
CLASS = """
class Worker:
    def __init__(self, *given):
        self.results = {}
    def start(self):
        return []
    def receive(self, packet):
        return []
    def timeout(self, slot):
        return []
"""


@pytest.fixture
def one_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A submission that has been ended is not tried again: what it does, it does at once."""
    monkeypatch.setattr(grading, "MOST_ENDS", 1)


FILE = Path(__file__).with_name("hostile_workers.yml")
WORKERS = {each["name"]: each for each in yaml.safe_load(FILE.read_text())}


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """A folder of whoever grades, which is the same when a test ends, as are the processes."""
    folder = tmp_path / "teacher"
    folder.mkdir()
    (folder / "solution.py").write_text("class Worker: pass\n")
    before, running = contents(folder), {child.pid for child in psutil.Process().children(recursive=True)}
    yield folder
    assert contents(folder) == before
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= running


def contents(folder: Path) -> list[tuple[str, int, int, int, bytes]]:
    """Everything in a folder that a submission might change."""
    found = [(path, path.stat()) for path in sorted(folder.rglob("*"))]
    return [(path.name, about.st_mode, about.st_mtime_ns, about.st_size, path.read_bytes()) for path, about in found]


def graded(lab: str, submission: Path) -> Grade:
    """The grade of a submission."""
    return grade(Request(LABS[lab], COURSE / lab, submission))


LASTS = ("endless loop", "endless packets")
"""Submissions that use up all their processor time, as others do that are always tried."""


def by_tier(names: Iterable[str]) -> list[Any]:
    """The names of submissions; those that last are long."""
    return [long_unless(name not in LASTS, name) for name in names]


def said(found: Grade) -> str:
    """All that a student is told about what went wrong."""
    return "\n".join([found.problem, *(each.finding.cause for each in found.graded if each.finding is not None)])


@pytest.mark.usefixtures("one_end")
@pytest.mark.parametrize("name", by_tier(WORKERS))
def test_python_of_a_student(name: str, victim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_network, "student_limits", lambda: SMALL)
    told, text = WORKERS[name]["told"], WORKERS[name]["python"].replace("CLASS\n", CLASS)
    handed = tmp_path / "handed"
    handed.mkdir()
    (handed / "worker.py").write_text(f"VICTIM = {str(victim)!r}\n{text}" if "VICTIM" in text else text)
    found = graded("4-loss", handed)
    assert found.points == 0
    assert told in said(found)
    assert all(character.isprintable() or character == "\n" for character in said(found))


# -- programs


def solution() -> dict[str, Any]:
    """The compiled solution of lab 2, as JSON."""
    programs = json.loads(lzma.decompress((TEACHER / "2-sum" / "compiled.json.xz").read_bytes()))
    return dict(json.loads(programs[key_of((TEACHER / "2-sum" / "solutions" / "sum.p4").read_text())]))


def loop_in_the_parser(program: dict[str, Any]) -> None:
    for state in program["parsers"][0]["parse_states"]:
        state["parser_ops"] = []
        state["transitions"] = [{"type": "default", "value": None, "mask": None, "next_state": "start"}]


def huge_registers(program: dict[str, Any]) -> None:
    for register in program["register_arrays"]:
        register["size"] = 1 << 31


def many_registers(program: dict[str, Any]) -> None:
    first = program["register_arrays"][0]
    program["register_arrays"] += [dict(first, name=f"r{n}", id=100 + n, size=1 << 24) for n in range(200)]


def huge_header(program: dict[str, Any]) -> None:
    program["header_types"][-1]["fields"].append(["bomb", 1 << 31, False])


def loop_in_ingress(program: dict[str, Any]) -> None:
    for pipeline in program["pipelines"]:
        for node in pipeline["conditionals"]:
            node["true_next"] = node["false_next"] = node["name"]


PROGRAMS: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "endless loop in the parser": (loop_in_the_parser, "it loops"),
    "endless loop in ingress": (loop_in_ingress, "took longer"),
    "huge registers": (huge_registers, "cells"),
    "many registers": (many_registers, "memory"),
    "huge header": (huge_header, "65536"),
}
TEXTS: dict[str, tuple[bytes, str]] = {
    "nested too deep": (b"[" * 1_000_000, "sum"),
    "number of a million digits": (b'{"a": ' + b"9" * 1_000_000 + b"}", "sum"),
    "no program": (b'{"pipelines": []}', "not BMv2 JSON"),
    "no JSON": (b"100 of 100 points", "JSON"),
    "empty": (b"", "empty"),
    "no text": (b"\xff\xfe\x00", "UTF-8"),
    "too large": (b" " * (5 << 20), "which is the most that is read"),
}


@pytest.fixture
def small_switch(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Switches with little memory, and with little time for what is ended for its time alone."""
    limits = replace(sandboxed_switch.switch_limits(), memory_bytes=512 * MIB)
    if "loop in ingress" in request.node.name:
        limits = replace(limits, cpu_s=1, wall_s=4.0)
    monkeypatch.setattr(sandboxed_switch, "switch_limits", lambda: limits)


@pytest.mark.usefixtures("one_end", "small_switch")
@pytest.mark.parametrize("name", by_tier(PROGRAMS))
def test_compiled_program_of_a_student(name: str, victim: Path, tmp_path: Path) -> None:
    del victim
    change, told = PROGRAMS[name]
    program = solution()
    change(program)
    (tmp_path / "sum.json").write_text(json.dumps(program))
    found = graded("2-sum", tmp_path / "sum.json")
    assert found.points == 0
    assert told in said(found)


@pytest.mark.usefixtures("small_switch")
@pytest.mark.parametrize("name", TEXTS)
def test_file_that_is_no_program(name: str, victim: Path, tmp_path: Path) -> None:
    del victim
    data, told = TEXTS[name]
    (tmp_path / "sum.json").write_bytes(data)
    found = graded("2-sum", tmp_path / "sum.json")
    assert found.points == 0
    assert told in said(found)


def test_links_and_pipes_are_not_read(victim: Path, tmp_path: Path) -> None:
    handed = tmp_path / "handed"
    handed.mkdir()
    (handed / "worker.py").symlink_to(victim / "solution.py")
    assert "is a symbolic link, which is not followed" in said(graded("4-loss", handed))
    (handed / "worker.py").unlink()
    os.mkfifo(handed / "worker.py")
    assert "no regular file" in said(graded("4-loss", handed))


FILLED = (TEACHER / "3-pool" / "solutions" / "answers.yml").read_text()
ANSWERS = {
    "aliases that grow": ("a: &a [1, 1]\nb: &b [*a, *a]\n", "alias"),
    "nested too deep": ("[" * 10_000, "nested too deeply"),
    "object of Python": ("!!python/object/apply:os.system ['touch VICTIM']\n", "tag"),
    "no number": (FILLED.replace("7.598", ".nan"), "expected a number greater than 0"),
    "infinite number": (FILLED.replace("7.598", ".inf"), "expected a number greater than 0"),
    "number of many digits": (FILLED.replace("7.598", "9" * 9_000), "answers.yml"),
    "slots without end": (FILLED.replace("slots: 14", "slots: 1000000000"), "expected a whole number of slots"),
    "truth for numbers": (FILLED.replace("737", "true"), "expected a number"),
    "points of its own": (FILLED + "points: 100\n", "points: unknown key"),
    "key given twice": (FILLED + "version: 1\n", "given twice"),
    "too long": (FILLED + "#" * 20_000, "larger than 16384 bytes"),
    "no mapping": ("100 of 100\n", "answers.yml"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_of_a_student(name: str, victim: Path, tmp_path: Path) -> None:
    text, told = ANSWERS[name]
    handed = tmp_path / "handed"
    handed.mkdir()
    (handed / "answers.yml").write_text(text.replace("VICTIM", str(victim / "new")))
    found = graded("3-pool", handed)
    assert found.points == 0
    assert told in said(found)


ENTRIES = {
    "endless loop": ("while True: pass", "took longer"),
    "endless loop in the function": ("def entries(plan, switch):\n    while True: pass", "took longer"),
    "memory": ("x = bytearray(1 << 36)", "memory"),
    "too many entries": (
        "from entry import Entry\ndef entries(plan, switch):\n    return [Entry('up', (1, 1), 'send', (1,))] * 10**6",
        "at most",
    ),
    "list that lies about its length": (
        "class L(list):\n    def __len__(self): return 1\ndef entries(plan, switch):\n    return L([object()] * 10**6)",
        "Entry(table, key, action, params) or Group(...) is expected",
    ),
    "reads the solution": ("open(VICTIM + '/solution.py').read()", "Permission denied"),
    "writes into the folder": ("open(VICTIM + '/new', 'w')", "Permission denied"),
    "starts a process": ("import os\nos.fork()", "Operation not permitted"),
    "opens a socket": (
        "import sys\nassert sys.modules['ctypes'].CDLL(None).socket(2, 1, 0) >= 0, 'no socket'",
        "no socket",
    ),
    "answers by itself": ("import os\nos.write(3, b'\\x00\\x00\\x00\\x0a[\"ok\", []]' * 20)", "entries"),
    "imports the grader": ("from inakit.experiments.labs.course import tree_lab", "No module named 'inakit"),
    "entry of no table": (
        "from entry import Entry\ndef entries(plan, switch):\n    return [Entry('x', (), 'y')]",
        "unknown table",
    ),
    "number that does not fit": (
        "from entry import Entry\ndef entries(plan, switch):\n    return [Entry('up', (1, 1), 'send', (512,))]",
        "does not fit 9 bits",
    ),
    "negative number": (
        "from entry import Entry\ndef entries(plan, switch):\n    return [Entry('up', (-1, 1), 'send', (1,))]",
        "a whole number from 0",
    ),
    "group of every port": (
        "from entry import Group\ndef entries(plan, switch):\n    return [Group(1, tuple(range(65)))]",
        "at most 64",
    ),
    "not a list": ("def entries(plan, switch):\n    return 100", "a list of entries is expected"),
    "exits": ("import os\nos._exit(0)", "ended by itself"),
    "no function": ("points = 100", "has no function entries"),
    "escape codes": ("def entries(plan, switch):\n    raise ValueError('\\x1b[2J' + '9' * 10000)", "ValueError"),
}


@pytest.mark.usefixtures("one_end")
@pytest.mark.parametrize("name", by_tier(ENTRIES))
def test_entries_of_a_student(name: str, victim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(student_entries, "student_limits", lambda: SMALL)
    text, told = ENTRIES[name]
    handed = tmp_path / "handed"
    handed.mkdir()
    (handed / "entries.py").write_text(f"VICTIM = {str(victim)!r}\n{text}\n")
    found = graded("5-tree", handed)
    assert found.points == 0
    assert told in said(found)
    assert all(character.isprintable() or character == "\n" for character in said(found))


INCLUDES = {
    "password file": '#include "/etc/passwd"',
    "solution": '#include "../teacher/solution.p4"',
    "angle brackets": "#include </etc/passwd>",
    "continued line": '#inc\\\nlude "/etc/passwd"',
    "named by a macro": '#define FILE "/etc/passwd"\n#include FILE',
    "comment between": '#/* */include "/etc/passwd"',
}


@pytest.mark.parametrize("name", INCLUDES)
@pytest.mark.skipif(shutil.which("p4c-bm2-ss") is None, reason="needs p4c")
def test_source_that_includes_what_is_not_its_own(name: str, victim: Path, tmp_path: Path) -> None:
    del victim
    (tmp_path / "sum.p4").write_text(INCLUDES[name] + "\n")
    found = graded("2-sum", tmp_path / "sum.p4")
    assert found.points == 0
    assert "expected <core.p4>" in found.problem
    assert "root:" not in found.problem


MACRO_BOMB = "#define A0 x\n" + "".join(f"#define A{n + 1} A{n} A{n}\n" for n in range(40)) + "A40\n"


@pytest.mark.skipif(shutil.which("p4c-bm2-ss") is None, reason="needs p4c")
def test_macro_bomb(victim: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del victim
    monkeypatch.setattr(p4c, "COMPILE_S", 1)
    (tmp_path / "sum.p4").write_text(MACRO_BOMB)
    found = graded("2-sum", tmp_path / "sum.p4")
    assert found.points == 0
    assert "does not compile" in found.problem


def test_there_are_at_least_forty() -> None:
    assert len(WORKERS) + len(PROGRAMS) + len(TEXTS) + len(INCLUDES) + len(ANSWERS) + len(ENTRIES) >= 40
