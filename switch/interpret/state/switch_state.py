"""What a running switch holds beside packets: tables, registers, counters, meters, groups, mirror sessions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from random import Random

from inakit.switch.control.data_plane import Digest
from inakit.switch.control.entry_check import action_call, check_entries, default_call, profile_calls
from inakit.switch.entries import Entry, MirrorSession, MulticastGroup, SwitchEntries, TableEntry
from inakit.switch.interpret.state.egress_queues import EgressQueues
from inakit.switch.interpret.state.meters import MeterState
from inakit.switch.interpret.state.packets.packet import Packet
from inakit.switch.interpret.state.tables.table_state import Installed, TableState
from inakit.switch.interpret.state.target import Target
from inakit.switch.program.program import ActionCall
from inakit.switch.program.expressions import CrcParameters
from inakit.switch.program.program import Counter, Register
from inakit.switch.program.program import Program
from inakit.topo.errors import InputError, UnsupportedError

Clock = Callable[[], int]
KEPT_DIGESTS = 1 << 16
MOST_CELLS = 1 << 24


class CounterState:
    """Packets and bytes of each cell of an indirect counter."""

    def __init__(self, size: int) -> None:
        self.packets, self.bytes = [0] * size, [0] * size

    def add(self, index: int, size: int) -> None:
        """Count one packet of `size` bytes."""
        self.packets[index] += 1
        self.bytes[index] += size

    def write(self, index: int | None, packets: int, octets: int) -> None:
        """Set one cell, or all (`index` None)."""
        for cells, value in ((self.packets, packets), (self.bytes, octets)):
            write_cells(cells, index, value)


class State:
    """The state of one switch; `clock` gives microseconds since it started, `random` the program's random numbers."""

    def __init__(self, program: Program, clock: Clock, random: Random, target: Target) -> None:
        self.program, self.clock, self.random, self.target = program, clock, random, target
        self.queues: EgressQueues[Packet] = EgressQueues(clock, target.priorities)
        tables = program.tables.values()
        check_room(program)
        self.registers = {register.name: [0] * register.size for register in program.registers.values()}
        self.counters = {counter.name: CounterState(counter.size) for counter in program.counters.values()}
        meters = program.meters | program.direct_meters
        self.meters = {name: MeterState(meter.size, meter.of_bytes, clock) for name, meter in meters.items()}
        self.tables = {table.name: TableState(table) for table in tables}
        self.value_sets: dict[str, set[int]] = {name: set() for name in program.value_sets}
        self.groups: dict[int, MulticastGroup] = {}
        self.sessions: dict[int, MirrorSession] = {}
        self.crcs: dict[str, CrcParameters] = {}
        self.digests: deque[Digest] = deque(maxlen=KEPT_DIGESTS)

    def install(self, entries: SwitchEntries) -> None:
        """Add everything in `entries`; when a part of it is wrong, nothing is added."""
        check_entries(self.program, entries)
        self.check_tables(entries)
        for entry in entries.tables:
            self.put(entry, (action_call(self.program, entry),))
        for profiled in entries.profiled:
            self.put(profiled, profile_calls(self.program, profiled))
        for member in entries.value_sets:
            self.value_sets[member.value_set].add(member.value)
        for default in entries.defaults:
            self.tables[default.table].default = default_call(self.program, default)
        self.groups |= {group.group: group for group in entries.groups}
        self.sessions |= {mirror.session: mirror for mirror in entries.mirrors}
        for rates in entries.meters:
            self.meters[rates.meter].set_rates(rates.index, rates.rates)
        for preset in entries.registers:
            self.registers[preset.register][preset.index] = preset.value

    def put(self, entry: Entry, calls: tuple[ActionCall, ...]) -> None:
        """Add an entry that was checked, with the actions that it may run."""
        self.tables[entry.table].add(Installed(entry.key, entry.priority, calls, matched_us=self.clock()))

    def check_tables(self, entries: SwitchEntries) -> None:
        """Raise `InputError` for entries that are not new or find no room, and for changes of const parts."""
        by_table: dict[str, list[Entry]] = {}
        added: list[Entry] = [*entries.tables, *entries.profiled]
        for entry in added:
            by_table.setdefault(entry.table, []).append(entry)
        for name, own in by_table.items():
            self.tables[name].check_new([(entry.key, entry.priority) for entry in own])
        for default in entries.defaults:
            table = self.program.table(default.table)
            if table.default_is_const or default.action != table.const_default_action(default.action):
                raise InputError(f"the default action of table '{default.table}' is const in the program")

    def change_checked(self, entries: Sequence[TableEntry]) -> None:
        """Give entries that are there other actions and parameters; when one of them is wrong, none is changed."""
        calls = [action_call(self.program, entry) for entry in entries]
        found = [self.tables[entry.table].at(entry.key, entry.priority) for entry in entries]
        for entry in entries:
            self.tables[entry.table].check_mutable()
        for each, call in zip(found, calls, strict=True):
            each.calls = (call,)

    def wipe(self) -> None:
        """Set all registers to 0."""
        for cells in self.registers.values():
            cells[:] = [0] * len(cells)

    def installed(self, table: str) -> list[Installed]:
        """The entries of a table, ordered by key."""
        found = self.tables[self.program.table(table).name].entries
        return [found[identity] for identity in sorted(found, key=lambda identity: (identity[0], identity[1] or 0))]

    def counts(self, name: str) -> tuple[list[int], list[int]]:
        """Packets and bytes of a counter's cells, or of the entries of a direct counter's table."""
        direct = self.program.direct_counters.get(name)
        if direct is None:
            cells = self.counters[self.program.counter(name).name]
            return cells.packets, cells.bytes
        entries = self.installed(direct.table)
        return [entry.packets for entry in entries], [entry.bytes for entry in entries]


def write_cells(cells: list[int], index: int | None, value: int) -> None:
    """Set one cell, or all (`index` None), where they are: statements keep the list itself."""
    if index is None:
        cells[:] = [value] * len(cells)
    else:
        cells[index] = value


def check_room(program: Program) -> None:
    """Raise `UnsupportedError` for arrays that are too large to be kept in this process."""
    arrays: list[Register | Counter] = [*program.registers.values(), *program.counters.values()]
    for array in arrays:
        if array.size > MOST_CELLS:
            raise UnsupportedError(
                f"program '{program.name}' has '{array.name}' with {array.size} cells: a switch in a process keeps at "
                f"most {MOST_CELLS}; make it smaller, or run the program on BMv2 (SWITCH=bmv2)"
            )
