"""Garbage collection between requests.

The C extension of protobuf ends the process now and then when a collection begins while it makes or frees a message,
as seen with protobuf 7.36 and many clients. Here collections begin only where none of its calls is under way.
"""

from __future__ import annotations

import gc
import time

YOUNG_EVERY_S, ALL_EVERY_S = 0.2, 20.0
"""How often young objects are looked through, and how often all."""


class Collection:
    """Takes collections over from Python between `begin` and `end`; `poll` collects when it is time."""

    def __init__(self) -> None:
        self.young_at = self.all_at = time.monotonic()

    def begin(self) -> None:
        """Let no collection begin by itself."""
        gc.disable()

    def end(self) -> None:
        """Let collections begin by themselves again."""
        gc.enable()

    def poll(self) -> None:
        """Collect, if it is time."""
        now = time.monotonic()
        if now >= self.all_at:
            self.all_at = now + ALL_EVERY_S
            gc.collect()
        elif now >= self.young_at:
            self.young_at = now + YOUNG_EVERY_S
            gc.collect(1)
