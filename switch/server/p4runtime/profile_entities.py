"""Members and groups of action profiles, by the ids that clients give them.

A member whose weight in some group is n is n members in the control plane, all with its action, so that a selector
that takes every member as often takes it n times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.program.expressions import PORTS
from inakit.switch.server.p4runtime.container import Container, expect_id
from inakit.switch.server.p4runtime.messages import Code, Fault, Message, decode, invalid, not_found, v1
from inakit.switch.server.p4runtime.schema import Call, ProfileSchema, Schema, call_message, read_call

MOST_WEIGHT = 4096
"""The weights of a group sum up to at most this number."""


@dataclass(eq=False)
class Member:
    """A member: its action, and its handles in the control plane, one for each unit of its greatest weight."""

    call: Call
    handles: list[int]


@dataclass(eq=False)
class Choice:
    """A member's part in a group."""

    member: Member
    weight: int
    watch_port: int | None


@dataclass(eq=False)
class Group:
    """A group in the control plane, and what it chooses from. `message` is what the client has written."""

    handle: int
    message: Message
    choices: list[Choice] = field(default_factory=list)


class ProfileStore:
    """One action profile. `down` are the ports that are down, whose watchers are not chosen."""

    def __init__(self, schema: ProfileSchema, control: ControlPlane) -> None:
        self.schema, self.control, self.name = schema, control, schema.name
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

    def add_member(self, call: Call) -> Member:
        """A new member, in no group."""
        return Member(call, [self.control.add_member(self.name, *call)])

    def change_member(self, member: Member, call: Call) -> None:
        """Let a member run another action."""
        for handle in member.handles:
            self.control.modify_member(self.name, handle, *call)
        member.call = call

    def remove_member(self, member: Member) -> None:
        for handle in reversed(member.handles):
            self.control.delete_member(self.name, handle)

    def add_group(self, message: Message, choices: list[Choice]) -> Group:
        group = Group(self.control.create_group(self.name), message)
        self.choose(group, choices)
        return group

    def choose(self, group: Group, choices: list[Choice]) -> None:
        before, group.choices = group.choices, choices
        for choice in choices:
            self.copy(choice.member, choice.weight)
        self.refresh(group)
        self.trim(choice.member for choice in before)

    def copy(self, member: Member, count: int) -> None:
        """Let a member be at least `count` members of the control plane."""
        while len(member.handles) < count:
            member.handles.append(self.control.add_member(self.name, *member.call))

    def refresh(self, group: Group) -> None:
        """Put into a group the members whose ports are up, and only these; additions come first."""
        up = [choice for choice in group.choices if choice.watch_port not in self.down]
        wanted = {handle for choice in up for handle in choice.member.handles[: choice.weight]}
        present = set(self.control.group(self.name, group.handle).members)
        for handle in sorted(wanted - present):
            self.control.add_member_to_group(self.name, handle, group.handle)
        for handle in sorted(present - wanted):
            self.control.remove_member_from_group(self.name, handle, group.handle)

    def trim(self, members: Iterable[Member]) -> None:
        """Remove the copies of members that no group needs any longer."""
        groups = (*self.groups.values(), *self.one_shots.values())
        for member in {id(each): each for each in members}.values():
            weights = [each.weight for group in groups for each in group.choices if each.member is member]
            while len(member.handles) > max([1, *weights]):
                self.control.delete_member(self.name, member.handles.pop())

    def remove_group(self, group: Group) -> None:
        self.control.delete_group(self.name, group.handle)
        choices, group.choices = group.choices, []
        self.trim(choice.member for choice in choices)

    def ports_down(self, down: frozenset[int]) -> None:
        """Let groups choose only from members whose ports are up."""
        changed, self.down = down ^ self.down, down
        for group in (*self.groups.values(), *self.one_shots.values()):
            if any(choice.watch_port in changed for choice in group.choices):
                self.refresh(group)

    def check_style(self, one_shot: bool) -> None:
        """Raise a fault if the profile is used by members and groups and by action sets at once."""
        if self.members if one_shot else self.one_shots:
            raise invalid(f"action profile '{self.name}' has either members and groups, or action sets in entries")

    def check_weights(self, weights: list[int], most: int) -> None:
        """Raise a fault for weights that the profile does not take, or that are more than `most` (0: no limit)."""
        if self.schema.weights_disallowed and any(weights):
            raise invalid(f"action profile '{self.name}' allows no weights: leave them out")
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


Stores = dict[int, ProfileStore]
"""The action profiles by their ids."""


class ProfileEntities(Container):
    """What members and groups share: the profile that they are of."""

    def __init__(self, schema: Schema, control: ControlPlane, stores: Stores) -> None:
        super().__init__(schema, control)
        self.stores = stores

    def store(self, number: int) -> ProfileStore:
        """The action profile of this id, or a fault."""
        expect_id(number, "action profile")
        self.schema.find(self.schema.profiles, number, "action profile")
        return self.stores[number]

    def selected(self, number: int) -> list[ProfileStore]:
        """The profile of this id, or all for 0."""
        return [self.store(number)] if number else list(self.stores.values())

    def scope(self, message: Message) -> int:
        return int(message.action_profile_id)


