"""Runs the `inakit` command as a person would, and tells what it left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

TIMEOUT_S = 120
ENTRY = "from experiments.main import main; main()"
AS_NOBODY = """
import os, sys
import experiments.emulate
from experiments.main import main
arguments, sys.argv[1:] = sys.argv[1:], ["plan", "--planner", "none"]
try:
    main()  # loads what is loaded late, which nobody else may be allowed to read
except SystemExit:
    sys.argv[1:] = arguments
os.setuid(65534)
main()
"""


@dataclass(frozen=True)
class Answer:
    """What the command said, and its exit code."""

    code: int
    output: str
    error: str


def inakit(*arguments: str, at: Path, environment: dict[str, str] | None = None, entry: str = ENTRY) -> Answer:
    """Run the command in folder `at`; `environment` replaces single variables."""
    done = subprocess.run(
        [sys.executable, "-c", entry, *arguments],
        cwd=at,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])} | (environment or {}),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def interfaces() -> set[str]:
    """Names of the interfaces in this namespace, but for those of other runs that are under way."""
    names = {path.name for path in Path("/sys/class/net").iterdir()}
    return {name for name in names if name.split("-")[0] not in runs(alive=True)}


def children() -> set[int]:
    """This process's descendants that live."""
    alive = psutil.Process().children(recursive=True)
    return {child.pid for child in alive if child.status() != psutil.STATUS_ZOMBIE}


def runs(*, alive: bool = False) -> set[str]:
    """The ledgers of runs whose process is gone, or whose process lives."""
    owners = {path.parent.name: int(path.read_text().split()[0]) for path in Path("/run/inakit").glob("*/owner")}
    return {run for run, owner in owners.items() if psutil.pid_exists(owner) == alive}


@contextmanager
def nothing_left(at: Path | None = None) -> Iterator[None]:
    """Fails unless the block leaves interfaces, processes, ledgers and, if given, the folder as they were."""
    before = state(at)
    yield
    changed = {kind: after ^ before[kind] for kind, after in state(at).items() if after != before[kind]}
    assert not changed, f"not as before: {changed}"


def state(at: Path | None) -> dict[str, set[Any]]:
    """Whatever a run can leave behind."""
    files = set(at.rglob("*")) if at else set()
    return {"interfaces": interfaces(), "processes": children(), "runs": runs(), "files": files}
