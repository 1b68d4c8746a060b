"""The entries of tables, and the search for the one that matches a packet's key."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from inakit.switch.control.entry_check import Identity, Test, masked_key, matches, rank
from inakit.switch.entries import KeyPart
from inakit.switch.program.program import ActionCall, Table
from inakit.switch.running_switch import HeldEntries, Keyed

Entry = TypeVar("Entry")

Order = tuple[int, int]
"""The order of entries: the least of the matching ones wins. All entries of a table have different orders."""

Ordered = list[tuple[Order, Entry]]


class OverlappingEntries(Generic[Entry]):
    """Entries by the tests of their keys. Those with a range are compared with a packet's key one by one."""

    def __init__(self) -> None:
        self.by_masks: dict[tuple[int, ...], dict[tuple[int, ...], Ordered[Entry]]] = {}
        self.ranges: list[tuple[Order, tuple[Test, ...], Entry]] = []

    def clear(self) -> None:
        self.by_masks.clear()
        self.ranges.clear()

    def add(self, tests: tuple[Test, ...], order: Order, entry: Entry) -> None:
        if has_range(tests):
            insort(self.ranges, (order, tests, entry), key=lambda each: each[0])
            return
        masks, values = masks_and_values(tests)
        insort(self.by_masks.setdefault(masks, {}).setdefault(values, []), (order, entry), key=lambda each: each[0])

    def remove(self, tests: tuple[Test, ...], order: Order) -> None:
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
        """The winning entry among those that match a packet's key."""
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
    """Whether a part of the key matches a range of numbers."""
    return any(least != most for _, least, most in tests)


def masks_and_values(tests: tuple[Test, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The masks of a key's parts, and the masked bits of a matching packet's key."""
    return tuple([mask for mask, _, _ in tests]), tuple([least for _, least, _ in tests])


REMEMBERED = 4096
"""The greatest number of cached lookups."""

Key = tuple[int, ...]


@dataclass(eq=False)
class Installed:
    """One entry of a running table; `calls` has several actions if the table's selector chooses one of them.

    `number` is the lowest free one in the table and the entry's cell of a direct meter. `matched_us` is the time when a
    packet last matched or the entry was added.
    """

    key: tuple[KeyPart, ...]
    priority: int | None
    calls: tuple[ActionCall, ...]
    number: int = 0
    packets: int = 0
    bytes: int = 0
    matched_us: int = 0


class TableState(HeldEntries[Installed]):
    """The entries of one table. `find` gives the one that matches a packet's key, or None.

    Exact keys are looked up in `exact`, others in `overlapping`. `chosen_default` replaces `default` if the control
    plane has set members of an action profile.
    """

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self.exact: dict[Key, Installed] = {}
        self.overlapping: OverlappingEntries[Installed] = OverlappingEntries()
        self.found: dict[Key, Installed | None] = {}
        self.find: Callable[[Key], Installed | None] = self.exact.get if table.match == "exact" else self.search
        self.reset()

    def reset(self) -> None:
        """Restore the entries and the default of the program."""
        self.forget_all()
        for entries in (self.exact, self.found, self.overlapping):
            entries.clear()
        self.reset_default()
        for entry in self.table.entries or ():
            priority = None if self.table.match in ("exact", "lpm") else entry.priority
            self.add(Installed(entry.key, priority, (entry.call,)))

    def reset_default(self) -> None:
        self.default: ActionCall | None = self.table.default
        self.chosen_default: Installed | None = None

    def search(self, key: Key) -> Installed | None:
        """The winning entry among those that match."""
        if key not in self.found:
            if len(self.found) >= REMEMBERED:
                self.found.clear()
            self.found[key] = self.overlapping.first(key)
        return self.found[key]

    def add(self, entry: Installed) -> None:
        """Add a checked entry with a new key."""
        entry.key, entry.number = masked_key(self.table, entry.key), self.take_number()
        identity = self.identity(entry)
        self.held[identity] = entry
        if self.table.match == "exact":
            self.exact[exact_key(identity)] = entry
            return
        self.overlapping.add(identity[0], (rank(entry.key, entry.priority), entry.number), entry)
        self.found.clear()

    def remove(self, entry: Keyed) -> Installed:
        """Remove the entry with this key."""
        identity = self.identity(entry)
        removed = self.held.pop(identity)
        self.give_back(removed.number)
        if self.table.match == "exact":
            del self.exact[exact_key(identity)]
            return removed
        self.overlapping.remove(identity[0], (rank(removed.key, removed.priority), removed.number))
        self.found.clear()
        return removed


def exact_key(identity: Identity) -> Key:
    """The packet's key that matches an entry of a table with exact keys."""
    return tuple(least for _, least, _ in identity[0])
