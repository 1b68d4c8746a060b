"""Commands that fill tables, with actions of their own or with members and groups of an action profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from switch.control.commands.command import Command
from switch.control.commands.handles import Handles
from switch.control.commands.profiles import WrittenProfiles, call_of
from switch.control.commands.words import parse_key, parse_number, split_at_arrow, split_priority
from switch.control.short_names import whole_name
from switch.entries import DefaultAction, KeyPart, ProfileEntry, TableEntry
from switch.program.pipelines import Table
from switch.program.program import Program


@dataclass(frozen=True)
class IndirectEntry:
    """An entry that names a member of the table's action profile, or (`grouped`) a group of members."""

    table: str
    key: tuple[KeyPart, ...]
    handle: int
    grouped: bool
    priority: int | None


class WrittenTables:
    """The entries and default actions that commands have made so far; `profiles` has the members and groups."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.profiles = WrittenProfiles(program)
        self.begin()

    def begin(self) -> None:
        """Forget everything."""
        entry = "entry of this table"
        self.entries: dict[str, Handles[TableEntry | IndirectEntry]] = {
            name: Handles(entry, versioned=True) for name in self.program.tables
        }
        self.defaults: dict[str, DefaultAction] = {}
        self.profiles.begin()

    def table_entries(self) -> Iterator[TableEntry]:
        """The entries that name an action themselves, those of a table in the order in which they were added."""
        return (entry for held in self.entries.values() for entry in held if isinstance(entry, TableEntry))

    def profile_entries(self) -> Iterator[ProfileEntry]:
        """The entries that name members and groups, with the actions of these."""
        for held in self.entries.values():
            for entry in held:
                if isinstance(entry, IndirectEntry):
                    yield self.resolved(entry)

    def resolved(self, entry: IndirectEntry) -> ProfileEntry:
        """The entry with the actions that its member or its group has now. BMv2 orders members by handle."""
        profile = self.profile_of(self.program.tables[entry.table])
        calls = self.profiles.calls(profile, entry.handle, entry.grouped)
        return ProfileEntry(entry.table, entry.key, profile, calls, entry.priority)

    def entry_number(self, table: str, handle: int) -> int:
        """Which of the table's entries has this handle, counted from 0 in the order in which they were added."""
        self.entries[table].at(handle)
        return list(self.entries[table].made).index(handle)

    def table(self, name: str) -> Table:
        """The table that `name` stands for."""
        return self.program.tables[whole_name("table", name, self.program.tables)]

    def profile_of(self, table: Table) -> str:
        """The action profile of a table; `ValueError` if it has none."""
        if table.profile is None:
            raise ValueError(f"table '{table.name}' has no action profile")
        return table.profile

    def add(self, words: Sequence[str]) -> None:
        """`table_add`: a new entry."""
        name, action, *rest = words
        table = self.table(name)
        if table.profile is not None:
            raise ValueError(f"table '{table.name}' has an action profile: use table_indirect_add")
        key, given = split_at_arrow(rest)
        found = parse_key(table, key)
        by_name = {each.name: each for each in table.actions}
        count = len(by_name[whole_name("action", action, by_name)].parameters)
        params, priority = split_priority(table, given, count)
        self.entries[table.name].add(TableEntry(table.name, found, *call_of(table.actions, action, params), priority))

    def modify(self, words: Sequence[str]) -> None:
        """`table_modify`: another action for an entry that was added; an arrow before the parameters is allowed."""
        name, action, handle, *params = words
        table = self.table(name)
        held = self.entries[table.name]
        entry = held.at(parse_number(handle))
        if not isinstance(entry, TableEntry):
            raise ValueError(f"table '{table.name}' has an action profile: use act_prof_modify_member")
        called, values = call_of(table.actions, action, params[params[:1] == ["=>"] :])
        held.change(parse_number(handle), replace(entry, action=called, params=values))

    def delete(self, words: Sequence[str]) -> None:
        """`table_delete`, `table_indirect_delete`: remove an entry that was added."""
        name, handle = words
        self.entries[self.table(name).name].remove(parse_number(handle))

    def clear(self, words: Sequence[str]) -> None:
        """`table_clear`: remove all entries; the default action stays."""
        (name,) = words
        self.entries[self.table(name).name].clear()

    def set_default(self, words: Sequence[str]) -> None:
        """`table_set_default`: the action that a table runs on a miss."""
        name, action, *params = words
        table = self.table(name)
        self.defaults[table.name] = DefaultAction(table.name, *call_of(table.actions, action, params))

    def reset_default(self, words: Sequence[str]) -> None:
        """`table_reset_default`: the program's own default action again."""
        (name,) = words
        self.defaults.pop(self.table(name).name, None)

    def add_indirect(self, words: Sequence[str], grouped: bool = False) -> None:
        """`table_indirect_add`: an entry that names a member, or (`grouped`) a group."""
        name, *rest = words
        table = self.table(name)
        profile = self.profile_of(table)
        key, given = split_at_arrow(rest)
        (handle,), priority = split_priority(table, given, 1)
        entry = IndirectEntry(table.name, parse_key(table, key), parse_number(handle), grouped, priority)
        self.profiles.calls(profile, entry.handle, grouped)
        self.entries[table.name].add(entry)

    def add_indirect_group(self, words: Sequence[str]) -> None:
        """`table_indirect_add_with_group`: an entry that names a group."""
        self.add_indirect(words, grouped=True)

    def set_indirect_default(self, words: Sequence[str]) -> None:
        """`table_indirect_set_default`: the member whose action a table runs on a miss."""
        name, handle = words
        table = self.table(name)
        (call,) = self.profiles.calls(self.profile_of(table), parse_number(handle), grouped=False)
        self.defaults[table.name] = DefaultAction(table.name, *call)

    def delete_member(self, words: Sequence[str]) -> None:
        """`act_prof_delete_member`: remove a member that nothing names any more."""
        name, number = words
        profile, handle = self.profiles.profile(name), parse_number(number)
        if self.is_named(profile, handle, grouped=False) or self.profiles.is_grouped(profile, handle):
            raise ValueError(f"member {handle} of '{profile}' is in use")
        self.profiles.members[profile].remove(handle)

    def delete_group(self, words: Sequence[str]) -> None:
        """`act_prof_delete_group`: remove a group that no entry names any more."""
        name, number = words
        profile, handle = self.profiles.profile(name), parse_number(number)
        if self.is_named(profile, handle, grouped=True):
            raise ValueError(f"group {handle} of '{profile}' is in use")
        self.profiles.groups[profile].remove(handle)

    def is_named(self, profile: str, handle: int, grouped: bool) -> bool:
        """Whether an entry names this member or group of the profile."""
        tables = [table.name for table in self.program.tables.values() if table.profile == profile]
        named = (entry for table in tables for entry in self.entries[table] if isinstance(entry, IndirectEntry))
        return any((entry.handle, entry.grouped) == (handle, grouped) for entry in named)


