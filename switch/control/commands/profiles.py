"""Commands for members and groups of action profiles."""

from __future__ import annotations

from inakit.switch.control.commands.command import Command, CommandedSwitch
from inakit.switch.control.commands.words import Words, behind_arrow, parse_params
from inakit.switch.control.commands.words import parse_number as number


def create_member(switch: CommandedSwitch, words: Words) -> None:
    """`act_prof_create_member`: a new member."""
    name, called, *params = words
    profile = switch.profile(name)
    action = switch.profile_action(profile, called)
    switch.control.add_member(profile, action.name, parse_params(action, params))


def modify_member(switch: CommandedSwitch, words: Words) -> None:
    """`act_prof_modify_member`: another action for a member; an arrow before the parameters is allowed."""
    name, called, member, *params = words
    profile = switch.profile(name)
    action = switch.profile_action(profile, called)
    switch.control.modify_member(profile, number(member), action.name, parse_params(action, behind_arrow(params)))


def delete_member(switch: CommandedSwitch, words: Words) -> None:
    """`act_prof_delete_member`: a member that nothing names goes."""
    name, member = words
    switch.control.delete_member(switch.profile(name), number(member))


def create_group(switch: CommandedSwitch, words: Words) -> None:
    """`act_prof_create_group`: a new group without members."""
    (name,) = words
    profile = switch.profile(name)
    if switch.program.profiles[profile].selector is None:
        raise ValueError(f"action profile '{profile}' has no selector, so no groups")
    switch.control.create_group(profile)


def delete_group(switch: CommandedSwitch, words: Words) -> None:
    """`act_prof_delete_group`: a group that no entry names goes."""
    name, group = words
    switch.control.delete_group(switch.profile(name), number(group))


def add_to_group(switch: CommandedSwitch, words: Words) -> None:
    """`act_prof_add_member_to_group`."""
    name, member, group = words
    switch.control.add_member_to_group(switch.profile(name), number(member), number(group))


def remove_from_group(switch: CommandedSwitch, words: Words) -> None:
    """`act_prof_remove_member_from_group`."""
    name, member, group = words
    switch.control.remove_member_from_group(switch.profile(name), number(member), number(group))


NAMED = {
    "act_prof_create_member": Command("PROFILE ACTION PARAMETER...", create_member),
    "act_prof_modify_member": Command("PROFILE ACTION MEMBER PARAMETER...", modify_member),
    "act_prof_delete_member": Command("PROFILE MEMBER", delete_member),
    "act_prof_create_group": Command("PROFILE", create_group),
    "act_prof_delete_group": Command("PROFILE GROUP", delete_group),
    "act_prof_add_member_to_group": Command("PROFILE MEMBER GROUP", add_to_group),
    "act_prof_remove_member_from_group": Command("PROFILE MEMBER GROUP", remove_from_group),
}
COMMANDS = NAMED | {name.replace("act_prof", "table_indirect"): command for name, command in NAMED.items()}
"""Each has an older name, which takes a table instead of a profile."""
