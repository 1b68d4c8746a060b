"""A class of honest and hostile students: the table has a line for each, and nothing of the teacher's changes.

It is graded on this kernel, on a simulated one without Landlock's scopes (6.1, 6.8) and on one without Landlock.
"""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import Any

import psutil
import pytest
from tiers import long_unless
from typer.testing import CliRunner

from inakit.experiments.cli.app import app
from inakit.experiments.labs.course.loss_network import Event, Fragments, ModelSwitch, ModelWorker, Network, Step
from inakit.experiments.labs.course.measure_lab import RESULT_COLUMNS, HandedIn
from inakit.experiments.labs.course.plan_lab import StudentPlanner
from inakit.experiments.labs.grading.bench import excerpt
from inakit.experiments.labs.grading.formats import csv_text, text_of
from inakit.experiments.labs.grading.grade import ClassRequest, Request, grade, grade_class
from inakit.experiments.labs.grading.lab import Finding, Grade, Graded, Lab, WrongError
from inakit.experiments.labs.grading.p4c import check_includes
from inakit.experiments.labs.grading.submission import Submission, submissions_in
from inakit.experiments.labs.registry import COURSE, LABS, TEACHER
from inakit.experiments.labs.sandbox.confinement import landlock_version
from inakit.experiments.labs.sandbox.process import UNCONFINED
from inakit.experiments.labs.sandbox.sandboxed_switch import SandboxedSwitch
from inakit.topo.errors import InputError, RunError, SolverError

