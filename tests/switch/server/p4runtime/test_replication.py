"""Multicast groups and clone sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from p4runtime_client import CPU_PORT, Client, Refusal, Stream, exact, update

from inakit.switch.control.codecs import Code
from inakit.switch.entries import MirrorSession
from inakit.switch.interpret.switch_state import InterpretedState
from inakit.switch.server.p4runtime.messages import Message, v1

if TYPE_CHECKING:
    from inakit.switch.server.served_switch import ServedSwitch

pytest_plugins = ["p4runtime_fixtures"]

ENGINE = v1.PacketReplicationEngineEntry


def group(number: int, *replicas: tuple[int, int]) -> Message:
    """A group of (port, instance)."""
    made = v1.MulticastGroupEntry(multicast_group_id=number)
    for port, instance in replicas:
        made.replicas.add(port=port.to_bytes(2, "big").lstrip(b"\0") or b"\0", instance=instance)
    return ENGINE(multicast_group_entry=made)


def session(number: int, *replicas: tuple[int, int], **more: int) -> Message:
    """A session whose clones leave by (port, instance)."""
    made = v1.CloneSessionEntry(session_id=number, **more)
    for port, instance in replicas:
        made.replicas.add(egress_port=port, instance=instance)  # as older clients write ports
    return ENGINE(clone_session_entry=made)


def code(client: Client, kind: int, entry: Message) -> int:
    """The code with which an update is refused."""
    with pytest.raises(Refusal) as raised:
        client.write(update(kind, packet_replication_engine_entry=entry))
    return raised.value.codes[0]


def state(server: tuple[ServedSwitch, str]) -> InterpretedState:
    """The state of the running program."""
    found = server[0].control.data_plane
    assert isinstance(found, InterpretedState)
    return found


def test_groups_are_written_read_and_removed(server: tuple[ServedSwitch, str], client: Client) -> None:
    first, other = group(3, (1, 0), (2, 0), (1, 7)), group(4)
    other.multicast_group_entry.metadata = b"mine"
    for each in (first, other):
        client.insert(packet_replication_engine_entry=each)
    assert state(server).groups[3].replicas == ((0, 1), (0, 2), (7, 1))
    every = ENGINE(multicast_group_entry=v1.MulticastGroupEntry())
    assert client.read(packet_replication_engine_entry=every) == [first, other]
    client.modify(packet_replication_engine_entry=group(3, (5, 1)))
    assert state(server).groups[3].replicas == ((1, 5),)
    assert client.read(packet_replication_engine_entry=group(3)) == [group(3, (5, 1))]
    client.delete(packet_replication_engine_entry=group(3))
    assert 3 not in state(server).groups
    assert code(client, 3, group(3)) == Code.NOT_FOUND
    assert code(client, 2, group(3)) == Code.NOT_FOUND
    assert code(client, 1, other) == Code.ALREADY_EXISTS


def test_groups_that_cannot_be_are_refused(client: Client) -> None:
    for wrong in (group(0), group(1 << 15), group(5, (1, 1), (1, 1)), group(5, (512, 1)), group(5, (1, 1 << 16))):
        assert code(client, 1, wrong) == Code.INVALID_ARGUMENT
    backed = group(5, (1, 1))
    backed.multicast_group_entry.replicas[0].backup_replicas.add(port=b"\2", instance=1)
    assert code(client, 1, backed) == Code.UNIMPLEMENTED
    assert code(client, 1, ENGINE()) == Code.INVALID_ARGUMENT


def test_sessions_clone_to_a_port_or_to_replicas(server: tuple[ServedSwitch, str], client: Client) -> None:
    single, several = session(1, (9, 0)), session(2, (9, 1), (10, 2), class_of_service=3)
    for each in (single, several):
        client.insert(packet_replication_engine_entry=each)
    assert state(server).sessions[1] == MirrorSession(1, port=9)
    assert state(server).sessions[2] == MirrorSession(2, group=(1 << 15) + 2)
    assert state(server).groups[(1 << 15) + 2].replicas == ((1, 9), (2, 10))
    every = ENGINE(clone_session_entry=v1.CloneSessionEntry())
    assert client.read(packet_replication_engine_entry=every) == [single, several]
    client.delete(packet_replication_engine_entry=several)
    assert list(state(server).groups) == []
    assert code(client, 1, session(0, (1, 1))) == Code.INVALID_ARGUMENT
    assert code(client, 1, session(5, (1, 1), class_of_service=256)) == Code.INVALID_ARGUMENT
    assert code(client, 1, session(5, (1, 1), packet_length_bytes=-1)) == Code.INVALID_ARGUMENT


def test_clones_are_cut_to_the_length_of_their_session(
    server: tuple[ServedSwitch, str], controller: tuple[Client, Stream]
) -> None:
    client, stream = controller
    client.insert(table_entry=client.entry("exact_match", exact(1), call=client.action("copy", 5, 1)))
    asked = bytes(12) + b"\x88\xb5\x00" + (1).to_bytes(4, "big") + bytes(40)
    made = session(5, (CPU_PORT, 0))
    client.insert(packet_replication_engine_entry=made)
    server[0].ports.inject(1, asked)
    assert len(stream.next("packet").payload) == len(asked)
    made.clone_session_entry.packet_length_bytes = 18
    client.modify(packet_replication_engine_entry=made)
    server[0].ports.inject(1, asked)
    assert stream.next("packet").payload == asked[:18]
    assert client.read(packet_replication_engine_entry=session(5)) == [made]


def test_the_cpu_port_has_a_number_of_its_own(server: tuple[ServedSwitch, str], client: Client) -> None:
    made = session(1)
    made.clone_session_entry.replicas.add(port=b"\xff\xff\xff\xfd")
    client.insert(packet_replication_engine_entry=made)
    assert state(server).sessions[1] == MirrorSession(1, port=CPU_PORT)
    assert client.read(packet_replication_engine_entry=session(1)) == [made]
