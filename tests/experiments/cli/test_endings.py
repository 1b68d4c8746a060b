"""How commands end that cannot go on: by a signal, or because something cannot be written."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from command import AS_NOBODY, ENTRY, PRIVATE, Answer, inakit
from made_up_record import figures, made_up_record, planner

from inakit.experiments.run.record import MeasuredFigures, RunRecord
from inakit.experiments.run.run_folder import RESERVE, RunFolder, check_results
from inakit.planner.solvers import interruptible
from inakit.topo.errors import OutputError, writing
from inakit.topo.live.signals import interrupts_held, raise_if_lost, signals_unwind

SAID = "inakit: interrupted; every process and interface of the run has been removed"


def record() -> RunRecord:
    return made_up_record({"aro": planner(verdict="VALID"), "atp": planner()})


def ended(body: str, *arguments: str, tmp_path: Path) -> Answer:
    """The answer of `inakit` when the Python code `body` runs in the place of its commands."""
    script = f"""
import os, signal, sys, threading, time
import inakit.experiments.cli.app, inakit.experiments.cli.main
from inakit.topo.live.signals import interrupts_held
def app():
{"".join(f"    {line}{os.linesep}" for line in body.splitlines())}
inakit.experiments.cli.app.app = app
inakit.experiments.cli.main.main()
"""
    return inakit(*arguments, at=tmp_path, entry=script)


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_is_one_line_and_its_exit_code(name: str, code: int, tmp_path: Path) -> None:
    answer = ended(f"os.kill(os.getpid(), signal.{name})\ntime.sleep(60)", tmp_path=tmp_path)
    assert (answer.code, answer.output, answer.error) == (code, "", f"{SAID}\n")


def test_a_signal_in_a_real_command_is_one_line(tmp_path: Path) -> None:
    """typer turns Ctrl-C into an exit without a message, to which `inakit` adds its line."""
    patch = "import inakit.experiments.cli.commands.planning as c, os, signal, time\n"
    patch += "c.build_problem = lambda *_: (os.kill(os.getpid(), signal.SIGINT), time.sleep(60))\n"
    answer = inakit("plan", at=tmp_path, entry=patch + ENTRY)
    assert (answer.code, answer.error) == (130, f"{SAID}\n")


def test_a_signal_while_it_removes_is_answered_and_ends_it_afterwards(tmp_path: Path) -> None:
    body = """try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)