needs_landlock = pytest.mark.skipif(not landlock_version(), reason="needs Landlock: the class is graded as here")
HONEST = (TEACHER / "6-plan" / "solutions" / "planner.py").read_text()
HANDED = os.fsdecode(b"cl\xe9")
"""The name of a class, not in UTF-8."""
TRIED, FULL = ("where",), 10
"""The item that is graded, and its points."""
CALL = """
import os, sys
ctypes = sys.modules['ctypes']
library = ctypes.CDLL(None, use_errno=True)
PARENT = os.getppid()
def call(number, *given):
    given = [ctypes.c_long(each) if isinstance(each, int) else each for each in given]
    return library.syscall(ctypes.c_long(number), *given)
def attempt(action):
    try: return action()
    except Exception: return None
FILE = VICTIM + '/solution.py'
PATH = FILE.encode()
"""
ATTACKS = {
    "setxattrat": "value = ctypes.create_string_buffer(b'x'); "
    "call(463, -100, PATH, 0, b'user.x', (ctypes.c_uint64 * 2)(ctypes.addressof(value), 1), 16)",
    "file-setattr": "call(469, -100, PATH, (ctypes.c_uint64 * 4)(0x10), 32, 0)",
    "fchmodat2": "call(452, -100, PATH, 0o777, 0)",
    "chmod": "attempt(lambda: os.chmod(FILE, 0o777)); call(90, PATH, 0o777)",
    "utimensat": "call(280, -100, PATH, 0, 0)",
    "truncate": "call(76, PATH, 0)",
    "unlink": "call(87, PATH)",
    "openat2": "call(437, -100, PATH, (ctypes.c_uint64 * 3)(os.O_WRONLY | os.O_TRUNC), 24)",
    "scheduler": "call(144, PARENT, 5, (ctypes.c_int * 1)(0))",
    "attributes-of-scheduling": "call(314, PARENT, (ctypes.c_uint32 * 12)(48, 5), 0)",
    "io-priority": "[call(251, 1, each, 3 << 13) for each in (PARENT, SLEEPER)]",
    "priority": "[call(141, 0, each, 19) for each in (PARENT, SLEEPER)]",
    "affinity": "call(203, PARENT, 8, (ctypes.c_uint64 * 1)(1))",
    "limits-of-the-grader": "call(302, PARENT, 7, (ctypes.c_uint64 * 2)(0, 0), 0)",
    "disk": "[call(285, each, 1, 0, 3 << 30) for each in range(64)]; [call(77, each, 3 << 30) for each in range(64)]",
    "output": "\nfor _ in range(1 << 12): attempt(lambda: os.write(2, b'x' * (1 << 16)))",
    "signals-of-pipes": "\nfor each in range(8):\n    call(72, each, 8, PARENT); call(72, each, 10, 9); "
    "call(72, each, 4, 0o20000)\n    call(16, each, 0x5452, (ctypes.c_int * 1)(1)); attempt(lambda: os.write(2, b'x'))",
    "kill": "[call(62, each, 9) for each in (PARENT, SLEEPER, -1)]",
    "tkill": "call(200, PARENT, 9); call(234, PARENT, PARENT, 9)",
    "queued-signal": "call(129, PARENT, 9, (ctypes.c_uint64 * 16)(9, (1 << 64) - 1))",
    "pidfd-signal": "call(424, call(434, PARENT, 0), 9, 0, 0)",
    "stolen-pipe": "[call(438, call(434, PARENT, 0), each, 0) for each in range(32)]",
    "memory-of-the-grader": "attempt(lambda: open(f'/proc/{PARENT}/mem', 'r+b').write(b'x')); call(101, 16, PARENT)",
    "watch-that-stops-files": "call(300, 4, 0)",
    "namespaces": "call(272, 0x10000000); call(165, b'none', b'/', 0, 1 << 18, 0)",
    "ring": "call(425, 8, (ctypes.c_uint64 * 16)())",
    "forks": "[call(each, 0, 0, 0, 0, 0) for each in (57, 58, 56)]; call(435, (ctypes.c_uint64 * 8)(), 64)",
    "reads-the-seed": "LEAKS = [attempt(lambda each=each: open(each).read()) for each in "
    "(f'/proc/{PARENT}/cmdline', f'/proc/{PARENT}/environ', SEED)]; assert not any(LEAKS), 'points'",
    "reads-the-solution": "assert attempt(lambda: open(FILE).read()) is None, 'points'",
    "kits-own-planner": "[sys.path.append(each) for each in (SITE, ROOT)]\n"
    "assert attempt(lambda: sys.modules['importlib'].import_module('inakit.planner.registry')) is None, 'points'\n"
    "assert attempt(lambda: sys.modules['importlib'].import_module('numpy')) is None, 'points'",
}
"""What hostile students do before they plan as honest ones; a leak costs them their points."""
TREES = """
def plan(fabric, jobs):
    trees = honest(fabric, jobs)
    {change}
    return trees
"""
AGGREGATOR = "trees[0]['aggregators'] = {{'a': dict(switch='s', pipeline=0, first_slot={}, slots=2)}}"
VALUES = {
    "rate-of-400-digits": "trees[0]['rate_bps'] = 10 ** 400",
    "rate-of-no-number": "trees[0]['rate_bps'] = float('nan')",
    "slot-of-4300-digits": AGGREGATOR.format("10 ** 4299"),
    "slot-beyond-digits": AGGREGATOR.format("1 << 99999"),
    "half-a-character": "trees[0]['paths'][0]['from'] = '\\ud800'",
    "escapes": "trees[0]['paths'][0]['from'] = '\\x1b[2J100 of 100\\n::error::x'",
    "formula": "trees[0]['paths'][0]['from'] = '=cmd|x'",
    "nested": "trees = 0\n    for _ in range(900): trees = [trees]",
    "forged-frame": "[attempt(lambda n=n: os.write(n, b'\\0\\0\\0\\x0c[\"ok\", [1e999]]')) for n in range(3, 9)]",
}
"""Values that hostile students return."""


def hostile(text: str, change: str = "") -> str:
    """A planner that does something before it plans, or changes what it returns."""
    planned = f"{HONEST}\nhonest = plan\n{TREES.format(change=change)}" if change else HONEST
    future = "from __future__ import annotations\n"
    return f"{future}{text}\n{planned.replace(future, '')}"


