"""A data plane that no packet passes: it keeps what the control plane puts into it, as entries for any switch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inakit.switch.control.data_plane import Digest, Rates
from inakit.switch.control.entry_check import Identity, identity_of
from inakit.switch.entries import (
    DefaultAction,
    Entry,
    MeterRates,
    MirrorSession,
    MulticastGroup,
    ProfileDefault,
    ProfileEntry,
    RegisterPreset,
    SwitchEntries,
    TableEntry,
    ValueSetMember,
    group_of_nodes,
)
from inakit.switch.program.expressions import CrcParameters
from inakit.switch.program.program import Program
from inakit.topo.errors import InputError

Place = tuple[str, Identity]
"""A table, and what no two of its entries share."""


class RecordedEntries:
    """A `DataPlane`. `take` gives what has been put into it since the last call.

    What was taken is in a switch already: it can be replaced, but `InputError` says that it cannot be removed.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.fresh = True
        self.forget()

    def forget(self) -> None:
        """Keep nothing."""
        self.entries: dict[Place, Entry] = {}
        self.defaults: dict[str, DefaultAction] = {}
        self.groups: dict[int, MulticastGroup] = {}
        self.sessions: dict[int, MirrorSession] = {}
        self.values: dict[ValueSetMember, None] = {}
        self.rates: dict[tuple[str, int | None], MeterRates] = {}
        self.entry_meters: dict[Place, Rates] = {}
        self.registers: dict[tuple[str, int], RegisterPreset] = {}

    def take(self) -> SwitchEntries:
        """What has been put in since the last call."""
        entries, rates = list(self.entries.values()), [*self.rates.values(), *self.direct_rates()]
        taken = SwitchEntries(
            "switch",
            tuple(entry for entry in entries if isinstance(entry, TableEntry)),
            tuple(self.groups.values()),
            tuple(self.registers.values()),
            tuple(self.defaults.values()),
            tuple(self.sessions.values()),
            tuple(rates),
            tuple(entry for entry in entries if isinstance(entry, ProfileEntry)),
            tuple(self.values),
        )
        self.forget()
        self.fresh = False
        return taken

    def direct_rates(self) -> list[MeterRates]:
        """The rates of entries. The cell of an entry is its number among those of its table."""
        found = []
        for place, rates in self.entry_meters.items():
            own = [each for each in self.entries if each[0] == place[0]]
            found.append(MeterRates(self.program.tables[place[0]].meter or "", own.index(place), rates))
        return found

    def place(self, entry: Entry) -> Place:
        """Where an entry is kept."""
        return entry.table, identity_of(self.program.tables[entry.table], entry.key, entry.priority)

    def held(self, entry: Entry) -> Place:
        """Where an entry that is there is kept."""
        place = self.place(entry)
        if place not in self.entries:
            raise InputError(f"an entry of table '{entry.table}' is in the switch already: it stays as it is")
        return place

    def add(self, entries: Sequence[Entry]) -> None:
        """Keep new entries."""
        self.entries |= {self.place(entry): entry for entry in entries}

    def change(self, entries: Sequence[Entry]) -> None:
        """Keep entries instead of those with the same keys."""
        for entry in entries:
            self.entries[self.held(entry)] = entry

    def remove(self, entries: Sequence[Entry]) -> None:
        """Forget entries."""
        for entry in entries:
            place = self.held(entry)
            del self.entries[place]
            self.entry_meters.pop(place, None)

    def set_default(self, default: DefaultAction | ProfileDefault) -> None:
        """Keep what a table runs on a miss."""
        if isinstance(default, ProfileDefault):
            if len(default.actions) != 1:
                raise InputError(f"table '{default.table}' can have a member as default here, but no group")
            default = DefaultAction(default.table, *default.actions[0])
        self.defaults[default.table] = default

    def reset_default(self, table: str) -> None:
        """Forget what a table runs on a miss."""
        if not self.fresh:
            raise InputError(f"the default of table '{table}' is in the switch already: set another one")
        self.defaults.pop(table, None)

    def put_group(self, group: MulticastGroup) -> None:
        """Keep a group; as a plain one, if its replicas leave in that order."""
        plain = group_of_nodes(group.group, group.replicas)
        self.groups[group.group] = plain if plain.replicas == group.replicas else group

    def remove_group(self, number: int) -> None:
        """Forget a group."""
        if self.groups.pop(number, None) is None and not self.fresh:
            raise InputError(f"multicast group {number} is in the switch already: it can change, but not go")

    def put_session(self, session: MirrorSession) -> None:
        """Keep a mirror session."""
        self.sessions[session.session] = session

    def remove_session(self, number: int) -> None:
        """Forget a mirror session."""
        if self.sessions.pop(number, None) is None and not self.fresh:
            raise InputError(f"mirror session {number} is in the switch already: it can change, but not go")

    def add_value(self, member: ValueSetMember) -> None:
        """Keep a value of a parser value set."""
        self.values[member] = None

    def remove_value(self, member: ValueSetMember) -> None:
        """Forget a value of a parser value set."""
        if member not in self.values:
            raise InputError(f"{member.value} is in value set '{member.value_set}' of the switch already: it stays")
        del self.values[member]

    def write_register(self, name: str, index: int | None, value: int) -> None:
        """Keep the value of a cell, or of all. Before packets, cells that are not kept are 0."""
        if index is not None:
            self.registers[name, index] = RegisterPreset(name, index, value)
            return
        self.registers = {place: preset for place, preset in self.registers.items() if place[0] != name}
        if value or not self.fresh:
            for each in range(self.program.registers[name].size):
                self.write_register(name, each, value)

    def read_register(self, name: str) -> NDArray[np.uint64]:
        """What is kept of a register."""
        register = self.program.registers[name]
        values = np.zeros(register.size, np.uint64 if register.bits <= 64 else object)
        for (kept, index), preset in self.registers.items():
            if kept == name:
                values[index] = preset.value
        return values

    def read_counter(self, name: str) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Zeros: no packet passes."""
        return (np.zeros(self.program.counters[name].size, np.uint64),) * 2

    def write_counter(self, name: str, index: int | None, packets: int, octets: int) -> None:  # noqa: ARG002
        """Do nothing where a counter becomes 0 before packets; `InputError` for anything else."""
        self.check_zero(name, packets, octets)

    def entry_counts(self, entry: Entry) -> tuple[int, int]:  # noqa: ARG002
        """Zeros: no packet passes."""
        return 0, 0

    def write_entry_counts(self, entry: Entry, packets: int, octets: int) -> None:
        """Do nothing where counts become 0 before packets; `InputError` for anything else."""
        self.check_zero(entry.table, packets, octets)

    def check_zero(self, name: str, packets: int, octets: int) -> None:
        """Raise `InputError` unless counts of 0 are set before packets."""
        if packets or octets or not self.fresh:
            raise InputError(f"counts of '{name}' begin at 0 here, and only packets change them")

    def set_rates(self, rates: MeterRates) -> None:
        """Keep the rates of a cell; those of all cells replace what was kept."""
        if rates.index is None:
            self.rates = {place: each for place, each in self.rates.items() if place[0] != rates.meter}
        self.rates[rates.meter, rates.index] = rates

    def read_rates(self, name: str, index: int) -> Rates:
        """The rates that are kept for a cell."""
        found = self.rates.get((name, index)) or self.rates.get((name, None))
        return found.rates if found is not None else ()

    def set_entry_rates(self, entry: Entry, rates: Rates) -> None:
        """Keep the rates of an entry."""
        self.entry_meters[self.held(entry)] = rates

    def entry_rates(self, entry: Entry) -> Rates:
        """The rates that are kept for an entry."""
        of_all = self.read_rates(self.program.tables[entry.table].meter or "", 0)
        return self.entry_meters.get(self.place(entry), of_all)

    def idle_s(self, entry: Entry) -> float:  # noqa: ARG002
        """0: no time passes."""
        return 0.0

    def set_crc(self, calculation: str, parameters: CrcParameters) -> None:
        """Refuse: entries say nothing of hashes."""
        raise InputError(f"calculation '{calculation}' keeps its parameters here: {parameters} are for a served switch")

    def read_digests(self) -> list[Digest]:
        """None: no packet passes."""
        return []

    def now_us(self) -> int:
        """0: no time passes."""
        return 0

    def reset(self) -> None:
        """Forget everything."""
        if not self.fresh:
            raise InputError("reset_state: packets may have passed; start anew")
        self.forget()
