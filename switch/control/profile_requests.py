"""Action profiles: members, each an action with its parameters, and groups of members that a selector chooses from."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter

from inakit.switch.control.data_plane import DataPlane
from inakit.switch.control.entry_check import check_params
from inakit.switch.control.requests import Control, Handles, HeldGroup, HeldMember, RefusalKind, Refused, locked
from inakit.switch.program.program import Action, Program
from inakit.topo.errors import InputError

Call = tuple[str, tuple[int, ...]]
"""An action's name and its parameters."""


class HeldProfile:
    """The members and groups of one action profile; `used` and `used_groups` count the entries that name them.

    A member counts as used once more for each group that it is in.
    """

    def __init__(self, name: str, actions: dict[str, Action]) -> None:
        self.name, self.actions = name, actions
        self.members: Handles[Call] = Handles()
        self.groups: Handles[set[int]] = Handles()
        self.used: Counter[int] = Counter()
        self.used_groups: Counter[int] = Counter()

    def check_member(self, member: int) -> None:
        """Refuse a member that is not there."""
        if member not in self.members:
            raise Refused(RefusalKind.INVALID_MBR_HANDLE, f"action profile '{self.name}' has no member {member}")

    def check_group(self, group: int) -> None:
        """Refuse a group that is not there."""
        if group not in self.groups:
            raise Refused(RefusalKind.INVALID_GRP_HANDLE, f"action profile '{self.name}' has no group {group}")

    def call(self, action: str, params: tuple[int, ...]) -> Call:
        """The action with its parameters, checked."""
        found = self.actions.get(action)
        if found is None:
            raise Refused(RefusalKind.INVALID_ACTION_NAME, f"action profile '{self.name}' has no action '{action}'")
        try:
            check_params(f"action profile '{self.name}'", found, params)
        except InputError as error:
            raise Refused(RefusalKind.BAD_ACTION_DATA, str(error)) from error
        return action, params

    def calls_of_group(self, group: int) -> tuple[Call, ...]:
        """What the members of a group run, in the order in which a selector counts them."""
        return tuple(self.members[member] for member in sorted(self.groups[group]))

    def use(self, member: int | None, group: int | None, by: int) -> None:
        """Count entries that begin (1) or cease (-1) to name a member or a group."""
        if member is not None:
            self.used[member] += by
        if group is not None:
            self.used_groups[group] += by


def profiles_of(program: Program) -> dict[str, HeldProfile]:
    made = {}
    for name in program.profiles:
        tables = [table for table in program.tables.values() if table.profile == name]
        made[name] = HeldProfile(name, {action.name: action for table in tables for action in table.actions})
    return made


class ProfileControl(Control):
    """Requests for action profiles. Entries follow whatever happens to the members and groups that they name."""

    def __init__(self, data_plane: DataPlane) -> None:
        super().__init__(data_plane)
        self.profiles = profiles_of(self.program)

    @abstractmethod
    def follow_member(self, profile: HeldProfile, member: int) -> None:
        """Let all entries that name a member, or a group that it is in, run what it now is."""

    @abstractmethod
    def follow_group(self, profile: HeldProfile, group: int) -> None:
        """Let all entries that name a group choose from its members."""

    def profile(self, name: str) -> HeldProfile:
        """The profile of this name, or a refusal."""
        if name not in self.profiles:
            known = ", ".join(self.profiles) or "none"
            raise Refused(RefusalKind.INVALID_ACTION_PROFILE_NAME, f"no action profile '{name}': there are {known}")
        return self.profiles[name]

    @locked
    def add_member(self, profile: str, action: str, params: tuple[int, ...] = ()) -> int:
        """Add a member, and return its handle."""
        held = self.profile(profile)
        return held.members.take(held.call(action, params))

    @locked
    def modify_member(self, profile: str, member: int, action: str, params: tuple[int, ...] = ()) -> None:
        """Let a member run another action; the entries that name it do so at once."""
        held = self.profile(profile)
        call = held.call(action, params)
        held.check_member(member)
        held.members[member] = call
        self.follow_member(held, member)

    @locked
    def delete_member(self, profile: str, member: int) -> None:
        """Remove a member that no entry names and that is in no group."""
        held = self.profile(profile)
        held.check_member(member)
        if held.used[member]:
            raise Refused(RefusalKind.MBR_STILL_USED, f"member {member} of '{profile}' is used by entries or groups")
        held.members.release(member)

    @locked
    def member(self, profile: str, member: int) -> HeldMember:
        held = self.profile(profile)
        held.check_member(member)
        return HeldMember(member, *held.members[member])

    @locked
    def members(self, profile: str) -> list[HeldMember]:
        """All members, by handle."""
        held = self.profile(profile)
        return [HeldMember(member, *held.members[member]) for member in held.members]

    @locked
    def create_group(self, profile: str) -> int:
        """Add an empty group to a profile with a selector, and return its handle."""
        held = self.profile(profile)
        if self.program.profiles[profile].selector is None:
            why = f"action profile '{profile}' has no selector: it has no groups"
            raise Refused(RefusalKind.NO_ACTION_PROFILE_SELECTION, why)
        return held.groups.take(set())

    @locked
    def delete_group(self, profile: str, group: int) -> None:
        """Remove a group that no entry names, whether it is empty or not."""
        held = self.profile(profile)
        held.check_group(group)
        if held.used_groups[group]:
            raise Refused(RefusalKind.GRP_STILL_USED, f"group {group} of '{profile}' is used by entries")
        for member in held.groups[group]:
            held.used[member] -= 1
        held.groups.release(group)

    @locked
    def add_member_to_group(self, profile: str, member: int, group: int) -> None:
        """Let a group choose a member as well."""
        held = self.profile(profile)
        held.check_member(member)
        held.check_group(group)
        if member in held.groups[group]:
            raise Refused(RefusalKind.MBR_ALREADY_IN_GRP, f"member {member} of '{profile}' is in group {group}")
        held.groups[group].add(member)
        held.used[member] += 1
        self.follow_group(held, group)

    @locked
    def remove_member_from_group(self, profile: str, member: int, group: int) -> None:
        """Let a group no longer choose a member. A group that entries name may become empty."""
        held = self.profile(profile)
        held.check_member(member)
        held.check_group(group)
        if member not in held.groups[group]:
            raise Refused(RefusalKind.MBR_NOT_IN_GRP, f"member {member} of '{profile}' is not in group {group}")
        held.groups[group].remove(member)
        held.used[member] -= 1
        self.follow_group(held, group)

    @locked
    def group(self, profile: str, group: int) -> HeldGroup:
        held = self.profile(profile)
        held.check_group(group)
        return HeldGroup(group, tuple(sorted(held.groups[group])))

    @locked
    def groups(self, profile: str) -> list[HeldGroup]:
        """All groups, by handle."""
        held = self.profile(profile)
        return [HeldGroup(group, tuple(sorted(held.groups[group]))) for group in held.groups]
