"""Action profiles: members, each an action with its parameters, and groups of members that a selector chooses from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from inakit.switch.control.actions import ActionData, ActionSchema, action_fields, check_data, read_data, thrift_params
from inakit.switch.control.codecs import (
    ById,
    Call,
    Code,
    Codec,
    Command,
    Fault,
    Fields,
    Message,
    copy_of,
    decode,
    expect_id,
    invalid,
    not_found,
)
from inakit.switch.control.requests import Core, Entities, Handles, RefusalKind, Refused, locked, unknown
from inakit.switch.program.program import PORTS, Action, ActionProfile, Program


class HeldProfile:
    """The members and groups of one action profile; `used` and `used_groups` count the entries that name them.

    A member counts as used once more for each group that it is in.
    """

    def __init__(self, name: str, actions: dict[str, Action]) -> None:
        self.name, self.actions = name, actions
        self.members: Handles[ActionData] = Handles()
        self.groups: Handles[set[int]] = Handles()
        self.used: Counter[int] = Counter()
        self.used_groups: Counter[int] = Counter()

    def check_member(self, member: int) -> None:
        """Refuse a member that does not exist."""
        if member not in self.members:
            raise Refused(RefusalKind.INVALID_MBR_HANDLE, f"action profile '{self.name}' has no member {member}")

    def check_group(self, group: int) -> None:
        """Refuse a group that does not exist."""
        if group not in self.groups:
            raise Refused(RefusalKind.INVALID_GRP_HANDLE, f"action profile '{self.name}' has no group {group}")

    def data(self, action: str, params: tuple[int, ...]) -> ActionData:
        """The action with its parameters, checked."""
        found = self.actions.get(action)
        if found is None:
            raise Refused(RefusalKind.INVALID_ACTION_NAME, f"action profile '{self.name}' has no action '{action}'")
        check_data(f"action profile '{self.name}'", found, params)
        return action, params

    def choices(self, member: int | None, group: int | None) -> tuple[ActionData, ...]:
        """The action of a member, or the actions of a group in the order in which a selector numbers them."""
        members = [member] if group is None else sorted(self.groups[group])
        return tuple(self.members[each] for each in members if each is not None)

    def use(self, member: int | None, group: int | None, by: int) -> None:
        """Add `by` to the uses of a member or a group."""
        if member is not None:
            self.used[member] += by
        if group is not None:
            self.used_groups[group] += by


class ActionProfiles(Entities):
    """Requests for action profiles. `follow` updates the entries that name changed members and groups.

    Its arguments are the profile, the changed member (or None) and the changed groups.
    """

    follow: Callable[[HeldProfile, int | None, set[int]], None]

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self.reset()

    def reset(self) -> None:
        """Remove all members and groups."""
        tables = self.program.tables.values()
        self.profiles = {
            name: HeldProfile(
                name, {each.name: each for table in tables if table.profile == name for each in table.actions}
            )
            for name in self.program.profiles
        }

    def profile(self, name: str) -> HeldProfile:
        """The profile of this name, or a refusal."""
        if name not in self.profiles:
            raise unknown("action profile", name, self.profiles, RefusalKind.INVALID_ACTION_PROFILE_NAME)
        return self.profiles[name]

    @locked
    def add_member(self, profile: str, action: str, params: tuple[int, ...] = ()) -> int:
        """Add a member, and return its handle."""
        held = self.profile(profile)
        return held.members.take(held.data(action, params))

    @locked
    def modify_member(self, profile: str, member: int, action: str, params: tuple[int, ...] = ()) -> None:
        """Change the action of a member, and of the entries that name it."""
        held = self.profile(profile)
        data = held.data(action, params)
        held.check_member(member)
        held.members[member] = data
        self.follow(held, member, {group for group in held.groups if member in held.groups[group]})

    @locked
    def delete_member(self, profile: str, member: int) -> None:
        """Remove a member that no entry and no group uses."""
        held = self.profile(profile)
        held.check_member(member)
        if held.used[member]:
            raise Refused(RefusalKind.MBR_STILL_USED, f"member {member} of '{profile}' is used by entries or groups")
        held.members.release(member)

    @locked
    def member(self, profile: str, member: int) -> ActionData:
        held = self.profile(profile)
        held.check_member(member)
        return held.members[member]

    @locked
    def members(self, profile: str) -> dict[int, ActionData]:
        """All members, by handle."""
        held = self.profile(profile)
        return {member: held.members[member] for member in held.members}

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
    def add_to_group(self, profile: str, member: int, group: int) -> None:
        held = self.profile(profile)
        held.check_member(member)
        held.check_group(group)
        if member in held.groups[group]:
            raise Refused(RefusalKind.MBR_ALREADY_IN_GRP, f"member {member} of '{profile}' is in group {group}")
        held.groups[group].add(member)
        held.used[member] += 1
        self.follow(held, None, {group})

    @locked
    def remove_from_group(self, profile: str, member: int, group: int) -> None:
        """Remove a member from a group. A group that entries name can become empty."""
        held = self.profile(profile)
        held.check_member(member)
        held.check_group(group)
        if member not in held.groups[group]:
            raise Refused(RefusalKind.MBR_NOT_IN_GRP, f"member {member} of '{profile}' is not in group {group}")
        held.groups[group].remove(member)
        held.used[member] -= 1
        self.follow(held, None, {group})

    @locked
    def group(self, profile: str, group: int) -> list[int]:
        """The members of a group, in ascending order."""
        held = self.profile(profile)
        held.check_group(group)
        return sorted(held.groups[group])

    @locked
    def groups(self, profile: str) -> dict[int, list[int]]:
        """The members of all groups, by the groups' handles."""
        held = self.profile(profile)
        return {group: sorted(held.groups[group]) for group in held.groups}


