"""Table entries and default actions: rules, commands, Thrift calls, and the JSON of BF-Runtime.

P4Runtime's `TableEntry`, which includes counts, rates and more, is in `p4runtime_entries.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from inakit.switch.control.action_profiles import ActionProfiles, HeldProfile
from inakit.switch.control.actions import Runs, check_data, read_thrift_params, thrift_action
from inakit.switch.control.codecs import Call, Command, ReadArgument, signed, unsigned
from inakit.switch.control.data_plane import Rates
from inakit.switch.control.entry_check import Identity, by_priority, check_key, identity_of
from inakit.switch.control.match_keys import Key, list_of_part, part_of_list, read_thrift_key, thrift_key
from inakit.switch.control.requests import Core, Entities, Handles, RefusalKind, Refused, locked, unknown
from inakit.switch.entries import DefaultAction, Entry, ProfileDefault, ProfileEntry, TableEntry
from inakit.switch.program.program import Program, Table
from inakit.topo.errors import InputError

VERSION_SHIFT = 24
VERSIONS = 1 << 8
"""The lower 24 bits of an entry's handle are its index; the bits above count how often the index was freed."""


@dataclass(eq=False)
class HeldEntry:
    """A table entry. In a table with an action profile, `member` or `group` is a handle.

    `timeout_ms` is 0 for an entry that never expires; `timed_us` is when it was set. Requests return copies with the
    idle time `idle_s`, which is None in a table without idle timeouts.
    """

    entry: Entry
    handle: int = 0
    timeout_ms: int = 0
    timed_us: int | None = None
    idle_s: float | None = None
    member: int | None = None
    group: int | None = None

    @property
    def index(self) -> int:
        """The index in the handle."""
        return self.handle & (1 << VERSION_SHIFT) - 1

    @property
    def runs(self) -> Runs:
        """The action, the member or the group that the entry runs."""
        if isinstance(self.entry, TableEntry):
            return Runs(self.entry.action, self.entry.params)
        return Runs(member=self.member, group=self.group)


class HeldTable:
    """The entries and the default of one table; `rates` of a direct meter are by index, None for all others.

    As in BMv2, an entry takes over the rates that its index had before.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.entries: Handles[HeldEntry] = Handles()
        self.versions: dict[int, int] = {}
        self.indices: dict[Identity, int] = {}
        self.default: Runs | None = None
        self.overdue: set[int] = set()
        self.rates: dict[int | None, Rates] = {}
        self.reset()

    def reset(self) -> None:
        """Restore the entries, the default and the rates of the program."""
        self.clear(reset_default=True)
        self.rates.clear()
        for const in self.table.entries or ():
            priority = const.priority if by_priority(self.table) else None
            call = const.call
            self.take(HeldEntry(TableEntry(self.table.name, const.key, call.action.name, call.values, priority)))

    def clear(self, reset_default: bool) -> None:
        """Remove all entries, including the program's. Handles start again at 0."""
        self.entries, self.versions, self.indices = Handles(), {}, {}
        self.overdue.clear()
        if reset_default:
            self.default = self.programs_default()

    def programs_default(self) -> Runs | None:
        """The default that the program gives; None in a table with an action profile."""
        call = self.table.default
        return None if call is None or self.table.profile is not None else Runs(call.action.name, call.values)

    def identity(self, held: HeldEntry) -> Identity:
        return identity_of(self.table, held.entry.key, held.entry.priority)

    def take(self, held: HeldEntry) -> HeldEntry:
        """Add a checked entry, and set its handle."""
        index = self.entries.take(held)
        self.indices[self.identity(held)] = index
        held.handle = self.versions.get(index, 0) % VERSIONS << VERSION_SHIFT | index
        return held

    def give_back(self, held: HeldEntry) -> None:
        """Remove an entry and make its handle available again."""
        del self.indices[self.identity(held)]
        self.entries.release(held.index)

    def release(self, held: HeldEntry) -> None:
        """Remove an entry: its index is used again, its handle is not."""
        self.give_back(held)
        self.versions[held.index] = (held.handle >> VERSION_SHIFT) + 1
        self.overdue.discard(held.handle)

    def at(self, handle: int) -> HeldEntry:
        """The entry with this handle, or a refusal."""
        held = self.at_any_version(handle)
        if handle != held.handle:
            why = f"table '{self.table.name}': the entry of handle {handle} is gone"
            raise Refused(RefusalKind.EXPIRED_HANDLE, why)
        return held

    def at_any_version(self, handle: int) -> HeldEntry:
        """The entry at the index of a handle, for any version of the handle; or a refusal."""
        held = self.entries.get(handle & (1 << VERSION_SHIFT) - 1)
        if held is None:
            raise Refused(RefusalKind.INVALID_HANDLE, f"table '{self.table.name}' has no entry of handle {handle}")
        return held

    def all(self) -> Iterator[HeldEntry]:
        """All entries, by index."""
        return (self.entries[index] for index in self.entries)

    def rates_at(self, index: int) -> Rates:
        """The rates of the cell at an index."""
        return self.rates.get(index, self.rates.get(None, ()))

    def set_rates(self, index: int | None, rates: Rates) -> None:
        """Set the rates of one cell, or of all (`index` None)."""
        if index is None:
            self.rates.clear()
        self.rates[index] = rates


