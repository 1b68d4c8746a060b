"""Random changes of the entries, defaults and groups of the small programs, and the same state installed anew."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from small_programs import ADDRESSES, KINDS, LIST_PORTS

from switch.control.match_rules import identity_of
from switch.entries import DefaultAction, KeyPart, Lpm, MulticastGroup, Range, SwitchEntries, TableEntry, Ternary
from switch.fast.load.shared_state import SwitchState
from switch.program.pipelines import MatchKey, Table
from switch.program.program import Program

VALUES: dict[int, tuple[int, ...]] = {
    128: ADDRESSES,
    16: (*LIST_PORTS, *range(7, 12)),
    8: KINDS,
    9: (1, 2, 4, 9),
    1: (0, 1),
}
"""What keys are drawn from, by their bits, so that packets meet entries."""


class RandomChanges:
    """Draws changes for a switch, makes them, and keeps what the switch then has."""

    def __init__(self, program: Program, seed: int, groups: tuple[int, ...] = ()) -> None:
        self.program, self.draw, self.groups = program, Random(seed), groups
        self.tables = [table for table in program.tables.values() if table.key and table.entries is None]
        self.defaulted = [t for t in program.tables.values() if t.actions and not t.default_is_const]
        self.entries: dict[str, dict[object, TableEntry]] = {table.name: {} for table in self.tables}
        self.defaults: dict[str, DefaultAction] = {}
        self.multicast: dict[int, MulticastGroup] = {}

    def change(self, state: SwitchState) -> None:
        """Make one change, of any kind."""
        kinds = [self.add, self.add, self.add_many, self.alter, self.remove, self.set_default, self.reset_default]
        self.draw.choice([*kinds, self.put_group] if self.groups else kinds)(state)

    def add(self, state: SwitchState, count: int = 1) -> None:
        """Add new entries to a table that has room for them."""
        table = self.draw.choice(self.tables)
        held, new = self.entries[table.name], dict[object, TableEntry]()
        for _ in range(count):
            entry = self.entry(table)
            identity = identity_of(table, entry.key, entry.priority)
            if identity not in held and len(held) + len(new) < table.size:
                new[identity] = entry
        state.add(list(new.values()))
        held |= new

    def add_many(self, state: SwitchState) -> None:
        """Add several entries at once."""
        self.add(state, 20)

    def alter(self, state: SwitchState) -> None:
        """Give some entries of a table other actions."""
        table = self.draw.choice(self.tables)
        held = self.entries[table.name]
        chosen = self.draw.sample(list(held), min(len(held), 3))
        new = {identity: self.acting(table, held[identity]) for identity in chosen}
        state.change(list(new.values()))
        held |= new

    def remove(self, state: SwitchState) -> None:
        """Remove some entries of a table."""
        held = self.entries[self.draw.choice(self.tables).name]
        chosen = self.draw.sample(list(held), min(len(held), self.draw.choice((1, 5))))
        state.remove([held.pop(identity) for identity in chosen])

    def set_default(self, state: SwitchState) -> None:
        """Let a table run another action on a miss."""
        table = self.draw.choice(self.defaulted)
        action, params = self.action(table)
        self.defaults[table.name] = DefaultAction(table.name, action, params)
        state.set_default(self.defaults[table.name])

    def reset_default(self, state: SwitchState) -> None:
        """Let a table run its own default action again."""
        table = self.draw.choice(self.defaulted)
        self.defaults.pop(table.name, None)
        state.reset_default(table.name)

    def put_group(self, state: SwitchState) -> None:
        """Replace or remove a multicast group."""
        number = self.draw.choice(self.groups)
        if self.draw.random() < 0.3:
            self.multicast.pop(number, None)
            state.remove_group(number)
            return
        ports = tuple(sorted(self.draw.sample((1, 2, 4, 9), self.draw.randrange(1, 4))))
        self.multicast[number] = MulticastGroup(number, ports)
        state.put_group(self.multicast[number])

    def entry(self, table: Table) -> TableEntry:
        """A random entry. No two priorities tie, for what wins then is not settled."""
        key = tuple(self.part(part) for part in table.key)
        by_priority = table.match in ("ternary", "range")
        priority = self.draw.randrange(1 << 30) if by_priority else None
        return self.acting(table, TableEntry(table.name, key, "", (), priority))

    def acting(self, table: Table, entry: TableEntry) -> TableEntry:
        """The entry with a random action."""
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
                prefix = self.draw.choice((0, 1, 60, 97, 112, 126, part.bits))
                return Lpm(value & (ones ^ ones >> prefix), prefix)
            case "ternary":
                mask = self.draw.choice((0, 0xF, ones)) & ones
                return Ternary(value & mask, mask)
            case "range":
                return Range(value, value + self.draw.randrange(300))
        return value

    def installed(self) -> SwitchEntries:
        """Everything that the switch now has."""
        entries = tuple(entry for held in self.entries.values() for entry in held.values())
        groups, defaults = tuple(self.multicast.values()), tuple(self.defaults.values())
        return SwitchEntries("s", entries, groups, defaults=defaults)
