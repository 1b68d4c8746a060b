"""One table of a running switch: which entries it has, and what the control plane may do with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from inakit.switch.control.entry_check import call
from inakit.switch.control.entry_check import Identity, by_priority, identity_of, masked_key
from inakit.switch.entries import DefaultAction, Entry, ProfileDefault, TableEntry
from inakit.switch.fast.layout.entry_arrays import counts_array, matched_array, members_array
from inakit.switch.fast.layout.layout import ProgramLayout
from inakit.switch.fast.layout.table_layout import TableLayout
from inakit.switch.fast.tables.default_action import SetDefault
from inakit.switch.fast.tables.members import Members
from inakit.switch.fast.tables.meters import MeterCells
from inakit.switch.fast.tables.rows import Memory, Row, Store
from inakit.switch.program.program import ActionCall
from inakit.switch.program.program import ConstEntry, Table
from inakit.topo.errors import InputError


class Numbers:
    """The numbers of entries: each new entry gets the lowest that is free, as BMv2 gives handles."""

    def __init__(self) -> None:
        self.freed: list[int] = []
        self.next = 0

    def take(self) -> int:
        """The lowest free number."""
        if self.freed:
            return heappop(self.freed)
        self.next += 1
        return self.next - 1

    def give_back(self, number: int) -> None:
        """Let a number be free again."""
        heappush(self.freed, number)


Clock = Callable[[], int]
"""The time by which a switch's packets are told theirs, in nanoseconds since any moment."""


