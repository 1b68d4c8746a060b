"""Results that are kept: a file for each trial, named by its key, in a folder that several studies may share.

A result appears in one step, complete, when the draft that a worker wrote is renamed. The worker holds a lock on the
draft while it runs the trial, so no two workers run a trial at once. The system frees the lock of a worker that dies.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from inakit.topo.errors import writing

DRAFT = ".running"


@dataclass(frozen=True)
class Finished:
    """What came of a trial: a `row`, or the `error` with which it failed; how long it took, where and when it ended."""

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
        """The file of a trial's result."""
        return self.folder / key[:2] / f"{key}.json"

    def get(self, key: str) -> Finished | None:
        """What came of a trial; None where nothing is kept, or only a file that a failing disk has cut off."""
        with suppress(FileNotFoundError, json.JSONDecodeError, TypeError):
            return Finished(**json.loads(self.path(key).read_text()))
        return None

    def forget(self, key: str) -> None:
        """Remove what came of a trial, so that it is run again."""
        with writing(self.folder):
            self.path(key).unlink(missing_ok=True)

    def is_begun(self, key: str) -> bool:
        """Whether a worker has begun a trial and not finished it."""
        return self.path(key).with_suffix(DRAFT).exists()

    @contextmanager
    def claim(self, key: str) -> Iterator[Claim]:
        """The right to run a trial. Waits for a worker that runs it; its result is then in the claim.

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
        """The result, kept before or by this claim."""
        assert self.finished is not None
        return self.finished

    def keep(self, finished: Finished) -> None:
        """Keep a result. Raises `OutputError`, for example on a full disk; nothing is kept then."""
        with writing(self.path):
            self.draft.truncate(0)
            self.draft.write(json.dumps(asdict(finished), allow_nan=False) + "\n")
            self.draft.flush()
            self.path.with_suffix(DRAFT).replace(self.path)
        self.finished = finished


@contextmanager
def locked(path: Path) -> Iterator[IO[str]]:
    """The file at `path`, locked for this process alone; waits for another's lock. Raises `OutputError`.

    A file that was renamed or removed while this process waited is not the one at `path` any more.
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