# simple_switch_CLI


NAMED = {
    "create_member": Command("PROFILE ACTION PARAMETER...", ActionProfiles.add_member),
    "modify_member": Command("PROFILE ACTION MEMBER [=>] PARAMETER...", ActionProfiles.modify_member),
    "delete_member": Command("PROFILE MEMBER", ActionProfiles.delete_member),
    "create_group": Command("PROFILE", ActionProfiles.create_group),
    "delete_group": Command("PROFILE GROUP", ActionProfiles.delete_group),
    "add_member_to_group": Command("PROFILE MEMBER GROUP", ActionProfiles.add_to_group),
    "remove_member_from_group": Command("PROFILE MEMBER GROUP", ActionProfiles.remove_from_group),
}
COMMANDS = {f"{prefix}_{name}": each for prefix in ("act_prof", "table_indirect") for name, each in NAMED.items()}
"""Each command has an older name, which takes a table instead of a profile."""


# Thrift


# Like BMv2, report no members and no groups for an unknown profile


def one_member(profiles: ActionProfiles, profile: str, member: int) -> dict[int, ActionData]:
    return {member: profiles.member(profile, member)}


def all_members(profiles: ActionProfiles, profile: str) -> dict[int, ActionData]:
    return profiles.members(profile) if profile in profiles.profiles else {}


def thrift_members(types: Any, members: dict[int, ActionData]) -> list[Any]:
    return [types.HeldMember(number, name, thrift_params(params)) for number, (name, params) in members.items()]


def one_group(profiles: ActionProfiles, profile: str, group: int) -> dict[int, list[int]]:
    return {group: profiles.group(profile, group)}


def all_groups(profiles: ActionProfiles, profile: str) -> dict[int, list[int]]:
    return profiles.groups(profile) if profile in profiles.profiles else {}


def thrift_groups(types: Any, groups: dict[int, list[int]]) -> list[Any]:
    return [types.HeldGroup(number, members) for number, members in groups.items()]


CALLS = {
    "bm_mt_act_prof_add_member": Call(ActionProfiles.add_member),
    "bm_mt_act_prof_delete_member": Call(ActionProfiles.delete_member),
    "bm_mt_act_prof_modify_member": Call(ActionProfiles.modify_member),
    "bm_mt_act_prof_create_group": Call(ActionProfiles.create_group),
    "bm_mt_act_prof_delete_group": Call(ActionProfiles.delete_group),
    "bm_mt_act_prof_add_member_to_group": Call(ActionProfiles.add_to_group),
    "bm_mt_act_prof_remove_member_from_group": Call(ActionProfiles.remove_from_group),
    "bm_mt_act_prof_get_members": Call(all_members, answer=thrift_members),
    "bm_mt_act_prof_get_member": Call(one_member, answer=lambda types, members: thrift_members(types, members)[0]),
    "bm_mt_act_prof_get_groups": Call(all_groups, answer=thrift_groups),
    "bm_mt_act_prof_get_group": Call(one_group, answer=lambda types, groups: thrift_groups(types, groups)[0]),
}


