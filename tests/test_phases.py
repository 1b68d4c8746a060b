"""`make test`: tests beside others and networks are told apart, and the command fails if either phase does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import phases
import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent
TOY = """
import pytest

def test_pure():
    pass

@pytest.mark.root
def test_network():
    assert False
"""
PURE_TOY = """
from pathlib import Path

with Path("imported").open("a") as file:
    file.write("x")

def test_pure_as_well():
    pass
"""


@pytest.mark.parametrize(
    ("codes", "code"), [((0, 0), 0), ((0, 5), 0), ((5, 0), 0), ((5, 5), 5), ((1, 0), 1), ((0, 3), 3), ((1, 2), 1)]
)
def test_either_phase_makes_the_command_fail(codes: tuple[int, ...], code: int) -> None:
    assert phases.outcome(codes) == code


def test_a_line_for_each_phase(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(f"import sys\nsys.path.insert(0, {str(TESTS)!r})\npytest_plugins=['phases']")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = root\n")
    (tmp_path / "test_toy.py").write_text(TOY)
    (tmp_path / "test_pure.py").write_text(PURE_TOY)
    command = [sys.executable, str(TESTS / "phases.py"), "-p", "xdist"]
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # they take longer to load than the toy to run
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    beside, networks = done.stdout.splitlines()[-2:]
    assert "2 passed" in done.stdout and "tests beside others" in beside and ": passed after" in beside
    assert done.returncode == 1 and "FAILED (exit code 1)" in networks
    processes = len(os.sched_getaffinity(0)) + 1
    assert (tmp_path / "imported").read_text() == "x" * processes, "the second phase needs no file without networks"


def test_the_command_pytest_finds_the_kit_and_not_the_folders_of_tests_of_the_same_names() -> None:
    pytest_command = [str(Path(sys.executable).with_name("pytest")), "--collect-only", "-q", "tests/test_orphans.py"]
    done = subprocess.run(pytest_command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