finally:
    with interrupts_held():
        threading.Thread(target=lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
        for _ in range(20): time.sleep(0.01)
        print("removed")"""
    answer = ended(body, tmp_path=tmp_path)
    assert (answer.code, answer.output) == (130, "removed\n")
    assert answer.error.splitlines()[0].startswith("inakit: still removing what the run created; `kill -9 ")
    assert answer.error.splitlines()[1:] == [SAID]


def test_what_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_unwind():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_that_comes_in_a_callback_of_c_is_not_lost() -> None:
    """Python drops an exception that a callback raises, so the signal is sent again."""
    callback = "import ctypes; call = ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.SIGINT)); call()"
    script = (
        "import os, signal, time\nfrom inakit.topo.live.signals import signals_unwind\n"
        f"with signals_unwind():\n  {callback}\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script + "  time.sleep(60)"], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == -signal.SIGINT
    assert "Exception ignored" not in done.stderr


def test_a_signal_that_a_library_passes_over_is_raised_by_the_next_loop() -> None:
    loops = []
    with pytest.raises(KeyboardInterrupt), signals_unwind():
        with suppress(BaseException):
            os.kill(os.getpid(), signal.SIGINT)
        loops.append("goes on")
        raise_if_lost()
        loops.append("not this")
    assert loops == ["goes on"]
    raise_if_lost()  # nothing is left of it


@pytest.mark.parametrize("own", [True, False])
def test_signals_in_a_held_block_wait_for_its_end(own: bool) -> None:
    """Also those that another thread receives. Whom the system would choose, and when it acts, is not left to it."""

    def receive() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        signal.raise_signal(signal.SIGINT)

    other = threading.Thread(target=receive)
    done = []
    with pytest.raises(KeyboardInterrupt), signals_unwind():
        with interrupts_held():
            if own:
                signal.raise_signal(signal.SIGINT)
            else:
                other.start()
                other.join()
            done.append("all")
        done.append("not this")
    assert done == ["all"]


def test_ctrl_c_ends_the_wait_for_a_solver_that_does_not_hear_it() -> None:
    """The solver goes on in its thread, and the program does not wait for it."""
    begun, release, ended = (threading.Event() for _ in range(3))

    def solver() -> None:
        begun.set()
        release.wait(30)
        ended.set()

    def press() -> None:
        begun.wait(30)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    try:
        with pytest.raises(KeyboardInterrupt), signals_unwind():
            interruptible(solver)
        assert not ended.is_set()
    finally:
        release.set()
    assert interruptible(lambda: 7) == 7


def test_a_signal_that_another_thread_receives_ends_the_wait_for_a_solver() -> None:
    """The main thread blocks the signal, so that the system hands it to the thread that sends it."""
    release, ended = threading.Event(), threading.Event()

    def solver() -> None:
        release.wait(10)
        ended.set()

    def press() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        threading.Timer(0.1, press).start()
        with pytest.raises(KeyboardInterrupt), signals_unwind():
            interruptible(solver)
        assert not ended.is_set()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        release.set()


def test_a_process_that_ends_does_not_wait_for_a_solver(tmp_path: Path) -> None:
    body = """from inakit.planner.solvers import interruptible
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
interruptible(lambda: time.sleep(60))"""
    started = time.monotonic()
    assert ended(body, tmp_path=tmp_path).code == 130
    assert time.monotonic() - started < 50


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "No space left on device: free some space on its disk"),
        (errno.EACCES, "Permission denied: choose a folder of your own"),
        (errno.EROFS, "Read-only file system: choose a folder on another disk"),
        (errno.ENOTDIR, "Not a directory: a part of its path is a file"),
    ],
)
def test_an_error_of_writing_names_path_and_remedy(number: int, remedy: str) -> None:
    with pytest.raises(OutputError) as told, writing(Path("results/run.json")):
        raise OSError(number, os.strerror(number))
    assert str(told.value).startswith(f"results/run.json: {remedy}")


@pytest.mark.parametrize(
    ("number", "name"),
    [(errno.ECONNREFUSED, None), (errno.ENOENT, "cc"), (errno.ENOENT, "none/x"), (errno.ENOENT, "none/x/y")],
)
def test_another_error_of_the_system_stays_what_it_is(number: int, name: str | None) -> None:
    with pytest.raises(OSError, match=os.strerror(number)) as kept, writing(Path("none/x")):
        raise OSError(number, os.strerror(number), name)
    assert not isinstance(kept.value, OutputError)


def test_results_where_no_folder_can_be_made_are_told_in_one_line() -> None:
    with pytest.raises(OutputError, match=r"^/proc/none: No such file .* choose another folder$"):
        check_results(Path("/proc/none"))


def test_results_that_cannot_be_written_are_found_before_and_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    check_results(tmp_path / "new" / "folder")
    for results in ("file", "file/below", "new/file\0"[:3] + "/" + "x" * 300):
        with pytest.raises(OutputError, match="choose"):
            check_results(tmp_path / results)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_run_that_fails_keeps_what_was_measured_and_says_where(tmp_path: Path) -> None:
    folder, made = RunFolder(tmp_path, "small"), record()
    with pytest.raises(OutputError) as error, folder.completing(made), writing(tmp_path / "links.csv"):
        raise OSError(errno.ENOSPC, "")
    read = json.loads((folder.path / "run.json").read_text())
    assert read["verdict"] == "FAILED"
    assert read["planners"]["aro"]["measured"]["exact"]
    assert error.value.__notes__ == [f"kept what was measured (aro): {folder.path}"]
    assert not (folder.path / RESERVE).exists()


def test_a_run_that_a_signal_ends_is_interrupted(tmp_path: Path) -> None:
    folder, made = RunFolder(tmp_path, "small"), record()
    with pytest.raises(KeyboardInterrupt), folder.completing(made):
        raise KeyboardInterrupt
    assert json.loads((folder.path / "run.json").read_text())["verdict"] == "INTERRUPTED"


def test_a_record_that_does_not_fit_leaves_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder(tmp_path, "small")
    folder.write_json("run.json", {"whole": True})
    write_text = Path.write_text

    def full(path: Path, text: str, encoding: str) -> int:
        write_text(path, text[:3], encoding)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OutputError, match=r"run\.json: No space left on device: free some"):
        folder.write_json("run.json", {"more": True})
    assert [path.name for path in folder.path.iterdir()] == ["run.json"]
    assert json.loads((folder.path / "run.json").read_text()) == {"whole": True}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "inakit-test", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(disk: Path) -> None:
    with pytest.raises(OSError, match="No space left"), (disk / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


@pytest.mark.root
@pytest.mark.beside
def test_a_full_disk_is_one_line_in_every_command_that_writes(disk: Path, tmp_path: Path) -> None:
    fill(disk)
    for arguments in (
        ("plan", "--output", str(disk / "plan")),
        ("topo", "--output", str(disk / "fabric")),
        ("jobs", "--output", str(disk / "jobs.yml")),
        ("emulate", "--switch", "fast", "--results", str(disk / "results")),
        ("reproduce", "aro", "fig7", "--quick", "--results", str(disk / "results")),
    ):
        answer = inakit(*arguments, at=tmp_path)
        assert answer.code == 2, answer
        assert "No space left on device: free some space on its disk" in answer.error
        assert answer.error.count("\n") == 1
        assert str(disk) in answer.error


@pytest.mark.root
@pytest.mark.beside
def test_the_record_of_a_run_is_completed_on_a_full_disk(disk: Path) -> None:
    folder, made = RunFolder(disk, "small"), record()
    folder.write_record(made)
    with pytest.raises(OutputError), folder.completing(made):
        fill(disk)
        made.planners["atp"].measured = MeasuredFigures(**figures(), retransmissions=1, exact=True)
        folder.write_rows("links.csv", ("second", "bytes"), [(1, 2)] * 1000)
    read = json.loads((folder.path / "run.json").read_text())
    assert (read["verdict"], read["planners"]["atp"]["measured"]["retransmissions"]) == ("FAILED", 1)


@pytest.mark.root
@pytest.mark.beside
@pytest.mark.skipif(PRIVATE, reason="another user may not read the project where it is")
def test_a_folder_of_another_user_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(mode=0o700)
    tmp_path.chmod(0o755)
    for arguments in (("plan", "--output", "out/here"), ("topo", "--output", "fabric"), ("jobs", "--output", "j.yml")):
        answer = inakit(*arguments, at=tmp_path, entry=AS_NOBODY)
        assert answer.code == 2, answer
        assert "Permission denied: choose a folder of your own" in answer.error
        assert answer.error.count("\n") == 1