# P4Runtime: a member whose greatest weight in a group is n becomes n members with its action in the control plane, so
# that a selector that takes all members equally often takes it n times


MOST_WEIGHT = 4096
"""The greatest sum of the weights of a group."""


@dataclass(frozen=True)
class ProfileSchema:
    """An action profile; `actions` are those of its tables. A size of 0 means no limit."""

    id: int
    name: str
    with_selector: bool
    actions: Mapping[int, ActionSchema]
    size: int
    max_group_size: int
    of_members: bool
    max_member_weight: int
    weights_disallowed: bool


def read_profiles(
    p4info: Message, program: Program, actions_of: Mapping[int, Mapping[int, ActionSchema]]
) -> ById[ProfileSchema]:
    """The action profiles of a P4Info; a fault if one names an unknown table. `actions_of` is by table."""

    def read(each: Message, profile: ActionProfile) -> ProfileSchema:
        if missing := [number for number in each.table_ids if number not in actions_of]:
            raise invalid(f"P4Info: action profile '{each.preamble.name}' names no table: {missing}")
        return ProfileSchema(
            id=each.preamble.id,
            name=each.preamble.name,
            with_selector=profile.selector is not None,
            actions={key: action for number in each.table_ids for key, action in actions_of[number].items()},
            size=each.size,
            max_group_size=each.max_group_size,
            of_members=each.WhichOneof("selector_size_semantics") == "sum_of_members",
            max_member_weight=each.sum_of_members.max_member_weight,
            weights_disallowed=each.weights_disallowed,
        )

    return ById("action profile", p4info.action_profiles, program.profiles, read)


@dataclass(eq=False)
class Member:
    """A member: its action, and its handles in the control plane, one for each unit of its greatest weight."""

    data: ActionData
    handles: list[int]


@dataclass(eq=False)
class Choice:
    """A member's part in a group."""

    member: Member
    weight: int
    watch_port: int | None


@dataclass(eq=False)
class Group:
    """A group with its handle in the control plane and its choices. `message` is the one that the client sent."""

    handle: int
    message: Message
    choices: list[Choice] = field(default_factory=list)


