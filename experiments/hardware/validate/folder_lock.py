"""One validation at a time in a site's folder: its trials read the network, the jobs and the plans that lie there."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from inakit.topo.errors import RunError, writing

LOCK = ".validating"


@contextmanager
def one_validation(folder: Path) -> Iterator[None]:
    """Hold the folder for the block. The system frees it if the process dies.

    Raises `RunError` where another validation holds it, and `OutputError`.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("a")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunError(
                f"{folder}: another validation is writing there: wait until it has ended, or choose another --results"
            ) from error
        yield
