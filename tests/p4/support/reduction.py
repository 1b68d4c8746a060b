"""Reduces a case on which switches differ to what the difference needs.

Hypothesis would shrink hundreds of numbers before it removes packets; here whole packets and whole changes of the
example's entries are removed, halves first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from entry_strategies import EXAMPLE
from strategies import Case

from inakit.switch.entries import MulticastGroup, RegisterPreset, SwitchEntries, TableEntry

Item = TypeVar("Item")
Key = tuple[str, tuple[int, ...]]
Part = tuple[Key, TableEntry | None] | MulticastGroup | RegisterPreset


def reduced(case: Case, fails: Callable[[Case], bool]) -> Case:
    """A smaller case that still fails, and would not without any one of its packets or changes."""
    steps = fewest(case.steps, lambda steps: fails(replace(case, steps=tuple(steps))))
    parts = fewest(changes_of(case.entries), lambda parts: fails(Case(with_changes(parts), tuple(steps))))
    return Case(with_changes(parts), tuple(steps))


def fewest(items: Sequence[Item], fails: Callable[[Sequence[Item]], bool]) -> Sequence[Item]:
    """Those of `items`, in order, without any one of which `fails` does not hold any more."""
    size = len(items)
    while size:
        start = 0
        while start < len(items):
            rest = [*items[:start], *items[start + size :]]
            if fails(rest):
                items = rest
            else:
                start += size
        size //= 2
    return items


def changes_of(entries: SwitchEntries) -> list[Part]:
    """The differences to the example: entries by their key (None where one is missing), groups, presets."""
    usual, actual = by_key(EXAMPLE), by_key(entries)
    keys = [key for key in {**usual, **actual} if usual.get(key) != actual.get(key)]
    groups = [group for group in entries.groups if group not in EXAMPLE.groups]
    return [*((key, actual.get(key)) for key in keys), *groups, *entries.registers]


def with_changes(parts: Sequence[Part]) -> SwitchEntries:
    """The example's entries with these changes."""
    tables: dict[Key, TableEntry | None] = {**by_key(EXAMPLE)}
    tables |= dict(part for part in parts if isinstance(part, tuple))
    groups = {group.group: group for group in EXAMPLE.groups}
    groups |= {part.group: part for part in parts if isinstance(part, MulticastGroup)}
    return SwitchEntries(
        EXAMPLE.switch,
        tuple(entry for entry in tables.values() if entry is not None),
        tuple(groups.values()),
        tuple(part for part in parts if isinstance(part, RegisterPreset)),
    )


def by_key(entries: SwitchEntries) -> dict[Key, TableEntry]:
    """Entries by what no two of them have in common."""
    return {(entry.table, entry.exact_key): entry for entry in entries.tables}
