"""Action profiles: members, groups with weights and watch ports, and sets of actions at one shot."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from p4runtime_client import Client, Refusal, exact, update

from inakit.switch.control.codecs import Code
from inakit.switch.entries import ProfileEntry
from inakit.switch.server.p4runtime.messages import Message, v1

if TYPE_CHECKING:
    from inakit.switch.control.control_plane import ControlPlane
    from inakit.switch.server.served_switch import ServedSwitch

pytest_plugins = ["p4runtime_fixtures"]


@pytest.fixture
def control(server: tuple[ServedSwitch, str], client: Client) -> ControlPlane:
    """The control plane of the program that the client has set."""
    assert client.info.tables
    return server[0].control


def member(client: Client, number: int, port: int, profile: str = "groups") -> Message:
    """A member that sends by a port."""
    call = client.action("send", port)
    return v1.ActionProfileMember(
        action_profile_id=client.id("action_profiles", profile), member_id=number, action=call
    )


def group(client: Client, number: int, weights: dict[int, int], **more: int) -> Message:
    """A group of members with weights."""
    made = v1.ActionProfileGroup(action_profile_id=client.id("action_profiles", "groups"), group_id=number, **more)
    for each, weight in weights.items():
        made.members.add(member_id=each, weight=weight)
    return made


def entry(client: Client, key: int = 1, table: str = "chosen", **action: object) -> Message:
    """An entry that names a member, a group or a set."""
    return client.entry(table, exact(key), action=v1.TableAction(**action))


def choices(control: ControlPlane, table: str = "ServedIngress.chosen") -> list[int]:
    """The ports from which the first entry of a table chooses, each as often as it counts."""
    held = control.tables.entries(table)[0].entry
    assert isinstance(held, ProfileEntry)
    return sorted(params[0] for _, params in held.actions)


def code(client: Client, kind: int, **entity: Message) -> int:
    """The code with which an update is refused."""
    with pytest.raises(Refusal) as raised:
        client.write(update(kind, **entity))
    return raised.value.codes[0]


def set_of(client: Client, weights: dict[int, int]) -> Message:
    """A set of actions that send by ports, with weights."""
    made = v1.ActionProfileActionSet()
    for port, weight in weights.items():
        made.action_profile_actions.add(action=client.action("send", port), weight=weight)
    return made


def test_members_are_written_and_read(client: Client, control: ControlPlane) -> None:
    first, second = member(client, 5, port=1), member(client, 6, port=2)
    client.write(update(1, action_profile_member=first), update(1, action_profile_member=second))
    assert client.read(action_profile_member=v1.ActionProfileMember()) == [first, second]
    assert code(client, 1, action_profile_member=first) == Code.ALREADY_EXISTS
    client.insert(table_entry=entry(client, action_profile_member_id=5))
    assert choices(control) == [1]
    client.modify(action_profile_member=member(client, 5, port=9))
    assert choices(control) == [9]
    assert code(client, 3, action_profile_member=first) == Code.FAILED_PRECONDITION  # an entry names it
    assert code(client, 3, action_profile_member=member(client, 77, port=1)) == Code.NOT_FOUND
    client.delete(action_profile_member=second)
    assert code(client, 1, action_profile_member=member(client, 0, port=1)) == Code.INVALID_ARGUMENT


def test_a_profile_without_a_selector_has_members_only(client: Client, control: ControlPlane) -> None:
    client.insert(action_profile_member=member(client, 1, port=4, profile="members"))
    named = entry(client, table="shared", action_profile_member_id=1)
    client.insert(table_entry=named)
    assert choices(control, "ServedIngress.shared") == [4]
    assert client.read(table_entry=client.entry("shared")) == [named]
    wrong = entry(client, 2, "shared", action_profile_group_id=1)
    assert code(client, 1, table_entry=wrong) == Code.INVALID_ARGUMENT
    direct = client.entry("shared", exact(3), call=client.action("send", 1))
    assert code(client, 1, table_entry=direct) == Code.INVALID_ARGUMENT
    missing = entry(client, 3, "shared", action_profile_member_id=9)
    assert code(client, 1, table_entry=missing) == Code.NOT_FOUND


def test_a_group_chooses_members_as_often_as_their_weights(client: Client, control: ControlPlane) -> None:
    for number in (1, 2, 3):
        client.insert(action_profile_member=member(client, number, port=number))
    made = group(client, 7, {1: 3, 2: 1}, max_size=8)
    client.insert(action_profile_group=made)
    named = entry(client, action_profile_group_id=7)
    client.insert(table_entry=named)
    assert choices(control) == [1, 1, 1, 2]
    assert client.read(action_profile_group=v1.ActionProfileGroup()) == [made]
    assert client.read(table_entry=client.entry("chosen")) == [named]
    client.modify(action_profile_group=group(client, 7, {2: 2, 3: 1}, max_size=8))
    assert choices(control) == [2, 2, 3]
    client.modify(action_profile_member=member(client, 2, port=200))
    assert choices(control) == [3, 200, 200]
    assert len(control.profiles.members("ServedIngress.groups")) == 4  # one for each unit of the greatest weight
    assert code(client, 3, action_profile_group=made) == Code.FAILED_PRECONDITION
    client.delete(table_entry=named)
    client.delete(action_profile_group=made)
    for number in (1, 2, 3):
        client.delete(action_profile_member=member(client, number, port=number))
    assert control.profiles.members("ServedIngress.groups") == {}


def test_groups_that_cannot_be_are_refused(client: Client) -> None:
    client.insert(action_profile_member=member(client, 1, port=1))
    client.insert(action_profile_group=group(client, 1, {1: 1}))
    assert code(client, 1, action_profile_group=group(client, 1, {1: 1})) == Code.ALREADY_EXISTS
    assert code(client, 1, action_profile_group=group(client, 2, {9: 1})) == Code.NOT_FOUND
    assert code(client, 1, action_profile_group=group(client, 2, {1: 0})) == Code.INVALID_ARGUMENT
    assert code(client, 1, action_profile_group=group(client, 2, {1: 1 << 30})) == Code.RESOURCE_EXHAUSTED
    assert code(client, 1, action_profile_group=group(client, 2, {1: 5}, max_size=4)) == Code.RESOURCE_EXHAUSTED
    assert code(client, 2, action_profile_group=group(client, 1, {1: 1}, max_size=4)) == Code.INVALID_ARGUMENT
    assert code(client, 2, action_profile_group=group(client, 3, {1: 1})) == Code.NOT_FOUND
    twice = group(client, 2, {1: 1})
    twice.members.add(member_id=1, weight=1)
    assert code(client, 1, action_profile_group=twice) == Code.INVALID_ARGUMENT


def test_members_whose_port_is_down_are_not_chosen(
    server: tuple[ServedSwitch, str], client: Client, control: ControlPlane
) -> None:
    for number in (1, 2):
        client.insert(action_profile_member=member(client, number, port=number))
    made = group(client, 7, {1: 2, 2: 1})
    made.members[0].watch_port = b"\x04"
    client.insert(action_profile_group=made)
    client.insert(table_entry=entry(client, action_profile_group_id=7))
    server[0].ports.down.add(4)
    assert becomes(control, [2])
    server[0].ports.down.clear()
    assert becomes(control, [1, 1, 2])
    assert client.read(action_profile_group=v1.ActionProfileGroup()) == [made]


def becomes(control: ControlPlane, ports: list[int]) -> bool:
    """Whether an entry comes to choose from these ports within some seconds."""
    until = time.monotonic() + 5
    while choices(control) != ports and time.monotonic() < until:
        time.sleep(0.01)
    return choices(control) == ports


def test_a_set_of_actions_is_one_entry(client: Client, control: ControlPlane) -> None:
    shot = entry(client, action_profile_action_set=set_of(client, {1: 2, 5: 1}))
    client.insert(table_entry=shot)
    assert choices(control) == [1, 1, 5]
    assert client.read(table_entry=client.entry("chosen")) == [shot]
    assert client.read(action_profile_member=v1.ActionProfileMember()) == []
    other = entry(client, action_profile_action_set=set_of(client, {6: 1}))
    client.modify(table_entry=other)
    assert choices(control) == [6]
    assert client.read(table_entry=client.entry("chosen")) == [other]
    client.delete(table_entry=other)
    assert not control.profiles.members("ServedIngress.groups")
    assert not control.profiles.groups("ServedIngress.groups")


def test_sets_of_actions_and_members_are_not_mixed(client: Client, control: ControlPlane) -> None:
    shot = entry(client, action_profile_action_set=set_of(client, {1: 1}))
    client.insert(table_entry=shot)
    assert code(client, 1, action_profile_member=member(client, 1, port=1)) == Code.INVALID_ARGUMENT
    client.delete(table_entry=shot)
    client.insert(action_profile_member=member(client, 1, port=1))
    assert code(client, 1, table_entry=shot) == Code.INVALID_ARGUMENT
    empty = entry(client, action_profile_action_set=v1.ActionProfileActionSet())
    assert code(client, 1, table_entry=empty) == Code.INVALID_ARGUMENT
    assert len(control.profiles.members("ServedIngress.groups")) == 1
