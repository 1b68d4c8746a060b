"""Handles as BMv2 numbers what it holds: the lowest number that is free, and for table entries a version beside it."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Generic, TypeVar

VERSION_SHIFT = 24
INDEX = (1 << VERSION_SHIFT) - 1
VERSIONS = 1 << 8
"""An entry's handle has its index in the lower 24 bits, and above them how often the index was freed."""

Held = TypeVar("Held")


class Handles(Generic[Held]):
    """Things by their handles, each the lowest number that is free."""

    def __init__(self) -> None:
        self._held: dict[int, Held] = {}
        self._free: list[int] = []

    def take(self, held: Held) -> int:
        """Keep `held`, and return its handle."""
        handle = heappop(self._free) if self._free else len(self._held)
        self._held[handle] = held
        return handle

    def release(self, handle: int) -> None:
        """Forget what a handle stands for."""
        del self._held[handle]
        heappush(self._free, handle)

    def get(self, handle: int) -> Held | None:
        """What a handle stands for; None if it is free."""
        return self._held.get(handle)

    def __getitem__(self, handle: int) -> Held:
        return self._held[handle]

    def __setitem__(self, handle: int, held: Held) -> None:
        self._held[handle] = held

    def __contains__(self, handle: int) -> bool:
        return handle in self._held

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._held))

    def __len__(self) -> int:
        return len(self._held)


def versioned(index: int, version: int) -> int:
    """The handle of an entry at `index`."""
    return version % VERSIONS << VERSION_SHIFT | index


def index_of(handle: int) -> int:
    """The index of an entry's handle."""
    return handle & INDEX


def version_of(handle: int) -> int:
    """The version of an entry's handle."""
    return handle >> VERSION_SHIFT & VERSIONS - 1
