"""Messages of Thrift are read whole, and refused as soon as their shape is wrong."""

from __future__ import annotations

from io import BytesIO

import pytest

from inakit.switch.server.thrift.message_reader import (
    DEEPEST,
    MOST_BYTES,
    MOST_VALUES,
    MalformedMessageError,
    MessageReader,
)

NAME = bytes.fromhex("00000001 61")
HEAD = bytes.fromhex("80010001") + NAME + bytes(4)
"""What stands before the arguments: a call of the function `a`."""
END = b"\0"


def size(number: int) -> bytes:
    """A size as a message has it."""
    return number.to_bytes(4, "big", signed=True)


def field(kind: int, value: bytes) -> bytes:
    """The first argument, of a type and a value."""
    return bytes([kind]) + b"\0\1" + value


def read(data: bytes) -> bytes:
    """What is read of a connection on which these bytes come."""
    return MessageReader(BytesIO(data)).read()


VALUES = {
    "a number": field(8, bytes(4)),
    "a text": field(11, size(3) + b"abc"),
    "a structure": field(12, field(2, b"\1") + END),
    "a list of numbers": field(15, b"\x0a" + size(2) + bytes(16)),
    "a set of texts": field(14, b"\x0b" + size(2) + size(0) + size(1) + b"x"),
    "a map": field(13, b"\x0b\x06" + size(1) + size(1) + b"x" + bytes(2)),
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_message_ends_where_its_outermost_structure_does(value: bytes) -> None:
    message = HEAD + value + END
    reader = MessageReader(BytesIO(message + message[:3]))
    assert reader.read() == message
    with pytest.raises(MalformedMessageError):
        reader.read()


def test_nothing_is_read_after_the_last_message() -> None:
    assert read(b"") == b""


@pytest.mark.parametrize("length", range(1, len(HEAD + VALUES["a map"])))
def test_a_message_that_breaks_off_is_refused(length: int) -> None:
    with pytest.raises(MalformedMessageError):
        read((HEAD + VALUES["a map"])[:length])


MALFORMED = {
    "another protocol": (b"GET / HTTP/1.1\r\n\r\n", "begins with 8001"),
    "an unknown type": (HEAD + field(9, bytes(8)), "no type 9"),
    "a negative size": (HEAD + field(11, size(-1)), "size of -1"),
    "a size beyond all messages": (HEAD + field(11, size(MOST_BYTES + 1)), "sizes are 0 to"),
    "texts that are too long together": (HEAD + field(11, size(MOST_BYTES - 8)), "more than"),
    "values without bytes": (HEAD + field(15, b"\x00" + size(MOST_VALUES - 1)), "no type 0"),
    "too many values": (HEAD + field(15, b"\x0c" + size(MOST_VALUES + 1)), "values"),
    "too many fields": (HEAD + field(2, b"\1") * (MOST_VALUES + 1), "values"),
    "structures in structures": (HEAD + field(12, b"") * (DEEPEST + 1), "nested"),
    "lists in lists": (HEAD + field(15, b"") + (b"\x0f" + size(1)) * (DEEPEST + 1), "nested"),
}


@pytest.mark.parametrize(("data", "why"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_message_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(MalformedMessageError, match=why):
        read(data + bytes(64))
