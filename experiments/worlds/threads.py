"""Actions beside a run in real time, such as a link that is down for a while: a thread begins and ends each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

AT_ONCE = 16
"""So many actions can last at the same time; further ones wait for their turn."""


class Threads:
    """Actions on a network that last for a time: a thread begins each, waits, and ends it (a `Beside`)."""

    def __init__(self, executor: ThreadPoolExecutor, over: threading.Event) -> None:
        self._executor, self._over = executor, over

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[Threads]:
        """Yield the threads. Leaving the block ends every action that still lasts, and waits until all have ended."""
        over = threading.Event()
        with ThreadPoolExecutor(AT_ONCE) as executor:
            try:
                yield cls(executor, over)
            finally:
                over.set()

    def during(self, begin: Callable[[], None], lasting_s: float | None, end: Callable[[], None]) -> Future[None]:
        """Call `begin`, and `end` after `lasting_s` seconds or when the run is over; for None, when the run is over."""

        def work() -> None:
            begin()
            self._over.wait(lasting_s)
            end()

        return self._executor.submit(work)