@pytest.fixture
def sleeper() -> Iterator[psutil.Process]:
    """Another process of the teacher's."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield psutil.Process(process.pid)
        assert process.poll() is None
        process.kill()


def class_of_thirty(folder: Path, sleeper: psutil.Process) -> dict[str, int | None]:
    """Write the submissions of a class; return the points that are expected, where they are."""
    teacher, handed = folder / "teacher", folder / HANDED
    teacher.mkdir()
    (teacher / "solution.py").write_text("# the solution\n")
    (teacher / "seed").write_text("autumn\n")
    site = next(each for each in sys.path if each.endswith("site-packages"))
    known = {"VICTIM": str(teacher), "SLEEPER": sleeper.pid, "SITE": site, "ROOT": str(COURSE.parents[1])}
    head = "".join(f"{name} = {value!r}\n" for name, value in (known | {"SEED": str(teacher / "seed")}).items()) + CALL
    points: dict[str, int | None] = {}
    for name, text in ATTACKS.items():
        write(handed / name, hostile(head + text))
        points[name] = None if name == "output" else FULL
    for name, change in VALUES.items():
        write(handed / name, hostile(head, change))
        points[name] = None
    for name in ("ann", "backup.py", "=cmd|' calc'!A0", "@sum", "x" * 250, "two\nlines", "\x1b[2Jclear"):
        write(handed / name, HONEST)
        points[shown(name)] = FULL
    write(handed / os.fsdecode(b"caf\xe9"), HONEST)
    points["caf\\xe9"] = FULL
    (handed / "empty").mkdir()
    (handed / "root").symlink_to("/")
    (handed / "link").mkdir()
    (handed / "link" / "planner.py").symlink_to(teacher / "solution.py")
    (handed / "pipe").mkdir()
    os.mkfifo(handed / "pipe" / "planner.py")
    return points | dict.fromkeys(("empty", "root", "link", "pipe"), 0)


def shown(name: str) -> str:
    return name.replace("\n", "\\n").replace("\x1b", "\\x1b")


def write(folder: Path, text: str) -> None:
    folder.mkdir(parents=True)
    (folder / "planner.py").write_text(text)


def of_teacher(folder: Path, sleeper: psutil.Process) -> list[Any]:
    """All of the teacher's that a submission might change."""
    processes = [(p.nice(), p.ionice(), p.cpu_affinity()) for p in (sleeper, psutil.Process())]
    schedulers = [os.sched_getscheduler(each) for each in (0, sleeper.pid)]
    files = [(p.name, p.stat(), os.listxattr(p), p.read_bytes(), attributes(p)) for p in sorted(folder.iterdir())]
    return [processes, schedulers, [(n, s.st_mode, s.st_mtime_ns, s.st_size, *more) for n, s, *more in files]]


def attributes(path: Path) -> str:
    """The attributes that `chattr` sets, where the file system has them."""
    return subprocess.run(["lsattr", path], capture_output=True, text=True, check=False).stdout[:22]


GRADING = """
import sys
from dataclasses import replace
from pathlib import Path
from inakit.experiments.labs.grading.grade import ClassRequest, grade_class
from inakit.experiments.labs.registry import COURSE, LABS
lab, folder, table, reports, *tried = sys.argv[1:]
lab = replace(LABS[lab], items=tuple(each for each in LABS[lab].items if each.name in tried))
request = ClassRequest(lab, COURSE / lab.name, Path(folder), "autumn", True, Path(table), Path(reports), 2)
for line, _ in grade_class(request): print(line)
"""


def graded_on(kernel: str, handed: Path, name: str, lab: str = "6-plan", tried: tuple[str, ...] = TRIED) -> Any:
    """Grade a class on a kernel; return the process, the table and the reports."""
    table, reports = handed.parent / f"{name}.csv", handed.parent / f"reports-{name}"
    simulated = [sys.executable, str(Path(__file__).with_name("simulated_kernel.py")), kernel]
    command = [*simulated, sys.executable, "-c", GRADING, lab, str(handed), str(table), str(reports), *tried]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    written = {path.name: path.read_bytes() for path in reports.iterdir()}
    return done, table.read_bytes(), written


