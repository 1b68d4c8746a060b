"""A stopped run of the tests leaves no process, and ends as an interrupted one does."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil

TESTS = Path(__file__).parent
PARENT = """
import subprocess, time
from orphans import TIED
print(subprocess.Popen([*TIED, "sleep", "60"]).pid, flush=True)
time.sleep(60)
"""
TOY = """
import time, pytest

@pytest.fixture
def network():
    yield
    print("taken down")

def test_that_takes_long(network):
    print("under way", flush=True)
    time.sleep(60)
"""


def test_a_process_ends_with_its_parent() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], cwd=TESTS, stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    child = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.communicate()
    psutil.wait_procs([child], timeout=20)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_a_run_that_is_terminated_takes_its_fixtures_down(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text().replace("pytest_plugins", "plugins"))
    (tmp_path / "test_toy.py").write_text(TOY)
    command = [sys.executable, "-m", "pytest", "-s", "-p", "no:inakit", "-p", "no:xdist", "-p", "no:cacheprovider"]
    run = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert run.stdout
    while "under way" not in run.stdout.readline():
        pass
    run.send_signal(signal.SIGTERM)
    output, _ = run.communicate(timeout=60)
    assert "taken down" in output
    assert run.returncode == 2
