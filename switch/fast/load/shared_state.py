"""The state of a switch whose generated C runs here or in the kernel, read and changed while packets pass.

Memory is one array of bytes that Python and the running program share; `Tables` gives access to hash tables. A writer's
code always runs between two packets, so a write in one step is atomic for packets.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inakit.switch.control.data_plane import Digest, Rates
from inakit.switch.control.entry_check import action_call, by_priority, check_entries, default_call, rank
from inakit.switch.entries import (
    DefaultAction,
    Entry,
    MeterRates,
    MirrorSession,
    MulticastGroup,
    ProfileDefault,
    SwitchEntries,
    TableEntry,
    ValueSetMember,
    group_of_nodes,
    grouped,
)
from inakit.switch.fast.layout.layout import (
    COUNTS,
    FAILED,
    GROUP_BYTES,
    GROUP_KEY_BYTES,
    GROUPS,
    LOST,
    MAX_REPLICAS,
    MIRRORS,
    RING,
    STARTED,
    ProgramLayout,
    ring_name,
)
from inakit.switch.fast.layout.table_layout import TableLayout, counts_array, members_array
from inakit.switch.fast.load.running_tables import (
    Clock,
    MeterCells,
    RunningTable,
    ValueSetMembers,
    const_entry,
    write_crc,
)
from inakit.switch.fast.load.table_stores import HashTable, Memory, Row, Tables, store_of
from inakit.switch.program.program import CrcParameters
from inakit.switch.running_switch import StatefulSwitch
from inakit.topo.errors import InputError, RunError, UnsupportedError


class DigestReader:
    """Reads the rings of digests. The switch may report more meanwhile; overwritten digests are lost."""

    def __init__(self, layout: ProgramLayout, memory: NDArray[np.uint8]) -> None:
        self.layout, self.memory = layout, memory
        self.done = dict.fromkeys(layout.program.digests, 0)

    def read(self) -> list[Digest]:
        """The digests since the last call; none if the program reports none."""
        if not self.layout.digesting:
            return []
        found = [each for number in self.done for each in self.read_ring(number)]
        return [digest for _, digest in sorted(found, key=lambda each: each[0])]

    def read_ring(self, number: int) -> list[tuple[int, Digest]]:
        """The new digests of one list, each with its number among all.

        The place after the last one may be written during the read, so one place less than the ring has counts.
        """
        count = self.count(number)
        first = max(self.done[number], count - RING + 1)
        view, record = self.layout.view(self.memory, ring_name(number)), self.layout.arrays[ring_name(number)].record
        places = [(at, record.unpack(view[at % RING].tobytes())) for at in range(first, count)]
        still = self.count(number) - RING
        kept = [each for at, each in places if at > still]
        self.done[number] = count
        name = self.layout.program.digests[number].name
        return [(order, (name, tuple(values))) for order, *values in kept]

    def count(self, number: int) -> int:
        """The number of digests of a list so far."""
        return int(self.layout.view(self.memory, COUNTS)[str(number)][0])


class StateReader:
    """Reads memory and hash tables as target-neutral entries, registers and counters."""

    def __init__(self, layout: ProgramLayout, memory: Memory, tables: Tables) -> None:
        self.layout = layout
        self.program = layout.program
        self.memory = memory
        self.readable = tables
        self.stores = {name: store_of(layout, table, memory, tables) for name, table in layout.tables.items()}

    def read_table(self, name: str) -> list[TableEntry]:
        """The entries of the table `name`, ordered by key; if keys overlap, in the order in which they win."""
        if not self.program.table(name).key:
            return []
        return [self.entry(name, row) for row in self.ordered_rows(name)]

    def ordered_rows(self, name: str) -> list[Row]:
        """The entries of a table with a key, in the order of `read_table`."""
        table = self.layout.tables[name]
        by: Callable[[Row], tuple[int, ...]] = order if table.rule or table.prefixed else exact_order
        return sorted(self.stores[name].rows(), key=by)

    def entry(self, table: str, row: Row) -> TableEntry:
        layout = self.layout.tables[table]
        found = layout.unpack_entry(row.key, self.first_member(layout, row.data))
        return replace(found, priority=row.priority if by_priority(layout.table) else None)

    def first_member(self, layout: TableLayout, data: bytes) -> bytes:
        """The bytes of the first member of an entry's group; those of the entry if it has no group."""
        group = layout.group_in(data)
        if group is None or not group[1]:
            return data
        member: bytes = self.layout.view(self.memory, members_array(layout.table.name))[group[0]].tobytes()
        return member

    def read_groups(self) -> list[MulticastGroup]:
        found = (unpack_group(key, data) for key, data in self.readable.items(GROUPS))
        return sorted(found, key=lambda group: group.group)

    def read_lost(self) -> int:
        """The number of packets whose headers the kernel could not make."""
        return int(self.layout.view(self.memory, LOST)["packets"][0]) if self.layout.losing else 0

    def read_failed(self) -> int:
        """The number of failed assertions of the program."""
        return int(self.layout.view(self.memory, FAILED)["claims"][0]) if self.layout.claims else 0

    def column(self, register: str) -> NDArray[np.uint64]:
        """The elements of a register, as a view of the shared memory in the register's own integer type."""
        array = self.program.register(register)
        view: NDArray[np.uint64] = self.layout.view(self.memory, f"rows_{array.size}")[register]
        return view

    def read_register(self, name: str) -> NDArray[np.uint64]:
        """A copy of all elements of the register `name`."""
        return self.column(name).astype(np.uint64)

    def read_counter(self, name: str, count: int | None = None) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Copies of the packets and bytes of the first `count` elements of the counter `name`, by default of all.

        A direct counter gives every entry, in the order of `read_table`.
        """
        view = self.counter_cells(name)
        return view["packets"][:count].copy(), view["bytes"][:count].copy()

    def counter_cells(self, name: str) -> NDArray[np.void]:
        """The cells of a counter; a direct counter has one for each entry."""
        direct = self.program.direct_counters.get(name)
        if direct is None:
            return self.layout.view(self.memory, self.program.counter(name).name)
        numbers = [row.number for row in self.ordered_rows(direct.table)]
        cells: NDArray[np.void] = self.layout.view(self.memory, counts_array(direct.table))[numbers]
        return cells


def exact_order(row: Row) -> tuple[int, ...]:
    """The sort key of entries whose keys are numbers."""
    return tuple(part for part in row.key if isinstance(part, int))


def order(row: Row) -> tuple[int, int]:
    """The sort key of entries whose keys overlap: winners come first."""
    return rank(row.key, row.priority), row.number


def unpack_group(key: bytes, data: bytes) -> MulticastGroup:
    """The group in the bytes of `pack_group`."""
    number, count = int.from_bytes(key, "little"), int.from_bytes(data[:4], "little")
    replicas = np.frombuffer(data, np.uint16, 2 * count, offset=4).reshape(-1, 2).tolist()
    pairs = tuple((replica, port) for port, replica in replicas)
    group = group_of_nodes(number, pairs)
    return group if group.replicas == pairs else MulticastGroup(number, (), pairs, ordered=True)


BetweenPackets = Callable[[], AbstractContextManager[object]]
"""A context in which no packet is in the switch whenever the caller's code runs."""


