"""How long another process is waited for: time in which this process itself stands still does not count."""

from __future__ import annotations

import select
import time

STEP_S = 0.5


class Patience:
    """Waits for at most `left` seconds in all.

    It waits in short steps, and no step counts for more than its length: on a machine that is suspended or overloaded
    nobody runs out of time for want of a processor alone.
    """

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    def until_readable(self, descriptor: int) -> bool:
        """Wait until something can be read; False when patience has ended."""
        return self.wait((descriptor,), ())

    def until_writable(self, descriptor: int) -> bool:
        """Wait until something can be written; False when patience has ended."""
        return self.wait((), (descriptor,))

    def wait(self, readable: tuple[int, ...], writable: tuple[int, ...]) -> bool:
        """Wait for one of these descriptors."""
        while self.left > 0:
            began = time.monotonic()
            ready = select.select(readable, writable, (), min(STEP_S, self.left))
            self.left -= min(STEP_S, time.monotonic() - began)
            if any(ready):
                return True
        return False