class ProfileStore:
    """The members and groups of one action profile by the clients' ids; `one_shots` are action sets, by handle.

    `down` holds the ports that are down; a selector does not choose the members that watch them.
    """

    def __init__(self, schema: ProfileSchema, requests: ActionProfiles) -> None:
        self.schema, self.requests, self.name = schema, requests, schema.name
        self.members: dict[int, Member] = {}
        self.groups: dict[int, Group] = {}
        self.one_shots: dict[int, Group] = {}
        self.down: frozenset[int] = frozenset()

    def member(self, number: int) -> Member:
        """The member of this id, or a fault."""
        if number not in self.members:
            raise not_found(f"action profile '{self.name}' has no member {number}")
        return self.members[number]

    def group(self, number: int) -> Group:
        """The group of this id, or a fault."""
        if number not in self.groups:
            raise not_found(f"action profile '{self.name}' has no group {number}")
        return self.groups[number]

    def add_member(self, data: ActionData) -> Member:
        """A new member, in no group."""
        return Member(data, [self.requests.add_member(self.name, *data)])

    def remove_member(self, member: Member) -> None:
        for handle in reversed(member.handles):
            self.requests.delete_member(self.name, handle)

    def add_group(self, message: Message, choices: list[Choice]) -> Group:
        group = Group(self.requests.create_group(self.name), copy_of(message))
        self.choose(group, choices)
        return group

    def choose(self, group: Group, choices: list[Choice]) -> None:
        """Replace the choices of a group; each member has as many handles as its greatest weight."""
        before, group.choices = group.choices, choices
        for choice in choices:
            while len(choice.member.handles) < choice.weight:
                choice.member.handles.append(self.requests.add_member(self.name, *choice.member.data))
        self.refresh(group)
        self.trim(choice.member for choice in before)

    def refresh(self, group: Group) -> None:
        """Update a group in the control plane to the members whose ports are up; additions come first."""
        up = [choice for choice in group.choices if choice.watch_port not in self.down]
        wanted = {handle for choice in up for handle in choice.member.handles[: choice.weight]}
        present = set(self.requests.group(self.name, group.handle))
        for handle in sorted(wanted - present):
            self.requests.add_to_group(self.name, handle, group.handle)
        for handle in sorted(present - wanted):
            self.requests.remove_from_group(self.name, handle, group.handle)

    def trim(self, members: Iterable[Member]) -> None:
        """Remove copies of members that no group needs any more."""
        groups = (*self.groups.values(), *self.one_shots.values())
        for member in {id(each): each for each in members}.values():
            weights = [each.weight for group in groups for each in group.choices if each.member is member]
            while len(member.handles) > max([1, *weights]):
                self.requests.delete_member(self.name, member.handles.pop())

    def remove_group(self, group: Group) -> None:
        self.requests.delete_group(self.name, group.handle)
        choices, group.choices = group.choices, []
        self.trim(choice.member for choice in choices)

    def add_one_shot(self, message: Message, actions: Mapping[int, ActionSchema], where: str) -> Group:
        """Add a group of new members, one for each action of an `ActionProfileActionSet`."""
        self.check_style(one_shot=True)
        listed = message.action_profile_actions
        if not listed:
            raise invalid("a set of actions is empty: it needs one or more")
        if message.HasField("group_action"):
            raise Fault(Code.UNIMPLEMENTED, "BMv2 runs no group_action before the action that is chosen")
        if message.action_selection_mode == RANDOM:
            raise Fault(Code.UNIMPLEMENTED, "the action is chosen by the selector's hash, not at random")
        try:
            self.check_weights([each.weight for each in listed], self.schema.max_group_size)
        except Fault as fault:
            raise invalid(str(fault)) from fault
        data = [read_data(actions, each.action, where) for each in listed]
        ports = [watched(each) for each in listed]
        members = [self.add_member(each) for each in data]
        weights = [each.weight or 1 for each in listed]
        choices = [Choice(*each) for each in zip(members, weights, ports, strict=True)]
        group = self.add_group(message, choices)
        self.one_shots[group.handle] = group
        return group

    def drop_one_shot(self, handle: int | None) -> None:
        """Remove the group of an action set with its members, if `handle` is that of an action set."""
        group = self.one_shots.pop(handle, None) if handle is not None else None
        if group is not None:
            members = [choice.member for choice in group.choices]
            self.remove_group(group)
            for member in members:
                self.remove_member(member)

    def ports_down(self, down: frozenset[int]) -> None:
        """Update groups after ports went up or down."""
        changed, self.down = down ^ self.down, down
        for group in (*self.groups.values(), *self.one_shots.values()):
            if any(choice.watch_port in changed for choice in group.choices):
                self.refresh(group)

    def check_style(self, one_shot: bool) -> None:
        """Raise a fault if a profile mixes members and groups with action sets."""
        if self.members if one_shot else self.one_shots:
            raise invalid(f"action profile '{self.name}' has either members and groups, or action sets in entries")

    def check_weights(self, weights: list[int], most: int) -> None:
        """Raise a fault if the profile does not allow these weights, or if their sum exceeds `most` (0: no limit)."""
        if self.schema.weights_disallowed and any(weights):
            raise invalid(f"action profile '{self.name}' allows no weights: omit them")
        if not self.schema.weights_disallowed and any(weight <= 0 for weight in weights):
            raise invalid(f"action profile '{self.name}': the weights {weights[:8]} must be 1 or more")
        heaviest = self.schema.max_member_weight
        if self.schema.of_members and heaviest and any(weight > heaviest for weight in weights):
            raise invalid(f"action profile '{self.name}': a weight is more than {heaviest}")
        size = len(weights) if self.schema.of_members else sum(weights)
        if most and size > most:
            raise Fault(Code.RESOURCE_EXHAUSTED, f"a group of action profile '{self.name}' has {size}, at most {most}")
        if sum(weights) > MOST_WEIGHT:
            raise Fault(Code.RESOURCE_EXHAUSTED, f"the weights of a group sum up to at most {MOST_WEIGHT}")


RANDOM = 2
"""The number of `ActionSelectionMode.RANDOM`."""


def watched(message: Message) -> int | None:
    """The port that a member or an action of a set watches; None if it watches none."""
    kind = message.WhichOneof("watch_kind")
    if kind == "watch":
        return int(message.watch) or None
    if kind is None or not message.watch_port:
        return None
    try:
        return decode(message.watch_port, (PORTS - 1).bit_length(), "watch_port")
    except Fault as fault:
        raise invalid(str(fault)) from fault


class ProfileCodec(Codec):
    """The base of the codecs of members and groups."""

    id_field = "action_profile_id"

    def __init__(self, profiles: ById[ProfileStore]) -> None:
        self.profiles = profiles

    def store(self, message: Message) -> ProfileStore:
        """The action profile that an update concerns, or a fault."""
        return self.profiles.expect(message.action_profile_id)


