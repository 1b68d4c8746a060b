"""Calls beside each other in processes: results in their names, errors, and processes that end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from command import ENTRY

from inakit.experiments.run.forks import Forks
from inakit.experiments.run.record import read_record
from inakit.topo.errors import InputError, RunError

linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
REPOSITORY = Path(__file__).resolve().parents[3]


def refuse() -> int:
    raise InputError("no such plan")


def die() -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def meet(mine: Path, other: Path) -> int:
    """Wait until the other call is at work as well."""
    mine.touch()
    while not other.exists():
        time.sleep(0.01)
    return os.getpid()


@linux
def test_two_calls_are_at_work_beside_each_other(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    with Forks({"a": partial(meet, one, other), "b": partial(meet, other, one)}, 2) as forks:
        assert len({os.getpid(), forks.result("a"), forks.result("b")}) == 3


def test_calls_one_at_a_time_stay_in_this_process() -> None:
    with Forks({"a": os.getpid}, 1) as forks:
        assert forks.result("a") == os.getpid()


@linux
def test_errors_come_to_the_caller_and_others_go_on() -> None:
    """The process that is killed has one of the two turns, which the last call needs."""
    with Forks({"a": refuse, "b": die, "c": die, "d": os.getpid}, 2) as forks:
        with pytest.raises(InputError, match="no such plan"):
            forks.result("a")
        for name in ("b", "c"):
            with pytest.raises(RunError, match=f"{name}: its process was ended"):
                forks.result(name)
        assert forks.result("d") != os.getpid()


@linux
def test_processes_end_with_the_block() -> None:
    with Forks({"a": partial(time.sleep, 600), "b": partial(time.sleep, 600)}, 2) as forks:
        pids = [process.pid for process in forks.processes]
    for pid in pids:
        assert pid is not None
        assert not Path(f"/proc/{pid}").exists()


@linux
@pytest.mark.compiler
def test_run_json_is_the_same_with_planners_beside_each_other(tmp_path: Path) -> None:
    """The command on one processor, and on all."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two processors")
    script = "emulate --topo aro-figure1 --switch virtual --planners aro,atp,lbmm --gradient-bytes 12800"
    found = []
    for cpus in ({min(os.sched_getaffinity(0))}, os.sched_getaffinity(0)):
        folder = tmp_path / str(len(cpus))
        folder.mkdir()
        code = f"import os; os.sched_setaffinity(0, {cpus}); {ENTRY}"
        environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
        command = [sys.executable, "-c", code, *script.split()]
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL, timeout=300)
        record = read_record(folder / "results" / "latest" / "run.json")
        assert all((folder / "results" / "latest" / name / "series.png").exists() for name in record.planners)
        found.append(json.dumps(record.repeatable()))
    assert found[0] == found[1]
