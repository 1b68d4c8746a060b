"""Members and groups of action profiles."""

from __future__ import annotations

from collections.abc import Iterator

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.server.p4runtime.entities.container import Container, expect_id
from inakit.switch.server.p4runtime.entities.profile_store import Choice, ProfileStore, watched
from inakit.switch.server.p4runtime.protocol.faults import Code, Fault, invalid
from inakit.switch.server.p4runtime.protocol.messages import Message, v1
from inakit.switch.server.p4runtime.schema.calls import Call, call_message, read_call
from inakit.switch.server.p4runtime.schema.schema import Schema

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
        """The id of the profile."""
        return int(message.action_profile_id)


class Members(ProfileEntities):
    """`ActionProfileMember`: an action with its parameters."""

    member = "action_profile_member"

    def insert(self, message: Message) -> None:
        """Add a member."""
        store = self.store(message.action_profile_id)
        store.check_style(one_shot=False)
        expect_id(message.member_id, "member")
        if message.member_id in store.members:
            raise Fault(Code.ALREADY_EXISTS, f"action profile '{store.name}' has a member {message.member_id}")
        if store.schema.size and len(store.members) >= store.schema.size:
            raise Fault(Code.RESOURCE_EXHAUSTED, f"action profile '{store.name}' has {store.schema.size} members")
        store.members[message.member_id] = store.add_member(call_of(store, message))

    def modify(self, message: Message) -> None:
        """Let a member run another action."""
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