@needs_landlock
@pytest.mark.parametrize("kernel", [long_unless(False, "this"), "6.8", long_unless(False, "5.10")])
def test_a_class_of_thirty(kernel: str, tmp_path: Path, sleeper: psutil.Process) -> None:
    points = class_of_thirty(tmp_path, sleeper)
    before, free = of_teacher(tmp_path / "teacher", sleeper), psutil.disk_usage(str(tmp_path)).free
    done, table, reports = graded_on(kernel, tmp_path / HANDED, "once")
    assert done.returncode == 0, done.stderr
    assert of_teacher(tmp_path / "teacher", sleeper) == before
    assert psutil.disk_usage(str(tmp_path)).free > free - (1 << 30)
    rows = {row["student"].removeprefix("'"): row for row in csv.DictReader(table.decode().splitlines())}
    assert set(rows) == set(points)
    assert len(rows) >= 30
    wrong = {
        name: rows[name]
        for name, wanted in points.items()
        if wanted is not None and rows[name]["points"] != str(wanted)
    }
    assert not wrong
    assert not [row for row in rows.values() if not row["points"] or "grader failed" in row["problem"]]
    assert not [cell for row in rows.values() for cell in row.values() if cell[:1] in ("=", "+", "-", "@")]
    for text in (table, done.stdout.encode(), *reports.values()):
        assert b"\x1b" not in text
        assert b"autumn" not in text
    if kernel == "this":
        for other in ("this", "6.8", "5.10"):
            assert graded_on(other, tmp_path / HANDED, f"again-{other}")[1:] == (table, reports)


@needs_landlock
@pytest.mark.parametrize("kernel", ["nothing", "no seccomp"])
def test_a_machine_that_cannot_confine_does_not_grade_unless_it_is_allowed(
    kernel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "handed" / "ann", HONEST)
    done, table, _ = graded_on(kernel, tmp_path / "handed", "table")
    assert done.returncode != 0
    assert "this machine cannot confine" in table.decode()
    assert b"10" not in table
    monkeypatch.setenv(UNCONFINED, "1")
    done, table, reports = graded_on(kernel, tmp_path / "handed", "trusted")
    assert done.returncode == 0
    assert f"ann,{FULL},{FULL}," in table.decode()
    assert b"not enforced on this machine" in reports["ann.txt"]


# -- what the grader fails at, and what it goes on with


def lab_of(check: Any, lab: str = "6-plan") -> Lab:
    """A lab with one item."""
    return replace(LABS[lab], items=(replace(LABS[lab].items[0], check=check),))


def request_of(folder: Path, lab: Lab, per_student: bool = False) -> ClassRequest:
    return ClassRequest(lab, COURSE / lab.name, folder / "handed", "s", per_student, folder / "t.csv", folder / "r", 1)


def no_solution(_: object) -> None:
    raise SolverError("HiGHS stopped with 'Not Set'")


def fault(*_: object) -> None:
    raise KeyError("a fault of ours")


def death(_: object) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


@needs_landlock
@pytest.mark.parametrize(("check", "why"), [(no_solution, "HiGHS stopped with 'Not Set'"), (fault, "KeyError")])
def test_a_fault_of_the_grader_is_no_points(check: Any, why: str, tmp_path: Path) -> None:
    write(tmp_path / "handed" / "ann", HONEST)
    found = grade(Request(lab_of(check), COURSE / "6-plan", tmp_path / "handed" / "ann"))
    assert f"the grader failed: {why}" in found.failed
    assert "0 of" not in text_of(found)
    with pytest.raises(RunError, match="the grader failed for 1 of 1, the first 'ann'"):
        list(grade_class(request_of(tmp_path, lab_of(check))))
    (row,) = csv.DictReader((tmp_path / "t.csv").read_text().splitlines())
    assert (row["points"], row["paths"]) == ("", "")
    assert why in row["problem"]


