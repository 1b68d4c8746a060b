"""Trials that tests run: they sleep, fail, or end their process, and note every start in a file."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inakit.experiments.sweeps.trial import Kept, Trial, key_of


def doubled(given: Mapping[str, Any]) -> dict[str, Any]:
    """Twice the number that is given, after it noted that it ran."""
    note(given)
    time.sleep(given.get("sleeps_s", 0.0))
    return {"doubled": 2 * given["number"]}


def failing(given: Mapping[str, Any]) -> dict[str, Any]:
    """A division by zero, unless the file `mended` is there."""
    note(given)
    return {"doubled": 1 / (1 if Path(given["folder"], "mended").exists() else 0)}


def deadly(given: Mapping[str, Any]) -> dict[str, Any]:
    """The end of the process that runs it."""
    note(given)
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def note(given: Mapping[str, Any]) -> None:
    """Note that a trial ran."""
    with Path(given["folder"], "started").open("a") as file:
        file.write(f"{given['number']}\n")


def started(folder: Path) -> list[int]:
    """The numbers of the trials that ran, as often as they ran."""
    file = folder / "started"
    return sorted(map(int, file.read_text().split())) if file.exists() else []


def trials(folder: Path, count: int, function: Any = doubled, **given: Any) -> list[Trial]:
    """Trials with the numbers from 0."""
    every = [{"number": number, "folder": str(folder), **given} for number in range(count)]
    return [Trial(key_of(function=function.__name__, **each), function, each) for each in every]


def kept(folder: Path) -> Kept:
    """A folder of results."""
    return Kept(folder / "kept")
