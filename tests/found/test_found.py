"""A toy with a rare fault goes through `make fuzz`, `make test` and its repair; kept examples name tests that exist."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from fuzzing import Found, keep, kept

TESTS = Path(__file__).parent.parent
KEPT = sorted(TESTS.glob("found/*.json"))

TOY = """
from hypothesis import given, settings, strategies as st

def double(number):
    return 2 * number if number % 64 != 63 else 0  # a fault that one number in 64 shows

@settings(max_examples=3)
@given(number=st.integers(1, 100_000))
def test_toy(number):
    with open("drawn.txt", "a") as drawn:
        drawn.write(f"{number}\\n")
    assert double(number) == number + number
"""
CONFTEST = f"import sys\nsys.path.insert(0, {str(TESTS)!r})\npytest_plugins = ['fuzzing']\n"


class Toy:
    """A project of one test, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.test = folder, folder / "test_toy.py"
        (folder / "conftest.py").write_text(CONFTEST)
        (folder / "pytest.ini").write_text("[pytest]\n")
        self.test.write_text(TOY)

    def run(self, *options: str) -> tuple[int, str]:
        """Pytest's exit code and what it printed."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:inakit",
            "-p",
            "no:xdist",
            *options,
        ]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def drawn(self, *options: str) -> list[int]:
        """The numbers that a run draws."""
        numbers = self.folder / "drawn.txt"
        numbers.unlink(missing_ok=True)
        self.run(*options)
        return [int(line) for line in numbers.read_text().splitlines()]

    def edit(self, old: str, new: str) -> None:
        self.test.write_text(self.test.read_text().replace(old, new))


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    return Toy(tmp_path)


def test_usual_runs_draw_the_same_whatever_they_import(toy: Toy) -> None:
    first = toy.drawn()
    (toy.folder / "constants.py").write_text("MANY = [" + ", ".join(map(str, range(100, 90_000, 7))) + "]\n")
    toy.edit("from hypothesis", "import constants\nfrom hypothesis")
    assert toy.drawn() == first
    assert toy.drawn("--fuzz-examples", "3") != toy.drawn("--fuzz-examples", "3")


def test_what_fuzzing_finds_is_replayed_until_it_is_mended(toy: Toy) -> None:
    assert toy.run()[0] == 0  # three examples do not show the fault
    code, output = toy.run("--fuzz-examples", "5000")
    assert code == 1 and "Kept as tests/found/toy-" in output
    (found,) = (toy.folder / "tests/found").glob("*.json")
    assert json.loads(found.read_text())["arguments"] == "number=63"
    code, output = toy.run()
    assert code == 1 and "number=63" in output
    toy.edit("number % 64 != 63", "True")
    assert toy.run()[0] == 0
    toy.edit("st.integers(1, 100_000)", "st.integers(1, 50)")
    code, output = toy.run()
    assert code == 1 and "not drawn any more" in output and "It was: number=63" in output


def test_fuzzing_goes_on_for_its_time_and_finds_what_three_examples_do_not(toy: Toy) -> None:
    toy.edit("@settings", "def test_that_draws_nothing():\n    assert False\n\n@settings")
    toy.edit("!= 63", "!= 64")  # no fault: one that is found among the three draws more, to shrink it
    assert len(toy.drawn("--fuzz-seconds", "0.0")) == 3
    toy.edit("!= 64", "!= 63")
    code, output = toy.run("--fuzz-seconds", "20")
    assert code == 1 and "number=63" in output


def test_files_both_ways(tmp_path: Path) -> None:
    found = Found("tests/a.py::test_b[c d]", "AXic", "number=63", "AssertionError: assert 0 == 126")
    assert keep(tmp_path, found).name.startswith("b-")
    assert kept(tmp_path, found.test) == [found]
    assert kept(tmp_path, "tests/a.py::test_other") == []


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name)
def test_a_kept_example_names_a_test_that_exists(path: Path) -> None:
    """An example of a test that was renamed would be replayed no more."""
    module, name = Found(**json.loads(path.read_text())).test.split("::")[:2]
    written = ast.parse((TESTS.parent / module).read_text()).body
    assert name.split("[")[0] in {one.name for one in written if isinstance(one, ast.FunctionDef)}