def check_fit(table: Table, entry: Entry) -> None:
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

    Unless `mutable`, refuse any action for a table whose entries are const.
    """
    check_action(table, name)
    if not mutable:
        check_mutable(table)
    check_data(f"table '{table.name}'", table.action(name), params)


def check_mutable(table: Table) -> None:
    """Refuse changes to a table whose entries are const in the program."""
    if table.entries is not None:
        why = f"the entries of table '{table.name}' are const in the program"
        raise Refused(RefusalKind.IMMUTABLE_TABLE_ENTRIES, why)


def check_default_mutable(table: Table, action: str | None = None) -> None:
    """Refuse to change a const default, or to set `action` if only the default's parameters can change."""
    if table.default_is_const:
        why = f"the default action of table '{table.name}' is const in the program"
        raise Refused(RefusalKind.DEFAULT_ENTRY_IS_CONST, why)
    if action is not None and action != table.const_default_action(action):
        why = f"table '{table.name}' has a const default action: only its parameters can change"
        raise Refused(RefusalKind.DEFAULT_ACTION_IS_CONST, why)


Expired = tuple[str, int]
"""A table, and the handle of an entry that no packet has matched for its timeout."""


class Tables(Entities):
    """Requests for entries, defaults and idle timeouts. Tables have the full names of the program.

    In a table whose keys can overlap, an entry without a priority gets 0; other tables ignore priorities. An entry
    whose timeout runs out stays; subscribers are notified.
    """

    def __init__(self, core: Core, profiles: ActionProfiles) -> None:
        super().__init__(core)
        self.profiles = profiles
        self.profiles.follow = self.follow
        self.tables = {name: HeldTable(table) for name, table in self.program.tables.items()}
        self.expiry_subscribers: list[Callable[[list[Expired]], None]] = []

    def table(self, name: str) -> HeldTable:
        """The table of this name, or a refusal."""
        if name not in self.tables:
            raise unknown("table", name, self.tables, RefusalKind.INVALID_TABLE_NAME)
        return self.tables[name]

    def direct(self, name: str) -> HeldTable:
        """The table of this name, which must have no action profile."""
        found = self.table(name)
        if found.table.profile is not None:
            why = f"table '{name}' has the action profile '{found.table.profile}': its entries name members or groups"
            raise Refused(RefusalKind.WRONG_TABLE_TYPE, why)
        return found

    def indirect(self, name: str, groups: bool = False) -> tuple[HeldTable, HeldProfile]:
        """The table of this name and its action profile, which needs a selector if entries name `groups`."""
        found = self.table(name)
        profile = found.table.profile
        if profile is None or (groups and self.program.profiles[profile].selector is None):
            missing = "action profile" if profile is None else "selector: its entries name members"
            raise Refused(RefusalKind.WRONG_TABLE_TYPE, f"table '{name}' has no {missing}")
        return found, self.profiles.profiles[profile]

    # entries

    @locked
    def add(
        self,
        table: str,
        key: Key,
        action: str | None = None,
        params: tuple[int, ...] = (),
        *,
        member: int | None = None,
        group: int | None = None,
        priority: int | None = None,
    ) -> int:
        """Add an entry with an action, or a member or group of the table's action profile; return its handle."""
        if action is not None:
            return self.add_entry(TableEntry(table, key, action, params, priority))
        found, profile = self.indirect(table, groups=group is not None)
        check_choice(profile, member, group)
        entry = ProfileEntry(table, key, profile.name, profile.choices(member, group), priority)
        with self.admitting() as admitted:
            held = admit(found, HeldEntry(entry, member=member, group=group))
            admitted.append((found, held))
            self.add_to_data_plane(admitted)
        profile.use(member, group, 1)
        return held.handle

    @locked
    def add_entry(self, entry: TableEntry) -> int:
        """Add an entry, and return its handle."""
        return self.add_entries([entry])[0]

    @locked
    def add_entries(self, entries: Sequence[TableEntry]) -> list[int]:
        """Add entries, and return their handles; if one is refused, none is added."""
        with self.admitting() as admitted:
            for entry in entries:
                admitted.append(self.admit_direct(entry))
            self.add_to_data_plane(admitted)
        return [held.handle for _, held in admitted]

    @locked
    def add_each(self, entries: Sequence[TableEntry]) -> list[int | Refused]:
        """Add the entries that are not refused; return the handle or the refusal of each."""
        answers: list[int | Refused] = []
        with self.admitting() as admitted:
            for entry in entries:
                try:
                    admitted.append(self.admit_direct(entry))
                    answers.append(admitted[-1][1].handle)
                except Refused as refused:
                    answers.append(refused)
            self.add_to_data_plane(admitted)
        return answers

    def add_to_data_plane(self, admitted: Sequence[tuple[HeldTable, HeldEntry]]) -> None:
        """Add entries to the data plane, with the rates of their cells."""
        self.data_plane.add([held.entry for _, held in admitted])
        for table, held in admitted:
            if table.table.meter is not None:
                rates = table.rates_at(held.index)
                if self.data_plane.entry_rates(held.entry) != rates:
                    self.data_plane.set_entry_rates(held.entry, rates)

    @contextmanager
    def admitting(self) -> Iterator[list[tuple[HeldTable, HeldEntry]]]:
        """Remove the entries that the block has added to the list, if the block fails."""
        admitted: list[tuple[HeldTable, HeldEntry]] = []
        try:
            yield admitted
        except Exception:
            for table, held in reversed(admitted):
                table.give_back(held)
            raise

    def admit_direct(self, entry: TableEntry) -> tuple[HeldTable, HeldEntry]:
        table = self.direct(entry.table)
        check_call(table.table, entry.action, entry.params)
        return table, admit(table, HeldEntry(entry))

    @locked
    def modify(
        self,
        table: str,
        handle: int,
        action: str | None = None,
        params: tuple[int, ...] = (),
        *,
        member: int | None = None,
        group: int | None = None,
    ) -> None:
        """Change the action, the member or the group of an entry."""
        if action is not None:
            found = self.direct(table)
            check_call(found.table, action, params)
            held = found.at(handle)
            assert isinstance(held.entry, TableEntry)
            self.change(held, replace(held.entry, action=action, params=params))
            return
        found, profile = self.indirect(table, groups=group is not None)
        held = found.at(handle)
        check_choice(profile, member, group)
        assert isinstance(held.entry, ProfileEntry)
        self.change(held, replace(held.entry, actions=profile.choices(member, group)))
        profile.use(held.member, held.group, -1)
        held.member, held.group = member, group
        profile.use(member, group, 1)

    def change(self, held: HeldEntry, entry: Entry) -> None:
        self.data_plane.change([entry])
        held.entry = entry

    @locked
    def delete(self, table: str, handle: int, profiled: bool | None = None) -> None:
        """Delete an entry. With `profiled`, the table must have an action profile (True) or none (False)."""
        found = self.expect_kind(table, profiled)
        check_mutable(found.table)
        held = found.at(handle)
        self.data_plane.remove([held.entry])
        found.release(held)
        self.unuse(found, held)

    def expect_kind(self, table: str, profiled: bool | None) -> HeldTable:
        """The table of this name; unless `profiled` is None, it must or must not have an action profile."""
        if profiled is None:
            return self.table(table)
        return self.indirect(table)[0] if profiled else self.direct(table)

    def unuse(self, table: HeldTable, held: HeldEntry | Runs | None) -> None:
        """Decrement the uses of the member or the group of an entry or a default."""
        if table.table.profile is not None and held is not None:
            self.profiles.profiles[table.table.profile].use(held.member, held.group, -1)

    @locked
    def clear(self, table: str, reset_default: bool = False) -> None:
        """Remove all entries, including the program's, as in BMv2. Handles start again at 0."""
        found = self.table(table)
        self.data_plane.remove([held.entry for held in found.all()])
        for held in found.all():
            self.unuse(found, held)
        if reset_default:
            self.reset_default(table)
        found.clear(reset_default)

    @locked
    def find(self, table: str, key: Key, priority: int | None = None) -> int:
        """The handle of the entry with this key and priority."""
        found = self.table(table)
        wanted = TableEntry(table, key, "", (), own_priority(found.table, priority))
        check_fit(found.table, wanted)
        index = found.indices.get(identity_of(found.table, key, wanted.priority))
        if index is None:
            raise Refused(RefusalKind.BAD_MATCH_KEY, f"table '{table}' has no entry for the key {key}")
        return found.entries[index].handle

    @locked
    def entry(self, table: str, handle: int) -> HeldEntry:
        found = self.table(table)
        return self.told(found.table, found.at(handle))

    @locked
    def entries(self, table: str) -> list[HeldEntry]:
        """All entries, by their indices."""
        found = self.table(table)
        return [self.told(found.table, held) for held in found.all()]

    @locked
    def count(self, table: str) -> int:
        """The number of entries in a table."""
        return len(self.table(table).entries)

    def told(self, table: Table, held: HeldEntry) -> HeldEntry:
        return replace(held, idle_s=self.idle_s(held) if table.idle_timeout else None)

    # defaults

    @locked
    def set_default(
        self,
        table: str,
        action: str | None = None,
        params: tuple[int, ...] = (),
        *,
        member: int | None = None,
        group: int | None = None,
    ) -> None:
        """Set the action of a table on a miss, or the member or group of its action profile."""
        if action is not None:
            found = self.direct(table)
            check_action(found.table, action)
            check_default_mutable(found.table, action)
            check_call(found.table, action, params, mutable=True)
            self.data_plane.set_default(DefaultAction(table, action, params))
            found.default = Runs(action, params)
            return
        found, profile = self.indirect(table, groups=group is not None)
        check_default_mutable(found.table)
        if group is not None:
            profile.check_group(group)
        else:
            check_choice(profile, member, None)
        default = Runs(member=member, group=group)
        self.data_plane.set_default(self.profile_default(found, default))
        self.unuse(found, found.default)
        found.default = default
        profile.use(member, group, 1)

    def profile_default(self, table: HeldTable, default: Runs) -> ProfileDefault:
        """The default of a table as a member or a group of its profile."""
        name = table.table.name
        _, profile = self.indirect(name)
        return ProfileDefault(name, profile.name, profile.choices(default.member, default.group))

    @locked
    def reset_default(self, table: str, profiled: bool | None = None) -> None:
        """Restore the program's default of a table; `profiled` as in `delete`."""
        found = self.expect_kind(table, profiled)
        self.data_plane.reset_default(table)
        self.unuse(found, found.default)
        found.default = found.programs_default()

    @locked
    def default(self, table: str) -> Runs:
        """The default of a table; a refusal without one."""
        found = self.table(table)
        if found.default is None:
            raise Refused(RefusalKind.NO_DEFAULT_ENTRY, f"table '{table}' has no default entry")
        return found.default

    def follow(self, profile: HeldProfile, member: int | None, groups: set[int]) -> None:
        """Update the entries and defaults that name this member or one of these groups."""

        def names(held: HeldEntry | Runs) -> bool:
            return (member is not None and held.member == member) or held.group in groups

        for table in self.tables.values():
            if table.table.profile != profile.name:
                continue
            for held in table.all():
                if names(held):
                    assert isinstance(held.entry, ProfileEntry)
                    self.change(held, replace(held.entry, actions=profile.choices(held.member, held.group)))
            if table.default is not None and names(table.default):
                self.data_plane.set_default(self.profile_default(table, table.default))

    # idle timeouts

    @locked
    def set_timeout(self, table: str, handle: int, timeout_ms: int) -> None:
        """Set the idle timeout of an entry, starting now; 0 means none."""
        found = self.table(table)
        if not found.table.idle_timeout:
            raise Refused(RefusalKind.AGEING_DISABLED, f"table '{table}' has no `support_timeout` in the program")
        held = found.at_any_version(handle)
        held.timeout_ms, held.timed_us = timeout_ms, self.data_plane.now_us()

    def idle_s(self, held: HeldEntry) -> float:
        """Seconds since the entry last matched a packet, was added or got its timeout, whichever came last."""
        idle_s = self.data_plane.idle_s(held.entry)
        return idle_s if held.timed_us is None else min(idle_s, (self.data_plane.now_us() - held.timed_us) / 1e6)

    def report_expired(self) -> list[Expired]:
        """Notify subscribers of expired entries; call it once a second, as BMv2 does."""
        expired = self.expired()
        for subscriber in list(self.expiry_subscribers) if expired else ():
            subscriber(expired)
        return expired

    @locked
    def expired(self) -> list[Expired]:
        """The expired entries that the last call did not return."""
        found: list[Expired] = []
        for name, table in self.tables.items():
            if not table.table.idle_timeout:
                continue
            timed = (held for held in table.all() if held.timeout_ms)
            late = {held.handle for held in timed if self.idle_s(held) * 1000 >= held.timeout_ms}
            table.overdue, told = late - table.overdue, table.overdue
            found += [(name, handle) for handle in sorted(late - told)]
        return found


