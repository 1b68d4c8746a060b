"""Thrift messages from a connection, checked before they are decoded.

A message has no length in front: it ends with its outermost structure. So it is walked as it arrives, and refused at
the first error: a library that trusted its sizes would take gigabytes or hours.
"""

from __future__ import annotations

from typing import Protocol

from inakit.topo.errors import InputError

VERSION = 0x8001
"""The first two bytes of a message."""

SIZES = {2: 1, 3: 1, 4: 8, 6: 2, 8: 4, 10: 8}
"""The sizes in bytes of the fixed-size types: bool, byte, double, i16, i32, i64."""

STRING, STRUCT, MAP, SET, LIST = 11, 12, 13, 14, 15

MOST_BYTES, MOST_VALUES, DEEPEST = 64 << 20, 1 << 20, 16
"""The limits of a message: a program's JSON has some megabytes, a key some ten values on three levels."""


class MalformedMessageError(InputError):
    """A malformed message of Thrift's binary protocol, or one that is too large."""


class Stream(Protocol):
    """A stream of arriving bytes."""

    def read(self, size: int, /) -> bytes:
        """`size` bytes; fewer only at the end."""


class MessageReader:
    """Reads messages one after the other."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._message = bytearray()
        self._values = 0

    def read(self) -> bytes:
        """The next message; empty at the end of the connection. `MalformedMessageError` if it is malformed."""
        self._message, self._values = bytearray(self._stream.read(4)), 0
        if not self._message:
            return b""
        if len(self._message) < 4 or int.from_bytes(self._message[:2], "big") != VERSION:
            raise MalformedMessageError(
                f"{self._message.hex()}: a message of Thrift's binary protocol begins with 8001"
            )
        self._walk(STRING, 1)
        self._take(4)
        self._walk(STRUCT, DEEPEST)
        return bytes(self._message)

    def _walk(self, kind: int, depth: int) -> None:
        """Read one value of this type, whose values can be nested `depth` levels deep."""
        if depth == 0:
            raise MalformedMessageError(f"values are nested more than {DEEPEST} levels deep")
        if kind in SIZES:
            self._take(SIZES[kind])
        elif kind == STRING:
            self._take(self._size())
        elif kind == STRUCT:
            while field := self._take(1)[0]:
                self._count(1)
                self._take(2)  # the number of the field
                self._walk(field, depth - 1)
        elif kind in (LIST, SET, MAP):
            kinds = tuple(self._take(2 if kind == MAP else 1))
            self._walk_each(kinds, self._count(self._size()), depth - 1)
        else:
            raise MalformedMessageError(f"there is no type {kind}")

    def _walk_each(self, kinds: tuple[int, ...], count: int, depth: int) -> None:
        """Read `count` values of each of these types in turn."""
        if all(kind in SIZES for kind in kinds):
            self._take(count * sum(SIZES[kind] for kind in kinds))
            return
        for _ in range(count):
            for kind in kinds:
                self._walk(kind, depth)

    def _size(self) -> int:
        """Read a number of bytes or values."""
        size = int.from_bytes(self._take(4), "big", signed=True)
        if not 0 <= size <= MOST_BYTES:
            raise MalformedMessageError(f"a size of {size}: sizes are 0 to {MOST_BYTES}")
        return size

    def _count(self, values: int) -> int:
        """Count values, refuse a message with too many, and return the number."""
        self._values += values
        if self._values > MOST_VALUES:
            raise MalformedMessageError(f"a message of more than {MOST_VALUES} values")
        return values

    def _take(self, size: int) -> bytes:
        """Read `size` bytes of the message."""
        if len(self._message) + size > MOST_BYTES:
            raise MalformedMessageError(f"a message of more than {MOST_BYTES} bytes")
        taken = self._stream.read(size)
        if len(taken) < size:
            raise MalformedMessageError(f"the connection ended within a message, after {len(self._message)} bytes")
        self._message += taken
        return taken
