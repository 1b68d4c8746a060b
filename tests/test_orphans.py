"""A stopped run of the tests leaves no process, and ends as an interrupted one does."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

TESTS = Path(__file__).parent
PARENT = """
import subprocess, time
from orphans import TIED
print(subprocess.Popen([*TIED, "sleep", "600"], stdout=subprocess.DEVNULL).pid, flush=True)
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
    for _ in range(600):
        time.sleep(0.1)
"""
"""It sleeps for short times: a signal that comes right before a sleep is handled after it."""


def test_a_process_ends_with_its_parent() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], cwd=TESTS, stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    child = psutil.Process(int(parent.stdout.readline()))
    while child.name() != "sleep":  # until then `setpriv` may not have tied it
        time.sleep(0.01)
    parent.kill()
    parent.communicate()
    until = time.monotonic() + 20
    while not ended(child) and time.monotonic() < until:
        time.sleep(0.01)
    outlived = not ended(child)
    if outlived:
        child.kill()
    assert not outlived


def ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE  # it has ended, but its parent has not waited for it yet
    except psutil.NoSuchProcess:
        return True


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
