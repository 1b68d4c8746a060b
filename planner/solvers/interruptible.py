"""Long calls of native code, made so that Ctrl-C is heard while they last.

Python handles a signal between two of its own instructions, and a solver may take a minute for one of them. So the
solver runs in a thread of its own, and the main thread waits where it can be interrupted. The solver itself cannot be
interrupted: it runs on until it is done, or until the process ends.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

T = TypeVar("T")


def interruptible(call: Callable[[], T]) -> T:
    """What `call` returns. In the main thread a signal ends the wait for it; other threads call it directly."""
    if threading.current_thread() is not threading.main_thread():
        return call()
    return solver_thread().submit(call).result()


@cache
def solver_thread() -> ThreadPoolExecutor:
    """One thread for all calls, because HiGHS prepares itself anew in every thread that calls it."""
    return ThreadPoolExecutor(1, thread_name_prefix="solver")


os.register_at_fork(after_in_child=solver_thread.cache_clear)  # a forked process has no other thread than its first