class Members(ProfileEntities):
    """`ActionProfileMember`: an action with its parameters."""

    member = "action_profile_member"

    def insert(self, message: Message) -> None:
        store = self.store(message.action_profile_id)
        store.check_style(one_shot=False)
        expect_id(message.member_id, "member")
        if message.member_id in store.members:
            raise Fault(Code.ALREADY_EXISTS, f"action profile '{store.name}' has a member {message.member_id}")
        if store.schema.size and len(store.members) >= store.schema.size:
            raise Fault(Code.RESOURCE_EXHAUSTED, f"action profile '{store.name}' has {store.schema.size} members")
        store.members[message.member_id] = store.add_member(call_of(store, message))

    def modify(self, message: Message) -> None:
        store = self.store(message.action_profile_id)
        store.change_member(store.member(message.member_id), call_of(store, message))

    def delete(self, message: Message) -> None:
        """Remove a member that is in no group and in no entry."""
        store = self.store(message.action_profile_id)
        member = store.member(message.member_id)
        if any(choice.member is member for group in store.groups.values() for choice in group.choices):
            raise Fault(Code.FAILED_PRECONDITION, f"member {message.member_id} of '{store.name}' is in a group")
        store.remove_member(member)
        del store.members[message.member_id]

    def read(self, message: Message) -> Iterator[Message]:
        """One member, or all of one profile, or of all."""
        found = []
        for store in self.selected(message.action_profile_id):
            for number in [message.member_id] if message.member_id and message.action_profile_id else store.members:
                member = store.members.get(number)
                if member is not None:
                    found.append(self.message_of(store, number, member.call))
        return iter(found)

    def message_of(self, store: ProfileStore, number: int, call: Call) -> Message:
        """A member as clients read it."""
        ids = {action.name: action.id for action in store.schema.actions.values()}
        action = call_message(store.schema.actions, ids, call)
        return v1.ActionProfileMember(action_profile_id=store.schema.id, member_id=number, action=action)


class Groups(ProfileEntities):
    """`ActionProfileGroup`: members with weights."""

    member = "action_profile_group"

    def insert(self, message: Message) -> None:
        """Add a group of members that are there."""
        store = self.store(message.action_profile_id)
        store.check_style(one_shot=False)
        expect_id(message.group_id, "group")
        if not store.schema.with_selector:
            raise invalid(f"action profile '{store.name}' has no selector: it takes no groups")
        if message.group_id in store.groups:
            raise Fault(Code.ALREADY_EXISTS, f"action profile '{store.name}' has a group {message.group_id}")
        most = store.schema.max_group_size
        if message.max_size < 0 or (most and message.max_size > most):
            raise invalid(f"a group of action profile '{store.name}' has a max_size of 0 to {most or 'any number'}")
        choices = choices_of(store, message)
        store.groups[message.group_id] = store.add_group(copy_of(message), choices)

    def modify(self, message: Message) -> None:
        """Let a group choose from other members."""
        store = self.store(message.action_profile_id)
        group = store.group(message.group_id)
        if message.max_size != group.message.max_size:
            raise invalid(f"group {message.group_id}: its max_size stays {group.message.max_size}")
        store.choose(group, choices_of(store, message))
        group.message = copy_of(message)

    def delete(self, message: Message) -> None:
        """Remove a group that no entry names."""
        store = self.store(message.action_profile_id)
        store.remove_group(store.group(message.group_id))
        del store.groups[message.group_id]

    def read(self, message: Message) -> Iterator[Message]:
        """One group, or all of one profile, or of all."""
        found = []
        for store in self.selected(message.action_profile_id):
            for number in [message.group_id] if message.group_id and message.action_profile_id else store.groups:
                if number in store.groups:
                    found.append(copy_of(store.groups[number].message))
        return iter(found)


def call_of(store: ProfileStore, message: Message) -> Call:
    """The action of a member; a fault if it has none."""
    if not message.HasField("action"):
        raise invalid(f"member {message.member_id} of '{store.name}': its action is missing")
    return read_call(store.schema.actions, message.action, f"action profile '{store.name}'")


def choices_of(store: ProfileStore, message: Message) -> list[Choice]:
    """What a group chooses from, checked for duplicates and weights."""
    numbers = [each.member_id for each in message.members]
    if len(set(numbers)) < len(numbers):
        raise invalid(f"group {message.group_id}: a member is in it twice; use its weight")
    store.check_weights([each.weight for each in message.members], message.max_size or store.schema.max_group_size)
    return [Choice(store.member(each.member_id), each.weight or 1, watched(each)) for each in message.members]


def copy_of(message: Message) -> Message:
    """A copy, so that it stays as it is whatever becomes of the request."""
    copy = type(message)()
    copy.CopyFrom(message)
    return copy
