"""The state of an interpreted switch while packets pass: each request comes between two packets, without long waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from random import Random
from threading import Lock, RLock
from typing import Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from inakit.switch.control.data_plane import Digest, Rates
from inakit.switch.control.entry_check import call
from inakit.switch.entries import (
    DefaultAction,
    Entry,
    MeterRates,
    MirrorSession,
    MulticastGroup,
    ProfileDefault,
    TableEntry,
    ValueSetMember,
)
from inakit.switch.interpret.switch_state import Clock, State, Target, write_cells
from inakit.switch.interpret.table_state import Installed
from inakit.switch.program.program import ActionCall, CrcParameters, Program

Params = ParamSpec("Params")
Answer = TypeVar("Answer")


class Turnstile:
    """Lets a packet or a request pass at a time.

    A lock alone would let a thread that passes packet after packet take it again before any other wakes up. Here
    a request waits at the entry: the next packet does not pass before it.
    """

    def __init__(self) -> None:
        self.entry, self.state = Lock(), RLock()

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Hold off all others while the block runs."""
        with self.entry:
            self.state.acquire()
        try:
            yield
        finally:
            self.state.release()


class HasTurnstile(Protocol):
    """Something whose state packets and requests share."""

    turnstile: Turnstile


Owner = TypeVar("Owner", bound=HasTurnstile)


def atomic(request: Callable[Concatenate[Owner, Params], Answer]) -> Callable[Concatenate[Owner, Params], Answer]:
    """The request, during which no packet passes."""

    @wraps(request)
    def alone(self: Owner, /, *args: Params.args, **kwargs: Params.kwargs) -> Answer:
        with self.turnstile.passing():
            return request(self, *args, **kwargs)

    return alone


class LiveState(State):
    """A `DataPlane`. Who passes packets does so through its `turnstile`."""

    def __init__(self, program: Program, clock: Clock, random: Random, target: Target) -> None:
        super().__init__(program, clock, random, target)
        self.turnstile = Turnstile()

    @atomic
    def add(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self.put(entry, calls_of(self.program, entry))

    @atomic
    def change(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self.entry(entry).calls = calls_of(self.program, entry)

    @atomic
    def remove(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            table = self.tables[entry.table]
            removed = table.remove(entry.key, entry.priority)
            if table.table.meter is not None:
                self.meters[table.table.meter].forget(removed.number)

    @atomic
    def set_default(self, default: DefaultAction | ProfileDefault) -> None:
        table = self.tables[default.table]
        if isinstance(default, DefaultAction):
            table.default, table.chosen_default = call(table.table, default.action, default.params), None
        else:
            calls = tuple(call(table.table, action, params) for action, params in default.actions)
            table.chosen_default = Installed((), None, calls)

    @atomic
    def reset_default(self, table: str) -> None:
        found = self.tables[table]
        found.default, found.chosen_default = found.table.default, None

    @atomic
    def put_group(self, group: MulticastGroup) -> None:
        self.groups[group.group] = group

    @atomic
    def remove_group(self, number: int) -> None:
        self.groups.pop(number, None)

    @atomic
    def put_session(self, session: MirrorSession) -> None:
        self.sessions[session.session] = session

    @atomic
    def remove_session(self, number: int) -> None:
        self.sessions.pop(number, None)

    @atomic
    def add_value(self, member: ValueSetMember) -> None:
        self.value_sets[member.value_set].add(member.value)

    @atomic
    def remove_value(self, member: ValueSetMember) -> None:
        self.value_sets[member.value_set].discard(member.value)

    @atomic
    def read_register(self, name: str) -> NDArray[np.uint64]:
        register = self.program.register(name)
        return np.array(self.registers[register.name], np.uint64 if register.bits <= 64 else object)

    @atomic
    def write_register(self, name: str, index: int | None, value: int) -> None:
        write_cells(self.registers[name], index, value)

    @atomic
    def read_counter(self, name: str) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        cells = self.counters[self.program.counter(name).name]
        return np.array(cells.packets, np.uint64), np.array(cells.bytes, np.uint64)

    @atomic
    def write_counter(self, name: str, index: int | None, packets: int, octets: int) -> None:
        self.counters[name].write(index, packets, octets)

    @atomic
    def set_rates(self, rates: MeterRates) -> None:
        self.meters[rates.meter].set_rates(rates.index, rates.rates)

    @atomic
    def read_rates(self, name: str, index: int) -> Rates:
        return self.meters[name].rates_of(index)

    @atomic
    def entry_counts(self, entry: Entry) -> tuple[int, int]:
        found = self.entry(entry)
        return found.packets, found.bytes

    @atomic
    def write_entry_counts(self, entry: Entry, packets: int, octets: int) -> None:
        found = self.entry(entry)
        found.packets, found.bytes = packets, octets

    @atomic
    def set_entry_rates(self, entry: Entry, rates: Rates) -> None:
        self.meters[self.program.table(entry.table).meter or ""].set_rates(self.entry(entry).number, rates)

    @atomic
    def entry_rates(self, entry: Entry) -> Rates:
        return self.meters[self.program.table(entry.table).meter or ""].rates_of(self.entry(entry).number)

    @atomic
    def idle_s(self, entry: Entry) -> float:
        return (self.clock() - self.entry(entry).matched_us) / 1e6

    @atomic
    def set_crc(self, calculation: str, parameters: CrcParameters) -> None:
        self.crcs[calculation] = parameters

    @atomic
    def read_digests(self) -> list[Digest]:
        digests = list(self.digests)
        self.digests.clear()
        return digests

    def now_us(self) -> int:
        return self.clock()

    @atomic
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
        return self.tables[entry.table].at(entry.key, entry.priority)


def calls_of(program: Program, entry: Entry) -> tuple[ActionCall, ...]:
    """What an entry runs, or what its selector chooses from."""
    table = program.tables[entry.table]
    if isinstance(entry, TableEntry):
        return (call(table, entry.action, entry.params),)
    return tuple(call(table, action, params) for action, params in entry.actions)
