"""The members and groups of an action profile by the ids that clients give them.

A member whose weight in some group is n is n members in the control plane, all with its action, so that a selector
that takes every member as often takes it n times.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from inakit.switch.control.control_plane import ControlPlane
from inakit.switch.program.expressions import PORTS
from inakit.switch.server.p4runtime.protocol.bytestrings import decode
from inakit.switch.server.p4runtime.protocol.faults import Code, Fault, invalid, not_found
from inakit.switch.server.p4runtime.protocol.messages import Message
from inakit.switch.server.p4runtime.schema.calls import Call
from inakit.switch.server.p4runtime.schema.schema import ProfileSchema

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
        """Remove a member that nothing names."""
        for handle in reversed(member.handles):
            self.control.delete_member(self.name, handle)

    def add_group(self, message: Message, choices: list[Choice]) -> Group:
        """A new group that chooses from these."""
        group = Group(self.control.create_group(self.name), message)
        self.choose(group, choices)
        return group

    def choose(self, group: Group, choices: list[Choice]) -> None:
        """Let a group choose from these and from no others."""
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
        """Remove a group that no entry names."""
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
