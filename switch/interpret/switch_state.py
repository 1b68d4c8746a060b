"""The state of a running switch, and the context for turning a program into functions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from random import Random
from threading import Lock, RLock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from inakit.switch.control.data_plane import DataPlane, Digest, Rates
from inakit.switch.control.entry_check import action_call, call, check_entries, default_call
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
    actions_of,
    group_of_nodes,
    grouped,
)
from inakit.switch.interpret.egress_queues import EgressQueues
from inakit.switch.interpret.packet import Packet, PacketPlaces, Trace
from inakit.switch.interpret.table_state import Installed, TableState
from inakit.switch.program.program import (
    DROP_PORT,
    ActionCall,
    Counter,
    CrcParameters,
    Program,
    Register,
    Source,
    Table,
)
from inakit.topo.errors import InputError, UnsupportedError


@dataclass
class Bucket:
    """A bucket that gets `rate` tokens per microsecond, up to `burst`; `counted` tokens have come since the start."""

    rate: float
    burst: int
    colour: int
    tokens: int
    counted: int = 0

    def fill(self, elapsed_us: int) -> None:
        """Add the tokens since the last call, given the time since the start."""
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
        """The colour of a packet of `size` tokens: that of the highest rate that the packet exceeds."""
        for bucket in self.buckets:
            bucket.fill(elapsed_us)
            if bucket.tokens < size:
                return bucket.colour
            bucket.tokens -= size
        return 0


class MeterState:
    """The cells of one meter; each is created on first use."""

    def __init__(self, size: int, of_bytes: bool, clock: Callable[[], int]) -> None:
        self.size, self.of_bytes, self.clock = size, of_bytes, clock
        self.start_us = clock()
        self.rates: Rates = ()
        self.cells: dict[int, MeterCell] = {}

    def set_rates(self, index: int | None, rates: Rates) -> None:
        """Set the rates of one cell, or of all (`index` None), and fill its buckets."""
        if index is None:
            self.rates = rates
            self.cells.clear()
        else:
            self.cells[index] = MeterCell(rates)

    def rates_of(self, index: int) -> Rates:
        return self.cells[index].rates if index in self.cells else self.rates

    def forget(self, index: int) -> None:
        """Reset one cell to its initial state."""
        self.cells.pop(index, None)

    def reset(self) -> None:
        self.rates = ()
        self.cells.clear()

    def colour(self, index: int, packet_bytes: int) -> int:
        """The colour of a packet of this length at the cell `index`."""
        if index not in self.cells:
            self.cells[index] = MeterCell(self.rates)
        return self.cells[index].colour(self.clock() - self.start_us, packet_bytes if self.of_bytes else 1)


@dataclass(frozen=True)
class Target:
    """`drop_port` is the port of dropped packets; each port has `priorities` queues."""

    drop_port: int = DROP_PORT
    priorities: int = 1


Clock = Callable[[], int]
KEPT_DIGESTS = 1 << 16
MOST_CELLS = 1 << 24


Arrays = NDArray[np.uint64]


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


class Turnstile:
    """Lets one packet or request pass at a time.

    With a lock alone, a thread that processes many packets would take it again before another thread wakes up. Here a
    request waits at the entry, and the next packet does not pass before it.
    """

    def __init__(self) -> None:
        self.entry, self.state = Lock(), RLock()

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Block all others while the block runs."""
        with self.entry:
            self.state.acquire()
        try:
            yield
        finally:
            self.state.release()


Kind = TypeVar("Kind", bound=type)
AT_ANY_TIME = frozenset(("now_us",))
"""The requests of a `DataPlane` that do not wait for a packet."""


