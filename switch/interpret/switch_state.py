"""What a running switch holds beside packets, and what the stages share while a program is made into functions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

from inakit.switch.control.data_plane import Digest, Rates
from inakit.switch.control.entry_check import action_call, check_entries, default_call, profile_calls
from inakit.switch.entries import Entry, MirrorSession, MulticastGroup, SwitchEntries, TableEntry
from inakit.switch.interpret.egress_queues import EgressQueues
from inakit.switch.interpret.packet import Packet, PacketPlaces, Trace
from inakit.switch.interpret.table_state import Installed, TableState
from inakit.switch.program.program import DROP_PORT, ActionCall, Counter, CrcParameters, Program, Register, Source
from inakit.topo.errors import InputError, UnsupportedError


@dataclass
class Bucket:
    """A bucket that gets `rate` tokens a microsecond, up to `burst`; `counted` have come since the meter began."""

    rate: float
    burst: int
    colour: int
    tokens: int
    counted: int = 0

    def fill(self, elapsed_us: int) -> None:
        """Add the tokens that have come by this time since the meter began."""
        total = int(elapsed_us * self.rate)
        self.tokens = min(self.tokens + total - self.counted, self.burst)
        self.counted = total


class MeterCell:
    """One cell of a meter. Without rates every packet is green (0)."""

    def __init__(self, rates: Rates = ()) -> None:
        self.rates = rates
        made = [Bucket(rate, burst, colour, burst) for colour, (rate, burst) in enumerate(rates, start=1)]
        self.buckets = made[::-1]

    def colour(self, elapsed_us: int, size: int) -> int:
        """The colour of a packet of `size` tokens: that of the highest rate that it exceeds."""
        for bucket in self.buckets:
            bucket.fill(elapsed_us)
            if bucket.tokens < size:
                return bucket.colour
            bucket.tokens -= size
        return 0


class MeterState:
    """The cells of one meter; each is made when it is first used."""

    def __init__(self, size: int, of_bytes: bool, clock: Callable[[], int]) -> None:
        self.size, self.of_bytes, self.clock = size, of_bytes, clock
        self.start_us = clock()
        self.rates: Rates = ()
        self.cells: dict[int, MeterCell] = {}

    def set_rates(self, index: int | None, rates: Rates) -> None:
        """Give one cell, or all (`index` None), these rates and full buckets."""
        if index is None:
            self.rates = rates
            self.cells.clear()
        else:
            self.cells[index] = MeterCell(rates)

    def rates_of(self, index: int) -> Rates:
        return self.cells[index].rates if index in self.cells else self.rates

    def forget(self, index: int) -> None:
        """Let one cell be as all were at first."""
        self.cells.pop(index, None)

    def reset(self) -> None:
        self.rates = ()
        self.cells.clear()

    def colour(self, index: int, packet_bytes: int) -> int:
        """The colour that the cell at `index` gives a packet of this length."""
        if index not in self.cells:
            self.cells[index] = MeterCell(self.rates)
        return self.cells[index].colour(self.clock() - self.start_us, packet_bytes if self.of_bytes else 1)


@dataclass(frozen=True)
class Target:
    """`drop_port` is the port by which nothing leaves; each port has `priorities` queues."""

    drop_port: int = DROP_PORT
    priorities: int = 1


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


ELSEWHERE = "write it with what v1model.p4 declares, or run the program on BMv2 (SWITCH=bmv2)"


class Context:
    """One program being made into functions: the places of its fields, the switch's state, and the trace."""

    def __init__(self, program: Program, places: PacketPlaces, state: State, trace: Trace) -> None:
        self.program = program
        self.places = places
        self.state = state
        self.trace = trace
        self.source: Source | None = None

    @contextmanager
    def located(self, source: Source | None) -> Iterator[None]:
        """Whatever is refused inside is said to be at `source` in the P4 program."""
        outer, self.source = self.source, source or self.source
        try:
            yield
        finally:
            self.source = outer

    def refusal(self, what: str, instead: str = ELSEWHERE) -> UnsupportedError:
        """The error for a construct that no table of the interpreter has."""
        where = f" ({self.source})" if self.source else ""
        return UnsupportedError(f"program '{self.program.name}' uses {what}{where}, which nothing here runs: {instead}")
