"""Random table entries for any program, with keys and parameters that fit.

`Limits` are the highest values of fields that keys match, and of parameters of actions, by their whole names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from types import MappingProxyType

from inakit.switch.control.entry_check import by_priority
from inakit.switch.entries import KeyPart, Lpm, Range, SwitchEntries, TableEntry, Ternary
from inakit.switch.program.program import ActionParameter
from inakit.switch.program.program import MatchKey, Table
from inakit.switch.program.program import Program

PORTS = range(5)
"""The ports of switches that get random entries and packets."""

PORT_BITS = 9
SMALL = 0.3
"""The chance that a number of an entry is one of the lowest or the highest."""

Limits = Mapping[str, int]
NO_LIMITS: Limits = MappingProxyType({})


def random_entries(program: Program, random: Random, per_table: int, limits: Limits = NO_LIMITS) -> SwitchEntries:
    """Up to `per_table` entries for each table that takes some."""
    tables = [table for table in program.tables.values() if fillable(table)]
    entries = (entry for table in tables for entry in entries_of(table, random, per_table, limits))
    return SwitchEntries("switch", tuple(entries))


def fillable(table: Table) -> bool:
    """Whether entries of the plain kind can be added to a table: not to keyless, const and profiled ones."""
    return bool(table.key) and table.entries is None and table.profile is None


def entries_of(table: Table, random: Random, most: int, limits: Limits = NO_LIMITS) -> Iterator[TableEntry]:
    """At most `most` entries with different keys and different priorities."""
    seen: set[tuple[KeyPart, ...]] = set()
    prioritised = by_priority(table)
    for priority in random.sample(range(1, 1000), min(most, table.size)):
        key = tuple(random_key_part(random, part, limits.get(str(part.value))) for part in table.key)
        if key in seen:
            continue
        seen.add(key)
        action = random.choice(table.actions)
        params = tuple(
            random_parameter(random, each, limits.get(f"{action.name}.{each.name}")) for each in action.parameters
        )
        yield TableEntry(table.name, key, action.name, params, priority if prioritised else None)


def random_key_part(random: Random, part: MatchKey, most: int | None = None) -> KeyPart:
    """One part of a key, of the kind that the table matches by; its numbers are at most `most`."""
    everything = (1 << part.bits) - 1
    highest = everything if most is None else min(most, everything)
    value = random_number(random, part.bits, SMALL) % (highest + 1)
    match part.match:
        case "lpm":
            prefix = random.randint(0, part.bits)
            return Lpm(value >> part.bits - prefix << part.bits - prefix, prefix)
        case "ternary":
            mask = random.choice([0, everything, random.getrandbits(part.bits)])
            return Ternary(value & mask, mask)
        case "range":
            return Range(value, random.randint(value, highest))
    return value


def random_parameter(random: Random, parameter: ActionParameter, most: int | None = None) -> int:
    """A number for a parameter, at most `most`; one of `PORTS`, if it has no limit and as many bits as a port."""
    if most is None and parameter.bits == PORT_BITS:
        return random.choice(PORTS)
    drawn = random_number(random, parameter.bits, SMALL)
    return drawn if most is None else drawn % (most + 1)


def random_number(random: Random, bits: int, small: float) -> int:
    """Any number of so many bits; with a chance of `small`, one of the lowest or the highest."""
    if random.random() < small:
        return random.choice([0, 1, 2, 3, (1 << bits) - 1]) & (1 << bits) - 1
    return random.getrandbits(bits) if bits else 0