def admit(table: HeldTable, held: HeldEntry) -> HeldEntry:
    """Add an entry to a table, or refuse it: its key must be valid and new, and the table must have room."""
    name = table.table.name
    if not table.table.key:
        raise Refused(RefusalKind.NO_TABLE_KEY, f"table '{name}' has no key: it takes no entries")
    priority = own_priority(table.table, held.entry.priority)
    if priority != held.entry.priority:
        held.entry = replace(held.entry, priority=priority)
    check_fit(table.table, held.entry)
    if table.identity(held) in table.indices:
        raise Refused(RefusalKind.DUPLICATE_ENTRY, f"table '{name}' has an entry for the key {held.entry.key}")
    if len(table.entries) >= table.table.size:
        raise Refused(
            RefusalKind.TABLE_FULL, f"table '{name}' is full: the program gives it {table.table.size} entries"
        )
    return table.take(held)


def own_priority(table: Table, priority: int | None) -> int | None:
    """The priority of an entry: None if keys cannot overlap, else the given one, or 0 without one."""
    return (priority or 0) if by_priority(table) else None


def check_choice(profile: HeldProfile, member: int | None, group: int | None) -> None:
    """Refuse an unknown member or group, and an empty group."""
    if group is None:
        assert member is not None, "an entry runs an action, a member or a group"
        profile.check_member(member)
        return
    profile.check_group(group)
    if not profile.groups[group]:
        raise Refused(RefusalKind.EMPTY_GRP, f"group {group} of action profile '{profile.name}' is empty")


