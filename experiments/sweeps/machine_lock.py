"""One emulation at a time on a machine, whoever starts it: others would take its processors, and spoil its figures."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
