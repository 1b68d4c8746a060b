"""Batches: what became of each update, atomicity, large ones, and many writers at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from p4runtime_client import Client, Refusal, exact, serialized, update

from inakit.switch.control.codecs import Code
from inakit.switch.server.p4runtime.messages import Message, v1

if TYPE_CHECKING:
    from inakit.switch.server.served_switch import ServedSwitch

pytest_plugins = ["p4runtime_fixtures"]

CONTINUE, ROLLBACK, DATAPLANE_ATOMIC = range(3)


def entries(client: Client, numbers: range, port: int = 1) -> list[Message]:
    """An entry for each number."""
    return [client.entry("exact_match", exact(number), call=client.action("send", port)) for number in numbers]


def codes(client: Client, *updates: Message, atomicity: int = CONTINUE) -> list[int]:
    """The codes of the updates of a batch of which a part fails."""
    with pytest.raises(Refusal) as raised:
        client.write(*updates, atomicity=atomicity)
    assert raised.value.code == "UNKNOWN"
    return raised.value.codes


def everything(client: Client) -> list[bytes]:
    """All that clients can read, in a fixed order."""
    request = v1.TableEntry(counter_data=v1.CounterData(), meter_config=v1.MeterConfig())
    engine = v1.PacketReplicationEngineEntry
    requests = [
        v1.Entity(table_entry=request),
        v1.Entity(table_entry=v1.TableEntry(is_default_action=True)),
        v1.Entity(action_profile_member=v1.ActionProfileMember()),
        v1.Entity(action_profile_group=v1.ActionProfileGroup()),
        v1.Entity(counter_entry=v1.CounterEntry()),
        v1.Entity(meter_entry=v1.MeterEntry()),
        v1.Entity(register_entry=v1.RegisterEntry()),
        v1.Entity(value_set_entry=v1.ValueSetEntry()),
        v1.Entity(digest_entry=v1.DigestEntry()),
        v1.Entity(packet_replication_engine_entry=engine(multicast_group_entry=v1.MulticastGroupEntry())),
        v1.Entity(packet_replication_engine_entry=engine(clone_session_entry=v1.CloneSessionEntry())),
    ]
    return sorted(serialized(entity) for entity in client.read_all(requests))


def test_each_update_has_its_own_answer_and_the_others_are_carried_out(client: Client) -> None:
    first, second = entries(client, range(2))
    unknown = v1.Update(type=1, entity=v1.Entity(extern_entry=v1.ExternEntry()))
    batch = [
        update(1, table_entry=first),
        update(1, table_entry=first),
        update(3, table_entry=second),
        v1.Update(entity=v1.Entity(table_entry=second)),
        v1.Update(type=1),
        unknown,
        update(1, table_entry=second),
    ]
    assert codes(client, *batch) == [
        Code.OK,
        Code.ALREADY_EXISTS,
        Code.NOT_FOUND,
        Code.INVALID_ARGUMENT,
        Code.INVALID_ARGUMENT,
        Code.UNIMPLEMENTED,
        Code.OK,
    ]
    assert len(client.read(table_entry=client.entry("exact_match"))) == 2


def test_a_batch_that_is_rolled_back_leaves_everything_as_it_was(client: Client) -> None:
    fill(client)
    before = everything(client)
    changes = [*changes_of_all_kinds(client), update(3, table_entry=entries(client, range(99, 100))[0])]
    found = codes(client, *changes, atomicity=ROLLBACK)
    assert found == [Code.ABORTED] * (len(changes) - 1) + [Code.NOT_FOUND]
    assert everything(client) == before
    client.write(*changes[:-1], atomicity=ROLLBACK)
    assert everything(client) != before


def fill(client: Client) -> None:
    """Write something of each kind."""
    profile = client.id("action_profiles", "groups")
    group = v1.ActionProfileGroup(action_profile_id=profile, group_id=4)
    group.members.add(member_id=1, weight=2)
    counted = client.entry("counting", exact(1), call=client.action("counted_send", 1), metadata=b"m")
    counted.counter_data.packet_count = 3
    for entity in (
        {"table_entry": entries(client, range(1))[0]},
        {"table_entry": counted},
        {"action_profile_member": member(client, 1)},
        {"action_profile_group": group},
        {"packet_replication_engine_entry": multicast(1)},
    ):
        client.insert(**entity)


def member(client: Client, port: int) -> Message:
    """Member 1, which sends by a port."""
    profile = client.id("action_profiles", "groups")
    return v1.ActionProfileMember(action_profile_id=profile, member_id=1, action=client.action("send", port))


def multicast(port: int) -> Message:
    """Multicast group 1 with one port."""
    group = v1.MulticastGroupEntry(multicast_group_id=1, replicas=[v1.Replica(port=bytes([port]))])
    return v1.PacketReplicationEngineEntry(multicast_group_entry=group)


def changes_of_all_kinds(client: Client) -> list[Message]:
    """Updates of what `fill` has written, and of arrays."""
    register = v1.RegisterEntry(register_id=client.id("registers", "kept"), data=v1.P4Data(bitstring=b"\5"))
    counter = v1.CounterEntry(counter_id=client.id("counters", "counted"), data=v1.CounterData(packet_count=5))
    default = client.entry("exact_match", call=client.action("send", 1), is_default_action=True)
    profile = client.id("action_profiles", "groups")
    return [
        update(1, table_entry=entries(client, range(5, 6))[0]),
        update(2, table_entry=entries(client, range(1), port=9)[0]),
        update(3, table_entry=client.entry("counting", exact(1))),
        update(2, action_profile_member=member(client, 7)),
        update(3, action_profile_group=v1.ActionProfileGroup(action_profile_id=profile, group_id=4)),
        update(2, packet_replication_engine_entry=multicast(8)),
        update(2, register_entry=register),
        update(2, counter_entry=counter),
        update(2, table_entry=default),
        update(1, digest_entry=v1.DigestEntry(digest_id=client.info.digests[0].preamble.id)),
    ]


def test_new_entries_come_into_the_data_plane_at_once_or_not_at_all(client: Client) -> None:
    new = [update(1, table_entry=entry) for entry in entries(client, range(50))]
    client.write(*new, atomicity=DATAPLANE_ATOMIC)
    assert len(client.read(table_entry=client.entry("exact_match"))) == 50
    more = [update(1, table_entry=entry) for entry in entries(client, range(49, 60))]
    assert set(codes(client, *more, atomicity=DATAPLANE_ATOMIC)) == {Code.ALREADY_EXISTS}
    assert len(client.read(table_entry=client.entry("exact_match"))) == 50
    mixed = [update(3, table_entry=entry) for entry in entries(client, range(2))]
    with pytest.raises(Refusal) as raised:
        client.write(*mixed, atomicity=DATAPLANE_ATOMIC)
    assert raised.value.code == "UNIMPLEMENTED"
    client.write(mixed[0], atomicity=DATAPLANE_ATOMIC)
    with pytest.raises(Refusal) as raised:
        client.write(*mixed, atomicity=9)
    assert raised.value.code == "INVALID_ARGUMENT"


def test_a_read_answers_what_it_can(client: Client) -> None:
    client.insert(table_entry=entries(client, range(1))[0])
    good, bad = client.entry("exact_match"), v1.TableEntry(table_id=5)
    with pytest.raises(Refusal) as raised:
        client.read_all([v1.Entity(table_entry=good), v1.Entity(table_entry=bad), v1.Entity()])
    assert raised.value.codes == [Code.OK, Code.NOT_FOUND, Code.INVALID_ARGUMENT]


def test_ten_thousand_entries_are_written_in_one_batch(client: Client) -> None:
    client.write(*(update(1, table_entry=entry) for entry in entries(client, range(10_000))))
    assert len(client.read(table_entry=client.entry("exact_match"))) == 10_000


def test_a_hundred_writers_at_once_lose_nothing(server: tuple[ServedSwitch, str], client: Client) -> None:
    def run(writer: int) -> None:
        own = Client(server[1])
        own.info = client.info
        for first in range(writer * 50, writer * 50 + 50, 10):
            own.write(*(update(1, table_entry=entry) for entry in entries(own, range(first, first + 10))))
        own.close()

    with ThreadPoolExecutor(100) as pool:
        list(pool.map(run, range(100)))
    found = client.read(table_entry=client.entry("exact_match"))
    assert len(found) == 5000
    assert len({entry.match[0].exact.value for entry in found}) == 5000


def test_the_version_is_told(client: Client) -> None:
    answer = client.unary("Capabilities", v1.CapabilitiesRequest(), v1.CapabilitiesResponse)
    assert answer.p4runtime_api_version == "1.5.0"
    with pytest.raises(Refusal) as raised:
        client.unary("Capabilities", v1.CapabilitiesRequest(device_id=99), v1.CapabilitiesResponse)
    assert raised.value.code == "NOT_FOUND"