# simple_switch_CLI


COMMANDS = {
    "table_add": Command("TABLE ACTION KEY... => PARAMETER... [PRIORITY]", Tables.add),
    "table_modify": Command("TABLE ACTION HANDLE [=>] PARAMETER...", Tables.modify),
    "table_delete": Command("TABLE HANDLE", Tables.delete),
    "table_clear": Command("TABLE", Tables.clear),
    "table_set_default": Command("TABLE ACTION PARAMETER...", Tables.set_default),
    "table_reset_default": Command("TABLE", Tables.reset_default),
    "table_set_timeout": Command("TABLE HANDLE MILLISECONDS", Tables.set_timeout),
    "table_indirect_add": Command("TABLE KEY... => MEMBER [PRIORITY]", Tables.add),
    "table_indirect_add_with_group": Command("TABLE KEY... => GROUP [PRIORITY]", Tables.add),
    "table_indirect_delete": Command("TABLE HANDLE", Tables.delete),
    "table_indirect_set_default": Command("TABLE MEMBER", Tables.set_default),
    "table_indirect_set_default_with_group": Command("TABLE GROUP", Tables.set_default),
    "table_indirect_reset_default": Command("TABLE", Tables.reset_default),
}


# Thrift: like BMv2, report no entries and no default for an unknown table


