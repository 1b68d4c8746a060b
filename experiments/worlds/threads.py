"""Things that are done beside a run in real time: a thread begins each, and waits for its end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

AT_ONCE = 16
"""So many things are done beside a run at once."""


class Threads:
    """What lasts for a time in a network that runs in real time: a thread waits for its end."""

    def __init__(self, executor: ThreadPoolExecutor, over: threading.Event) -> None:
        self._executor, self._over = executor, over

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[Threads]:
        """Leaving the block ends what lasts, and waits for it."""
        over = threading.Event()
        with ThreadPoolExecutor(AT_ONCE) as executor:
            try:
                yield cls(executor, over)
            finally:
                over.set()

    def during(self, begin: Callable[[], None], lasting_s: float | None, end: Callable[[], None]) -> Future[None]:
        """Call `begin` and, after `lasting_s` seconds or when the run is over, `end`."""

        def work() -> None:
            begin()
            self._over.wait(lasting_s)
            end()

        return self._executor.submit(work)
