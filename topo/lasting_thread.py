"""One thread for all calls of a kind, for as long as the process lasts."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache


def lasting_thread(name: str) -> Callable[[], ThreadPoolExecutor]:
    """A function that gives one thread of this name, which starts with its first call.

    A forked process has no other thread than its first, and gets one of its own.
    """
    thread = cache(lambda: ThreadPoolExecutor(1, thread_name_prefix=name))
    os.register_at_fork(after_in_child=thread.cache_clear)
    return thread
