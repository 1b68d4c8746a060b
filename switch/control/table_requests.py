"""Requests for the entries of tables and for what tables run on a miss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from inakit.switch.control.data_plane import DataPlane, Rates
from inakit.switch.control.entry_check import Identity, by_priority, check_key, check_params, identity_of
from inakit.switch.control.profile_requests import Call, HeldProfile, ProfileControl
from inakit.switch.control.requests import (
    Handles,
    HeldDefault,
    HeldEntry,
    RefusalKind,
    Refused,
    index_of,
    locked,
    version_of,
    versioned,
)
from inakit.switch.entries import DefaultAction, Entry, KeyPart, ProfileDefault, ProfileEntry, TableEntry
from inakit.switch.program.program import Table
from inakit.topo.errors import InputError


class DirectRates:
    """Rates by the index of entries' handles: as in BMv2, an entry takes over what its cell was given before."""

    def __init__(self) -> None:
        self.of_others: Rates = ()
        self.cells: dict[int, Rates] = {}

    def at(self, index: int) -> Rates:
        return self.cells.get(index, self.of_others)

    def set(self, index: int | None, rates: Rates) -> None:
        """Set the rates of one cell, or of all (`index` None)."""
        if index is None:
            self.of_others = rates
            self.cells.clear()
        else:
            self.cells[index] = rates


@dataclass(eq=False)
class Held:
    """One entry as the data plane has it, with the member or the group that it names.

    `timed_us` is when it got its timeout.
    """

    entry: Entry
    timeout_ms: int = 0
    timed_us: int | None = None
    member: int | None = None
    group: int | None = None


