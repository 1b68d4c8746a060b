"""No process of a test outlives the tests: a run that is stopped, even by `kill -9`, takes its processes with it."""

from __future__ import annotations

import ctypes
import signal

SET_SIGNAL_OF_PARENTS_DEATH = 1
"""PR_SET_PDEATHSIG of linux/prctl.h."""

TIED = ("setpriv", "--pdeathsig", "TERM")
"""The first words of a command that is to receive SIGTERM when the process that started it has ended."""


def end_with_parent() -> None:
    """Have the kernel send SIGTERM to this process when its parent is gone."""
    ctypes.CDLL(None).prctl(SET_SIGNAL_OF_PARENTS_DEATH, signal.SIGTERM)
