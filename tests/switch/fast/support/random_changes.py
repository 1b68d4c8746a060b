"""Random changes of what the control plane has put into a switch, made in several switches alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from small_programs import ADDRESSES, KINDS, LIST_PORTS

from inakit.switch.control.data_plane import DataPlane
from inakit.switch.control.entry_check import identity_of
from inakit.switch.entries import (
    DefaultAction,
    Entry,
    KeyPart,
    Lpm,
    MulticastGroup,
    ProfileEntry,
    Range,
    TableEntry,
    Ternary,
    ValueSetMember,
)
from inakit.switch.program.program import MatchKey, Program, Table

VALUES: dict[int, tuple[int, ...]] = {
    128: ADDRESSES,
    32: (0x0A000001, 0x0A000002, 0x0A0B0000, 0xFFFFFFFF, 0),
    16: (*LIST_PORTS, *range(7, 12)),
    8: KINDS,
    9: (1, 2, 4, 9),
    1: (0, 1),
}
"""What keys are drawn from, by their bits, so that packets meet entries."""

MOST_MEMBERS = 5
Step = Callable[[DataPlane], None]


class RandomChanges:
    """Draws changes, makes them, and keeps what the switches then have.

    `groups` are numbers of multicast groups; groups of members have at least `least` (BMv2 ends where one is empty);
    a change is of `most` entries.
    """

    def __init__(
        self, program: Program, seed: int, groups: tuple[int, ...] = (), least: int = 0, most: int = 20
    ) -> None:
        self.least, self.most = least, most
        self.program, self.draw, self.groups = program, Random(seed), groups
        self.tables = [table for table in program.tables.values() if table.key and table.entries is None]
        self.defaulted = [t for t in program.tables.values() if t.actions and not t.default_is_const and not t.profile]
        self.entries: dict[str, dict[object, Entry]] = {table.name: {} for table in self.tables}

    def change(self, *switches: DataPlane) -> None:
        """Make one change in all of these."""
        step = self.step()
        for switch in switches:
            step(switch)

    def step(self) -> Step:
        """One change, of any kind, to be made in every switch."""
        kinds = [self.add, self.add, self.add_many, self.alter, self.remove]
        kinds += [self.set_default, self.reset_default] if self.defaulted else []
        kinds += [self.put_group] if self.groups else []
        kinds += [self.change_values] if self.program.value_sets else []
        return self.draw.choice(kinds)()

    def add(self, count: int = 1) -> Step:
        """Add new entries to a table that has room for them."""
        table = self.draw.choice(self.tables)
        held, new = self.entries[table.name], dict[object, Entry]()
        for _ in range(count):
            entry = self.entry(table)
            identity = identity_of(table, entry.key, entry.priority)
            if identity not in held and len(held) + len(new) < table.size:
                new[identity] = entry
        held |= new
        return lambda switch: switch.add(list(new.values()))

    def add_many(self) -> Step:
        """Add several entries at once."""
        return self.add(self.most)

    def alter(self) -> Step:
        """Give some entries of a table other actions."""
        table = self.draw.choice(self.tables)
        held = self.entries[table.name]
        chosen = self.draw.sample(list(held), min(len(held), 3, self.most))
        new = {identity: self.acting(table, held[identity]) for identity in chosen}
        held |= new
        return lambda switch: switch.change(list(new.values()))

    def remove(self) -> Step:
        """Remove some entries of a table."""
        held = self.entries[self.draw.choice(self.tables).name]
        chosen = self.draw.sample(list(held), min(len(held), self.draw.choice((1, 5)), self.most))
        removed = [held.pop(identity) for identity in chosen]
        return lambda switch: switch.remove(removed)

    def set_default(self) -> Step:
        """Let a table run another action on a miss."""
        table = self.draw.choice(self.defaulted)
        default = DefaultAction(table.name, *self.action(table))
        return lambda switch: switch.set_default(default)

    def reset_default(self) -> Step:
        """Let a table run its own default action again."""
        name = self.draw.choice(self.defaulted).name
        return lambda switch: switch.reset_default(name)

    def put_group(self) -> Step:
        """Replace or remove a multicast group."""
        number = self.draw.choice(self.groups)
        if self.draw.random() < 0.3:
            return lambda switch: switch.remove_group(number)
        group = MulticastGroup(number, tuple(sorted(self.draw.sample((1, 2, 4, 9), self.draw.randrange(1, 4)))))
        return lambda switch: switch.put_group(group)

    def change_values(self) -> Step:
        """Add a value to a parser value set, or remove it."""
        name = self.draw.choice(list(self.program.value_sets))
        member = ValueSetMember(name, self.draw.choice(VALUES[16]) << 8 | self.draw.choice(KINDS))
        if self.draw.random() < 0.4:
            return lambda switch: switch.remove_value(member)
        return lambda switch: switch.add_value(member)

    def entry(self, table: Table) -> Entry:
        """A random entry; some priorities tie."""
        key = tuple(self.part(part) for part in table.key)
        priority = self.draw.randrange(20) if table.match in ("ternary", "range") else None
        if table.profile is not None:
            return self.acting(table, ProfileEntry(table.name, key, table.profile, (), priority))
        return self.acting(table, TableEntry(table.name, key, "", (), priority))

    def acting(self, table: Table, entry: Entry) -> Entry:
        """The entry with random actions."""
        if isinstance(entry, ProfileEntry):
            selects = self.program.profiles[entry.profile].selector is not None
            count = self.draw.randrange(self.least, MOST_MEMBERS) if selects else 1
            return replace(entry, actions=tuple(self.action(table) for _ in range(count)))
        action, params = self.action(table)
        return replace(entry, action=action, params=params)

    def action(self, table: Table) -> tuple[str, tuple[int, ...]]:
        """A random action of a table, with parameters."""
        action = self.draw.choice(table.actions)
        return action.name, tuple(self.value(parameter.bits) for parameter in action.parameters)

    def value(self, bits: int) -> int:
        """A value of so many bits: for ports and groups one that means something."""
        meant = {9: (1, 2, 4, 9), 16: (3, 4)}
        return self.draw.choice(meant[bits]) if bits in meant else self.draw.getrandbits(bits)

    def part(self, part: MatchKey) -> KeyPart:
        """A random part of a key, without bits that do not count."""
        value: int = self.draw.choice(VALUES[part.bits])
        ones = (1 << part.bits) - 1
        match part.match:
            case "lpm":
                prefix = self.draw.choice((0, 1, part.bits // 2, part.bits - 2, part.bits))
                return Lpm(value & (ones ^ ones >> prefix), prefix)
            case "ternary":
                mask = self.draw.choice((0, 0xF, ones)) & ones
                return Ternary(value & mask, mask)
            case "range":
                return Range(value, value + self.draw.randrange(300))
        return value

    def sample(self) -> Sequence[Entry]:
        """All entries, in no order."""
        return [entry for held in self.entries.values() for entry in held.values()]
