"""Commands that make members and groups of action profiles."""

from __future__ import annotations

from collections.abc import Sequence

from switch.control.commands.command import Command
from switch.control.commands.handles import Handles
from switch.control.commands.words import parse_number
from switch.control.short_names import whole_name
from switch.program.actions import Action
from switch.program.program import Program

Call = tuple[str, tuple[int, ...]]
"""An action's name and its parameters."""


class WrittenProfiles:
    """The members and groups of each action profile that commands have made so far. A group has handles of members."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.begin()

    def begin(self) -> None:
        """Forget everything."""
        profiles = self.program.profiles
        self.members: dict[str, Handles[Call]] = {name: Handles("member") for name in profiles}
        self.groups: dict[str, Handles[list[int]]] = {name: Handles("group") for name in profiles}

    def calls(self, profile: str, handle: int, grouped: bool) -> tuple[Call, ...]:
        """The action of a member, or those of a group's members, which BMv2 orders by handle."""
        handles = sorted(self.groups[profile].at(handle)) if grouped else [handle]
        return tuple(self.members[profile].at(each) for each in handles)

    def is_grouped(self, profile: str, member: int) -> bool:
        """Whether a group has this member."""
        return any(member in group for group in self.groups[profile])

    def profile(self, name: str) -> str:
        """The action profile that `name` stands for: its own name, or that of a table that has it."""
        tables = {table.name: table.profile for table in self.program.tables.values() if table.profile is not None}
        found = whole_name("action profile", name, [*self.program.profiles, *tables])
        return tables.get(found, found)

    def actions(self, profile: str) -> list[Action]:
        """The actions that members of a profile may have: those of the tables that have it."""
        tables = (table for table in self.program.tables.values() if table.profile == profile)
        return [action for table in tables for action in table.actions]

    def create_member(self, words: Sequence[str]) -> None:
        """`act_prof_create_member`: a new member of a profile."""
        name, action, *params = words
        profile = self.profile(name)
        self.members[profile].add(call_of(self.actions(profile), action, params))

    def modify_member(self, words: Sequence[str]) -> None:
        """`act_prof_modify_member`: another action for a member; an arrow before the parameters is allowed."""
        name, action, handle, *params = words
        profile = self.profile(name)
        called = call_of(self.actions(profile), action, params[params[:1] == ["=>"] :])
        self.members[profile].change(parse_number(handle), called)

    def create_group(self, words: Sequence[str]) -> None:
        """`act_prof_create_group`: a new group without members."""
        (name,) = words
        profile = self.profile(name)
        if self.program.profiles[profile].selector is None:
            raise ValueError(f"action profile '{profile}' has no selector, so no groups")
        self.groups[profile].add([])

    def add_to_group(self, words: Sequence[str]) -> None:
        """`act_prof_add_member_to_group`."""
        name, member, group = words
        profile = self.profile(name)
        self.members[profile].at(parse_number(member))
        self.groups[profile].at(parse_number(group)).append(parse_number(member))

    def remove_from_group(self, words: Sequence[str]) -> None:
        """`act_prof_remove_member_from_group`."""
        name, member, group = words
        held = self.groups[self.profile(name)].at(parse_number(group))
        if parse_number(member) not in held:
            raise ValueError(f"group {group} has no member {member}")
        held.remove(parse_number(member))


def call_of(actions: Sequence[Action], name: str, words: Sequence[str]) -> Call:
    """One of `actions` with the parameters in `words`; `ValueError` for another number of words than it takes."""
    by_name = {action.name: action for action in actions}
    action = by_name[whole_name("action", name, by_name)]
    if len(words) != len(action.parameters):
        raise ValueError(f"action '{action.name}' has {len(action.parameters)} parameters, {len(words)} values given")
    return action.name, tuple(map(parse_number, words))


COMMANDS: dict[str, Command[WrittenProfiles]] = {
    "act_prof_create_member": Command("PROFILE ACTION PARAMETER...", WrittenProfiles.create_member),
    "act_prof_modify_member": Command("PROFILE ACTION MEMBER PARAMETER...", WrittenProfiles.modify_member),
    "act_prof_create_group": Command("PROFILE", WrittenProfiles.create_group),
    "act_prof_add_member_to_group": Command("PROFILE MEMBER GROUP", WrittenProfiles.add_to_group),
    "act_prof_remove_member_from_group": Command("PROFILE MEMBER GROUP", WrittenProfiles.remove_from_group),
}