class SwitchState(StateReader):
    """The state of a switch that this process runs; it can be changed as `DataPlane` says."""

    def __init__(
        self,
        layout: ProgramLayout,
        memory: Memory,
        tables: Tables,
        between_packets: BetweenPackets = nullcontext,
        clock: Clock = time.monotonic_ns,
    ) -> None:
        super().__init__(layout, memory, tables)
        self.between_packets = between_packets
        self.clock, self.started_ns = clock, clock()
        self.groups = HashTable(layout, GROUPS, memory, tables)
        self.digests = DigestReader(layout, memory)
        self.group_numbers: set[int] = set()
        self.meters = {name: MeterCells(layout, name, memory) for name in layout.meters}
        self.value_sets = {
            name: ValueSetMembers(layout, each, memory, tables) for name, each in layout.value_sets.items()
        }
        if STARTED in layout.arrays:
            layout.view(memory, STARTED)["ns"][0] = self.started_ns
        known = layout.changeable | layout.tables
        self.running = {name: self.running_table(name) for name in known}
        for running in self.running.values():
            if running.table.entries:
                running.add([const_entry(running.table, entry) for entry in running.table.entries])

    def running_table(self, name: str) -> RunningTable:
        """The table of this name, without entries."""
        known = self.layout.tables.get(name) or self.layout.changeable[name]
        return RunningTable(self.layout, known, self.stores.get(name), self.memory, self.clock)

    def of(self, table: str) -> RunningTable:
        """The table of this name; `InputError` if it cannot be changed at all."""
        if table not in self.running:
            self.program.table(table)
            raise InputError(f"table '{table}' has no key: it takes no entries, and its default action is const")
        return self.running[table]

    def install(self, entries: SwitchEntries) -> None:
        """Add entries, groups, defaults and presets; if one is wrong, none is added."""
        check_entries(self.program, entries)
        for group in entries.groups:
            check_size(group)
        for default in entries.defaults:
            self.of(default.table).check_default([default_call(self.program, default)])
        by_table = grouped([*entries.tables, *entries.profiled])
        for name, own in by_table.items():
            self.of(name).check_new(own)
        with self.between_packets():
            for name, own in by_table.items():
                self.of(name).add(own)
            for default in entries.defaults:
                self.of(default.table).set_default(default)
            for group in entries.groups:
                self.write_group(group)
            for session in entries.mirrors:
                self.put_session(session)
            for member in entries.value_sets:
                self.value_sets[member.value_set].add(member.value)
            for rates in entries.meters:
                self.meters[rates.meter].set_rates(rates.index, rates.rates)
            for preset in entries.registers:
                self.column(preset.register)[preset.index] = preset.value

    def add(self, entries: Sequence[Entry]) -> None:
        """Add new entries; if one is wrong, none is added."""
        by_table = grouped(entries)
        for name, own in by_table.items():
            self.of(name).check_new(own)
        with self.between_packets():
            for name, own in by_table.items():
                self.of(name).add(own)

    def change(self, entries: Sequence[Entry]) -> None:
        """Replace actions and parameters of existing entries; if one is wrong, none is changed."""
        by_table = grouped(entries)
        for name, own in by_table.items():
            self.of(name).check_there(own)
            for entry in own:
                if isinstance(entry, TableEntry):
                    action_call(self.program, entry)
        with self.between_packets():
            for name, own in by_table.items():
                self.of(name).change(own)

    def remove(self, entries: Sequence[Entry]) -> None:
        """Remove existing entries; if one does not exist, none is removed."""
        by_table = grouped(entries)
        for name, own in by_table.items():
            self.of(name).check_there(own)
        with self.between_packets():
            for name, own in by_table.items():
                self.of(name).remove(own)

    def set_default(self, default: DefaultAction | ProfileDefault) -> None:
        with self.between_packets():
            self.of(default.table).set_default(default)

    def reset_default(self, table: str) -> None:
        with self.between_packets():
            self.of(table).reset_default()

    def put_group(self, group: MulticastGroup) -> None:
        check_size(group)
        with self.between_packets():
            self.write_group(group)

    def write_group(self, group: MulticastGroup) -> None:
        """Write a checked group."""
        write = self.groups.put if group.group in self.group_numbers else self.groups.add
        write([pack_group(group)])
        self.group_numbers.add(group.group)

    def remove_group(self, number: int) -> None:
        if number not in self.group_numbers:
            return
        with self.between_packets():
            self.groups.remove([group_key(number)])
        self.group_numbers.remove(number)

    def put_session(self, session: MirrorSession) -> None:
        """Add a mirror session, or replace the one with this number. A program without clones needs none."""
        if session.size_bytes:
            raise UnsupportedError(f"mirror session {session.session}: a compiled program does not cut clones")
        if self.layout.copying:
            group, port = (0 if number is None else number + 1 for number in (session.group, session.port))
            place = self.layout.view(self.memory, MIRRORS)[session.session : session.session + 1]
            place.view(np.uint64)[0] = port << 32 | group  # one atomic write

    def remove_session(self, number: int) -> None:
        """Remove a mirror session; no packet is cloned to it any more."""
        self.put_session(MirrorSession(number))

    def read_digests(self) -> list[Digest]:
        """The digests since the last call, as (name, values)."""
        return self.digests.read()

    def add_value(self, member: ValueSetMember) -> None:
        with self.between_packets():
            self.value_sets[member.value_set].add(member.value)

    def remove_value(self, member: ValueSetMember) -> None:
        with self.between_packets():
            self.value_sets[member.value_set].remove(member.value)

    def entry_counts(self, entry: Entry) -> tuple[int, int]:
        counts = self.of(entry.table).counts_of(entry)[0]
        return int(counts["packets"]), int(counts["bytes"])

    def write_entry_counts(self, entry: Entry, packets: int, octets: int) -> None:
        counts = self.of(entry.table).counts_of(entry)
        with self.between_packets():
            counts["packets"], counts["bytes"] = packets, octets

    def set_rates(self, rates: MeterRates) -> None:
        with self.between_packets():
            self.meters[self.program.meter(rates.meter).name].set_rates(rates.index, rates.rates)

    def read_rates(self, name: str, index: int) -> Rates:
        return self.meters[self.program.meter(name).name].rates(index)

    def set_entry_rates(self, entry: Entry, rates: Rates) -> None:
        running = self.of(entry.table)
        with self.between_packets():
            running.rates().set_rates(running.at(entry).number, rates)

    def entry_rates(self, entry: Entry) -> Rates:
        running = self.of(entry.table)
        return running.rates().rates(running.at(entry).number)

    def idle_s(self, entry: Entry) -> float:
        return self.of(entry.table).idle_s(entry)

    def set_crc(self, calculation: str, parameters: CrcParameters) -> None:
        with self.between_packets():
            write_crc(self.layout, self.memory, calculation, parameters)

    def write_register(self, name: str, index: int | None, value: int) -> None:
        with self.between_packets():
            self.column(name)[slice(None) if index is None else index] = value

    def write_counter(self, name: str, index: int | None, packets: int, octets: int) -> None:
        view, cells = self.layout.view(self.memory, self.program.counter(name).name), slice(None)
        with self.between_packets():
            view["packets"][cells if index is None else index] = packets
            view["bytes"][cells if index is None else index] = octets

    def now_us(self) -> int:
        return (self.clock() - self.started_ns) // 1000

    def wipe(self) -> None:
        with self.between_packets():
            for length in self.layout.rows:
                self.layout.view(self.memory, f"rows_{length}").view(np.uint8)[:] = 0

    def reset(self) -> None:
        with self.between_packets():
            for running in self.running.values():
                running.reset()
            self.groups.remove([group_key(number) for number in self.group_numbers])
            self.group_numbers.clear()
            for value_set in self.value_sets.values():
                value_set.clear()
            for meter in self.meters.values():
                meter.set_rates(None, ())
            for counter in self.program.counters:
                self.layout.view(self.memory, counter).view(np.uint8)[:] = 0
            if self.layout.copying:
                self.layout.view(self.memory, MIRRORS).view(np.uint8)[:] = 0
            self.read_digests()
            self.wipe()