class HeldTable:
    """The entries and the default of one table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.entries: Handles[Held] = Handles()
        self.versions: dict[int, int] = {}
        self.indices: dict[Identity, int] = {}
        self.default: HeldDefault | None = None
        self.overdue: set[int] = set()
        self.rates = DirectRates()
        self.reset()

    def reset(self) -> None:
        """Hold what the program gives, and nothing else."""
        self.clear(reset_default=True)
        self.rates = DirectRates()
        for const in self.table.entries or ():
            priority = const.priority if by_priority(self.table) else None
            call = const.call
            self.take(Held(TableEntry(self.table.name, const.key, call.action.name, call.values, priority)))

    def clear(self, reset_default: bool) -> None:
        """Hold no entries; also those of the program are gone. Handles begin anew."""
        self.entries, self.versions, self.indices = Handles(), {}, {}
        self.overdue.clear()
        if reset_default:
            self.reset_default()

    def reset_default(self) -> None:
        """Hold the default that the program gives."""
        self.default = self.programs_default()

    def programs_default(self) -> HeldDefault | None:
        """The default that the program gives; None in a table with an action profile."""
        call = self.table.default
        known = call is not None and self.table.profile is None
        return HeldDefault(call.action.name, call.values) if call is not None and known else None

    def take(self, held: Held) -> int:
        """Hold an entry that was checked, and return its handle."""
        index = self.entries.take(held)
        self.indices[identity_of(self.table, held.entry.key, held.entry.priority)] = index
        return versioned(index, self.versions.get(index, 0))

    def give_back(self, handle: int) -> None:
        """Forget an entry that has never been in the data plane."""
        index = index_of(handle)
        entry = self.entries[index].entry
        del self.indices[identity_of(self.table, entry.key, entry.priority)]
        self.entries.release(index)

    def release(self, handle: int) -> None:
        """Forget an entry; its handle will not come back, but its index will."""
        self.give_back(handle)
        self.versions[index_of(handle)] = version_of(handle) + 1
        self.overdue.discard(handle)

    def find(self, key: tuple[KeyPart, ...], priority: int | None) -> int | None:
        index = self.indices.get(identity_of(self.table, key, priority))
        return None if index is None else self.handle(index)

    def handle(self, index: int) -> int:
        return versioned(index, self.versions.get(index, 0))

    def at(self, handle: int) -> Held:
        """The entry of a handle, or a refusal."""
        held = self.at_any_version(handle)
        if handle != self.handle(index_of(handle)):
            raise Refused(
                RefusalKind.EXPIRED_HANDLE, f"table '{self.table.name}': the entry of handle {handle} is gone"
            )
        return held

    def at_any_version(self, handle: int) -> Held:
        """The entry at the index of a handle, whatever its version; or a refusal."""
        held = self.entries.get(index_of(handle))
        if held is None:
            raise Refused(RefusalKind.INVALID_HANDLE, f"table '{self.table.name}' has no entry of handle {handle}")
        return held

    def items(self) -> Iterator[tuple[int, Held]]:
        """(handle, entry) of all entries, by index."""
        return ((self.handle(index), self.entries[index]) for index in self.entries)


def checked(table: Table, entry: Entry) -> None:
    """Refuse an entry whose key does not fit the table."""
    try:
        check_key(table, entry)
    except InputError as error:
        raise Refused(RefusalKind.BAD_MATCH_KEY, str(error)) from error


def check_action(table: Table, name: str) -> None:
    """Refuse an action that the table does not have."""
    if all(action.name != name for action in table.actions):
        known = ", ".join(action.name for action in table.actions)
        raise Refused(RefusalKind.INVALID_ACTION_NAME, f"table '{table.name}' has no action '{name}': it has {known}")


def check_call(table: Table, name: str, params: tuple[int, ...], mutable: bool = False) -> None:
    """Refuse an action that the table does not have, or parameters that do not fit it.

    Unless `mutable`, refuse all for a table whose entries the program gives.
    """
    check_action(table, name)
    if not mutable:
        check_mutable(table)
    try:
        check_params(f"table '{table.name}'", table.action(name), params)
    except InputError as error:
        raise Refused(RefusalKind.BAD_ACTION_DATA, str(error)) from error


def check_mutable(table: Table) -> None:
    """Refuse to change the entries of a table that the program gives."""
    if table.entries is not None:
        why = f"the entries of table '{table.name}' are const in the program"
        raise Refused(RefusalKind.IMMUTABLE_TABLE_ENTRIES, why)


def check_default_mutable(table: Table, action: str | None = None) -> None:
    """Refuse to change a default that is const in the program, or `action` where only parameters may change."""
    if table.default_is_const:
        why = f"the default action of table '{table.name}' is const in the program"
        raise Refused(RefusalKind.DEFAULT_ENTRY_IS_CONST, why)
    if action is not None and action != table.const_default_action(action):
        why = f"table '{table.name}' has a const default action: only its parameters can change"
        raise Refused(RefusalKind.DEFAULT_ACTION_IS_CONST, why)


Key = tuple[KeyPart, ...]


class TableControl(ProfileControl):
    """Requests for entries and defaults. Tables have the full names of the program.

    In a table whose keys can overlap an entry without a priority has 0; elsewhere priorities are ignored.
    """

    def __init__(self, data_plane: DataPlane) -> None:
        super().__init__(data_plane)
        self.tables = {name: HeldTable(table) for name, table in self.program.tables.items()}

    def table(self, name: str) -> HeldTable:
        """The table of this name, or a refusal."""
        if name not in self.tables:
            raise Refused(RefusalKind.INVALID_TABLE_NAME, f"no table '{name}': there are {', '.join(self.tables)}")
        return self.tables[name]

    def direct(self, name: str) -> HeldTable:
        """The table of this name, which must have no action profile."""
        found = self.table(name)
        if found.table.profile is not None:
            why = f"table '{name}' has the action profile '{found.table.profile}': its entries name members or groups"
            raise Refused(RefusalKind.WRONG_TABLE_TYPE, why)
        return found

    def indirect(self, name: str, groups: bool = False) -> tuple[HeldTable, HeldProfile]:
        """The table of this name and its action profile, which must have a selector if entries name `groups`."""
        found = self.table(name)
        profile = found.table.profile
        if profile is None or (groups and self.program.profiles[profile].selector is None):
            missing = "action profile" if profile is None else "selector: its entries name members"
            raise Refused(RefusalKind.WRONG_TABLE_TYPE, f"table '{name}' has no {missing}")
        return found, self.profiles[profile]

    @locked
    def add_entry(self, entry: TableEntry) -> int:
        """Add an entry, and return its handle."""
        return self.add_entries([entry])[0]

    @locked
    def add_entries(self, entries: Sequence[TableEntry]) -> list[int]:
        """Add entries, and return their handles; when one of them is refused, none is added."""
        with self.admitting() as admitted:
            for entry in entries:
                admitted.append(self.admit_direct(entry))
            self.add_to_data_plane(admitted)
        return [handle for _, handle in admitted]

    @locked
    def add_each(self, entries: Sequence[TableEntry]) -> list[int | Refused]:
        """Add those entries that are not refused, and return each one's handle or refusal."""
        answers: list[int | Refused] = []
        with self.admitting() as admitted:
            for entry in entries:
                try:
                    admitted.append(self.admit_direct(entry))
                    answers.append(admitted[-1][1])
                except Refused as refused:
                    answers.append(refused)
            self.add_to_data_plane(admitted)
        return answers

    def add_to_data_plane(self, admitted: Sequence[tuple[HeldTable, int]]) -> None:
        """Let the data plane have entries that are held, by (table, handle), with the rates of their cells."""
        self.data_plane.add([table.at(handle).entry for table, handle in admitted])
        for table, handle in admitted:
            if table.table.meter is not None:
                entry = table.at(handle).entry
                rates = table.rates.at(index_of(handle))
                if self.data_plane.entry_rates(entry) != rates:
                    self.data_plane.set_entry_rates(entry, rates)

    @contextmanager
    def admitting(self) -> Iterator[list[tuple[HeldTable, int]]]:
        """Hold the entries that the block adds to the list, by (table, handle); none of them if it fails."""
        admitted: list[tuple[HeldTable, int]] = []
        try:
            yield admitted
        except Exception:
            for table, handle in reversed(admitted):
                table.give_back(handle)
            raise

    def admit_direct(self, entry: TableEntry) -> tuple[HeldTable, int]:
        """Hold an entry of a table without an action profile."""
        table = self.direct(entry.table)
        check_call(table.table, entry.action, entry.params)
        return table, admit(table, Held(entry))

    @locked
    def add_indirect(self, table: str, key: Key, member: int, priority: int | None = None) -> int:
        """Add an entry that runs a member of the table's action profile, and return its handle."""
        _, profile = self.indirect(table)
        profile.check_member(member)
        return self.add_to_profile(table, key, priority, member=member)

    @locked
    def add_indirect_group(self, table: str, key: Key, group: int, priority: int | None = None) -> int:
        """Add an entry that chooses from a group of the table's action profile, and return its handle."""
        _, profile = self.indirect(table, groups=True)
        check_choice(profile, group)
        return self.add_to_profile(table, key, priority, group=group)

    def add_to_profile(
        self, name: str, key: Key, priority: int | None, member: int | None = None, group: int | None = None
    ) -> int:
        """Add an entry that names a member or a group that is there."""
        table, profile = self.indirect(name)
        entry = ProfileEntry(name, key, profile.name, calls_of(profile, member, group), priority)
        with self.admitting() as admitted:
            handle = admit(table, Held(entry, member=member, group=group))
            admitted.append((table, handle))
            self.add_to_data_plane(admitted)
        profile.use(member, group, 1)
        return handle

    @locked
    def modify_entry(self, table: str, handle: int, action: str, params: tuple[int, ...] = ()) -> None:
        """Let an entry run another action."""
        found = self.direct(table)
        check_call(found.table, action, params)
        held = found.at(handle)
        assert isinstance(held.entry, TableEntry)
        self.change(held, replace(held.entry, action=action, params=params))

    @locked
    def modify_indirect(self, table: str, handle: int, member: int) -> None:
        """Let an entry run another member."""
        found, profile = self.indirect(table)
        held = found.at(handle)
        profile.check_member(member)
        self.rename(held, profile, member, None)

    @locked
    def modify_indirect_group(self, table: str, handle: int, group: int) -> None:
        """Let an entry choose from another group."""
        found, profile = self.indirect(table, groups=True)
        held = found.at(handle)
        check_choice(profile, group)
        self.rename(held, profile, None, group)

    def rename(self, held: Held, profile: HeldProfile, member: int | None, group: int | None) -> None:
        """Let an entry name this member or group."""
        assert isinstance(held.entry, ProfileEntry)
        self.change(held, replace(held.entry, actions=calls_of(profile, member, group)))
        profile.use(held.member, held.group, -1)
        held.member, held.group = member, group
        profile.use(member, group, 1)

    def change(self, held: Held, entry: Entry) -> None:
        """Let an entry be another one of the same key."""
        self.data_plane.change([entry])
        held.entry = entry

    @locked
    def delete_entry(self, table: str, handle: int) -> None:
        """Remove an entry, of a table with an action profile or without."""
        found = self.table(table)
        check_mutable(found.table)
        held = found.at(handle)
        self.data_plane.remove([held.entry])
        found.release(handle)
        if found.table.profile is not None:
            self.profiles[found.table.profile].use(held.member, held.group, -1)

    @locked
    def clear_table(self, table: str, reset_default: bool = False) -> None:
        """Remove all entries; those of the program as well, as BMv2 does. Handles begin anew."""
        found = self.table(table)
        self.data_plane.remove([held.entry for _, held in found.items()])
        if found.table.profile is not None:
            for _, held in found.items():
                self.profiles[found.table.profile].use(held.member, held.group, -1)
        if reset_default:
            self.reset_default(table)
        found.clear(reset_default)

    @locked
    def find(self, table: str, key: Key, priority: int | None = None) -> int:
        """The handle of the entry with this key and priority."""
        found = self.table(table)
        wanted = TableEntry(table, key, "", (), own_priority(found.table, priority))
        checked(found.table, wanted)
        handle = found.find(key, wanted.priority)
        if handle is None:
            raise Refused(RefusalKind.BAD_MATCH_KEY, f"table '{table}' has no entry for the key {key}")
        return handle

    @locked
    def entry(self, table: str, handle: int) -> HeldEntry:
        found = self.table(table)
        return self.told(found.table, handle, found.at(handle))

    @locked
    def entries(self, table: str) -> list[HeldEntry]:
        """All entries, by their indices."""
        found = self.table(table)
        return [self.told(found.table, handle, held) for handle, held in found.items()]

    @locked
    def entry_count(self, table: str) -> int:
        """How many entries a table has."""
        return len(self.table(table).entries)

    def told(self, table: Table, handle: int, held: Held) -> HeldEntry:
        """An entry as it is told to those who ask."""
        idle_s = self.idle_s(held) if table.idle_timeout else None
        return HeldEntry(handle, held.entry, held.timeout_ms, idle_s, held.member, held.group)

    def idle_s(self, held: Held) -> float:
        """Seconds since an entry matched a packet, was added or got its timeout, whichever was last."""
        idle_s = self.data_plane.idle_s(held.entry)
        return idle_s if held.timed_us is None else min(idle_s, (self.data_plane.now_us() - held.timed_us) / 1e6)

    @locked
    def set_default(self, default: DefaultAction) -> None:
        """Let a table without an action profile run this action on a miss."""
        found = self.direct(default.table)
        check_action(found.table, default.action)
        check_default_mutable(found.table, default.action)
        check_call(found.table, default.action, default.params, mutable=True)
        self.data_plane.set_default(default)
        found.default = HeldDefault(default.action, default.params)

    @locked
    def set_indirect_default(self, table: str, member: int) -> None:
        """Let a table run this member of its action profile on a miss."""
        found, profile = self.indirect(table)
        check_default_mutable(found.table)
        profile.check_member(member)
        self.default_to(found, profile, HeldDefault(member=member))

    @locked
    def set_indirect_group_default(self, table: str, group: int) -> None:
        """Let a table choose from this group of its action profile on a miss."""
        found, profile = self.indirect(table, groups=True)
        check_default_mutable(found.table)
        profile.check_group(group)
        self.default_to(found, profile, HeldDefault(group=group))

    def default_to(self, table: HeldTable, profile: HeldProfile, default: HeldDefault) -> None:
        """Let a table run a member or a group of its profile on a miss."""
        self.data_plane.set_default(self.profile_default(table, default))
        self.forget_default(table)
        table.default = default
        profile.use(default.member, default.group, 1)

    def profile_default(self, table: HeldTable, default: HeldDefault) -> ProfileDefault:
        """What a table runs whose default is a member or a group of its profile."""
        _, profile = self.indirect(table.table.name)
        return ProfileDefault(table.table.name, profile.name, calls_of(profile, default.member, default.group))

    def forget_default(self, table: HeldTable) -> None:
        """Count the member or group of a table's default as used once less."""
        if table.table.profile is not None and table.default is not None:
            self.profiles[table.table.profile].use(table.default.member, table.default.group, -1)

    @locked
    def reset_default(self, table: str) -> None:
        """Let a table run on a miss what its program says."""
        found = self.table(table)
        self.data_plane.reset_default(table)
        self.forget_default(found)
        found.reset_default()

    @locked
    def default(self, table: str) -> HeldDefault:
        """What a table runs on a miss; a refusal if it runs nothing that was set."""
        found = self.table(table)
        if found.default is None:
            raise Refused(RefusalKind.NO_DEFAULT_ENTRY, f"table '{table}' has no default entry")
        return found.default

    def follow_member(self, profile: HeldProfile, member: int) -> None:
        """Let all entries that name a member, or a group that it is in, run what it now is."""
        self.follow(profile, member, {group for group in profile.groups if member in profile.groups[group]})

    def follow_group(self, profile: HeldProfile, group: int) -> None:
        """Let all entries that name a group choose from its members."""
        self.follow(profile, None, {group})

    def follow(self, profile: HeldProfile, member: int | None, groups: set[int]) -> None:
        """Let the entries and defaults that name this member or one of these groups run what they are."""
        for table in self.tables.values():
            if table.table.profile != profile.name:
                continue
            for _, held in table.items():
                if names(held, member, groups):
                    assert isinstance(held.entry, ProfileEntry)
                    calls = calls_of(profile, held.member, held.group)
                    self.change(held, replace(held.entry, actions=calls))
            if table.default is not None and names(table.default, member, groups):
                self.data_plane.set_default(self.profile_default(table, table.default))


