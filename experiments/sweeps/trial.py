"""A trial of a sweep, its execution by a worker, and the file of its result.

A key has the version of the code on which results depend: a hash of its sources, and of the libraries that plan. A
change of other code, such as a page of the documentation or another user-defined planner, leaves the key unchanged.

Results are files in a folder that several studies can share. A result appears in one step, complete, when the draft
that a worker wrote is renamed. The worker holds a lock on the draft while it runs the trial, so no two workers run a
trial at once. The system frees the lock of a worker that dies. Emulations run one at a time on a machine, across all
its processes: others would take processors, and spoil the figures.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any, TypeVar

from inakit.topo.errors import InakitError, OutputError, output_error, writing

ROOT = Path(__file__).parents[2]
LIBRARIES = ("highspy", "networkx", "numpy", "pulp")
SOURCES = (".py", ".c", ".h", ".csv", ".json")
"""The suffixes of source code, and of the tables and the compiled program that the code reads."""


@cache
def code_version(*parts: Path, without: tuple[Path, ...] = ()) -> str:
    """The SHA-256 of the sources in files and folders, except `without`, and of the versions of `LIBRARIES`."""
    found = hashlib.sha256(" ".join(f"{name} {installed(name)}" for name in LIBRARIES).encode())
    for path in sources(parts, without):
        found.update(f"\0{path.name}\0".encode() + path.read_bytes())
    return found.hexdigest()


def sources(parts: Iterable[Path], without: tuple[Path, ...]) -> list[Path]:
    """The source files in files and folders, sorted."""
    every = {path for part in parts for path in (part.rglob("*") if part.is_dir() else [part])}
    wanted = (path for path in every if path.suffix in SOURCES and not any(path.is_relative_to(out) for out in without))
    return sorted(wanted)


def installed(library: str) -> str:
    """The version of a library; empty if it is not installed."""
    try:
        return version(library)
    except PackageNotFoundError:
        return ""


DRAFT = ".running"


@dataclass(frozen=True)
class Finished:
    """The result of a trial: a `row`, or the `error` with which it failed; its duration, machine and time of end."""

    key: str
    row: dict[str, Any] | None
    error: str | None
    seconds: float
    host: str
    ended: str


@dataclass(frozen=True)
class Kept:
    """The kept results in a folder."""

    folder: Path

    def path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"

    def get(self, key: str) -> Finished | None:
        """The result of a trial; None if there is none, or only a file that a failing disk has cut off."""
        with suppress(FileNotFoundError, json.JSONDecodeError, TypeError):
            return Finished(**json.loads(self.path(key).read_text()))
        return None

    def forget(self, key: str) -> None:
        """Remove the result of a trial, so that it is run again."""
        with writing(self.folder):
            self.path(key).unlink(missing_ok=True)

    def is_begun(self, key: str) -> bool:
        """Whether a worker has begun a trial and not finished it."""
        return self.path(key).with_suffix(DRAFT).exists()

    @contextmanager
    def claim(self, key: str) -> Iterator[Claim]:
        """Claim the right to run a trial. If a worker runs it, wait for the worker; the claim then has its result.

        Raises `OutputError`.
        """
        path = self.path(key)
        with writing(self.folder):
            path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.with_suffix(DRAFT)) as draft:
            claim = Claim(path, draft, self.get(key))
            if claim.finished is not None:
                path.with_suffix(DRAFT).unlink(missing_ok=True)
            yield claim


@dataclass
class Claim:
    """The right to run a trial and to keep its result; `finished` is a result that was kept before."""

    path: Path
    draft: IO[str]
    finished: Finished | None

    @property
    def result(self) -> Finished:
        assert self.finished is not None
        return self.finished

    def keep(self, finished: Finished) -> None:
        """Keep a result. Raises `OutputError`, for example on a full disk; no result is kept then."""
        with writing(self.path):
            self.draft.truncate(0)
            self.draft.write(json.dumps(asdict(finished), allow_nan=False) + "\n")
            self.draft.flush()
            self.path.with_suffix(DRAFT).replace(self.path)
        self.finished = finished


@contextmanager
def locked(path: Path) -> Iterator[IO[str]]:
    """Open the file at `path`, locked for this process alone; wait for another process's lock. Raises `OutputError`.

    A file that was renamed or removed during the wait is no longer the one at `path`.
    """
    while True:
        with writing(path), path.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if is_at(file, path):
                yield file
                return


def is_at(file: IO[str], path: Path) -> bool:
    """Whether the open file is the one that has this path now."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    return False


LOCK = "inakit-one-emulation.lock"


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Wait until no other block of this kind runs on this machine. The system frees the lock of a dead process."""
    descriptor = os.open(Path(tempfile.gettempdir()) / LOCK, os.O_RDONLY | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


Given = Mapping[str, Any]
"""The arguments of a trial, in JSON's types."""
Row = dict[str, Any]
"""The result of a trial, in JSON's types."""
KEY_LETTERS = 32
Found = TypeVar("Found")


@dataclass(frozen=True)
class Trial:
    """A function of a module, and its arguments. Trials with the same `key` have the same result.

    Trials of one `kind` take about the same time. One that is `alone` on its machine runs beside no other such trial.
    """

    key: str
    function: Callable[[Given], Row]
    given: Given
    kind: str = ""
    alone: bool = False


def key_of(**parts: object) -> str:
    """The key of a trial: the SHA-256 of all inputs of its result, in JSON's types."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_LETTERS]


def carry_out(trial: Trial, kept: Kept) -> Finished:
    """Run the trial unless it has a result, and keep its result. Raises `OutputError` if that is impossible."""
    with kept.claim(trial.key) as claim:
        if claim.finished is None:
            with one_at_a_time() if trial.alone else nullcontext():
                claim.keep(attempt(trial))
    return claim.result


def attempt(trial: Trial) -> Finished:
    """Run the trial, and return its result. Raises `OutputError` if a file cannot be written."""
    started_s = time.perf_counter()
    row, error = tried(lambda: trial.function(trial.given))
    return Finished(trial.key, row, error, time.perf_counter() - started_s, platform.node(), now())


def tried(measure: Callable[[], Found]) -> tuple[Found | None, str | None]:
    """Return the measured value, or instead the exception in a line.

    Raises `OutputError` if a file cannot be written: later results could not be kept either.
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
    """An error in a line: one of the kit's unchanged, another with its type and the place in the code."""
    if isinstance(failure, InakitError):
        return " ".join((str(failure), *getattr(failure, "__notes__", ())))
    last = traceback.extract_tb(failure.__traceback__)[-1]
    return f"{type(failure).__name__}: {failure} ({last.name}, line {last.lineno})"


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