COMMANDS: dict[str, Command[WrittenTables]] = {
    "table_add": Command("TABLE ACTION KEY... => PARAMETER... [PRIORITY]", WrittenTables.add),
    "table_modify": Command("TABLE ACTION HANDLE PARAMETER...", WrittenTables.modify),
    "table_delete": Command("TABLE HANDLE", WrittenTables.delete),
    "table_clear": Command("TABLE", WrittenTables.clear),
    "table_set_default": Command("TABLE ACTION PARAMETER...", WrittenTables.set_default),
    "table_reset_default": Command("TABLE", WrittenTables.reset_default),
    "table_indirect_add": Command("TABLE KEY... => MEMBER [PRIORITY]", WrittenTables.add_indirect),
    "table_indirect_add_with_group": Command("TABLE KEY... => GROUP [PRIORITY]", WrittenTables.add_indirect_group),
    "table_indirect_delete": Command("TABLE HANDLE", WrittenTables.delete),
    "table_indirect_set_default": Command("TABLE MEMBER", WrittenTables.set_indirect_default),
    "table_indirect_reset_default": Command("TABLE", WrittenTables.reset_default),
    "act_prof_delete_member": Command("PROFILE MEMBER", WrittenTables.delete_member),
    "act_prof_delete_group": Command("PROFILE GROUP", WrittenTables.delete_group),
}
