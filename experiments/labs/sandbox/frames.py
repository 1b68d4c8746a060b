"""What processes say to each other: a frame is a length of 4 bytes and JSON of that length. Nothing else is read."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from typing import Any

LENGTH = struct.Struct("!I")
MOST_BYTES = 4 << 20


def packed(message: Any) -> bytes:
    """The frame of a message."""
    data = json.dumps(message, separators=(",", ":")).encode()
    return LENGTH.pack(len(data)) + data


def send(descriptor: int, message: Any) -> None:
    """Write a frame."""
    left = memoryview(packed(message))
    while left:
        left = left[os.write(descriptor, left) :]


def receive(descriptor: int) -> Any:
    """Read a frame; `EOFError` when the other end is closed."""
    (size,) = LENGTH.unpack(exactly(descriptor, LENGTH.size))
    return json.loads(exactly(descriptor, size))


def answer_all(questions: int, answers: int, answer_to: Callable[[Any], Any]) -> None:
    """Answer questions until the other end is closed."""
    while True:
        try:
            question = receive(questions)
        except EOFError:
            return
        send(answers, answer_to(question))


def exactly(descriptor: int, size: int) -> bytes:
    """So many bytes; `EOFError` if the other end is closed before."""
    data = b""
    while len(data) < size:
        part = os.read(descriptor, size - len(data))
        if not part:
            raise EOFError
        data += part
    return data
