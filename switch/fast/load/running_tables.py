"""The tables of a running switch: their entries, and changes by the control plane while packets pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import frexp, ldexp

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from inakit.switch.control.data_plane import Rates
from inakit.switch.control.entry_check import by_priority, call, masked_key
from inakit.switch.entries import DefaultAction, Entry, ProfileDefault, TableEntry, actions_of
from inakit.switch.fast.layout.layout import (
    CHOSEN,
    DEFAULTS,
    PARAMETERS,
    VALUE_BYTES,
    ProgramLayout,
    ValueSetLayout,
    crc_array,
)
from inakit.switch.fast.layout.table_layout import (
    BUCKET,
    COPIES,
    METER_RATES,
    TableLayout,
    counts_array,
    default_array,
    matched_array,
    members_array,
    meter_array,
)
from inakit.switch.fast.load.table_stores import HashTable, Memory, Row, Store, Tables, byte_rows
from inakit.switch.program.program import CRC_CUSTOM, ActionCall, ConstEntry, CrcParameters, Table
from inakit.switch.running_switch import HeldEntries
from inakit.topo.errors import InputError, UnsupportedError


def write_crc(layout: ProgramLayout, memory: Memory, calculation: str, parameters: CrcParameters) -> None:
    """Set the parameters of a calculation: packets read one copy of them while the other is written."""
    bits = CRC_CUSTOM[layout.program.calculations[calculation].algorithm]
    chosen = layout.view(memory, CHOSEN)[calculation]
    other = int(chosen[0]) % COPIES + 1
    place = layout.view(memory, crc_array(calculation))[other % COPIES : other % COPIES + 1]
    place.view(np.uint8)[:] = np.frombuffer(packed_crc(parameters, bits), np.uint8)
    chosen[0] = other


def packed_crc(parameters: CrcParameters, bits: int) -> bytes:
    """The parameters of a CRC of `bits` bits, in the format of `crc_custom` in hashes.h."""
    flips = (not parameters.reflect_data, not parameters.reflect_result)
    return PARAMETERS.pack(
        (reversed_bits(parameters.polynomial, bits), reversed_bits(parameters.first, bits), parameters.last, *flips)
    )


def reversed_bits(value: int, bits: int) -> int:
    """`value` with its lowest `bits` bits in the opposite order."""
    return int(f"{value:0{bits}b}"[::-1], 2)


class SetDefault:
    """The default action of `table`, packed like an entry, in two copies.

    Packets read copy `which` modulo 2; 0 means the program's default.
    """

    def __init__(self, layout: ProgramLayout, table: str, memory: Memory) -> None:
        copies = layout.view(memory, default_array(table))
        self.copies = copies.view(np.uint8).reshape(len(copies), -1)
        self.which = layout.view(memory, DEFAULTS)[table]

    def set(self, data: bytes) -> None:
        """Make a miss run the action in these bytes."""
        other = self.which[0] % len(self.copies) + 1
        self.copies[other % len(self.copies)] = np.frombuffer(data, np.uint8)
        self.which[0] = other

    def reset(self) -> None:
        """Make a miss run the program's default."""
        self.which[0] = 0


Group = tuple[bytes, ...]
"""The bytes of a group's members, in the order of the selector."""


class Members:
    """Places of groups. Groups with the same members share their places; `users` counts the entries that name each."""

    def __init__(self, layout: ProgramLayout, table: str, memory: Memory) -> None:
        places = layout.view(memory, members_array(table))
        self.table = table
        self.raw = places.view(np.uint8).reshape(len(places), -1)
        self.taken = np.zeros(len(places), np.bool_)
        self.first: dict[Group, int] = {}
        self.users: dict[Group, int] = {}

    def take(self, group: Group) -> int:
        """The first place of a group, written if no entry names the group yet; `UnsupportedError` without room."""
        if group not in self.first:
            first = self.room(len(group))
            self.raw[first : first + len(group)] = byte_rows(group)
            self.taken[first : first + len(group)] = True
            self.first[group], self.users[group] = first, 0
        self.users[group] += 1
        return self.first[group]

    def give_back(self, first: int, count: int) -> None:
        """Count one entry less for the group at these places."""
        group = self.group(first, count)
        self.users[group] -= 1
        if not self.users[group]:
            del self.users[group], self.first[group]
            self.taken[first : first + count] = False

    def group(self, first: int, count: int) -> Group:
        """The members at these places."""
        return tuple(each.tobytes() for each in self.raw[first : first + count])

    def room(self, count: int) -> int:
        """The first of `count` free places in a row."""
        if count <= len(self.taken):
            free = ~sliding_window_view(self.taken, count).any(axis=1)
            if free.any():
                return int(free.argmax())
        raise UnsupportedError(
            f"the groups of table '{self.table}' have no room for {count} more members: target 'fast' keeps "
            f"{len(self.taken)} for this table"
        )


