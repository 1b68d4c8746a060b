"""The numbers by which commands name what earlier commands have made, given as BMv2 gives them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Generic, TypeVar

Made = TypeVar("Made")

VERSION_BITS = 24
VERSIONS = 256
"""A table's handle has the number of its place in its low 24 bits, and above them how often the place was emptied."""


class Handles(Generic[Made]):
    """What has been made, by handle. A new one gets the lowest place that is free.

    With `versioned`, a handle that was deleted does not come back: this is how BMv2 numbers entries of tables.
    """

    def __init__(self, what: str, versioned: bool = False) -> None:
        self.what, self.versioned = what, versioned
        self.made: dict[int, Made] = {}
        self.freed: list[int] = []
        self.emptied: Counter[int] = Counter()

    def add(self, made: Made) -> int:
        """Keep `made` and return its handle."""
        place = heappop(self.freed) if self.freed else len(self.made)
        handle = self.emptied[place] % VERSIONS << VERSION_BITS | place
        self.made[handle] = made
        return handle

    def at(self, handle: int) -> Made:
        """What has this handle; `ValueError` if nothing has."""
        if handle not in self.made:
            held = ", ".join(map(str, self.made)) or "none"
            raise ValueError(f"there is no {self.what} with handle {handle} (there are: {held})")
        return self.made[handle]

    def change(self, handle: int, made: Made) -> None:
        """Put `made` where another one was."""
        self.at(handle)
        self.made[handle] = made

    def remove(self, handle: int) -> None:
        """Forget what has this handle."""
        self.at(handle)
        del self.made[handle]
        place = handle & (1 << VERSION_BITS) - 1
        heappush(self.freed, place)
        self.emptied[place] += self.versioned

    def clear(self) -> None:
        """Forget all; places are given from 0 on again."""
        for handle in list(self.made):
            self.remove(handle)

    def __iter__(self) -> Iterator[Made]:
        """What has been made, in the order in which it was."""
        return iter(self.made.values())