def names(held: Held | HeldDefault, member: int | None, groups: set[int]) -> bool:
    """Whether an entry or a default names this member or one of these groups."""
    return (member is not None and held.member == member) or held.group in groups


def calls_of(profile: HeldProfile, member: int | None, group: int | None) -> tuple[Call, ...]:
    """What a member runs, or what a group chooses from."""
    if group is not None:
        return profile.calls_of_group(group)
    assert member is not None
    return (profile.members[member],)


def admit(table: HeldTable, held: Held) -> int:
    """Hold an entry if its key is right and new and there is room, and return its handle."""
    name = table.table.name
    if not table.table.key:
        raise Refused(RefusalKind.NO_TABLE_KEY, f"table '{name}' has no key: it takes no entries")
    priority = own_priority(table.table, held.entry.priority)
    if priority != held.entry.priority:
        held.entry = replace(held.entry, priority=priority)
    checked(table.table, held.entry)
    if table.find(held.entry.key, priority) is not None:
        raise Refused(RefusalKind.DUPLICATE_ENTRY, f"table '{name}' has an entry for the key {held.entry.key}")
    if len(table.entries) >= table.table.size:
        raise Refused(
            RefusalKind.TABLE_FULL, f"table '{name}' is full: the program gives it {table.table.size} entries"
        )
    return table.take(held)


def own_priority(table: Table, priority: int | None) -> int | None:
    """The priority that an entry gets in a table: none where keys cannot overlap, else 0 if it names none."""
    return (priority or 0) if by_priority(table) else None


def check_choice(profile: HeldProfile, group: int) -> None:
    """Refuse a group that is not there, or that has no member to choose."""
    profile.check_group(group)
    if not profile.groups[group]:
        raise Refused(RefusalKind.EMPTY_GRP, f"group {group} of action profile '{profile.name}' is empty")
