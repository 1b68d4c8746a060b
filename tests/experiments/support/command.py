"""Runs the `inakit` command as a user would, and checks that it leaves nothing behind."""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from multiprocessing import forkserver
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn
from unittest.mock import patch

import psutil
from orphans import end_with_parent

TIMEOUT_S, PATIENCE_S = 120, 30
ENTRY = "from inakit.experiments.cli.main import main; main()"
AS_NOBODY = """
import contextlib, io, os, sys
import inakit.experiments.run.scenario, inakit.experiments.emulate.emulate
import inakit.experiments.run.faults_file, inakit.topo.picture
from inakit.experiments.cli.main import main
arguments, sys.argv[1:] = sys.argv[1:], ["plan", "--planners", "none"]
with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(SystemExit):
    main()  # loads modules that another user may not be allowed to read later
sys.argv[1:] = arguments
os.setuid(65534)
main()
"""

PRIVATE = not all(folder.stat().st_mode & 1 for folder in Path(__file__).resolve().parents)
"""Whether another user may not read the project, as below /root."""

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["pytest", "loaded_kit"])


@dataclass(frozen=True)
class Answer:
    """The exit code of the command, and what it printed."""

    code: int
    output: str
    error: str


def inakit(*arguments: str, at: Path, environment: dict[str, str] | None = None, entry: str = ENTRY) -> Answer:
    """Run the command in folder `at`; `environment` replaces single variables.

    The command's process is a copy of one that has already loaded the kit, which takes longer than most commands.
    """
    start_fork_server()
    with TemporaryDirectory() as folder:
        output, error = Path(folder, "output"), Path(folder, "error")
        wanted = (entry, arguments, at, os.environ | (environment or {}), output, error)
        process = PROCESSES.Process(target=become_command, args=wanted)
        process.start()
        process.join(TIMEOUT_S)
        if process.exitcode is None:
            process.terminate()  # then it takes its network down, which would disturb the tests that follow
            process.join(PATIENCE_S)
            process.kill()
            raise TimeoutError(f"{arguments}: not over after {TIMEOUT_S} s: {error.read_text()}")
        return Answer(process.exitcode, output.read_text(), error.read_text())


@cache
def start_fork_server() -> None:
    """Start the process of which commands are copies. It has to find `loaded_kit`, which is beside this file."""
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    with patch.dict(os.environ, PYTHONPATH=path):
        forkserver.ensure_running()


def become_command(
    entry: str, arguments: Sequence[str], at: Path, environment: dict[str, str], output: Path, error: Path
) -> NoReturn:
    """Do in this process what `python -c ENTRY ARGUMENTS` does in one of its own."""
    end_with_parent()
    for number, path, mode in ((0, Path(os.devnull), "r"), (1, output, "w"), (2, error, "w")):
        with path.open(mode) as file:
            os.dup2(file.fileno(), number)
    sys.stdin, sys.stdout, sys.stderr = (open(number, mode) for number, mode in enumerate("rww"))  # noqa: PTH123, SIM115
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(at)
    sys.argv[:] = ["-c", *arguments]
    code: object = 0
    try:
        exec(entry, {"__name__": "__main__"})
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def interfaces() -> set[str]:
    """The names of the interfaces in this namespace, except those of runs that are under way."""
    names = {path.name for path in Path("/sys/class/net").iterdir()}
    return {name for name in names if name.split("-")[0] not in runs(alive=True)}


def children() -> set[int]:
    """The process ids of this process's descendants that are alive."""
    alive = psutil.Process().children(recursive=True)
    return {child.pid for child in alive if child.status() != psutil.STATUS_ZOMBIE}


def runs(*, alive: bool = False) -> set[str]:
    """The ids of the runs that have a ledger and whose process is gone or, with `alive`, lives."""
    owners = {path.parent.name: int(path.read_text().split()[0]) for path in Path("/run/inakit").glob("*/owner")}
    return {run for run, owner in owners.items() if psutil.pid_exists(owner) == alive}


@contextmanager
def nothing_left(at: Path | None = None) -> Iterator[None]:
    """Fails unless the block leaves interfaces, ledgers and, if given, the folder as they were, and no process more.

    Processes of earlier tests may end meanwhile, as those of a sweep do that have had nothing to do for some seconds.
    """
    start_fork_server()  # it runs on after the block
    before = state(at)
    yield
    after = state(at)
    before["processes"] &= after["processes"]
    changed = {kind: found ^ before[kind] for kind, found in after.items() if found != before[kind]}
    assert not changed, f"not as before: {changed}"


def state(at: Path | None) -> dict[str, set[Any]]:
    """Whatever a run can leave behind. Interfaces and ledgers are root's, so those that come and go are another's."""
    files = set(at.rglob("*")) if at else set()
    if os.geteuid():
        return {"processes": children(), "files": files}
    return {"interfaces": interfaces(), "processes": children(), "runs": runs(), "files": files}
