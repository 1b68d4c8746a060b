"""A trial of a sweep, what comes of it, and how a worker carries it out."""

from __future__ import annotations

import hashlib
import json
import platform
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from inakit.experiments.sweeps.kept import Finished, Kept
from inakit.experiments.sweeps.machine_lock import one_at_a_time
from inakit.topo.errors import InakitError, OutputError, output_error

Given = Mapping[str, Any]
"""What a trial is given, in JSON's types."""
Row = dict[str, Any]
"""What a trial returns, in JSON's types."""
KEY_LETTERS = 32
Found = TypeVar("Found")


@dataclass(frozen=True)
class Trial:
    """A function of a module, and what it is given. Trials with the same `key` have the same result.

    Trials of one `kind` take about equally long. One that is `alone` on its machine runs beside no other such trial.
    """

    key: str
    function: Callable[[Given], Row]
    given: Given
    kind: str = ""
    alone: bool = False


def key_of(**parts: object) -> str:
    """The key of a trial: the SHA-256 of all on which its result depends, in JSON's types."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_LETTERS]


def carry_out(trial: Trial, kept: Kept) -> Finished:
    """Run the trial unless it is kept, and keep what comes of it. Raises `OutputError` where that is impossible."""
    with kept.claim(trial.key) as claim:
        if claim.finished is None:
            with one_at_a_time() if trial.alone else nullcontext():
                claim.keep(attempt(trial))
    return claim.result


def attempt(trial: Trial) -> Finished:
    """Run the trial, and note what came of it. Raises `OutputError` where something cannot be written."""
    started_s = time.perf_counter()
    row, error = tried(lambda: trial.function(trial.given))
    return Finished(trial.key, row, error, time.perf_counter() - started_s, platform.node(), now())


def tried(measure: Callable[[], Found]) -> tuple[Found | None, str | None]:
    """What was measured, or the exception that came instead, in a line.

    Raises `OutputError` where something cannot be written: what comes later could not be kept either.
    """
    try:
        return measure(), None
    except OutputError:
        raise
    except Exception as failure:
        if isinstance(failure, OSError) and (told := output_error(failure)) is not None:
            raise told from failure
        return None, told_in_a_line(failure)


def told_in_a_line(failure: Exception) -> str:
    """An error in a line: one of the kit's as it is, another with its type and the place in the code."""
    if isinstance(failure, InakitError):
        return " ".join((str(failure), *getattr(failure, "__notes__", ())))
    last = traceback.extract_tb(failure.__traceback__)[-1]
    return f"{type(failure).__name__}: {failure} ({last.name}, line {last.lineno})"


def now() -> str:
    """The time now (UTC)."""
    return datetime.now(UTC).isoformat(timespec="seconds")
