"""PTF's tests run unchanged against a switch in PTF's own process, and in the kernel."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from single_targets import PROGRAMS

pytest.importorskip("ptf")

TESTS = Path(__file__).with_name("ptf_tests")
START = "from inakit.experiments.cli.main import main; main()"


def ptf(*arguments: str, folder: Path) -> str:
    """What PTF prints about tests of the router."""
    (folder / "commands.txt").write_text("table_add ipv4_lpm forward 10.0.1.0/24 => 02:00:00:00:00:02 2\n")
    given = ["--program", str(PROGRAMS / "router.json"), "--commands", str(folder / "commands.txt"), *arguments]
    command = [sys.executable, "-c", START, "switch", "ptf", str(TESTS), *given]
    done = subprocess.run(command, cwd=folder, text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return f"{done.stdout}\nexit code {done.returncode}"


@pytest.mark.parametrize("target", [(), pytest.param(("--kernel",), marks=pytest.mark.root)])
def test_tests_pass_and_fail_as_they_should(target: tuple[str, ...], tmp_path: Path) -> None:
    said = ptf(*target, "router.Routed", "router.Dropped", folder=tmp_path)
    assert re.search(r"Ran 2 tests in .*\n+OK", said), said
    assert said.endswith("exit code 0")


def test_a_test_that_fails_is_told_by_the_exit_code(tmp_path: Path) -> None:
    said = ptf("router.Wrong", folder=tmp_path)
    assert re.search(r"FAILED \(failures=1\)", said), said
    assert not said.endswith("exit code 0")