def atomic(kind: Kind) -> Kind:
    """Make requests of a data plane hold its `turnstile`, so that no packet passes meanwhile."""

    def alone(request: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(request)
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            with self.turnstile.passing():
                return request(self, *args, **kwargs)

        return run

    for name in vars(kind).keys() & vars(DataPlane).keys() - AT_ANY_TIME:
        if not name.startswith("_"):
            setattr(kind, name, alone(getattr(kind, name)))
    return kind


@atomic
class InterpretedState:
    """The state of one switch, a `DataPlane`; packets pass through the `turnstile`.

    `clock` gives microseconds since the switch started, `random` the program's random numbers.
    """

    def __init__(self, program: Program, clock: Clock, random: Random, target: Target) -> None:
        self.program, self.clock, self.random, self.target = program, clock, random, target
        self.turnstile = Turnstile()
        self.queues: EgressQueues[Packet] = EgressQueues(clock, target.priorities)
        check_room(program)
        self.registers = {register.name: [0] * register.size for register in program.registers.values()}
        self.counters = {counter.name: CounterState(counter.size) for counter in program.counters.values()}
        meters = program.meters | program.direct_meters
        self.meters = {name: MeterState(meter.size, meter.of_bytes, clock) for name, meter in meters.items()}
        self.tables = {name: TableState(table) for name, table in program.tables.items()}
        self.value_sets: dict[str, set[int]] = {name: set() for name in program.value_sets}
        self.groups: dict[int, MulticastGroup] = {}
        self.sessions: dict[int, MirrorSession] = {}
        self.crcs: dict[str, CrcParameters] = {}
        self.digests: deque[Digest] = deque(maxlen=KEPT_DIGESTS)

    def install(self, entries: SwitchEntries) -> None:
        """Add everything in `entries`; if a part is wrong, nothing is added."""
        check_entries(self.program, entries)
        added: list[Entry] = [*entries.tables, *entries.profiled]
        for name, own in grouped(added).items():
            self.tables[name].check_new(own)
        for default in entries.defaults:
            table = self.program.table(default.table)
            if table.default_is_const or default.action != table.const_default_action(default.action):
                raise InputError(f"the default action of table '{default.table}' is const in the program")
        self.add(added)
        for member in entries.value_sets:
            self.add_value(member)
        for default in entries.defaults:
            self.tables[default.table].default = default_call(self.program, default)
        self.groups |= {group.group: group for group in entries.groups}
        self.sessions |= {mirror.session: mirror for mirror in entries.mirrors}
        for rates in entries.meters:
            self.set_rates(rates)
        for preset in entries.registers:
            self.registers[preset.register][preset.index] = preset.value

    def add(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            table = self.tables[entry.table]
            calls = calls_of(table.table, entry)
            table.add(Installed(entry.key, entry.priority, calls, matched_us=self.clock()))

    def change(self, entries: Sequence[Entry]) -> None:
        """Replace actions and parameters of existing entries; if one is wrong, none is changed."""
        changes = []
        for entry in entries:
            if isinstance(entry, TableEntry):
                action_call(self.program, entry)
            table = self.tables[entry.table]
            changes.append((table.at(entry), calls_of(table.table, entry)))
            table.check_not_const()
        for found, calls in changes:
            found.calls = calls

    def remove(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            table = self.tables[entry.table]
            removed = table.remove(entry)
            if table.table.meter is not None:
                self.meters[table.table.meter].forget(removed.number)

    def set_default(self, default: DefaultAction | ProfileDefault) -> None:
        table = self.tables[default.table]
        calls = calls_of(table.table, default)
        if isinstance(default, DefaultAction):
            table.default, table.chosen_default = calls[0], None
        else:
            table.chosen_default = Installed((), None, calls)

    def reset_default(self, table: str) -> None:
        self.tables[table].reset_default()

    def put_group(self, group: MulticastGroup) -> None:
        self.groups[group.group] = group

    def remove_group(self, number: int) -> None:
        self.groups.pop(number, None)

    def put_session(self, session: MirrorSession) -> None:
        self.sessions[session.session] = session

    def remove_session(self, number: int) -> None:
        self.sessions.pop(number, None)

    def add_value(self, member: ValueSetMember) -> None:
        self.value_sets[member.value_set].add(member.value)

    def remove_value(self, member: ValueSetMember) -> None:
        self.value_sets[member.value_set].discard(member.value)

    def read_table(self, name: str) -> list[TableEntry]:
        """The entries of a table, ordered by key, as they were given, each with the first of its actions."""
        found = [(each, each.calls[0]) for each in self.installed(name)]
        return [TableEntry(name, each.key, call.action.name, call.values, each.priority) for each, call in found]

    def installed(self, table: str) -> list[Installed]:
        held = self.tables[self.program.table(table).name].held
        return [held[identity] for identity in sorted(held, key=lambda identity: (identity[0], identity[1] or 0))]

    def read_groups(self) -> list[MulticastGroup]:
        """The multicast groups, ordered by number, with each replica once."""
        found = [self.groups[number] for number in sorted(self.groups)]
        return [
            group_of_nodes(each.group, ((replica, port) for replica, ports in each.nodes.items() for port in ports))
            for each in found
        ]

    def read_register(self, name: str) -> Arrays:
        register = self.program.register(name)
        return np.array(self.registers[register.name], np.uint64 if register.bits <= 64 else object)

    def write_register(self, name: str, index: int | None, value: int) -> None:
        write_cells(self.registers[name], index, value)

    def read_counter(self, name: str, count: int | None = None) -> tuple[Arrays, Arrays]:
        """Packets and bytes of a counter's first cells; a direct counter gives entries in the order of `read_table`."""
        direct = self.program.direct_counters.get(name)
        if direct is None:
            cells = self.counters[self.program.counter(name).name]
            packets, octets = cells.packets, cells.bytes
        else:
            entries = self.installed(direct.table)
            packets, octets = [each.packets for each in entries], [each.bytes for each in entries]
        return np.array(packets[:count], np.uint64), np.array(octets[:count], np.uint64)

    def write_counter(self, name: str, index: int | None, packets: int, octets: int) -> None:
        self.counters[name].write(index, packets, octets)

    def set_rates(self, rates: MeterRates) -> None:
        self.meters[rates.meter].set_rates(rates.index, rates.rates)

    def read_rates(self, name: str, index: int) -> Rates:
        return self.meters[name].rates_of(index)

    def entry_counts(self, entry: Entry) -> tuple[int, int]:
        found = self.entry(entry)
        return found.packets, found.bytes

    def write_entry_counts(self, entry: Entry, packets: int, octets: int) -> None:
        found = self.entry(entry)
        found.packets, found.bytes = packets, octets

    def set_entry_rates(self, entry: Entry, rates: Rates) -> None:
        self.meter_of(entry).set_rates(self.entry(entry).number, rates)

    def entry_rates(self, entry: Entry) -> Rates:
        return self.meter_of(entry).rates_of(self.entry(entry).number)

    def idle_s(self, entry: Entry) -> float:
        return (self.clock() - self.entry(entry).matched_us) / 1e6

    def set_crc(self, calculation: str, parameters: CrcParameters) -> None:
        self.crcs[calculation] = parameters

    def read_digests(self) -> list[Digest]:
        digests = list(self.digests)
        self.digests.clear()
        return digests

    def now_us(self) -> int:
        return self.clock()

    def wipe(self) -> None:
        """Set all registers to 0."""
        for cells in self.registers.values():
            write_cells(cells, None, 0)

    def reset(self) -> None:
        self.wipe()
        for counter in self.counters.values():
            counter.write(None, 0, 0)
        for meter in self.meters.values():
            meter.reset()
        for table in self.tables.values():
            table.reset()
        for values in self.value_sets.values():
            values.clear()
        self.groups.clear()
        self.sessions.clear()
        self.digests.clear()

    def entry(self, entry: Entry) -> Installed:
        return self.tables[entry.table].at(entry)

    def meter_of(self, entry: Entry) -> MeterState:
        return self.meters[self.program.table(entry.table).meter or ""]


def calls_of(table: Table, entry: Entry | DefaultAction | ProfileDefault) -> tuple[ActionCall, ...]:
    """The action of an entry or a default, or the actions among which its selector chooses."""
    return tuple(call(table, action, params) for action, params in actions_of(entry))


def write_cells(cells: list[int], index: int | None, value: int) -> None:
    """Set one cell, or all (`index` None), in place: statements hold the list itself."""
    if index is None:
        cells[:] = [value] * len(cells)
    else:
        cells[index] = value


def check_room(program: Program) -> None:
    """Raise `UnsupportedError` for arrays that are too large for this process."""
    arrays: list[Register | Counter] = [*program.registers.values(), *program.counters.values()]
    for array in arrays:
        if array.size > MOST_CELLS:
            raise UnsupportedError(
                f"program '{program.name}' has '{array.name}' with {array.size} cells: a switch in a process keeps at "
                f"most {MOST_CELLS}; make it smaller, or run the program on BMv2 (SWITCH=bmv2)"
            )


ELSEWHERE = "write it with what v1model.p4 declares, or run the program on BMv2 (SWITCH=bmv2)"


class Context:
    """The context of one program: the places of its fields, the switch's state, and the trace."""

    def __init__(self, program: Program, places: PacketPlaces, state: InterpretedState, trace: Trace) -> None:
        self.program = program
        self.places = places
        self.state = state
        self.trace = trace
        self.source: Source | None = None

    @contextmanager
    def located(self, source: Source | None) -> Iterator[None]:
        """Add the line of P4 in `source` to a refusal that is raised inside."""
        outer, self.source = self.source, source or self.source
        try:
            yield
        finally:
            self.source = outer

    def refusal(self, what: str, instead: str = ELSEWHERE) -> UnsupportedError:
        """The error for a construct without a handler in the interpreter."""
        where = f" ({self.source})" if self.source else ""
        return UnsupportedError(f"program '{self.program.name}' uses {what}{where}, which is not supported: {instead}")