def test_a_grader_that_dies_costs_nobody_else(tmp_path: Path) -> None:
    for name in ("ann", "bob"):
        write(tmp_path / "handed" / name, HONEST)
    with pytest.raises(RunError, match="the grader failed for 2 of 2, the first 'ann': the grader failed: its process"):
        list(grade_class(request_of(tmp_path, lab_of(death))))
    assert len((tmp_path / "t.csv").read_text().splitlines()) == 3


def full_points(request: Request, *_: object) -> Grade:
    GRADED.append(request.submission.name)
    return Grade(request.lab.name, tuple(Graded(each, each.points) for each in request.lab.items))


GRADED: list[str] = []


def test_a_class_goes_on_where_it_was_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inakit.experiments.labs.grading.grade.grade_apart", full_points)
    GRADED.clear()
    for name in ("ann", "bob", "cid"):
        write(tmp_path / "handed" / name, HONEST)
    request = request_of(tmp_path, LABS["6-plan"])
    lines = grade_class(request)
    assert next(lines)[0].startswith("ann")
    assert len(request.table.read_text().splitlines()) >= 2
    lines.close()  # type: ignore[attr-defined]
    begun = list(GRADED)
    so_far = tmp_path / "t.csv.so-far"
    so_far.write_text(so_far.read_text() + '{"cut off')
    (tmp_path / "handed" / "ann" / "planner.py").write_text(HONEST + "# handed in again\n")
    assert [line.split()[0] for line, _ in grade_class(request)] == ["ann", "bob", "cid", "wrote"]
    assert "ann" in GRADED[len(begun) :]
    assert len(request.table.read_text().splitlines()) == 4
    assert not so_far.exists()
    once = len(GRADED)
    list(grade_class(replace(request, seed="another")))
    assert len(GRADED) == once + 3


SLEEPY = (
    (TEACHER / "4-loss" / "solutions" / "worker.py").read_text()
    + """
import time
Honest = Worker
class Worker(Honest):
    def receive(self, packet):
        time.sleep(0.5)
        return Honest.receive(self, packet)
"""
)


