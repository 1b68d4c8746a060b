"""Random requests of many clients: none ends the server, none waits for ever, and no entry is lost.

The short form takes seconds, the long one ten minutes: `pytest -m long tests/switch/server/p4runtime/test_fuzz.py`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

import grpc
import pytest
from p4runtime_client import DEVICE, SERVICE, SET, Client, Refusal, exact, pipeline, primary, serialized, update

from inakit.switch.server.p4runtime.messages import Message, v1

pytest_plugins = ["p4runtime_fixtures"]

KNOWN_CODES = {"UNKNOWN", "INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED", "FAILED_PRECONDITION", "UNIMPLEMENTED"}
"""What a call may answer with; `INTERNAL` would be a failure of the server."""

MALFORMED = {"INTERNAL", "UNIMPLEMENTED", "CANCELLED", "UNAVAILABLE", "UNKNOWN"}
"""What gRPC answers itself to bytes that are no message, or too long."""

INTERNAL = 13
NUMBERS = (0, 1, 2, 3, 7, 8, 255, 256, 511, 512, 65535, 65536, (1 << 31) - 1, -1, 1 << 32, (1 << 63) - 1, -(1 << 63))


@dataclass(frozen=True)
class Field:
    """A field of a message: the name of its message type or the number of its type, and its choice, if it has one."""

    name: str
    repeated: bool
    message: str | None
    type: int
    choice: str | None


def shapes(found: dict[str, list[Field]], described: Message) -> dict[str, list[Field]]:
    """The fields of a message type and of all types in it, by name: descriptions are not for several threads."""
    if described.full_name not in found:
        found[described.full_name] = [field_of(each) for each in described.fields]
        for each in described.fields:
            if each.message_type is not None:
                shapes(found, each.message_type)
    return found


def field_of(described: Message) -> Field:
    """One field."""
    inner, choice = described.message_type, described.containing_oneof
    names = (None if inner is None else inner.full_name), (None if choice is None else choice.name)
    return Field(described.name, described.is_repeated, names[0], described.type, names[1])


SHAPES = shapes({}, v1.Update.DESCRIPTOR)
BYTES, STRING, BOOL = 12, 9, 8


class Requests:
    """Random messages, most of their ids those of the program `served`."""

    def __init__(self, seed: int, info: Message) -> None:
        self.random = random.Random(seed)
        kinds = ("tables", "actions", "action_profiles", "counters", "meters", "value_sets", "registers", "digests")
        self.ids = [each.preamble.id for kind in kinds for each in getattr(info, kind)]

    def update(self) -> Message:
        """An update."""
        made = v1.Update(type=self.random.choice((0, 1, 1, 1, 2, 2, 3)))
        self.fill(made.entity, "p4.v1.Entity", depth=0)
        return made

    def entity(self) -> Message:
        """An entity."""
        made = v1.Entity()
        self.fill(made, "p4.v1.Entity", depth=0)
        return made

    def fill(self, message: Message, shape: str, depth: int) -> None:
        """Give a message random fields: one of each choice, of the others most."""
        fields = SHAPES[shape]
        choices = {field.choice for field in fields if field.choice is not None}
        chosen = [self.random.choice([each for each in fields if each.choice == choice]) for choice in sorted(choices)]
        for field in fields:
            if (field in chosen if field.choice is not None else self.random.random() < 0.6) and depth < 8:
                self.set_field(message, field, depth)

    def set_field(self, message: Message, field: Field, depth: int) -> None:
        """Give one field a random value."""
        if field.message is not None:
            for _ in range(self.random.choice((0, 1, 2, 3)) if field.repeated else 1):
                inner = getattr(message, field.name)
                inner = inner.add() if field.repeated else inner
                inner.SetInParent()
                self.fill(inner, field.message, depth + 1)
            return
        with suppress(ValueError, TypeError):  # of a number that the field does not hold
            if field.repeated:
                getattr(message, field.name).append(self.value(field))
            else:
                setattr(message, field.name, self.value(field))

    def value(self, field: Field) -> object:
        """A value for a field without messages."""
        if field.type == BYTES:
            return self.random.randbytes(self.random.choice((0, 1, 1, 2, 4, 4, 6, 16, 300)))
        if field.type == STRING:
            return self.random.choice(("", "x", "\0", "ä" * 50))
        if field.type == BOOL:
            return self.random.random() < 0.2
        if field.name.endswith("_id") and self.random.random() < 0.7:
            return self.random.choice((*self.ids, 1, 2, 3))
        return self.random.choice(NUMBERS)


def ask(client: Client, requests: Requests) -> None:
    """Make one random call; a failure of the server is an `AssertionError`."""
    try:
        match requests.random.randrange(6):
            case 0 | 1 | 2:
                updates = [requests.update() for _ in range(requests.random.choice((0, 1, 3, 20)))]
                client.write(*updates, atomicity=requests.random.choice((0, 0, 1, 2, 3)))
            case 3:
                client.read_all([requests.entity() for _ in range(3)])
            case 4:
                send_bytes(client, requests.random.randbytes(requests.random.choice((0, 1, 40, 5000))))
            case 5:
                send_bytes(client, damaged(requests))
    except Refusal as refusal:
        assert refusal.code in KNOWN_CODES, refusal
        assert INTERNAL not in refusal.codes, refusal


def damaged(requests: Requests) -> bytes:
    """A request with a few bytes changed, or its end cut off."""
    octets = bytearray(serialized(v1.WriteRequest(device_id=DEVICE, updates=[requests.update()])))
    for _ in range(3):
        octets[requests.random.randrange(len(octets))] = requests.random.randrange(256)
    return bytes(octets[: requests.random.randrange(len(octets) + 1)])


def send_bytes(client: Client, octets: bytes) -> None:
    """Make a call with bytes that may be no message."""
    call = client.channel.unary_unary(f"{SERVICE}Write")
    try:
        call(octets, timeout=30)
    except grpc.RpcError as error:
        assert error.code().name in KNOWN_CODES | MALFORMED, error


def come_and_go(target: str, seed: int) -> None:
    """Open streams, send anything on them, and leave at any time."""
    client, draw = Client(target), random.Random(seed)
    stream = client.stream()
    for _ in range(draw.randrange(4)):
        role = draw.choice(("", "a", "a", "a"))
        stream.arbitrate(draw.choice((None, 0, 0, 1 << 100)) if role else None, role=role)  # "" keeps its primary
        stream.send(packet=v1.PacketOut(payload=draw.randbytes(60)))
        stream.send(digest_ack=v1.DigestListAck(digest_id=draw.choice(NUMBERS[:8])))
    if draw.random() < 0.5:
        stream.close()
    client.close()


def hammer(target: str, info: Message, worker: int, until: float) -> int:
    """Make random calls until a time, and return how many."""
    client, requests, count = Client(target), Requests(worker, info), 0
    while time.monotonic() < until:
        ask(client, requests)
        if count % 20 == 0:
            come_and_go(target, worker * 1_000_000 + count)
        count += 1
    client.close()
    return count


def keep_entries(client: Client, until: float) -> Iterator[int]:
    """Add entries of keys that no random request has, until a time; the keys that were added."""
    number = 1 << 31
    while time.monotonic() < until:
        try:
            client.insert(table_entry=client.entry("exact_match", exact(number), call=client.action("send", 1)))
            yield number
        except Refusal as refusal:
            assert refusal.codes == [8], refusal  # the random requests have filled the table
        number += 1
        time.sleep(0.01)


def run(target: str, seconds: float, workers: int) -> int:
    """Fuzz a server, and return the number of calls."""
    with primary(target) as (client, _):
        until = time.monotonic() + seconds
        with ThreadPoolExecutor(workers) as pool:
            counts = [pool.submit(hammer, target, client.info, worker, until) for worker in range(workers)]
            kept = set(keep_entries(client, until))
            total = sum(count.result(timeout=seconds + 120) for count in counts)
        found = client.read(table_entry=client.entry("exact_match"))
        present = {int.from_bytes(entry.match[0].exact.value, "big") for entry in found}
        assert kept <= present
        client.set(SET.VERIFY_AND_COMMIT, pipeline("served"))  # it still does what it should
        client.write(update(1, table_entry=client.entry("exact_match", exact(1), call=client.action("send", 1))))
    return total


def test_random_requests_do_no_harm(target: str) -> None:
    assert run(target, seconds=1.5, workers=4) > 10


@pytest.mark.long
def test_random_requests_do_no_harm_for_ten_minutes(target: str) -> None:
    assert run(target, seconds=600, workers=16) > 1000
