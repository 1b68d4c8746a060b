"""One table of a running switch: which entries it has, and what the control plane may do with them."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from switch.control.entry_check import action_call, default_call
from switch.control.match_rules import Identity, by_priority, identity_of
from switch.entries import DefaultAction, TableEntry
from switch.fast.layout.table_layout import TableLayout
from switch.fast.tables.default_action import SetDefault
from switch.fast.tables.rows import Row, Store
from switch.program.actions import ActionCall
from switch.program.pipelines import ConstEntry, Table
from switch.program.program import Program
from topo.errors import InputError


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


class RunningTable:
    """A table of `program`; `store` has its entries for packets, `held` the same by what identifies them."""

    def __init__(
        self, program: Program, table: Table, layout: TableLayout, store: Store | None, default: SetDefault | None
    ) -> None:
        self.program, self.table, self.layout = program, table, layout
        self.store, self.default = store, default
        self.held: dict[Identity, Row] = {}
        self.numbers = Numbers()

    def add_const_entries(self) -> None:
        """Add the entries that the program gives."""
        self.add([const_entry(self.table, entry) for entry in self.table.entries or ()])

    def check_new(self, entries: Sequence[TableEntry]) -> None:
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

    def check_there(self, entries: Sequence[TableEntry]) -> None:
        """Raise `InputError` unless the entries are there and can be changed."""
        self.check_not_const()
        for entry in entries:
            if self.identity(entry) not in self.held:
                name = self.table.name
                raise InputError(f"table '{name}' has no entry for the key {entry.key}: install it first")

    def check_not_const(self) -> None:
        """Raise `InputError` if the program gives the table's entries."""
        if self.table.entries is not None:
            name = self.table.name
            raise InputError(f"the entries of table '{name}' are const in the program: it takes no others")

    def add(self, entries: Sequence[TableEntry]) -> None:
        """Add entries that are new, all at once."""
        rows = {self.identity(entry): self.row(entry, self.numbers.take()) for entry in entries}
        self.writable.add(list(rows.values()))
        self.held |= rows

    def change(self, entries: Sequence[TableEntry]) -> None:
        """Give entries that are there other actions and parameters."""
        rows = {}
        for entry in entries:
            identity = self.identity(entry)
            rows[identity] = self.row(entry, self.held[identity].number)
        self.writable.change(list(rows.values()))
        self.held |= rows

    def remove(self, entries: Sequence[TableEntry]) -> None:
        """Remove entries that are there."""
        rows = [self.held.pop(self.identity(entry)) for entry in entries]
        self.writable.remove(rows)
        for row in rows:
            self.numbers.give_back(row.number)

    def check_default(self, call: ActionCall) -> SetDefault:
        """Where a default action is set; `InputError` if the program does not allow this one."""
        own, name = self.table.default, self.table.name
        if self.default is None or self.table.default_is_const:
            raise InputError(f"the default action of table '{name}' is const in the program")
        if self.table.default_action_is_const and own is not None and own.action != call.action:
            raise InputError(f"the default action of table '{name}' is const in the program: '{own.action.name}'")
        return self.default

    def set_default(self, default: DefaultAction) -> None:
        """Let a miss run another action; `InputError` if the program does not allow it."""
        call = default_call(self.program, default)
        self.check_default(call).set(self.layout.pack_entry(call.action, call.values))

    def reset_default(self) -> None:
        """Let a miss run what the program says."""
        if self.default is not None:
            self.default.reset()

    def reset(self) -> None:
        """Have the program's own entries and default action only."""
        if self.store is not None and self.table.entries is None:
            self.store.remove(list(self.held.values()))
            self.held, self.numbers = {}, Numbers()
        self.reset_default()

    @property
    def writable(self) -> Store:
        """Where the entries are."""
        assert self.store is not None, f"table '{self.table.name}' has no key"
        return self.store

    def identity(self, entry: TableEntry) -> Identity:
        """What no other entry of the table has."""
        return identity_of(self.table, entry.key, entry.priority)

    def row(self, entry: TableEntry, number: int) -> Row:
        """The entry as packets find it."""
        call = action_call(self.program, entry)
        return Row(entry.key, entry.priority, number, self.layout.pack_entry(call.action, call.values, number))


def const_entry(table: Table, entry: ConstEntry) -> TableEntry:
    """An entry that the program gives, as one that is installed."""
    priority = entry.priority if by_priority(table) else None
    return TableEntry(table.name, entry.key, entry.call.action.name, entry.call.values, priority)
