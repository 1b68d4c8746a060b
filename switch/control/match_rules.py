"""How the key of a packet is compared with entries, and which entry wins where several match."""

from __future__ import annotations

from collections.abc import Sequence

from inakit.switch.entries import KeyPart, Lpm, Range, Ternary
from inakit.switch.program.pipelines import MatchKey, Table

KEY_TYPES: dict[str, type] = {
    "exact": int,
    "valid": int,
    "lpm": Lpm,
    "ternary": Ternary,
    "range": Range,
}
"""What may stand in the key of an entry, by how that part of the key matches."""

BY_PRIORITY = {"ternary", "range"}
"""Kinds of matches whose keys can overlap without one being longer: their entries need a priority."""

Test = tuple[int, int, int]
"""Mask, least and greatest: a part of a packet's key matches where least <= part & mask <= greatest."""


def by_priority(table: Table) -> bool:
    """Whether entries of the table need a priority."""
    return any(part.match in BY_PRIORITY for part in table.key)


def masked_key(table: Table, key: Sequence[KeyPart]) -> tuple[KeyPart, ...]:
    """A key of an entry without the bits of packets' keys that the table does not look at."""
    if all(part.mask is None for part in table.key):
        return tuple(key)
    return tuple(masked(part, value) for part, value in zip(table.key, key, strict=True))


def masked(part: MatchKey, value: KeyPart) -> KeyPart:
    """One part of such a key. The upper end of a range stays as it is, as in BMv2."""
    ones = (1 << part.bits) - 1 if part.mask is None else part.mask
    match value:
        case Lpm(number, prefix):
            return Lpm(number & ones, prefix)
        case Ternary(number, mask):
            return Ternary(number & ones, mask)
        case Range(low, high):
            return Range(low & ones, high)
        case _:
            return value & ones


def test_of(part: MatchKey, value: KeyPart) -> Test:
    """The test that one part of an entry's key stands for."""
    ones = (1 << part.bits) - 1
    match value:
        case Lpm(number, prefix):
            mask = ones ^ ones >> prefix
            return mask, number & mask, number & mask
        case Ternary(number, mask):
            return mask, number & mask, number & mask
        case Range(low, high):
            return ones, low, high
        case _:
            return ones, value, value


def matches(tests: Sequence[Test], key: Sequence[int]) -> bool:
    """Whether a packet's key passes the tests of all parts of an entry's key."""
    return all(least <= part & mask <= most for (mask, least, most), part in zip(tests, key, strict=True))


def rank(key: Sequence[KeyPart], priority: int | None) -> int:
    """A number by which entries are ordered: of those that match, the one with the lowest rank wins.

    It is the entry's priority; without one, longer prefixes go first.
    """
    if priority is not None:
        return priority
    return -sum(part.prefix for part in key if isinstance(part, Lpm))


Identity = tuple[tuple[Test, ...], int | None]
"""What no two entries of a table share: the test of each part of the key, and the priority."""


def identity_of(table: Table, key: Sequence[KeyPart], priority: int | None) -> Identity:
    """What no other entry of the table has."""
    return tuple(map(test_of, table.key, masked_key(table, key))), priority