class CompiledSwitch(StatefulSwitch[SwitchState]):
    """A switch that runs compiled code."""

    def check_claims(self) -> None:
        """Raise `RunError` if an assertion of the program failed."""
        if failed := self.state.read_failed():
            what = f"{failed} assertions of '{self.state.program.name}' did not hold"
            raise RunError(f"switch '{self.name}': {what}: BMv2 would end at the first")


def check_size(group: MulticastGroup) -> None:
    """Raise `InputError` for a multicast group with more replicas than the generated C can copy."""
    count = len(group.replicas)
    if count > MAX_REPLICAS:
        raise InputError(f"multicast group {group.group} has {count} ports: target 'fast' takes {MAX_REPLICAS}")


def group_key(number: int) -> bytes:
    """The key of a group in its hash table."""
    return number.to_bytes(GROUP_KEY_BYTES, "little")


def pack_group(group: MulticastGroup) -> tuple[bytes, bytes]:
    """A group's key and entry: its copies in the order in which they leave."""
    numbers = np.zeros((MAX_REPLICAS, 2), np.uint16)
    replicas = [(port, replica) for replica, port in group.replicas]
    numbers[: len(replicas)] = np.array(replicas).reshape(-1, 2)
    data = len(replicas).to_bytes(4, "little") + numbers.tobytes()
    return group_key(group.group), data.ljust(GROUP_BYTES, b"\0")