DOUBLE_BITS = 53


class MeterCells:
    """The cells of one meter. Changes go to the copy of the buckets that packets do not use; then they use it."""

    def __init__(self, layout: ProgramLayout, meter: str, memory: Memory) -> None:
        cells = layout.view(memory, meter_array(meter))
        self.which = cells["which"]
        raw = cells.view(np.uint8).reshape(len(cells), -1)[:, self.which.itemsize :]
        self.buckets = raw.reshape(len(cells), COPIES, METER_RATES * BUCKET.size)

    def set_rates(self, index: int | None, rates: Rates) -> None:
        """Set the rates of one cell, or all (`index` None), and fill its buckets; without rates packets are green."""
        if not rates:
            self.which[slice(None) if index is None else index] = 0
            return
        buckets = b"".join(packed_bucket(rate, burst) for rate, burst in reversed(rates))
        for cell in range(len(self.which)) if index is None else (index,):
            other = int(self.which[cell]) % COPIES + 1
            self.buckets[cell, other % COPIES] = np.frombuffer(buckets, np.uint8)
            self.which[cell] = other

    def rates(self, index: int) -> Rates:
        which = int(self.which[index])
        if not which:
            return ()
        buckets = self.buckets[index, which % COPIES].tobytes()
        found = (BUCKET.unpack(buckets[at : at + BUCKET.size]) for at in range(0, len(buckets), BUCKET.size))
        return tuple((ldexp(mantissa, -shift), burst) for mantissa, shift, burst, _, _ in found)[::-1]


def packed_bucket(rate: float, burst: int) -> bytes:
    """A full bucket, with the rate as a whole number over a power of two: the exact value of a double."""
    fraction, exponent = frexp(rate)
    return BUCKET.pack((int(ldexp(fraction, DOUBLE_BITS)), DOUBLE_BITS - exponent, burst, burst, 0))


Clock = Callable[[], int]
"""The time that a switch's packets get, in nanoseconds since an arbitrary moment."""


