"""Random table entries for any program, with keys and parameters that fit."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from switch.control.match_rules import by_priority
from switch.entries import KeyPart, Lpm, Range, SwitchEntries, TableEntry, Ternary
from switch.program.actions import ActionParameter
from switch.program.pipelines import MatchKey, Table
from switch.program.program import Program

PORTS = range(5)
"""The ports of switches that get random entries and packets."""

PORT_BITS = 9
SMALL = 0.3
"""The chance that a number of an entry is one of the lowest or the highest."""


def random_entries(program: Program, random: Random, per_table: int) -> SwitchEntries:
    """Up to `per_table` entries for each table that takes some."""
    tables = [table for table in program.tables.values() if fillable(table)]
    return SwitchEntries("switch", tuple(entry for table in tables for entry in entries_of(table, random, per_table)))


def fillable(table: Table) -> bool:
    """Whether entries of the plain kind can be added to a table: not to keyless, const and profiled ones."""
    return bool(table.key) and table.entries is None and table.profile is None


def entries_of(table: Table, random: Random, most: int) -> Iterator[TableEntry]:
    """At most `most` entries with different keys and different priorities."""
    seen: set[tuple[KeyPart, ...]] = set()
    prioritised = by_priority(table)
    for priority in random.sample(range(1, 1000), min(most, table.size)):
        key = tuple(random_key_part(random, part) for part in table.key)
        if key in seen:
            continue
        seen.add(key)
        action = random.choice(table.actions)
        params = tuple(random_parameter(random, parameter) for parameter in action.parameters)
        yield TableEntry(table.name, key, action.name, params, priority if prioritised else None)


def random_key_part(random: Random, part: MatchKey) -> KeyPart:
    """One part of a key, of the kind that the table matches by."""
    value = random_number(random, part.bits, SMALL)
    everything = (1 << part.bits) - 1
    match part.match:
        case "lpm":
            prefix = random.randint(0, part.bits)
            return Lpm(value >> part.bits - prefix << part.bits - prefix, prefix)
        case "ternary":
            mask = random.choice([0, everything, random.getrandbits(part.bits)])
            return Ternary(value & mask, mask)
        case "range":
            return Range(value, random.randint(value, everything))
    return value


def random_parameter(random: Random, parameter: ActionParameter) -> int:
    """A number for a parameter; one of `PORTS`, if it has as many bits as a port."""
    return random.choice(PORTS) if parameter.bits == PORT_BITS else random_number(random, parameter.bits, SMALL)


def random_number(random: Random, bits: int, small: float) -> int:
    """Any number of so many bits; with a chance of `small`, one of the lowest or the highest."""
    if random.random() < small:
        return random.choice([0, 1, 2, 3, (1 << bits) - 1]) & (1 << bits) - 1
    return random.getrandbits(bits) if bits else 0
