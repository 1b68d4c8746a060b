"""Trials: what is kept is not run again, whatever ended the sweep; workers that die; two sweeps at once; full disks."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path

import pytest
from quick_trials import deadly, doubled, failing, kept, started, trials
from rich.console import Console

from inakit.experiments.sweeps.run_trials import TimeLeft, in_words, run_trials
from inakit.experiments.sweeps.trial import Finished, Trial, carry_out
from inakit.experiments.sweeps.trial_engines import DIED, Loky, find_engine
from inakit.topo.errors import InputError, OutputError

HERE = Loky(1)
"""One processor: joblib then runs the trials in this process."""


def run(folder: Path, wanted: list[Trial], engine: Loky = HERE) -> list[Finished]:
    return list(run_trials(wanted, kept(folder), engine, Console(file=StringIO()), "test").values())


def test_every_task_runs_once_and_is_kept(tmp_path: Path) -> None:
    wanted = trials(tmp_path, 5)
    assert [found.row for found in run(tmp_path, wanted[:3])] == [{"doubled": 2 * n} for n in range(3)]
    assert [found.row for found in run(tmp_path, wanted)] == [{"doubled": 2 * n} for n in range(5)]
    assert started(tmp_path) == list(range(5))


def test_a_task_that_fails_is_a_result_with_its_error_until_it_is_forgotten(tmp_path: Path) -> None:
    wanted = trials(tmp_path, 1, failing)
    for _ in range(2):
        (found,) = run(tmp_path, wanted)
        assert found.row is None
        assert found.error is not None and found.error.startswith("ZeroDivisionError: division by zero (failing, line")
    assert started(tmp_path) == [0]
    (tmp_path / "mended").touch()
    kept(tmp_path).forget(wanted[0].key)
    assert run(tmp_path, wanted)[0].row == {"doubled": 1}


def test_a_task_whose_worker_dies_fails_and_the_others_do_not(tmp_path: Path) -> None:
    others, killers = trials(tmp_path, 6), trials(tmp_path, 1, deadly)
    found = run(tmp_path, [*others[:3], *killers, *others[3:]], Loky(2))
    assert [each.error for each in found] == [None, None, None, DIED, None, None, None]
    assert [each.row for each in found if each.row] == [{"doubled": 2 * n} for n in range(6)]


SWEEP = """
import sys
from io import StringIO
from pathlib import Path
from rich.console import Console
from quick_trials import kept, trials
from inakit.experiments.sweeps.trial_engines import Loky
from inakit.experiments.sweeps.run_trials import run_trials
folder = Path(sys.argv[1])
run_trials(trials(folder, 8, sleeps_s=0.1), kept(folder), Loky(1), Console(file=StringIO()), "test")
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_what_was_finished_before_a_sweep_was_ended_does_not_run_again(tmp_path: Path, how: signal.Signals) -> None:
    script = f"import sys; sys.path[:0] = {sys.path!r}\n{SWEEP}"
    sweep = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stderr=subprocess.DEVNULL)
    while len(started(tmp_path)) < 3:
        time.sleep(0.01)
    sweep.send_signal(how)
    assert sweep.wait() != 0
    wanted = trials(tmp_path, 8, sleeps_s=0.1)
    finished = sum(kept(tmp_path).get(trial.key) is not None for trial in wanted)
    begun = len(started(tmp_path))
    assert begun - 1 <= finished <= begun
    assert len(run(tmp_path, wanted)) == 8
    assert len(started(tmp_path)) == 8 + begun - finished


def test_two_sweeps_at_once_run_no_task_twice(tmp_path: Path) -> None:
    wanted = trials(tmp_path, 10, sleeps_s=0.02)
    with ThreadPoolExecutor(2) as both:
        one, other = both.map(lambda order: run(tmp_path, order), (wanted, wanted))
    assert one == other
    assert started(tmp_path) == list(range(10))


def test_a_result_that_cannot_be_kept_ends_the_sweep_and_runs_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = trials(tmp_path, 2)
    with monkeypatch.context() as full:
        full.setattr("json.dumps", no_space)
        with pytest.raises(OutputError, match="No space left on device: free some space"):
            run(tmp_path, wanted)
    assert [found.row for found in run(tmp_path, wanted)] == [{"doubled": 0}, {"doubled": 2}]


def no_space(*_: object, **__: object) -> str:
    raise OSError(28, "No space left on device")


def test_a_file_that_was_cut_off_counts_as_no_result(tmp_path: Path) -> None:
    (trial,) = trials(tmp_path, 1)
    path = kept(tmp_path).path(trial.key)
    path.parent.mkdir(parents=True)
    path.write_text('{"key": ')
    assert carry_out(trial, kept(tmp_path)).row == {"doubled": 0}


def test_the_time_left_follows_from_tasks_of_the_same_kind() -> None:
    each = [Trial(f"{number}", doubled, {}, "slow" if number % 2 else "quick") for number in range(6)]
    left = TimeLeft(each, width=2)
    assert left.seconds is None
    left.note(Finished("0", {}, None, 1.0, "", ""))
    assert left.seconds == pytest.approx(5 * 1.0 / 2)
    left.note(Finished("1", {}, None, 9.0, "", ""))
    assert left.seconds == pytest.approx((2 * 1.0 + 2 * 9.0) / 2)
    assert in_words(10.0) == "10 s" and in_words(600.0) == "10.0 min" and in_words(7200.0) == "2.0 h"


@pytest.mark.parametrize(
    ("on", "message"),
    [
        ("daks:tcp://1", "unknown engine .* did you mean 'dask'"),
        ("dask", "give the scheduler's address"),
        ("loky:2", "--processes gives the number"),
        ("submitit:nothing", "submitit:nothing"),
        ("submitit:local,timeout", "NAME=VALUE"),
    ],
)
def test_an_engine_that_cannot_be_is_refused(tmp_path: Path, on: str, message: str) -> None:
    if on.startswith("submitit"):
        pytest.importorskip("submitit", reason="needs submitit")
    with pytest.raises(InputError, match=message):
        find_engine(on, None, kept(tmp_path))
