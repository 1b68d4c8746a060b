"""Calls beside each other in forked processes, such as the runs of a command in virtual time."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Generic, Self, TypeVar

from inakit.topo.errors import RunError

Result = TypeVar("Result")

PR_SET_PDEATHSIG = 1
"""Of linux/prctl.h."""


def processors() -> int:
    """The number of calls that this machine carries out beside each other.

    It is 1 in a process with other threads, whose locks a fork would copy, and on other systems than Linux.
    """
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" and threading.active_count() == 1 else 1


def available_bytes() -> int:
    """The memory of a Linux machine that is free or can be freed."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))


class Forks(Generic[Result]):
    """A process for each call, at most `at_once` of which are at work; for 1, calls are carried out in this process.

    Results and errors must be picklable. Processes end with the block, or with this process.
    """

    def __init__(self, calls: Mapping[str, Callable[[], Result]], at_once: int) -> None:
        self.calls, self.answers = calls, dict[str, Connection]()
        self.turns, self.processes = os.pipe(), []
        os.write(self.turns[1], bytes(at_once))
        fork = get_context("fork")
        for name, call in calls.items() if at_once > 1 else ():
            self.answers[name], other = fork.Pipe(duplex=False)
            self.processes.append(fork.Process(target=answer, args=(call, self.turns, other, os.getpid()), daemon=True))
            self.processes[-1].start()
            other.close()

    def result(self, name: str) -> Result:
        """Wait for the result of a call. Raises its error, or `RunError` if its process was ended."""
        if name not in self.answers:
            return self.calls[name]()
        try:
            found = self.answers[name].recv()
        except EOFError as error:
            os.write(self.turns[1], bytes(1))
            raise RunError(
                f"{name}: its process was ended, perhaps for lack of memory: measure one at a time"
            ) from error
        if isinstance(found, Exception):
            raise found
        result: Result = found
        return result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.join()
        for end in self.turns:
            os.close(end)


def answer(call: Callable[[], object], turns: tuple[int, int], to: Connection, parent: int) -> None:
    """Send the call's result, or its error, when it is this process's turn. The parent handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    turn = os.read(turns[0], 1)
    try:
        found = call()
    except Exception as error:
        found = error
    os.write(turns[1], turn)
    to.send(found)