class RunningTable(HeldEntries[Row]):
    """A table with a layout; `store` holds its entries for packets.

    `counts` and `matched` are by the numbers of entries, if the table has them.
    """

    def __init__(
        self, layout: ProgramLayout, table: TableLayout, store: Store | None, memory: Memory, clock: Clock
    ) -> None:
        super().__init__(table.table)
        self.layout, self.store, self.clock = table, store, clock
        name = self.table.name
        counts, matched = counts_array(name), matched_array(name)
        self.default = SetDefault(layout, name, memory) if name in layout.changeable else None
        self.members = Members(layout, name, memory) if members_array(name) in layout.arrays else None
        self.counts = layout.view(memory, counts) if counts in layout.arrays else None
        self.matched = layout.view(memory, matched) if matched in layout.arrays else None
        self.meter = MeterCells(layout, self.table.meter, memory) if self.table.meter is not None else None
        self.default_data = b""

    def check_there(self, entries: Sequence[Entry]) -> None:
        """Raise `InputError` unless the entries exist and can be changed."""
        self.check_not_const()
        for entry in entries:
            self.at(entry)

    def add(self, entries: Sequence[Entry]) -> None:
        """Add new entries, all at once."""
        rows = {self.identity(entry): self.row(entry, self.take_number()) for entry in entries}
        numbers = [row.number for row in rows.values()]
        if self.counts is not None:
            self.counts[numbers] = 0
        if self.matched is not None:
            self.matched["ns"][numbers] = self.clock()
        self.forget_rates(numbers)
        self.writable.add(list(rows.values()))
        self.held |= rows

    def change(self, entries: Sequence[Entry]) -> None:
        """Replace actions and parameters of existing entries."""
        before = {self.identity(entry): self.at(entry) for entry in entries}
        rows = {self.identity(entry): self.row(entry, self.at(entry).number) for entry in entries}
        self.writable.change(list(rows.values()))
        self.held |= rows
        self.forget(row.data for row in before.values())

    def remove(self, entries: Sequence[Entry]) -> None:
        rows = [self.held.pop(self.identity(entry)) for entry in entries]
        self.writable.remove(rows)
        for row in rows:
            self.give_back(row.number)
        self.forget(row.data for row in rows)

    def check_default(self, calls: Sequence[ActionCall]) -> SetDefault:
        """Return where defaults are set; `InputError` if the program does not allow one of these actions."""
        own = self.table.default
        if self.default is None:
            raise InputError(f"the default action of table '{self.table.name}' is const in the program")
        if self.table.default_action_is_const and own is not None and any(each.action != own.action for each in calls):
            what = f"the default action of table '{self.table.name}' is const in the program"
            raise InputError(f"{what}: '{own.action.name}'")
        return self.default

    def set_default(self, default: DefaultAction | ProfileDefault) -> None:
        """Set the action on a miss; `InputError` if the program does not allow it."""
        calls = [call(self.table, action, params) for action, params in actions_of(default)]
        default_copies, before = self.check_default(calls), self.default_data
        data = self.packed(calls, 0)
        default_copies.set(data)
        self.default_data = data
        self.forget([before])

    def reset_default(self) -> None:
        """Restore the program's default on a miss."""
        if self.default is not None:
            self.default.reset()
            self.forget([self.default_data])
            self.default_data = b""

    def reset(self) -> None:
        """Restore the program's own entries, default action and zero counts."""
        if self.store is not None and self.table.entries is None:
            rows = list(self.held.values())
            self.store.remove(rows)
            self.forget_all()
            self.forget(row.data for row in rows)
        if self.counts is not None:
            self.counts[:] = 0
        self.forget_rates(None)
        self.reset_default()

    def idle_s(self, entry: Entry) -> float:
        """Seconds since an entry last matched a packet or was added; `InputError` for a table without idle timeout."""
        if self.matched is None:
            raise InputError(f"table '{self.table.name}' has no idle timeout")
        return (self.clock() - int(self.matched["ns"][self.at(entry).number])) / 1e9

    def counts_of(self, entry: Entry) -> NDArray[np.void]:
        """Packets and bytes of an entry, for reading or writing; `InputError` for a table without direct counter."""
        if self.counts is None:
            raise InputError(f"table '{self.table.name}' has no direct counter")
        number = self.at(entry).number
        return self.counts[number : number + 1]

    def rates(self) -> MeterCells:
        """The cells of the entries' meter, by number; `InputError` for a table without direct meter."""
        if self.meter is None:
            raise InputError(f"table '{self.table.name}' has no direct meter")
        return self.meter

    def forget_rates(self, numbers: Iterable[int] | None) -> None:
        """Remove the meter rates of the entries with these numbers, or of all (None)."""
        for number in () if self.meter is None else (None,) if numbers is None else numbers:
            self.rates().set_rates(number, ())

    def forget(self, data: Iterable[bytes]) -> None:
        """Release the places of groups that entries with these bytes named."""
        for each in data:
            group = self.layout.group_in(each) if each else None
            if group is not None and group[1] and self.members is not None:
                self.members.give_back(*group)

    @property
    def writable(self) -> Store:
        """The store of the table's entries; the table must have a key."""
        assert self.store is not None, f"table '{self.table.name}' has no key"
        return self.store

    def row(self, entry: Entry, number: int) -> Row:
        """The entry in the form that packets find."""
        calls = [call(self.table, action, params) for action, params in actions_of(entry)]
        return Row(masked_key(self.table, entry.key), entry.priority, number, self.packed(calls, number))

    def packed(self, calls: Sequence[ActionCall], number: int) -> bytes:
        """The bytes of entry `number`, which runs one of these actions; several actions take places for a group."""
        if len(calls) == 1:
            return self.layout.pack_entry(calls[0].action, calls[0].values, number)
        if self.members is None:
            raise InputError(f"table '{self.table.name}' has no selector: its entries have one action")
        group = tuple(self.layout.pack_entry(each.action, each.values) for each in calls)
        return self.layout.pack_group(self.members.take(group) if group else 0, len(group), number)


def const_entry(table: Table, entry: ConstEntry) -> TableEntry:
    """An entry of the program in the form of an installed one."""
    priority = entry.priority if by_priority(table) else None
    return TableEntry(table.name, entry.key, entry.call.action.name, entry.call.values, priority)


PRESENT = (1).to_bytes(VALUE_BYTES, "little")


class ValueSetMembers:
    """The values of one set."""

    def __init__(self, layout: ProgramLayout, value_set: ValueSetLayout, memory: Memory, tables: Tables) -> None:
        self.layout = value_set
        self.hash_table = HashTable(layout, value_set.symbol, memory, tables)
        self.values: set[int] = set()

    def add(self, value: int) -> None:
        """Add a value unless it is known; `UnsupportedError` if the set is full."""
        if value in self.values:
            return
        if len(self.values) >= self.layout.most:
            name, most = self.layout.value_set.name, self.layout.most
            raise UnsupportedError(f"value set '{name}' has {most} values: target 'fast' keeps no more")
        self.hash_table.add([(self.layout.key.pack((value,)), PRESENT)])
        self.values.add(value)

    def remove(self, value: int) -> None:
        """Remove a value; do nothing if it is unknown."""
        if value in self.values:
            self.hash_table.remove([self.layout.key.pack((value,))])
            self.values.remove(value)

    def clear(self) -> None:
        self.hash_table.remove([self.layout.key.pack((value,)) for value in self.values])
        self.values.clear()
