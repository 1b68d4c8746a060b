"""The sandbox itself: which system calls, files and modules are left to a student's Python."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from inakit.experiments.labs.course.loss_network import student_limits
from inakit.experiments.labs.sandbox import process as sandbox
from inakit.experiments.labs.sandbox.confinement import (
    ALLOWED,
    COMMANDS,
    COMPILERS,
    FCNTL,
    IOCTL,
    MACHINES,
    PRLIMIT,
    REQUESTS,
    filter_for,
    landlock_version,
)
from inakit.experiments.labs.sandbox.process import EndedError, Sandboxed, wall_limit
from inakit.experiments.labs.sandbox.student_python import IMPORTABLE
from inakit.topo.errors import InputError

pytestmark = pytest.mark.skipif(not landlock_version() or platform.machine() not in MACHINES, reason="needs Landlock")
COLUMN = MACHINES.get(platform.machine(), (0, 0))[1]
MODULE = "inakit.experiments.labs.sandbox.student_python"
PROBES = {335, 336} if platform.machine() == "x86_64" else set()
"""Calls that the kernel makes for itself; a process that makes them ends by a signal."""
HEAD = """
import os, sys
ctypes = sys.modules['ctypes']
library = ctypes.CDLL(None, use_errno=True)
def failed(*given):
    return library.syscall(*map(ctypes.c_long, given)) == -1 and ctypes.get_errno() in (1, 38)
"""


class MistakeError(Exception):
    """The code has raised an exception."""


@pytest.fixture
def student() -> Iterator[Sandboxed]:
    """The process of a student's planner."""
    errors = {"mistake": MistakeError, "refused": InputError}
    with closing(Sandboxed(MODULE, student_limits(), errors, arguments=["planner"])) as made:
        yield made


def answer(student: Sandboxed, text: str, given: Any = None) -> Any:
    """What `plan(given)` returns."""
    return student.ask("plan", f"{HEAD}\n{text}", given, [])


def test_every_other_system_call_is_refused(student: Sandboxed) -> None:
    left = {each[COLUMN] for each in ALLOWED.values()} | {FCNTL[COLUMN], IOCTL[COLUMN], PRLIMIT[COLUMN]}
    others = [number for number in range(700) if number not in left | PROBES]
    text = "def plan(calls, jobs):\n    return [n for n in calls if not failed(n, 0, 0, 0, 0, 0, 0)]"
    assert answer(student, text, others) == []
    assert len(others) > 600


def test_calls_that_could_signal_others_are_refused_by_their_arguments(student: Sandboxed) -> None:
    text = "def plan(tried, jobs):\n    return [each for each in tried if not failed(*each)]"
    commands = [[FCNTL[COLUMN], 0, command, os.getpid()] for command in range(1200) if command not in COMMANDS]
    requests = [[IOCTL[COLUMN], 0, each, 0] for each in (*range(0x5400, 0x5480), 0x8901) if each not in REQUESTS]
    limits = [[PRLIMIT[COLUMN], os.getppid(), kind, 1, 0] for kind in range(16)]
    assert answer(student, text, commands) == []
    assert answer(student, text, requests + limits) == []


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("programs", [False, True])
def test_numbers_of_calls_are_those_of_the_headers(machine: str, programs: bool) -> None:
    header = Path(
        f"/usr/include/{'x86_64-linux-gnu/asm/unistd_64.h' if machine == 'x86_64' else 'asm-generic/unistd.h'}"
    )
    if not header.is_file():
        pytest.skip("needs the kernel's headers: apt install linux-libc-dev")
    numbers = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text()))
    column = MACHINES[machine][1]
    for name, each in (ALLOWED | COMPILERS | {"fcntl": FCNTL, "ioctl": IOCTL, "prlimit64": PRLIMIT}).items():
        known = numbers.get("fstatat" if name == "newfstatat" and machine == "aarch64" else name)
        assert known == (None if each[column] is None else str(each[column])), name
    assert filter_for(machine, programs=programs)


