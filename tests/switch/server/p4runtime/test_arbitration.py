"""Which client is the primary of a role, and what clients are told of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pytest
from p4runtime_client import DEVICE, SET, Client, Refusal, exact, pipeline, update

from inakit.switch.control.codecs import Code
from inakit.switch.server.p4runtime import arbitration
from inakit.switch.server.p4runtime.arbitration import RoleConfig
from inakit.switch.server.p4runtime.messages import Message, packed, v1

pytest_plugins = ["p4runtime_fixtures"]

PRIMARY, BACKUP, NO_PRIMARY = Code.OK, Code.ALREADY_EXISTS, Code.NOT_FOUND
HIGH = (1 << 127) + 3
"""An election id that needs all 128 bits."""


@pytest.fixture
def clients(target: str) -> Iterator[list[Client]]:
    """Three clients."""
    found = [Client(target, election_id) for election_id in (1, 2, HIGH)]
    yield found
    for each in found:
        each.close()


def test_the_highest_election_id_is_the_primary_and_all_are_told(clients: list[Client]) -> None:
    first, second, third = (client.stream() for client in clients)
    first.arbitrate(1)
    assert first.standing() == PRIMARY
    second.arbitrate(HIGH)
    assert (first.standing(), second.standing()) == (BACKUP, PRIMARY)
    third.arbitrate(2)
    update = third.next("arbitration")
    assert update.status.code == BACKUP
    assert (update.election_id.high, update.election_id.low) == (1 << 63, 3)  # the highest that was seen
    assert update.device_id == DEVICE
    assert first.silent()


def test_when_the_primary_leaves_its_backups_are_told_and_an_equal_or_higher_id_follows(clients: list[Client]) -> None:
    first, second = clients[0].stream(), clients[1].stream()
    first.arbitrate(5)
    assert first.standing() == PRIMARY
    second.arbitrate(4)
    assert second.standing() == BACKUP
    first.close()
    assert second.standing() == NO_PRIMARY
    second.arbitrate(4)
    assert second.standing() == NO_PRIMARY  # 5 was seen
    second.arbitrate(5)
    assert second.standing() == PRIMARY


def test_a_primary_that_lowers_its_id_leaves_none(clients: list[Client]) -> None:
    first, second = clients[0].stream(), clients[1].stream()
    first.arbitrate(5)
    assert first.standing() == PRIMARY
    second.arbitrate(None)  # never a primary
    assert second.standing() == BACKUP
    first.arbitrate(3)
    assert (first.standing(), second.standing()) == (NO_PRIMARY, NO_PRIMARY)


def test_where_no_client_has_an_election_id_the_first_is_the_primary(target: str, clients: list[Client]) -> None:
    streams = [client.stream() for client in clients]
    without_id = Client(target, election_id=0)
    for expected, stream in zip((PRIMARY, BACKUP), streams, strict=False):
        stream.arbitrate(None)
        assert stream.standing() == expected
    streams[0].arbitrate(None)
    assert streams[0].standing() == PRIMARY
    without_id.set(SET.VERIFY_AND_COMMIT, pipeline("served"))
    streams[2].arbitrate(1)
    assert [stream.standing() for stream in streams] == [BACKUP, BACKUP, PRIMARY]
    with pytest.raises(Refusal, match="not the primary"):
        without_id.set(SET.VERIFY_AND_COMMIT, pipeline("served"))
    without_id.close()


def test_an_update_that_cannot_be_ends_the_stream(clients: list[Client]) -> None:
    first, wrong_device, taken = (client.stream() for client in clients)
    first.arbitrate(5)
    assert first.standing() == PRIMARY
    wrong_device.arbitrate(6, device=DEVICE + 1)
    assert wrong_device.ended() == "NOT_FOUND"
    taken.arbitrate(5)
    assert taken.ended() == "INVALID_ARGUMENT"
    first.arbitrate(5, role="other")
    assert first.ended() == "FAILED_PRECONDITION"


def test_each_role_has_a_primary_of_its_own(clients: list[Client]) -> None:
    first, second = clients[0].stream(), clients[1].stream()
    first.arbitrate(5)
    second.arbitrate(5, role="lights")
    update = second.next("arbitration")
    assert (first.standing(), update.status.code, update.role.name) == (PRIMARY, PRIMARY, "lights")


def test_only_the_primary_writes(target: str, clients: list[Client]) -> None:
    stream = clients[1].stream()
    stream.arbitrate(2)
    assert stream.standing() == PRIMARY
    clients[1].set(SET.VERIFY_AND_COMMIT, pipeline("served"))
    backup = Client(target, election_id=1)
    backup.info = clients[1].info
    entry = backup.entry("exact_match", exact(1), call=backup.action("send", 1))
    with pytest.raises(Refusal) as raised:
        backup.insert(table_entry=entry)
    assert raised.value.code == "PERMISSION_DENIED"
    backup.role = "unknown"
    with pytest.raises(Refusal) as raised:
        backup.insert(table_entry=entry)
    assert raised.value.code == "NOT_FOUND"
    assert backup.read(table_entry=backup.entry("exact_match")) == []  # who reads needs no stream
    backup.close()


def test_a_controller_that_comes_after_all_have_left_is_the_primary_with_any_id(clients: list[Client]) -> None:
    first = clients[0].stream()
    first.arbitrate(9)
    assert first.standing() == PRIMARY
    first.close()
    assert first.ended() == "OK"
    second = clients[1].stream()
    second.arbitrate(1)
    assert second.standing() == PRIMARY


def test_a_role_has_the_ids_of_its_config(clients: list[Client]) -> None:
    all_of_it, some_of_it = clients[0].stream(), clients[1].stream()
    all_of_it.arbitrate(1)
    assert all_of_it.standing() == PRIMARY
    clients[0].set(SET.VERIFY_AND_COMMIT, pipeline("served"))
    clients[1].role, clients[1].info = "prefixes", clients[0].info
    config = packed(RoleConfig(exclusive_p4_ids=[clients[0].id("tables", "longest_prefix")]))
    some_of_it.arbitrate(2, role="prefixes", role_config=config)
    told = some_of_it.next("arbitration")
    assert (told.status.code, told.role.config) == (PRIMARY, config)
    with pytest.raises(Refusal) as raised:
        clients[1].set(SET.VERIFY, pipeline("served"))
    assert raised.value.code == "PERMISSION_DENIED"
    send = clients[0].action("drop")
    prefixes = clients[0].entry("longest_prefix", call=send)
    others = clients[0].entry("exact_match", exact(1), call=send)
    with pytest.raises(Refusal) as raised:
        clients[1].write(update(1, table_entry=prefixes), update(1, table_entry=others))
    assert raised.value.codes == [Code.OK, Code.PERMISSION_DENIED]
    clients[0].insert(table_entry=others)
    read = v1.TableEntry()
    assert clients[1].read(table_entry=read, role="prefixes") == [prefixes]
    assert len(clients[0].read(table_entry=read)) == 4  # with the two that are const


def test_a_role_config_of_another_form_ends_the_stream(clients: list[Client]) -> None:
    stream = clients[0].stream()
    stream.arbitrate(1, role="odd", role_config=packed(v1.Uint128(low=1)))
    assert stream.ended() == "INVALID_ARGUMENT"


def test_a_stream_that_ends_before_its_update_is_taken_is_no_client() -> None:
    told: list[Message] = []
    roles, gone = arbitration.Arbitration(DEVICE, nullcontext()), arbitration.Client(told.append)
    roles.leave(gone)
    roles.update(gone, v1.MasterArbitrationUpdate(device_id=DEVICE, election_id=v1.Uint128(low=1)))
    assert roles.primaries() == []
    assert roles.roles[""].clients == []
    assert told == []
