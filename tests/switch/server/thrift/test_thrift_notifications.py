"""What a switch publishes unasked, byte for byte as BMv2 does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pynng import Sub0
from pynng.exceptions import Timeout
from thrift_clients import exact
from thrift_stations import COMMANDED, DEVICE, Station, stationed

from inakit.switch.control.digests import DigestBatch
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.server.thrift.notifications import Publisher, ageing_messages, learning_message
from inakit.switch.server.thrift.services import description
from inakit.topo.errors import MachineError

TYPES = description()
TABLE = "TestIngress.exact_table"
LIST = 1
"""The number of the one learning list of commanded.p4, whose samples are a packet's source and its port."""


@contextmanager
def subscribed(address: str) -> Iterator[Sub0]:
    """Somebody who gets all notifications of an address."""
    with Sub0(dial=address, block_on_dial=True, recv_timeout=2000) as subscriber:
        subscriber.subscribe(b"")
        time.sleep(0.05)  # nobody tells when the publisher knows of the connection
        yield subscriber


@pytest.fixture
def station() -> Iterator[Station]:
    with stationed() as found:
        yield found


@pytest.fixture
def subscriber(station: Station) -> Iterator[Sub0]:
    with subscribed(station.notifications) as found:
        yield found


def header(letters: str, *numbers: tuple[int, int]) -> bytes:
    """The 32 bytes in front: the letters, the switch's number, and numbers of so many bytes."""
    fields = [(DEVICE, 8), *numbers]
    return (letters.encode() + b"".join(number.to_bytes(size, "little") for number, size in fields)).ljust(32, b"\0")


def learnt(batch: int, *samples: tuple[int, int]) -> bytes:
    """The message of a batch of digests, each of a source and a port."""
    values = b"".join(source.to_bytes(6, "big") + port.to_bytes(2, "big") for source, port in samples)
    return header("LEA|", (0, 4), (LIST, 4), (batch, 8), (len(samples), 4)) + values


def learn(station: Station, *sources: int) -> None:
    """Send packets of these sources, which are learnt."""
    station.standard.bm_mt_set_default_action(0, TABLE, "TestIngress.learn", [])
    for source in sources:
        station.inject(1, bytes(6) + source.to_bytes(6, "big") + b"\x08\x00" + bytes(46))


def test_digests_come_in_batches_and_not_again_until_they_are_acknowledged(station: Station, subscriber: Sub0) -> None:
    station.standard.bm_learning_set_buffer_size(0, LIST, 2)
    learn(station, 10, 10, 11, 12)
    assert subscriber.recv() == learnt(0, (10, 1), (11, 1))
    station.standard.bm_learning_ack(0, LIST, 0, [1])
    learn(station, 10, 11)
    assert subscriber.recv() == learnt(1, (12, 1), (11, 1))
    station.standard.bm_learning_ack_buffer(0, LIST, 0)
    station.standard.bm_learning_ack_buffer(0, LIST, 1)
    learn(station, 10, 12)
    assert subscriber.recv() == learnt(2, (10, 1), (12, 1))


def test_a_list_that_is_reset_keeps_its_size(station: Station, subscriber: Sub0) -> None:
    station.standard.bm_learning_set_buffer_size(0, LIST, 1)
    for _ in range(2):
        learn(station, 10)
        assert subscriber.recv() == learnt(0, (10, 1))
        station.standard.bm_reset_state()


def test_a_batch_that_is_made_smaller_comes_at_once(station: Station, subscriber: Sub0) -> None:
    learn(station, 10, 11)
    station.standard.bm_learning_set_buffer_size(0, LIST, 2)
    assert subscriber.recv() == learnt(0, (10, 1), (11, 1))


def test_a_batch_that_is_not_full_comes_after_its_timeout(station: Station, subscriber: Sub0) -> None:
    station.standard.bm_learning_set_timeout(0, LIST, 50)
    station.standard.bm_learning_set_buffer_size(0, LIST, 100)
    learn(station, 10)
    assert subscriber.recv() == learnt(0, (10, 1))


def test_a_list_that_is_not_there_is_refused(station: Station) -> None:
    with pytest.raises(TYPES.InvalidLearn, match=f"code={TYPES.LearnCode.INVALID_LIST_ID}"):
        station.standard.bm_learning_ack_buffer(0, 99, 0)


def test_an_entry_that_expires_is_told_once(station: Station, subscriber: Sub0) -> None:
    key = exact((1, 2), (5, 6))
    handle = station.standard.bm_mt_add_entry(0, TABLE, key, "NoAction", [], TYPES.Options())
    station.standard.bm_mt_set_entry_ttl(0, TABLE, handle, 1)
    assert station.standard.bm_mt_get_entry(0, TABLE, handle).life.timeout_ms == 1
    time.sleep(0.01)
    number = station.standard.bm_get_id_from_name(0, TYPES.ResourceType.MATCH_TABLE, TABLE)
    station.switch.sweep()
    station.switch.sweep()
    assert subscriber.recv() == header("AGE|", (0, 4), (0, 8), (number, 4), (1, 4)) + handle.to_bytes(4, "little")
    subscriber.recv_timeout = 50
    with pytest.raises(Timeout):
        subscriber.recv()


def test_entries_that_expire_are_told_by_table() -> None:
    messages = ageing_messages(DEVICE, 4, [("b", 1), ("a", 2), ("b", 3)], {"a": 20, "b": 10})
    assert messages == [
        header("AGE|", (0, 4), (4, 8), (10, 4), (2, 4)) + bytes.fromhex("01000000 03000000"),
        header("AGE|", (0, 4), (5, 8), (20, 4), (1, 4)) + bytes.fromhex("02000000"),
    ]


def test_fields_of_a_digest_take_whole_bytes() -> None:
    fields = read_program(COMMANDED).digests[LIST]
    batch = DigestBatch(LIST, fields.name, 3, ((0x0A0B0C0D0E0F, 0x1FF),))
    assert learning_message(DEVICE, batch, fields)[32:].hex() == "0a0b0c0d0e0f01ff"


def test_ports_that_come_up_or_go_down_are_told(
    station: Station, subscriber: Sub0, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports, up = station.switch.ports, set[int]()
    monkeypatch.setattr(ports, "all", lambda: {1: "veth1", 2: "veth2"})
    monkeypatch.setattr(ports, "is_up", up.__contains__)
    up |= {1, 2}
    both = bytes.fromhex("01000000 01000000 02000000 01000000")
    assert subscriber.recv() == header("PRT|", (2, 4)) + both
    up.remove(2)
    assert subscriber.recv() == header("PRT|", (1, 4)) + bytes.fromhex("02000000 00000000")


def test_an_address_belongs_to_one_switch(station: Station) -> None:
    with pytest.raises(MachineError, match="choose another --notifications-addr"):
        Publisher(station.notifications)


def test_an_address_is_free_again_when_its_switch_has_ended(tmp_path: Path) -> None:
    for _ in range(2):
        Publisher(f"ipc://{tmp_path}/n").close()
    assert list(tmp_path.iterdir()) == []
