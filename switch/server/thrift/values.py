"""Thrift messages off a connection, checked before they are decoded, and their values as those of the program.

BMv2 takes as many bytes as a field has, most significant first, and ignores the bits of the first one that the field
does not have. Thrift has no unsigned integers: handles and counts are the signed numbers of the same bits.

A message has no length in front: it ends where its outermost structure does. So it is walked as it arrives, and
refused as soon as it is wrong: a library that believed its sizes would take gigabytes or hours.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Protocol

import thriftpy2

from inakit.switch.control.requests import RefusalKind, Refused
from inakit.switch.entries import KeyPart, Lpm, Range, Ternary
from inakit.switch.program.program import Action, MatchKey, Table
from inakit.topo.errors import InputError

DESCRIPTION = Path(__file__).with_name("bmv2.thrift")


@cache
def description() -> Any:
    """The parsed description; its attributes bear the names that stand in it."""
    return thriftpy2.load(str(DESCRIPTION), module_name="inakit_bmv2_thrift")


GREATEST_I64 = (1 << 63) - 1


def key_of(table: Table, parts: Sequence[Any]) -> tuple[KeyPart, ...]:
    """The key that a message gives for a table; a refusal unless number, kinds and sizes of its parts are right."""
    if len(parts) != len(table.key):
        why = f"key of table '{table.name}': {len(parts)} parts given, {len(table.key)} expected"
        raise Refused(RefusalKind.BAD_MATCH_KEY, why)
    return tuple(part_of(table, place, part) for place, part in zip(table.key, parts, strict=True))


def part_of(table: Table, place: MatchKey, part: Any) -> KeyPart:
    given = getattr(part, place.match)
    if part.type != description().MatchKind._NAMES_TO_VALUES[place.match.upper()] or given is None:
        raise Refused(RefusalKind.BAD_MATCH_KEY, f"table '{table.name}': '{place.name}' matches {place.match}")
    return READ_PART[place.match](place, given)


def number_of(place: MatchKey, given: bytes | None, cut: bool = True) -> int:
    """A number of a key; bits that its field does not have are `cut` off."""
    size = (place.bits + 7) // 8
    if given is None or len(given) != size:
        why = f"'{place.name}' has {place.bits} bits: {size} bytes, not {len(given or b'')}"
        raise Refused(RefusalKind.BAD_MATCH_KEY, why)
    number = int.from_bytes(given, "big")
    return number & ((1 << place.bits) - 1) if cut else number


def lpm_of(place: MatchKey, given: Any) -> Lpm:
    return Lpm(number_of(place, given.key), given.prefix_length or 0)


def ternary_of(place: MatchKey, given: Any) -> Ternary:
    """A value and a mask; bits outside of the mask are 0."""
    mask = number_of(place, given.mask)
    return Ternary(number_of(place, given.key) & mask, mask)


def range_of(place: MatchKey, given: Any) -> Range:
    """A range, the lower end first."""
    low, high = number_of(place, given.start, cut=False), number_of(place, given.end_, cut=False)
    if low > high:
        raise Refused(RefusalKind.BAD_MATCH_KEY, f"the range {low}->{high} of '{place.name}' is empty")
    return Range(number_of(place, given.start), number_of(place, given.end_))


READ_PART: dict[str, Callable[[MatchKey, Any], KeyPart]] = {
    "exact": lambda place, given: number_of(place, given.key),
    "lpm": lpm_of,
    "ternary": ternary_of,
    "valid": lambda _, given: int(bool(given.key)),
    "range": range_of,
}


def message_key(table: Table, key: Sequence[KeyPart]) -> list[Any]:
    return [message_part(place, part) for place, part in zip(table.key, key, strict=True)]


def message_part(place: MatchKey, part: KeyPart) -> Any:
    types, size = description(), (place.bits + 7) // 8
    match part:
        case Lpm(value, prefix):
            written = types.LpmPart(value.to_bytes(size, "big"), prefix)
        case Ternary(value, mask):
            written = types.TernaryPart(value.to_bytes(size, "big"), mask.to_bytes(size, "big"))
        case Range(low, high):
            written = types.RangePart(low.to_bytes(size, "big"), high.to_bytes(size, "big"))
        case int() if place.match == "valid":
            written = types.ValidPart(bool(part))
        case int():
            written = types.ExactPart(part.to_bytes(size, "big"))
    return types.KeyPart(getattr(types.MatchKind, place.match.upper()), **{place.match: written})


def params_of(actions: Sequence[Action], name: str, params: Sequence[bytes]) -> tuple[int, ...]:
    """The parameters that a message gives for one of these actions, without the bits that they do not have."""
    numbers = tuple(int.from_bytes(each, "big") for each in params)
    places = next((action.parameters for action in actions if action.name == name), ())
    if len(places) != len(numbers):
        return numbers
    return tuple(number & ((1 << place.bits) - 1) for number, place in zip(numbers, places, strict=True))


def message_params(params: Sequence[int]) -> list[bytes]:
    """Parameters as a message has them: no leading zeros, as BMv2 gives them."""
    return [number.to_bytes(max(1, (number.bit_length() + 7) // 8), "big") for number in params]


def unsigned(number: int, bits: int = 32) -> int:
    """The unsigned number whose bits a signed one of a message has."""
    return number & ((1 << bits) - 1)


def signed(number: int, bits: int = 32) -> int:
    """The signed number of as many bits, for a message."""
    number = unsigned(number, bits)
    return number - (1 << bits) if number >> (bits - 1) else number


VERSION = 0x8001
"""What the first two bytes of a message say."""

SIZES = {2: 1, 3: 1, 4: 8, 6: 2, 8: 4, 10: 8}
"""Bytes of the types of one size: bool, byte, double, i16, i32, i64."""

STOP, STRING, STRUCT, MAP, SET, LIST = 0, 11, 12, 13, 14, 15

MOST_BYTES, MOST_VALUES, DEEPEST = 64 << 20, 1 << 20, 16
"""The largest message: a program's JSON has some megabytes, a key some ten values on three levels."""


