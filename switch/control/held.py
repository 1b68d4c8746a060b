"""What a control plane holds, as it tells those who ask: entries, defaults, members and groups of action profiles."""

from __future__ import annotations

from dataclasses import dataclass

from inakit.switch.entries import Entry


@dataclass(frozen=True)
class HeldEntry:
    """A table entry. `member` or `group` is set in a table with an action profile.

    `timeout_ms` is 0 for an entry that never expires; `idle_s` is None in a table whose entries have no timeouts.
    """

    handle: int
    entry: Entry
    timeout_ms: int = 0
    idle_s: float | None = None
    member: int | None = None
    group: int | None = None


@dataclass(frozen=True)
class HeldDefault:
    """What a table runs on a miss: an action, or a member or a group of its action profile."""

    action: str | None = None
    params: tuple[int, ...] = ()
    member: int | None = None
    group: int | None = None


@dataclass(frozen=True)
class HeldMember:
    """A member of an action profile."""

    handle: int
    action: str
    params: tuple[int, ...]


@dataclass(frozen=True)
class HeldGroup:
    """A group of an action profile; `members` are in ascending order."""

    handle: int
    members: tuple[int, ...]