NO_PRIORITY = -1
"""The priority that BMv2 reports for entries whose keys cannot overlap."""

Told = tuple[Table, HeldEntry] | Runs | None
"""A table entry; or, if there is none, the default of the table."""


def all_entries(tables: Tables, table: str) -> list[Told]:
    return [(tables.table(table).table, held) for held in tables.entries(table)] if table in tables.tables else []


def one_entry(tables: Tables, table: str, handle: int) -> Told:
    return (tables.table(table).table, tables.entry(table, handle)) if table in tables.tables else None


def entry_of_key(tables: Tables, table: str, wanted: Sequence[Any], priority: int) -> Told:
    """The entry with this key; if there is none, the default."""
    if table not in tables.tables or not wanted:
        return default_of(tables, table)
    key = read_thrift_key(tables.table(table).table, wanted)
    return one_entry(tables, table, tables.find(table, key, priority))


def default_of(tables: Tables, table: str) -> Runs | None:
    return tables.tables[table].default if table in tables.tables else None


def thrift_entry(types: Any, told: Told) -> Any:
    """An entry as a Thrift message."""
    if not isinstance(told, tuple):
        return types.HeldEntry([], types.Options(), 0, thrift_action(types, told))
    table, held = told
    idle_ms = round((held.idle_s or 0.0) * 1000)
    return types.HeldEntry(
        match_key=thrift_key(types, table, held.entry.key),
        options=types.Options(NO_PRIORITY if held.entry.priority is None else held.entry.priority),
        entry_handle=signed(held.handle),
        action_entry=thrift_action(types, held.runs),
        life=types.Life(signed(held.timeout_ms), signed(idle_ms)) if held.timeout_ms else None,
    )