class MemberCodec(ProfileCodec):
    """`ActionProfileMember`: an action with its parameters."""

    member = "action_profile_member"

    def insert(self, message: Message) -> None:
        store, number = self.store(message), message.member_id
        store.check_style(one_shot=False)
        expect_id(number, "member")
        if number in store.members:
            raise Fault(Code.ALREADY_EXISTS, f"action profile '{store.name}' has a member {number}")
        if store.schema.size and len(store.members) >= store.schema.size:
            raise Fault(Code.RESOURCE_EXHAUSTED, f"action profile '{store.name}' has {store.schema.size} members")
        store.members[number] = store.add_member(self.data(store, message))

    def modify(self, message: Message) -> None:
        store = self.store(message)
        member, data = store.member(message.member_id), self.data(store, message)
        for handle in member.handles:
            store.requests.modify_member(store.name, handle, *data)
        member.data = data

    def delete(self, message: Message) -> None:
        """Remove a member that no group and no entry uses."""
        store = self.store(message)
        member = store.member(message.member_id)
        if any(choice.member is member for group in store.groups.values() for choice in group.choices):
            raise Fault(Code.FAILED_PRECONDITION, f"member {message.member_id} of '{store.name}' is in a group")
        store.remove_member(member)
        del store.members[message.member_id]

    def read(self, message: Message) -> Iterator[Fields]:
        """One member, all members of one profile, or all members."""
        found: list[Fields] = []
        for store in self.profiles.selected(message.action_profile_id):
            one = message.member_id and message.action_profile_id
            for number in [message.member_id] if one else store.members:
                if number in store.members:
                    action = action_fields(store.schema.actions, store.members[number].data)
                    found.append({"action_profile_id": store.schema.id, "member_id": number, "action": action})
        return iter(found)

    def data(self, store: ProfileStore, message: Message) -> ActionData:
        """The action of a member; a fault if it has none."""
        if not message.HasField("action"):
            raise invalid(f"member {message.member_id} of '{store.name}': its action is missing")
        return read_data(store.schema.actions, message.action, f"action profile '{store.name}'")


class GroupCodec(ProfileCodec):
    """`ActionProfileGroup`: members with weights."""

    member = "action_profile_group"

    def insert(self, message: Message) -> None:
        """Add a group of existing members."""
        store, number = self.store(message), message.group_id
        store.check_style(one_shot=False)
        expect_id(number, "group")
        if not store.schema.with_selector:
            raise invalid(f"action profile '{store.name}' has no selector: it takes no groups")
        if number in store.groups:
            raise Fault(Code.ALREADY_EXISTS, f"action profile '{store.name}' has a group {number}")
        most = store.schema.max_group_size
        if message.max_size < 0 or (most and message.max_size > most):
            raise invalid(f"a group of action profile '{store.name}' has a max_size of 0 to {most or 'any number'}")
        store.groups[number] = store.add_group(message, self.choices(store, message))

    def modify(self, message: Message) -> None:
        store = self.store(message)
        group = store.group(message.group_id)
        if message.max_size != group.message.max_size:
            raise invalid(f"group {message.group_id}: its max_size stays {group.message.max_size}")
        store.choose(group, self.choices(store, message))
        group.message = copy_of(message)

    def delete(self, message: Message) -> None:
        """Remove a group that no entry names."""
        store = self.store(message)
        store.remove_group(store.group(message.group_id))
        del store.groups[message.group_id]

    def read(self, message: Message) -> Iterator[Message]:
        """One group, all groups of one profile, or all groups."""
        found = []
        for store in self.profiles.selected(message.action_profile_id):
            one = message.group_id and message.action_profile_id
            for number in [message.group_id] if one else store.groups:
                if number in store.groups:
                    found.append(copy_of(store.groups[number].message))
        return iter(found)

    def choices(self, store: ProfileStore, message: Message) -> list[Choice]:
        """The choices in a message, checked for duplicates and weights."""
        numbers = [each.member_id for each in message.members]
        if len(set(numbers)) < len(numbers):
            raise invalid(f"group {message.group_id}: a member is in it twice; use its weight")
        store.check_weights([each.weight for each in message.members], message.max_size or store.schema.max_group_size)
        return [Choice(store.member(each.member_id), each.weight or 1, watched(each)) for each in message.members]