class MalformedMessageError(InputError):
    """What a client sent is no message of Thrift's binary protocol, or one that is too large."""


class Stream(Protocol):
    """Bytes as they arrive."""

    def read(self, size: int, /) -> bytes:
        """`size` bytes, fewer only at the end."""


class MessageReader:
    """Reads one message after the other."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._message = bytearray()
        self._values = 0

    def read(self) -> bytes:
        """The next message; empty at the end of the connection. `MalformedMessageError` if it is none."""
        self._message, self._values = bytearray(self._stream.read(4)), 0
        if not self._message:
            return b""
        if len(self._message) < 4 or int.from_bytes(self._message[:2], "big") != VERSION:
            raise MalformedMessageError(
                f"{self._message.hex()}: a message of Thrift's binary protocol begins with 8001"
            )
        self._walk_text()
        self._take(4)
        self._walk(STRUCT, DEEPEST)
        return bytes(self._message)

    def _walk(self, kind: int, depth: int) -> None:
        """Read one value of this type, in which values may be nested `depth` levels deep."""
        if depth == 0:
            raise MalformedMessageError(f"values are nested more than {DEEPEST} levels deep")
        if kind in SIZES:
            self._take(SIZES[kind])
        elif kind in WALKS:
            WALKS[kind](self, depth - 1)
        else:
            raise MalformedMessageError(f"there is no type {kind}")

    def _walk_text(self, _: int = 0) -> None:
        """Read bytes with their number in front."""
        self._take(self._size())

    def _walk_structure(self, depth: int) -> None:
        """Read fields, each its type and number and its value, up to a type of 0."""
        while kind := self._take(1)[0]:
            self._count(1)
            self._take(2)
            self._walk(kind, depth)

    def _walk_list(self, depth: int) -> None:
        """Read values of one type, which stands in front with their number."""
        kind = self._take(1)[0]
        self._walk_each((kind,), self._count(self._size()), depth)

    def _walk_map(self, depth: int) -> None:
        """Read pairs of values of two types, which stand in front with their number."""
        kinds = tuple(self._take(2))
        self._walk_each(kinds, self._count(self._size()), depth)

    def _walk_each(self, kinds: tuple[int, ...], count: int, depth: int) -> None:
        """Read as many values of each of these types in turn."""
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
        """Refuse a message of too many values; return how many these are."""
        self._values += values
        if self._values > MOST_VALUES:
            raise MalformedMessageError(f"a message of more than {MOST_VALUES} values")
        return values

    def _take(self, size: int) -> bytes:
        """Read as many bytes of the message."""
        if len(self._message) + size > MOST_BYTES:
            raise MalformedMessageError(f"a message of more than {MOST_BYTES} bytes")
        taken = self._stream.read(size)
        if len(taken) < size:
            raise MalformedMessageError(f"the connection ended within a message, after {len(self._message)} bytes")
        self._message += taken
        return taken


WALKS: dict[int, Callable[[MessageReader, int], None]] = {
    STRING: MessageReader._walk_text,
    STRUCT: MessageReader._walk_structure,
    MAP: MessageReader._walk_map,
    SET: MessageReader._walk_list,
    LIST: MessageReader._walk_list,
}


TABLE, PROFILE, COUNTER, METER, REGISTER, LEARNING_LIST = range(6)
"""Kinds of what is declared, as clients number them."""

ARRAYS = {COUNTER: "counter_arrays", METER: "meter_arrays", REGISTER: "register_arrays", LEARNING_LIST: "learn_lists"}
OF_PIPELINES = {TABLE: "tables", PROFILE: "action_profiles"}
"""Where a program's JSON declares each kind."""


@lru_cache(maxsize=2)
def resource_ids(program: str) -> dict[int, dict[str, int]]:
    document = json.loads(program)
    found = {kind: numbers([document], key) for kind, key in ARRAYS.items()}
    return found | {kind: numbers(document["pipelines"], key) for kind, key in OF_PIPELINES.items()}


def numbers(holders: list[Any], key: str) -> dict[str, int]:
    """The numbers by name of what these parts of a program declare under `key`."""
    return {each["name"]: each["id"] for holder in holders for each in holder.get(key, [])}