@needs_landlock
def test_many_slow_answers_end_an_item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer comes in time, all together do not."""
    monkeypatch.setattr("inakit.experiments.labs.grading.grade.ITEM_S", 2.0)
    (tmp_path / "worker.py").write_text(SLEEPY)
    items = tuple(each for each in LABS["4-loss"].items if each.name == "patience")
    found = grade(Request(replace(LABS["4-loss"], items=items), COURSE / "4-loss", tmp_path))
    assert found.graded[0].finding is not None
    assert "all together" in found.graded[0].finding.cause


MEASURED = {path.name: path.read_text() for path in (TEACHER / "7-measure" / "solutions").iterdir() if path.is_file()}


@needs_landlock
def test_tables_of_old_macs_and_strange_answers(tmp_path: Path) -> None:
    """Lab 7: each of a class has one of its files changed; the first two changes are honest."""
    results, answers = MEASURED["results.csv"], MEASURED["answers.yml"]
    changes = {
        "mac": ("results.csv", results.replace("\n", "\r"), "55"),
        "windows": ("results.csv", results.replace("\n", "\r\n"), "55"),
        "long field": ("results.csv", results + "x" * 200_000 + ",1,1,1\n", None),
        **{
            word: ("answers.yml", f"{answers}more: {word}\n", "30")
            for word in ('!!int ""', "!!bool maybe", "!!timestamp soon", "&a [*a]")
        },
        "hex giant": ("answers.yml", answers.replace("student: ", "student: 0x" + "F" * 3000 + " # "), "30"),
        "surrogate": ("answers.yml", answers.replace("student: ", 'student: "\\ud800" # '), "30"),
    }
    for name, (file, text, _) in changes.items():
        folder = tmp_path / "handed" / name
        folder.mkdir(parents=True)
        for other, right in (MEASURED | {file: text}).items():
            (folder / other).write_bytes(right.encode())
    items = ("table", "intervals", "crossover", "report")
    done, table, _ = graded_on("this", tmp_path / "handed", "t", "7-measure", items)
    assert done.returncode == 0, done.stderr
    rows = {row["student"]: row for row in csv.DictReader(table.decode().splitlines())}
    assert set(rows) == set(changes)
    assert rows["mac"]["points"] == rows["windows"]["points"] == "45"
    assert all(float(row["points"]) < 45 for name, row in rows.items() if name not in ("mac", "windows"))


# -- what is shown


def test_what_is_shown_is_not_obeyed() -> None:
    item = LABS["2-sum"].items[0]
    escapes = "\x1b[2J100 of 100\r\x9b\u202e"
    finding = Finding(f"{escapes}\nlab 2-sum: 100 of 100 points", (escapes,), trace=(escapes, "::error::"))
    text = text_of(Grade("2-sum", (Graded(item, 0, finding),), notes=(escapes,)))
    assert all(each.isprintable() for each in text.splitlines())
    assert not any(line.startswith("lab 2-sum: 100") for line in text.splitlines())
    assert csv_text([["=1+1", "-1", "+1", "@x", "\uff1d1", "a=1", "1"]]) == "'=1+1,'-1,'+1,'@x,'\uff1d1,a=1,1\n"


# -- the second round of attacks, thought out from the documents


def test_names_that_look_alike_keep_their_lines(tmp_path: Path) -> None:
    """A name with the bytes that stand for another student's name does not take that student's line."""
    for name in (os.fsdecode(b"caf\xe9"), "caf\\xe9", "a\nb", "a\\nb", "ann"):
        write(tmp_path / name, HONEST)
    found = submissions_in(tmp_path)
    assert len(found) == len(set(found.values())) == 5
    assert "ann" in found


def test_folders_nested_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inakit.experiments.labs.grading.grade.grade_apart", full_points)
    write(tmp_path / "handed" / "ann", HONEST)
    write(tmp_path / "handed" / "eve", HONEST)
    here = os.open(tmp_path / "handed" / "eve", os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("x", dir_fd=here)
        below = os.open("x", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    lines = list(grade_class(request_of(tmp_path, LABS["6-plan"])))
    assert [line.split()[0] for line, _ in lines] == ["ann", "eve", "wrote"]
    subprocess.run(["rm", "-r", tmp_path / "handed" / "eve"], check=True)


COMMANDS = ("::error::x", "  ::stop-commands::x", "##[error]x", "::add-mask::1")


def test_githubs_runners_find_no_commands() -> None:
    item = LABS["6-plan"].items[0]
    finding = Finding("\n".join(("x", *COMMANDS)), COMMANDS, COMMANDS, COMMANDS, COMMANDS)
    for found in (
        Grade("6-plan", (Graded(item, 0, finding),)),
        Grade("6-plan", (), problem="\n".join(("x", *COMMANDS))),
    ):
        assert not [line for line in text_of(found).splitlines() if line.strip().startswith(("::", "##["))]


def test_no_formula_begins_after_other_separators() -> None:
    assert csv_text([["a;=1+1", "b|@x", "c\t=1", "d; e", "f-1"]]) == "a;'=1+1,b|'@x,c\\t=1,d; e,f-1\n"


def test_messages_are_short(tmp_path: Path) -> None:
    """A planner cannot fill a report."""
    write(tmp_path / "ann", "def plan(fabric, jobs):\n    raise ValueError('x' * 10 ** 6)\n")
    found = grade(Request(LABS["6-plan"], COURSE / "6-plan", tmp_path / "ann"))
    assert len(text_of(found)) < 50_000


class Copies:
    """A worker that sends what it has to send many times."""

    def __init__(self, worker: ModelWorker) -> None:
        self.worker = worker

    def first(self) -> Any:
        return self.worker.first()

    def step(self, state: Any, event: Event) -> Step:
        step = self.worker.step(state, event)
        return step._replace(sent=step.sent * 60)


def test_a_worker_that_sends_without_end_is_stopped() -> None:
    job = Fragments(2, (((1,) * 8,) * 4,) * 2)
    workers = [Copies(ModelWorker(job, worker)) for worker in range(2)]
    found = Network(job, ModelSwitch(job), workers).explore()
    assert found is not None
    assert "more and more packets" in found.broken.cause


def test_a_table_without_end_is_not_read() -> None:
    rows = "\n".join(f"aro,{4 * size},0,1e-5" for size in range(5000))
    table = f"{','.join(RESULT_COLUMNS)}\n{rows}\n"
    with pytest.raises(WrongError, match="more than 2000 runs"):
        len(HandedIn(Submission(Path("ann"), {"results.csv": table})).results)


def test_a_seed_that_can_be_guessed_is_refused(tmp_path: Path) -> None:
    """Whoever has a report can try seeds until the same packets come."""
    (tmp_path / "seed").write_text("autumn\n")
    for given, told in ((["--seed-file", str(tmp_path / "seed")], "can be guessed"), ([], "needs a seed")):
        answer = CliRunner().invoke(app, ["labs", "class", "labs/2-sum", str(tmp_path), *given])
        assert told in str(answer.exception)


@needs_landlock
def test_a_sandbox_that_does_not_start_or_is_killed_is_no_fault_of_the_students(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import sys\nsys.modules['os'].write(2, b'x')\ndef plan(fabric, jobs):\n    import time\n    time.sleep(9)\n"
    write(tmp_path / "ann", text)
    with closing(StudentPlanner(text)) as planner:
        planner.process.start()
        assert planner.process.process is not None
        pid = planner.process.process.pid
        assert Path(f"/proc/{pid}/oom_score_adj").read_text() == "1000\n"
        Timer(0.5, os.kill, (pid, signal.SIGKILL)).start()
        with pytest.raises(RunError, match="something else than its limits"):
            planner.process.ask("plan", text, {}, [])
    monkeypatch.setattr("inakit.experiments.labs.sandbox.process.START_S", 0.0)
    found = grade(Request(LABS["6-plan"], COURSE / "6-plan", tmp_path / "ann"))
    assert "a sandbox does not start on this machine" in found.failed


OBJECTS = (
    "def plan(fabric, jobs):\n    raise ValueError(object(), plan)\n",
    "async def plan(fabric, jobs):\n    return []\n",
    "class E(BaseException): pass\ndef plan(fabric, jobs):\n    raise E(object())\n",
)


@needs_landlock
@pytest.mark.parametrize("text", OBJECTS)
def test_reports_have_no_addresses_of_objects(text: str, tmp_path: Path) -> None:
    """They differ from run to run, and a report would, too."""
    write(tmp_path / "ann", text)
    request = Request(replace(LABS["6-plan"], items=LABS["6-plan"].items[:1]), COURSE / "6-plan", tmp_path / "ann")
    once, twice = (text_of(grade(request)) for _ in range(2))
    assert once == twice
    assert " at 0x..." in once


COUNTING = """
honest, calls = entries, []
def entries(plan, switch):
    calls.append(switch)
    return honest(plan, switch) if len(calls) <= len(plan["switches"]) else []