FILES = {
    "password file": "open('/etc/passwd').read()",
    "library": "open(os.__file__).read()",
    "shared library": "open('/usr/lib/os-release').read()",
    "installed package": "[open(os.path.join(each, 'numpy', '__init__.py')) for each in given['site']]",
    "the kit": "open(given['kit']).read()",
    "process table": "os.listdir('/proc')",
    "own command": "open('/proc/self/cmdline').read()",
    "terminal": "open('/dev/tty', 'w')",
    "random numbers": "open('/dev/urandom', 'rb').read(1)",
    "temporary folder": "open('/tmp/new', 'w')",
    "memory": "open('/dev/shm/new', 'w')",
}


@pytest.mark.parametrize("name", FILES)
def test_no_file_is_read_or_written(student: Sandboxed, name: str) -> None:
    site = [each for each in sys.path if each.endswith("-packages")]
    with pytest.raises(MistakeError, match=r"Permission denied|No such file|No such device"):
        answer(student, f"def plan(given, jobs):\n    {FILES[name]}", {"site": site, "kit": sandbox.__file__})


def test_a_closed_list_of_modules_can_be_imported(student: Sandboxed) -> None:
    tried = "for name in names: exec(f'import {name}', {'__name__': __name__})"
    text = f"def plan(names, jobs):\n    {tried}\n    return len(names)"
    assert answer(student, text, list(IMPORTABLE)) == len(IMPORTABLE)
    for name in ("numpy", "ctypes", "socket", "subprocess", "threading", "inakit.planner", "highspy", "importlib"):
        with pytest.raises(MistakeError, match=f"No module named '{name}"):
            answer(student, text, [name])


def test_modules_work_without_files(student: Sandboxed) -> None:
    text = """
import collections, copy, dataclasses, datetime, decimal, enum, fractions, functools, hashlib, heapq, json, math, random
import re, statistics, typing
@dataclasses.dataclass(order=True)
class Edge:
    rate: float
    ends: tuple = ()
class Color(enum.Enum):
    RED = 1
def plan(given, jobs):
    random.seed('a')
    return [random.random() < 1, decimal.Decimal('1') / 3 < 1, statistics.median([1, 2, 3]), json.loads('[1]'),
            sorted([Edge(2.0), Edge(1.0)])[0].rate, Color.RED.name, hashlib.sha256(b'a').hexdigest()[:4],
            datetime.datetime.strptime('2026', '%Y').year, copy.deepcopy([1]), 'a'.encode('latin-1').hex()]
"""
    found = answer(student, text)
    assert found == [True, True, 2, [1], 1.0, "RED", "ca97", 2026, [1], "61"]


@pytest.mark.parametrize("kind", ["sleeps", "prints"])
def test_a_process_ends_with_its_grader(kind: str, tmp_path: Path) -> None:
    """Also when the grader is killed."""
    what = {"sleeps": "time.sleep(1000)", "prints": "os.write(2, b'x' * (1 << 18))"}[kind]
    text = f"import os, time\\ndef plan(a, b):\\n    {what}"
    script = tmp_path / "grader.py"
    script.write_text(
        "from inakit.experiments.labs.sandbox.process import Sandboxed\n"
        "from inakit.experiments.labs.course.loss_network import student_limits\n"
        "import dataclasses\n"
        "limits = dataclasses.replace(student_limits(), wall_s=1000.0)\n"
        f"s = Sandboxed({MODULE!r}, limits, {{}}, arguments=['planner'])\n"
        "s.start(); print(s.process.pid, flush=True)\n"
        f"s.ask('plan', \"{text}\", [], [])\n"
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as grader:
        assert grader.stdout is not None
        child = int(grader.stdout.readline())
        grader.kill()
    for _ in range(200):
        if not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE:
            return
        time.sleep(0.05)
    pytest.fail("the process goes on without its grader")


def test_output_has_a_cap_and_takes_no_disk(student: Sandboxed) -> None:
    with pytest.raises(EndedError, match="it printed more than 1 MiB"):
        answer(student, "def plan(a, b):\n    while True: os.write(2, b'x' * 65536)")
    assert answer(student, "def plan(a, b):\n    os.write(2, b'x' * 65536 * 8)\n    return 1") == 1


def test_the_time_of_an_item_is_limited_over_all_answers(student: Sandboxed) -> None:
    text = "import time\ndef plan(a, b):\n    time.sleep(0.3)\n    return 1"
    with wall_limit(2.0), pytest.raises(EndedError, match="all together"):
        for _ in range(20):
            answer(student, text)
    assert answer(student, text) == 1