ADD, MODIFY = Call(Tables.add, answer=lambda _, handle: signed(handle)), Call(Tables.modify)
SET_DEFAULT, SET_TIMEOUT = Call(Tables.set_default), Call(Tables.set_timeout)
PROFILED, PLAIN = {"profiled": True}, {"profiled": False}

CALLS = {
    "bm_mt_get_num_entries": Call(Tables.count),
    "bm_mt_clear_entries": Call(Tables.clear),
    "bm_mt_add_entry": ADD,
    "bm_mt_indirect_add_entry": ADD,
    "bm_mt_indirect_ws_add_entry": ADD,
    "bm_mt_modify_entry": MODIFY,
    "bm_mt_indirect_modify_entry": MODIFY,
    "bm_mt_indirect_ws_modify_entry": MODIFY,
    "bm_mt_delete_entry": Call(Tables.delete, PLAIN),
    "bm_mt_indirect_delete_entry": Call(Tables.delete, PROFILED),
    "bm_mt_set_entry_ttl": SET_TIMEOUT,
    "bm_mt_indirect_set_entry_ttl": SET_TIMEOUT,
    "bm_mt_set_default_action": SET_DEFAULT,
    "bm_mt_indirect_set_default_member": SET_DEFAULT,
    "bm_mt_indirect_ws_set_default_group": SET_DEFAULT,
    "bm_mt_reset_default_entry": Call(Tables.reset_default, PLAIN),
    "bm_mt_indirect_reset_default_entry": Call(Tables.reset_default, PROFILED),
    "bm_mt_get_entries": Call(all_entries, answer=lambda types, told: [thrift_entry(types, each) for each in told]),
    "bm_mt_get_entry": Call(one_entry, answer=thrift_entry),
    "bm_mt_get_entry_from_key": Call(entry_of_key, answer=thrift_entry),
    "bm_mt_get_default_entry": Call(default_of, answer=thrift_action),
}