"""


@needs_landlock
def test_entries_cannot_count_for_which_item_they_are_asked(tmp_path: Path) -> None:
    """Otherwise one item gets entries that are strict, and another one those that let everything pass."""
    text = (TEACHER / "5-tree" / "solutions" / "entries.py").read_text()
    (tmp_path / "entries.py").write_text(text + COUNTING)
    items = tuple(each for each in LABS["5-tree"].items if each.name in ("ways", "admitted", "isolation", "children"))
    found = grade(Request(replace(LABS["5-tree"], items=items), COURSE / "5-tree", tmp_path))
    assert found.points == found.most


@needs_landlock
def test_a_submission_whose_time_is_over_has_no_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its other items cannot start a sandbox any more, which is no fault of the grader's."""
    monkeypatch.setattr("inakit.experiments.labs.grading.grade.SUBMISSION_S", 3.0)
    monkeypatch.setattr("inakit.experiments.labs.grading.grade.MOST_ENDS", 9)
    (tmp_path / "worker.py").write_text(SLEEPY)
    items = tuple(each for each in LABS["4-loss"].items if each.name in ("patience", "results"))
    found = grade(Request(replace(LABS["4-loss"], items=items), COURSE / "4-loss", tmp_path))
    assert [(each.points, each.failed) for each in found.graded] == [(0, False)] * 2
    assert "all together" in found.graded[1].finding.cause if found.graded[1].finding else False


