"""A data plane without packets, which records the entries that a control plane installs, for any switch.

`install` puts entries into a running switch. `transfer` moves all state of a control plane to another data plane.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.control.data_plane import DataPlane, Digest, Rates
from inakit.switch.control.entry_check import Identity, check_entries, identity_of
from inakit.switch.control.tables import HeldTable
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
from inakit.switch.program.program import CrcParameters, Program
from inakit.topo.errors import InputError

Place = tuple[str, Identity]
"""A table, and the identity of an entry in it."""


class RecordedEntries:
    """A `DataPlane`. `take` returns the entries installed since the last call.

    Entries that were taken are already in a switch: they can be replaced, but not removed (`InputError`).
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.fresh = True
        self.forget()

    def forget(self) -> None:
        self.entries: dict[Place, Entry] = {}
        self.defaults: dict[str, DefaultAction] = {}
        self.groups: dict[int, MulticastGroup] = {}
        self.sessions: dict[int, MirrorSession] = {}
        self.values: dict[ValueSetMember, None] = {}
        self.rates: dict[tuple[str, int | None], MeterRates] = {}
        self.entry_meters: dict[Place, Rates] = {}
        self.registers: dict[tuple[str, int], RegisterPreset] = {}

    def take(self) -> SwitchEntries:
        """All entries that were installed since the last call."""
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
        """The rates of entries. The cell of an entry is its position among the entries of its table."""
        found = []
        for place, rates in self.entry_meters.items():
            own = [each for each in self.entries if each[0] == place[0]]
            found.append(MeterRates(self.program.tables[place[0]].meter or "", own.index(place), rates))
        return found

    def place(self, entry: Entry) -> Place:
        return entry.table, identity_of(self.program.tables[entry.table], entry.key, entry.priority)

    def held(self, entry: Entry) -> Place:
        """The place of an entry, which must exist."""
        place = self.place(entry)
        if place not in self.entries:
            raise InputError(
                f"an entry of table '{entry.table}' is already in the switch: it cannot be changed or removed"
            )
        return place

    def add(self, entries: Sequence[Entry]) -> None:
        self.entries |= {self.place(entry): entry for entry in entries}

    def change(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self.entries[self.held(entry)] = entry

    def remove(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            place = self.held(entry)
            del self.entries[place]
            self.entry_meters.pop(place, None)

    def set_default(self, default: DefaultAction | ProfileDefault) -> None:
        if isinstance(default, ProfileDefault):
            if len(default.actions) != 1:
                raise InputError(f"table '{default.table}' can have a member as default here, but no group")
            default = DefaultAction(default.table, *default.actions[0])
        self.defaults[default.table] = default

    def reset_default(self, table: str) -> None:
        if not self.fresh:
            raise InputError(f"the default of table '{table}' is already in the switch: set another one")
        self.defaults.pop(table, None)

    def put_group(self, group: MulticastGroup) -> None:
        """Record a group; as a plain one if its replicas leave in the order of a plain group."""
        plain = group_of_nodes(group.group, group.replicas)
        self.groups[group.group] = plain if plain.replicas == group.replicas else group

    def remove_group(self, number: int) -> None:
        if self.groups.pop(number, None) is None and not self.fresh:
            raise InputError(f"multicast group {number} is already in the switch: change it, it cannot be removed")

    def put_session(self, session: MirrorSession) -> None:
        self.sessions[session.session] = session

    def remove_session(self, number: int) -> None:
        if self.sessions.pop(number, None) is None and not self.fresh:
            raise InputError(f"mirror session {number} is already in the switch: change it, it cannot be removed")

    def add_value(self, member: ValueSetMember) -> None:
        self.values[member] = None

    def remove_value(self, member: ValueSetMember) -> None:
        if member not in self.values:
            raise InputError(
                f"{member.value} is in value set '{member.value_set}' of the switch already and cannot be removed"
            )
        del self.values[member]

    def write_register(self, name: str, index: int | None, value: int) -> None:
        """Record the value of one cell, or of all. Cells without a record are 0 before the first packet."""
        if index is not None:
            self.registers[name, index] = RegisterPreset(name, index, value)
            return
        self.registers = {place: preset for place, preset in self.registers.items() if place[0] != name}
        if value or not self.fresh:
            for each in range(self.program.registers[name].size):
                self.write_register(name, each, value)

    def read_register(self, name: str) -> NDArray[np.uint64]:
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
        """Accept a reset before the first packet; raise `InputError` for anything else."""
        self.check_zero(name, packets, octets)

    def entry_counts(self, entry: Entry) -> tuple[int, int]:  # noqa: ARG002
        """Zeros: no packet passes."""
        return 0, 0

    def write_entry_counts(self, entry: Entry, packets: int, octets: int) -> None:
        """Accept a reset before the first packet; raise `InputError` for anything else."""
        self.check_zero(entry.table, packets, octets)

    def check_zero(self, name: str, packets: int, octets: int) -> None:
        if packets or octets or not self.fresh:
            raise InputError(f"counts of '{name}' are 0 here: only packets change them")

    def set_rates(self, rates: MeterRates) -> None:
        """Record the rates of a cell; the rates of all cells replace earlier ones."""
        if rates.index is None:
            self.rates = {place: each for place, each in self.rates.items() if place[0] != rates.meter}
        self.rates[rates.meter, rates.index] = rates

    def read_rates(self, name: str, index: int) -> Rates:
        found = self.rates.get((name, index)) or self.rates.get((name, None))
        return found.rates if found is not None else ()

    def set_entry_rates(self, entry: Entry, rates: Rates) -> None:
        self.entry_meters[self.held(entry)] = rates

    def entry_rates(self, entry: Entry) -> Rates:
        of_all = self.read_rates(self.program.tables[entry.table].meter or "", 0)
        return self.entry_meters.get(self.place(entry), of_all)

    def idle_s(self, entry: Entry) -> float:  # noqa: ARG002
        """0: no time passes."""
        return 0.0

    def set_crc(self, calculation: str, parameters: CrcParameters) -> None:
        """Refuse: entries cannot describe hash parameters."""
        raise InputError(
            f"calculation '{calculation}' cannot get the parameters {parameters} here: only a served switch takes them"
        )

    def read_digests(self) -> list[Digest]:
        """No digests: no packet passes."""
        return []

    def now_us(self) -> int:
        """0: no time passes."""
        return 0

    def reset(self) -> None:
        if not self.fresh:
            raise InputError("reset_state: packets may have passed already; start the switch again")
        self.forget()


def transfer(control: ControlPlane, to: DataPlane) -> None:
    """Replace the data plane of `control` by `to`, which has just started, and copy all state to it.

    Afterwards, meter buckets are full and idle times are 0. No packet may pass through either data plane meanwhile.
    """
    with control.lock:
        old, control.data_plane = control.data_plane, to
        try:
            bring_all(control, old)
        except BaseException:
            control.data_plane = old
            raise


def brought(prepared: ControlPlane | None, program_before: ControlPlane | None, to: DataPlane) -> ControlPlane:
    """The control plane of a program that starts on the data plane `to`: the `prepared` one, or a new one.

    It takes over the multicast groups and mirror sessions of `program_before`, if given, as in BMv2.
    """
    control = prepared or ControlPlane(to)
    if program_before is not None:
        control.replication.inherit(program_before.replication)
    if prepared is None:
        control.replication.install()
    else:
        transfer(control, to)
    return control


def bring_all(control: ControlPlane, old: DataPlane) -> None:
    to = control.data_plane
    for table in control.tables.tables.values():
        bring_table(control, table, old)
    control.replication.install()
    for name, values in control.value_sets.held.items():
        for value in values:
            to.add_value(ValueSetMember(name, value))
    for calculation, parameters in control.calculations.crcs.items():
        to.set_crc(calculation, parameters)
    bring_arrays(old, to)


def bring_table(control: ControlPlane, table: HeldTable, old: DataPlane) -> None:
    """Copy a table's entries with their counts and rates, and its default."""
    to, entries = control.data_plane, [held.entry for held in table.all()]
    if table.table.entries is None:
        to.add(entries)
    for entry in entries if table.table.counted else ():
        to.write_entry_counts(entry, *old.entry_counts(entry))
    for entry in entries if table.table.meter else ():
        to.set_entry_rates(entry, old.entry_rates(entry))
    default = table.default if table.default != table.programs_default() else None
    if default is not None and default.action is not None:
        to.set_default(DefaultAction(table.table.name, default.action, default.params))
    elif default is not None:
        to.set_default(control.tables.profile_default(table, default))


def bring_arrays(old: DataPlane, to: DataPlane) -> None:
    """Copy registers, counters and the rates of meters."""
    program = to.program
    for name in program.registers:
        for index, value in enumerate(old.read_register(name).tolist()):
            if value:
                to.write_register(name, index, value)
    for name in program.counters:
        for index, (packets, octets) in enumerate(
            zip(*(each.tolist() for each in old.read_counter(name)), strict=True)
        ):
            if packets:
                to.write_counter(name, index, packets, octets)
    for name, meter in program.meters.items():
        for index in range(meter.size):
            if rates := old.read_rates(name, index):
                to.set_rates(MeterRates(name, index, rates))


def install(control: ControlPlane, entries: SwitchEntries) -> None:
    """Install all entries. Raises `InputError`, before installing any, if one does not fit the program."""
    check_entries(control.program, entries)
    control.tables.add_entries(entries.tables)
    for profiled in entries.profiled:
        add_profiled(control, profiled)
    for default in entries.defaults:
        set_default(control, default)
    for group in entries.groups:
        add_group(control, group)
    for mirror in entries.mirrors:
        control.replication.put_session(mirror)
    for rates in entries.meters:
        set_rates(control, rates)
    for member in entries.value_sets:
        control.value_sets.add(member.value_set, member.value)
    for preset in entries.registers:
        control.registers.write(preset.register, preset.index, preset.value)


def add_profiled(control: ControlPlane, entry: ProfileEntry) -> int:
    """Add an entry with new members, in a group if there are several; return its handle."""
    profiles, profile = control.profiles, entry.profile
    members = [profiles.add_member(profile, action, params) for action, params in entry.actions]
    if len(members) == 1:
        return control.tables.add(entry.table, entry.key, member=members[0], priority=entry.priority)
    group = profiles.create_group(profile)
    for member in members:
        profiles.add_to_group(profile, member, group)
    return control.tables.add(entry.table, entry.key, group=group, priority=entry.priority)


def set_default(control: ControlPlane, default: DefaultAction) -> None:
    """Set the default of a table; with an action profile, the default is a new member."""
    profile = control.program.table(default.table).profile
    if profile is None:
        control.tables.set_default(default.table, default.action, default.params)
    else:
        member = control.profiles.add_member(profile, default.action, default.params)
        control.tables.set_default(default.table, member=member)


def add_group(control: ControlPlane, group: MulticastGroup) -> None:
    control.replication.create_group(group.group)
    for replica, ports in group.runs():
        control.replication.associate(group.group, control.replication.create_node(replica, ports))


def set_rates(control: ControlPlane, rates: MeterRates) -> None:
    """Set the rates of one cell or of all; the cells of a direct meter are its table's entries, in order."""
    table = control.meters.metered_by(rates.meter)
    if rates.index is None or table is None:
        control.meters.set_rates(rates.meter, rates.index, rates.rates)
    else:
        name = table.table.name
        control.meters.set_entry_rates(name, control.tables.entries(name)[rates.index].handle, rates.rates)
