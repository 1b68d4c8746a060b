"""Entries whose keys can overlap, found by their masks: one look-up for each set of masks that entries have."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Generic, TypeVar

from inakit.switch.control.entry_check import Test, matches

Entry = TypeVar("Entry")

Order = tuple[int, int]
"""Which entry wins: the least of those that match. No two entries of a table have the same."""

Ordered = list[tuple[Order, Entry]]


class OverlappingEntries(Generic[Entry]):
    """Entries by the tests of their keys. Those with a range are compared with a packet's key one after the other."""

    def __init__(self) -> None:
        self.by_masks: dict[tuple[int, ...], dict[tuple[int, ...], Ordered[Entry]]] = {}
        self.ranges: list[tuple[Order, tuple[Test, ...], Entry]] = []

    def clear(self) -> None:
        """Have no entries."""
        self.by_masks.clear()
        self.ranges.clear()

    def add(self, tests: tuple[Test, ...], order: Order, entry: Entry) -> None:
        """Add an entry."""
        if has_range(tests):
            insort(self.ranges, (order, tests, entry), key=lambda each: each[0])
            return
        masks, values = masks_and_values(tests)
        insort(self.by_masks.setdefault(masks, {}).setdefault(values, []), (order, entry), key=lambda each: each[0])

    def remove(self, tests: tuple[Test, ...], order: Order) -> None:
        """Remove an entry."""
        if has_range(tests):
            del self.ranges[bisect_left(self.ranges, order, key=lambda each: each[0])]
            return
        masks, values = masks_and_values(tests)
        same = self.by_masks[masks][values]
        del same[bisect_left(same, order, key=lambda each: each[0])]
        if not same:
            del self.by_masks[masks][values]
        if not self.by_masks[masks]:
            del self.by_masks[masks]

    def first(self, key: Sequence[int]) -> Entry | None:
        """The entry that wins among those that match a packet's key."""
        best: tuple[Order, Entry] | None = None
        for masks, entries in self.by_masks.items():
            found = entries.get(tuple([part & mask for part, mask in zip(key, masks, strict=True)]))
            if found is not None and (best is None or found[0][0] < best[0]):
                best = found[0]
        for order, tests, entry in self.ranges:
            if best is not None and best[0] < order:
                break
            if matches(tests, key):
                return entry
        return None if best is None else best[1]


def has_range(tests: tuple[Test, ...]) -> bool:
    """Whether a part of the key matches several numbers between two bounds."""
    return any(least != most for _, least, most in tests)


def masks_and_values(tests: tuple[Test, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The masks of a key's parts, and what is left of a matching packet's key behind them."""
    return tuple([mask for mask, _, _ in tests]), tuple([least for _, least, _ in tests])
