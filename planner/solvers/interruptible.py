"""Long calls of native code, made so that Ctrl-C is heard while they last.

Python handles a signal between two of its own instructions, and a solver may take a minute for one of them. So the
solver runs in a thread of its own, and the main thread waits where it can be interrupted. The solver itself cannot be
interrupted: it runs on until it is done, or until the process ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import wait
from typing import TypeVar

from inakit.topo.lasting_thread import lasting_thread

T = TypeVar("T")

LOOK_S = 0.2
"""How often the main thread looks whether it has received a signal, in seconds."""

solver_thread = lasting_thread("solver")
"""One thread for all calls, because HiGHS prepares itself anew in every thread that calls it."""


def interruptible(call: Callable[[], T]) -> T:
    """What `call` returns. In the main thread a signal ends the wait for it; other threads call it directly.

    The system may hand a signal to any thread, and that does not wake the main thread: it looks by itself.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    solving = solver_thread().submit(call)
    while not wait([solving], LOOK_S).done:
        pass
    return solving.result()
