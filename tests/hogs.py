"""Processes that only use up processors, and are no children of whoever starts them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

NAME = "hog"
START = """
import os, sys
child = os.fork()
if child:
    print(child)
    sys.exit()
os.close(1)
open("/proc/self/comm", "w").write(sys.argv[2])
os.nice(int(sys.argv[1]) - os.getpriority(os.PRIO_PROCESS, 0))
while os.path.exists("/proc/" + sys.argv[3]):
    for _ in range(10_000_000):
        pass
"""


@contextmanager
def hogs(count: int, nice: int) -> Iterator[list[int]]:
    """Run `count` processes called `hog` that never sleep, until the block ends, or this process does."""
    started = [start_hog(nice) for _ in range(count)]
    try:
        yield started
    finally:
        for pid in started:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def start_hog(nice: int) -> int:
    """Start a hog, and return its process id. Its parent has ended already, so it is no descendant of this process."""
    command = [sys.executable, "-S", "-c", START, str(nice), NAME, str(os.getpid())]
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