def test_comments_without_end_are_read_at_once() -> None:
    """A pattern that tries each beginning of a comment takes hours on a line of four million letters."""
    began = time.process_time()
    check_includes({"sum.p4": "/*" * 1_000_000 + "\n#include <core.p4>\n"})
    assert time.process_time() - began < 5
    with pytest.raises(InputError, match="expected <core"):
        check_includes({"sum.p4": '/* */ # include "/etc/passwd"'})


def test_names_without_end_are_cut_before_they_are_searched() -> None:
    switch = SandboxedSwitch.__new__(SandboxedSwitch)
    vars(switch)["process"] = Answered([[], ["Action " + "1" * 1_000_000]])
    assert all(len(line) <= 302 for line in excerpt(switch.trace(1, b"").lines, "port"))


class Answered:
    """A process that gives one answer."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def ask(self, *_: Any) -> Any:
        return self.answer


def test_a_student_named_as_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inakit.experiments.labs.grading.grade.grade_apart", full_points)
    write(tmp_path / "handed" / "::error::x", HONEST)
    assert not next(grade_class(request_of(tmp_path, LABS["6-plan"])))[0].startswith("::")


@needs_landlock
def test_grades_and_classes_are_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INAKIT_SEED", "a seed that nobody guesses")
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "handed" / "ann :smile: [b]", HONEST)
    (tmp_path / "handed" / "bob").mkdir()

    def tables(*arguments: str) -> tuple[int, list[dict[str, Any]], list[dict[str, str]]]:
        ran, again = (CliRunner().invoke(app, [*arguments, "--format", form]) for form in ("json", "csv"))
        (table,) = json.loads(ran.stdout)["tables"]
        return ran.exit_code, table["rows"], list(csv.DictReader(again.stdout.splitlines()))

    items = LABS["6-plan"].items
    code, rows, lines = tables("grade", "6-plan", "handed/ann :smile: [b]")
    assert code == 0
    assert [(row["item"], row["most"]) for row in rows] == [(item.name, item.points) for item in items]
    assert [row["points"] for row in rows] == [float(line["points"]) for line in lines]
    assert [bool(row["cause"]) for row in rows] == [row["points"] < row["most"] for row in rows]
    total = sum(row["points"] for row in rows)
    code, rows, _ = tables("grade", "6-plan", "handed/bob")
    assert (code, [(row["points"], row["most"]) for row in rows]) == (1, [(0, 100)])
    assert "the submission is empty" in rows[0]["cause"]
    code, rows, lines = tables("labs", "class", "6-plan", "handed")
    assert code == 0
    assert [(row["student"], row["points"]) for row in rows] == [("ann :smile: [b]", total), ("bob", 0)]
    assert [line["student"] for line in lines] == ["ann :smile: [b]", "bob"]
    (tmp_path / "grades.csv").unlink()
    assert "ann :smile: [b] " in CliRunner().invoke(app, ["labs", "class", "6-plan", "handed"]).stdout
    kept = CliRunner().invoke(app, ["grade", "6-plan", "handed/bob", "--quiet"]).stdout
    assert "lab 6-plan" not in kept
    assert "nothing could be graded" in kept


def test_a_class_that_the_grader_failed_has_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INAKIT_SEED", "a seed that nobody guesses")
    monkeypatch.setattr("inakit.experiments.labs.grading.grade.grade_apart", fault)
    write(tmp_path / "ann", HONEST)
    table = ["--output", str(tmp_path / "t.csv"), "--format", "json"]
    ran = CliRunner().invoke(app, ["labs", "class", "6-plan", str(tmp_path), *table])
    assert isinstance(ran.exception, RunError)
    assert [row["points"] for row in json.loads(ran.stdout)["tables"][0]["rows"]] == [None]