class RunningTable:
    """A table that has a layout; `store` has its entries for packets, `held` the same by what identifies them.

    `counts` and `matched` have what is kept for each entry, by its number, where the table has it.
    """

    def __init__(
        self, layout: ProgramLayout, table: TableLayout, store: Store | None, memory: Memory, clock: Clock
    ) -> None:
        self.layout, self.table, self.store, self.clock = table, table.table, store, clock
        name = self.table.name
        arrays = {each: layout.view(memory, each) for each in layout.arrays}
        self.default = SetDefault(layout, name, memory) if name in layout.changeable else None
        self.members = Members(layout, name, memory) if members_array(name) in arrays else None
        self.counts, self.matched = arrays.get(counts_array(name)), arrays.get(matched_array(name))
        self.meter = MeterCells(layout, self.table.meter, memory) if self.table.meter is not None else None
        self.default_data = b""
        self.held: dict[Identity, Row] = {}
        self.numbers = Numbers()

    def add_const_entries(self) -> None:
        """Add the entries that the program gives."""
        self.add([const_entry(self.table, entry) for entry in self.table.entries or ()])

    def check_new(self, entries: Sequence[Entry]) -> None:
        """Raise `InputError` unless the keys are new and find room, and the table takes entries."""
        name, seen = self.table.name, set[Identity]()
        if not self.table.key:
            raise InputError(f"table '{name}' has no key: it takes no entries")
        self.check_not_const()
        for entry in entries:
            identity = self.identity(entry)
            if identity in self.held or identity in seen:
                raise InputError(f"table '{name}' already has an entry for the key {entry.key}")
            seen.add(identity)
        if len(seen) + len(self.held) > self.table.size:
            raise InputError(
                f"table '{name}' is full: the program gives it {self.table.size} entries; raise its size there"
            )

    def check_there(self, entries: Sequence[Entry]) -> None:
        """Raise `InputError` unless the entries are there and can be changed."""
        self.check_not_const()
        for entry in entries:
            self.at(entry)

    def check_not_const(self) -> None:
        """Raise `InputError` if the program gives the table's entries."""
        if self.table.entries is not None:
            name = self.table.name
            raise InputError(f"the entries of table '{name}' are const in the program: it takes no others")

    def add(self, entries: Sequence[Entry]) -> None:
        """Add entries that are new, all at once."""
        rows = {self.identity(entry): self.row(entry, self.numbers.take()) for entry in entries}
        numbers = [row.number for row in rows.values()]
        if self.counts is not None:
            self.counts[numbers] = 0
        if self.matched is not None:
            self.matched["ns"][numbers] = self.clock()
        self.forget_rates(numbers)
        self.writable.add(list(rows.values()))
        self.held |= rows

    def change(self, entries: Sequence[Entry]) -> None:
        """Give entries that are there other actions and parameters."""
        before = {self.identity(entry): self.at(entry) for entry in entries}
        rows = {self.identity(entry): self.row(entry, self.at(entry).number) for entry in entries}
        self.writable.change(list(rows.values()))
        self.held |= rows
        self.forget(row.data for row in before.values())

    def remove(self, entries: Sequence[Entry]) -> None:
        """Remove entries that are there."""
        rows = [self.held.pop(self.identity(entry)) for entry in entries]
        self.writable.remove(rows)
        for row in rows:
            self.numbers.give_back(row.number)
        self.forget(row.data for row in rows)

    def check_default(self, calls: Sequence[ActionCall]) -> SetDefault:
        """Where a default action is set; `InputError` if the program does not allow one of these as such."""
        own = self.table.default
        if self.default is None:
            raise InputError(f"the default action of table '{self.table.name}' is const in the program")
        if self.table.default_action_is_const and own is not None and any(each.action != own.action for each in calls):
            what = f"the default action of table '{self.table.name}' is const in the program"
            raise InputError(f"{what}: '{own.action.name}'")
        return self.default

    def set_default(self, default: DefaultAction | ProfileDefault) -> None:
        """Let a miss run another action; `InputError` if the program does not allow it."""
        calls = [call(self.table, action, params) for action, params in actions_of(default)]
        default_copies, before = self.check_default(calls), self.default_data
        data = self.packed(calls, 0)
        default_copies.set(data)
        self.default_data = data
        self.forget([before])

    def reset_default(self) -> None:
        """Let a miss run what the program says."""
        if self.default is not None:
            self.default.reset()
            self.forget([self.default_data])
            self.default_data = b""

    def reset(self) -> None:
        """Have the program's own entries and default action only, and zeros."""
        if self.store is not None and self.table.entries is None:
            rows = list(self.held.values())
            self.store.remove(rows)
            self.held, self.numbers = {}, Numbers()
            self.forget(row.data for row in rows)
        if self.counts is not None:
            self.counts[:] = 0
        self.forget_rates(None)
        self.reset_default()

    def idle_s(self, entry: Entry) -> float:
        """Seconds since an entry last matched a packet, or was added; `InputError` where nobody notes it."""
        if self.matched is None:
            raise InputError(f"table '{self.table.name}' has no idle timeout")
        return (self.clock() - int(self.matched["ns"][self.at(entry).number])) / 1e9

    def counts_of(self, entry: Entry) -> NDArray[np.void]:
        """Packets and bytes of an entry, to be read or written; `InputError` where nobody counts them."""
        if self.counts is None:
            raise InputError(f"table '{self.table.name}' has no direct counter")
        number = self.at(entry).number
        return self.counts[number : number + 1]

    def at(self, entry: Entry) -> Row:
        """The entry that is there with this key and priority; `InputError` if there is none."""
        found = self.held.get(self.identity(entry))
        if found is None:
            raise InputError(f"table '{self.table.name}' has no entry for the key {entry.key}: install it first")
        return found

    def rates(self) -> MeterCells:
        """The cells of the entries' meter, by their numbers; `InputError` where they have none."""
        if self.meter is None:
            raise InputError(f"table '{self.table.name}' has no direct meter")
        return self.meter

    def forget_rates(self, numbers: Iterable[int] | None) -> None:
        """Let the meters of the entries with these numbers, or of all (None), have no rates."""
        for number in () if self.meter is None else (None,) if numbers is None else numbers:
            self.rates().set_rates(number, ())

    def forget(self, data: Iterable[bytes]) -> None:
        """Give back the places of groups that entries with these bytes named."""
        for each in data:
            group = self.layout.group_in(each) if each else None
            if group is not None and group[1] and self.members is not None:
                self.members.give_back(*group)

    @property
    def writable(self) -> Store:
        """Where the entries are."""
        assert self.store is not None, f"table '{self.table.name}' has no key"
        return self.store

    def identity(self, entry: Entry) -> Identity:
        """What no other entry of the table has."""
        return identity_of(self.table, entry.key, entry.priority)

    def row(self, entry: Entry, number: int) -> Row:
        """The entry as packets find it."""
        calls = [call(self.table, action, params) for action, params in actions_of(entry)]
        return Row(masked_key(self.table, entry.key), entry.priority, number, self.packed(calls, number))

    def packed(self, calls: Sequence[ActionCall], number: int) -> bytes:
        """Entry `number` in bytes, which runs one of these actions: places are taken for them if there are several."""
        if len(calls) == 1:
            return self.layout.pack_entry(calls[0].action, calls[0].values, number)
        if self.members is None:
            raise InputError(f"table '{self.table.name}' has no selector: it takes one action at a time")
        group = tuple(self.layout.pack_entry(each.action, each.values) for each in calls)
        return self.layout.pack_group(self.members.take(group) if group else 0, len(group), number)


def actions_of(entry: Entry | DefaultAction | ProfileDefault) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The actions, with parameters, of which an entry or a default runs one."""
    if isinstance(entry, TableEntry | DefaultAction):
        return ((entry.action, entry.params),)
    return entry.actions


def const_entry(table: Table, entry: ConstEntry) -> TableEntry:
    """An entry that the program gives, as one that is installed."""
    priority = entry.priority if by_priority(table) else None
    return TableEntry(table.name, entry.key, entry.call.action.name, entry.call.values, priority)
