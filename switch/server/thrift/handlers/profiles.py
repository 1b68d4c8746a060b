"""Requests for members and groups of action profiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inakit.switch.control.held import HeldGroup, HeldMember
from inakit.switch.server.thrift.description import description
from inakit.switch.server.thrift.handlers.handler import Handler
from inakit.switch.server.thrift.values import message_params, params_of


class ProfileRequests(Handler):
    """Action profiles; those whose groups choose a member have a selector."""

    def bm_mt_act_prof_add_member(self, profile: str, action: str, params: Sequence[bytes]) -> int:
        """Add a member, and return its handle."""
        return self.control.add_member(profile, action, self.member_params(profile, action, params))

    def bm_mt_act_prof_delete_member(self, profile: str, member: int) -> None:
        """Remove a member."""
        self.control.delete_member(profile, member)

    def bm_mt_act_prof_modify_member(self, profile: str, member: int, action: str, params: Sequence[bytes]) -> None:
        """Let a member run another action."""
        self.control.modify_member(profile, member, action, self.member_params(profile, action, params))

    def bm_mt_act_prof_create_group(self, profile: str) -> int:
        """Add a group without members, and return its handle."""
        return self.control.create_group(profile)

    def bm_mt_act_prof_delete_group(self, profile: str, group: int) -> None:
        """Remove a group."""
        self.control.delete_group(profile, group)

    def bm_mt_act_prof_add_member_to_group(self, profile: str, member: int, group: int) -> None:
        """Let a group choose from one member more."""
        self.control.add_member_to_group(profile, member, group)

    def bm_mt_act_prof_remove_member_from_group(self, profile: str, member: int, group: int) -> None:
        """Let a group choose from one member less."""
        self.control.remove_member_from_group(profile, member, group)

    def bm_mt_act_prof_get_members(self, profile: str) -> list[Any]:
        """All members; none of a profile that is not there, as BMv2 answers."""
        known = profile in self.control.program.profiles
        return [told_member(member) for member in self.control.members(profile)] if known else []

    def bm_mt_act_prof_get_member(self, profile: str, member: int) -> Any:
        """One member."""
        return told_member(self.control.member(profile, member))

    def bm_mt_act_prof_get_groups(self, profile: str) -> list[Any]:
        """All groups; none of a profile that is not there, as BMv2 answers."""
        known = profile in self.control.program.profiles
        return [told_group(group) for group in self.control.groups(profile)] if known else []

    def bm_mt_act_prof_get_group(self, profile: str, group: int) -> Any:
        """One group."""
        return told_group(self.control.group(profile, group))

    def member_params(self, profile: str, action: str, params: Sequence[bytes]) -> tuple[int, ...]:
        """The parameters that a message gives for an action of a profile."""
        tables = self.control.program.tables.values()
        actions = [each for table in tables if table.profile == profile for each in table.actions]
        return params_of(actions, action, params)


def told_member(member: HeldMember) -> Any:
    """A member as a message has it."""
    return description().HeldMember(member.handle, member.action, message_params(member.params))


def told_group(group: HeldGroup) -> Any:
    """A group as a message has it."""
    return description().HeldGroup(group.handle, list(group.members))
