"""What a primary sends and is told by its stream: packets, digests, idle timeouts, errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from p4runtime_client import CPU_PORT, Client, Stream, exact, primary

from inakit.switch.control.codecs import Code
from inakit.switch.server.p4runtime.messages import Message, v1

if TYPE_CHECKING:
    from inakit.switch.server.served_switch import ServedSwitch

pytest_plugins = ["p4runtime_fixtures"]

ETHERNET = bytes(range(12)) + b"\x08\x00"
SECOND_NS = 1_000_000_000


@pytest.fixture
def packets(target: str) -> Iterator[tuple[Client, Stream]]:
    """A primary with the program `controller`, and its stream."""
    with primary(target, "controller") as found:
        yield found


def packet_out(payload: bytes, **fields: int) -> Message:
    """A packet with metadata: `learn` 1 bit, `egress_port` 9, `tag` 12; the padding is left out."""
    ids = {"learn": 1, "egress_port": 2, "tag": 3}
    made = v1.PacketOut(payload=payload)
    for name, value in fields.items():
        made.metadata.add(metadata_id=ids[name], value=value.to_bytes(2, "big"))
    return made


def test_a_packet_comes_to_the_controller_with_its_metadata(
    server: tuple[ServedSwitch, str], packets: tuple[Client, Stream]
) -> None:
    server[0].ports.inject(300, ETHERNET + b"hello")
    found = packets[1].next("packet")
    assert found.payload == ETHERNET + b"hello"
    values = {each.metadata_id: each.value for each in found.metadata}
    assert values == {1: b"\x01\x2c", 2: b"\x05", 3: b"\x13", 4: b"\x00"}  # port 300, reason 5, 19 bytes, padding


def test_a_controller_s_packet_arrives_at_the_cpu_port_with_its_header(packets: tuple[Client, Stream]) -> None:
    packets[1].send(packet=packet_out(ETHERNET, learn=0, egress_port=CPU_PORT, tag=0xABC))
    found = packets[1].next("packet")  # the program sends it where the header says: back
    assert found.payload == ETHERNET[:12] + b"\x0a\xbc"
    assert found.metadata[0].value == bytes([CPU_PORT])


def test_a_packet_that_cannot_be_sent_is_told(target: str, packets: tuple[Client, Stream]) -> None:
    stream = packets[1]
    wrong = [
        packet_out(ETHERNET, learn=0, egress_port=1),
        packet_out(ETHERNET, learn=2, egress_port=1, tag=1),
        v1.PacketOut(payload=ETHERNET, metadata=[v1.PacketMetadata(metadata_id=9, value=b"\1")]),
    ]
    for each, code in zip(wrong, (Code.INVALID_ARGUMENT, Code.OUT_OF_RANGE, Code.INVALID_ARGUMENT), strict=True):
        stream.send(packet=each)
        error = stream.next("error")
        assert (error.canonical_code, error.packet_out.packet_out) == (code, each)
    backup = Client(target).stream()
    backup.arbitrate(0)
    assert backup.standing() == Code.ALREADY_EXISTS
    backup.send(packet=wrong[0])
    assert backup.next("error").canonical_code == Code.PERMISSION_DENIED
    stream.send()
    assert stream.next("error").WhichOneof("details") == "other"


def configure(client: Client, **config: int) -> int:
    """Let the digest of the program `controller` be reported, and return its id."""
    number = client.id("digests", "learned_t")
    client.insert(digest_entry=v1.DigestEntry(digest_id=number, config=v1.DigestEntry.Config(**config)))
    return number


def learn(stream: Stream, *senders: int) -> None:
    """Let the program leave digests of these senders."""
    for sender in senders:
        frame = bytes(6) + sender.to_bytes(6, "big") + b"\x08\x00"
        stream.send(packet=packet_out(frame, learn=1, egress_port=1, tag=0))


def senders(found: Message) -> list[int]:
    """The senders in a list of digests."""
    return [int.from_bytes(each.struct.members[0].bitstring, "big") for each in found.data]


def test_digests_come_in_lists_and_not_again_until_they_are_acknowledged(packets: tuple[Client, Stream]) -> None:
    client, stream = packets
    number = configure(client, max_timeout_ns=60 * SECOND_NS, max_list_size=3, ack_timeout_ns=60 * SECOND_NS)
    learn(stream, 1, 2, 1, 3)
    first = stream.next("digest")
    assert (first.digest_id, senders(first)) == (number, [1, 2, 3])
    assert first.data[0].struct.members[1].bitstring == bytes([CPU_PORT])
    learn(stream, 1, 2, 3, 4, 5, 6)
    second = stream.next("digest")
    assert senders(second) == [4, 5, 6]
    stream.send(digest_ack=v1.DigestListAck(digest_id=number, list_id=first.list_id))
    learn(stream, 1, 2, 3)
    assert senders(stream.next("digest")) == [1, 2, 3]
    stream.send(digest_ack=v1.DigestListAck(digest_id=1, list_id=1))
    error = stream.next("error")
    assert (error.canonical_code, error.WhichOneof("details")) == (Code.INVALID_ARGUMENT, "digest_list_ack")


def test_a_list_that_is_not_full_comes_after_its_timeout(packets: tuple[Client, Stream]) -> None:
    configure(packets[0], max_timeout_ns=SECOND_NS // 10, max_list_size=100, ack_timeout_ns=SECOND_NS // 10)
    learn(packets[1], 1, 2)
    assert senders(packets[1].next("digest")) == [1, 2]
    assert packets[1].silent(0.2)
    learn(packets[1], 2)  # not acknowledged, but the time for it is over
    assert senders(packets[1].next("digest")) == [2]


def test_a_digest_that_is_not_asked_for_is_not_reported(packets: tuple[Client, Stream]) -> None:
    client, stream = packets
    learn(stream, 1)
    assert stream.silent()
    number = configure(client)
    entry = v1.DigestEntry(digest_id=number)
    assert client.read(digest_entry=v1.DigestEntry()) == [
        v1.DigestEntry(digest_id=number, config=v1.DigestEntry.Config())
    ]
    learn(stream, 2)  # without a timeout, each comes at once
    assert senders(stream.next("digest")) == [2]
    client.delete(digest_entry=entry)
    learn(stream, 3)
    assert stream.silent()


def test_an_idle_entry_is_told_once_for_each_timeout(controller: tuple[Client, Stream]) -> None:
    client, stream = controller
    entry = client.entry("ageing", exact(1), call=client.action("drop"), idle_timeout_ns=SECOND_NS // 5, metadata=b"m")
    client.insert(table_entry=entry)
    request = client.entry("ageing")
    assert client.read(table_entry=request) == [entry]
    request.time_since_last_hit.SetInParent()
    assert client.read(table_entry=request)[0].time_since_last_hit.elapsed_ns < SECOND_NS
    for _ in range(2):
        told = stream.next("idle_timeout_notification")
        (found,) = told.table_entry
        assert (found.match, found.metadata, found.idle_timeout_ns) == (entry.match, b"m", SECOND_NS // 5)
    client.delete(table_entry=entry)
    while not stream.told.empty():
        stream.told.get()
    assert stream.silent(0.5)


def test_a_packet_that_an_entry_matches_puts_its_timeout_off(
    server: tuple[ServedSwitch, str], controller: tuple[Client, Stream]
) -> None:
    client, stream = controller
    entry = client.entry("ageing", exact(1), call=client.action("drop"), idle_timeout_ns=SECOND_NS * 2 // 5)
    client.insert(table_entry=entry)
    asked = bytes(12) + b"\x88\xb5" + b"\x08" + (1).to_bytes(4, "big") + bytes(10)
    for _ in range(8):
        server[0].ports.inject(1, asked)
        assert stream.silent(0.1)
    assert stream.next("idle_timeout_notification").table_entry[0].match == entry.match