def read_params(params: Sequence[bytes], control: Any, given: Mapping[str, Any]) -> dict[str, object]:
    """The parameters of an action of the given table or action profile."""
    if "table" in given:
        actions = control.tables.table(given["table"]).table.actions
    else:
        profile = control.profiles.profiles.get(given["profile"])
        actions = profile.actions.values() if profile is not None else ()
    return {"params": read_thrift_params(actions, given["action"], params)}


ARGUMENTS: dict[str, ReadArgument] = {
    "key": lambda key, control, given: {"key": read_thrift_key(control.tables.table(given["table"]).table, key)},
    "params": read_params,
    "options": lambda options, *_: {"priority": options.priority or 0},
    "handle": lambda handle, *_: {"handle": unsigned(handle)},
    "timeout_ms": lambda timeout_ms, *_: {"timeout_ms": unsigned(timeout_ms)},
}


# BF-Runtime: an entry is an object with `table_name`, `action`, `key` and `data`


PIPE = "pipe."
"""The prefix of the names of a program's tables."""
PRIORITY = "$MATCH_PRIORITY"

Document = dict[str, Any]
"""An entry in BF-Runtime's JSON."""


def entry_document(program: Program, entry: TableEntry) -> Document:
    table = program.table(entry.table)
    key = {part.name: list_of_part(value) for part, value in zip(table.key, entry.key, strict=True)}
    if entry.priority is not None:
        key[PRIORITY] = entry.priority
    names = [parameter.name for parameter in table.action(entry.action).parameters]
    data = dict(zip(names, entry.params, strict=True))
    return {"table_name": f"{PIPE}{entry.table}", "action": entry.action, "key": key, "data": data}


def entry_of_document(table: Table, document: Document) -> TableEntry:
    """The entry in a document; `KeyError`, `TypeError` or `ValueError` if it does not fit the table."""
    key = tuple(part_of_list(part, document["key"][part.name], bfrt_number) for part in table.key)
    names = [parameter.name for parameter in table.action(document["action"]).parameters]
    params = tuple(bfrt_number(document["data"][name]) for name in names)
    priority = bfrt_number(document["key"][PRIORITY]) if by_priority(table) else None
    return TableEntry(table.name, key, document["action"], params, priority)


def bfrt_number(value: Any) -> int:
    """A number; dumps write it as a number or as a text such as 0x0A."""
    return int(value, 0) if isinstance(value, str) else int(value)
