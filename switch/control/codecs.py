"""The base of the codecs of all entities, by protocol. None of them imports the protocol's library.

- simple_switch_CLI: a `Command` has a usage, whose words name the arguments of a request. - Thrift: a `Call` has a
request, whose arguments have the names of the interface description `bmv2.thrift`. - P4Runtime: a `Codec` reads
messages (of any class with the fields of P4Runtime), and writes the fields of messages as dictionaries, of which the
server makes messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Generic, TypeVar

from inakit.switch.control.requests import RefusalKind, Refused
from inakit.topo.errors import InputError, UnsupportedError


@dataclass(frozen=True)
class Command:
    """A command of simple_switch_CLI: the usage of its arguments, and the request that it makes."""

    usage: str
    request: Callable[..., object]
    given: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """A function of a Thrift service: its request, further arguments, and the writer of its answer.

    `answer` gets the types of the interface description and the result of the request.
    """

    request: Callable[..., object]
    given: Mapping[str, object] = field(default_factory=dict)
    answer: Callable[[Any, Any], object] = lambda _, answer: answer


ReadArgument = Callable[[Any, Any, Mapping[str, Any]], Mapping[str, object]]
"""Makes arguments of a request from one argument of a Thrift call, found by its name in `bmv2.thrift`.

It gets the value, the control plane, and the earlier arguments. Arguments without a `ReadArgument` are passed on
unchanged.
"""


def unsigned(number: int | None, bits: int = 32) -> int:
    """The unsigned number with the bits of a signed number in a Thrift message; 0 for an omitted one."""
    return (number or 0) & ((1 << bits) - 1)


def signed(number: int, bits: int = 32) -> int:
    """The signed number with the same bits, for a Thrift message."""
    number = unsigned(number, bits)
    return number - (1 << bits) if number >> (bits - 1) else number


class Code(IntEnum):
    """The canonical codes with which a P4Runtime server answers."""

    OK = 0
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13


class Fault(InputError):  # noqa: N818, it is an answer
    """The P4Runtime error for a request, or for one update of it, that is not carried out."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


def invalid(message: str) -> Fault:
    """The fault of a malformed request."""
    return Fault(Code.INVALID_ARGUMENT, message)


def not_found(message: str) -> Fault:
    """The fault of a request for something that does not exist."""
    return Fault(Code.NOT_FOUND, message)


CODES = {
    RefusalKind.TABLE_FULL: Code.RESOURCE_EXHAUSTED,
    RefusalKind.MC_TABLE_FULL: Code.RESOURCE_EXHAUSTED,
    RefusalKind.DUPLICATE_ENTRY: Code.ALREADY_EXISTS,
    RefusalKind.INVALID_HANDLE: Code.NOT_FOUND,
    RefusalKind.EXPIRED_HANDLE: Code.NOT_FOUND,
    RefusalKind.INVALID_MBR_HANDLE: Code.NOT_FOUND,
    RefusalKind.INVALID_GRP_HANDLE: Code.NOT_FOUND,
    RefusalKind.SESSION_NOT_FOUND: Code.NOT_FOUND,
    RefusalKind.MBR_STILL_USED: Code.FAILED_PRECONDITION,
    RefusalKind.GRP_STILL_USED: Code.FAILED_PRECONDITION,
    RefusalKind.EMPTY_GRP: Code.FAILED_PRECONDITION,
    RefusalKind.IMMUTABLE_TABLE_ENTRIES: Code.PERMISSION_DENIED,
    RefusalKind.DEFAULT_ACTION_IS_CONST: Code.PERMISSION_DENIED,
    RefusalKind.DEFAULT_ENTRY_IS_CONST: Code.PERMISSION_DENIED,
    RefusalKind.INVALID_COUNTER_INDEX: Code.OUT_OF_RANGE,
    RefusalKind.INVALID_METER_INDEX: Code.OUT_OF_RANGE,
    RefusalKind.INVALID_REGISTER_INDEX: Code.OUT_OF_RANGE,
}
"""The codes for refusals of the control plane; every other refusal is an invalid argument."""


def fault_of(error: Exception) -> Fault:
    """The fault for any error."""
    match error:
        case Fault():
            return error
        case Refused():
            return Fault(CODES.get(error.kind, Code.INVALID_ARGUMENT), str(error))
        case UnsupportedError():
            return Fault(Code.UNIMPLEMENTED, str(error))
        case InputError():
            return invalid(str(error))
    return Fault(Code.INTERNAL, f"{type(error).__name__}: {error}")


def encode(number: int) -> bytes:
    """The canonical byte string of an unsigned number."""
    return number.to_bytes((number.bit_length() + 7) // 8 or 1, "big")


def decode(octets: bytes, bits: int, what: str) -> int:
    """The unsigned number in a byte string of any length; a fault if it is empty or has more than `bits` bits."""
    number = int.from_bytes(octets, "big")
    if not octets or number >> bits:
        raise unfit(octets, f"bit<{bits}>", what)
    return number


def encode_signed(number: int, bits: int) -> bytes:
    """The canonical byte string of a number of type int<bits>, given by its two's complement."""
    signed_number = signed(number, bits)
    length = (signed_number if signed_number >= 0 else ~signed_number).bit_length() // 8 + 1
    return signed_number.to_bytes(length, "big", signed=True)


def decode_signed(octets: bytes, bits: int, what: str) -> int:
    """The two's complement in `bits` bits of the signed number in a byte string; a fault if it does not fit."""
    number = int.from_bytes(octets, "big", signed=True)
    if not octets or not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise unfit(octets, f"int<{bits}>", what)
    return number & (1 << bits) - 1


def unfit(octets: bytes, kind: str, what: str) -> Fault:
    shown = f"0x{octets[:32].hex()}{'...' if len(octets) > 32 else ''}" if octets else "an empty byte string"
    return Fault(Code.OUT_OF_RANGE, f"{what}: {shown} does not fit {kind}")


Message = Any
"""A message of P4Runtime; its class is made at run time."""

Fields = dict[str, Any]
"""The fields of a P4Runtime message; messages within it are dictionaries or messages."""

Described = TypeVar("Described")
Declared = TypeVar("Declared")
Made = TypeVar("Made")


class ById(dict[int, Described], Generic[Described]):
    """The entities of one kind (`what`) in a P4Info, by id; `absent` has the names of those that the program lacks.

    `described` are their messages, `declared` the program's declarations by name; `read` gets both for each entity.
    """

    def __init__(
        self,
        what: str,
        described: Iterable[Message] = (),
        declared: Mapping[str, Declared] | None = None,
        read: Callable[[Message, Declared], Described] | None = None,
    ) -> None:
        super().__init__()
        self.what, self.absent = what, dict[int, str]()
        for each in described:
            number, name = each.preamble.id, each.preamble.name
            if declared is not None and read is not None and name in declared:
                self[number] = read(each, declared[name])
            else:
                self.absent[number] = name

    def find(self, number: int) -> Described:
        """The entity of this id; a fault if there is none, or if the compiler has removed it from the program."""
        found = self.get(number)
        if found is not None:
            return found
        if number in self.absent:
            name = self.absent[number]
            raise Fault(Code.UNIMPLEMENTED, f"{self.what} '{name}' is not in the program that p4c has made")
        raise not_found(f"no {self.what} has the id {number:#010x}")

    def expect(self, number: int) -> Described:
        """The entity that an update names; a fault if it names none or an unknown one."""
        expect_id(number, self.what)
        return self.find(number)

    def mapped(self, make: Callable[[Described], Made]) -> ById[Made]:
        """Apply `make` to each entity; the ids stay."""
        found: ById[Made] = ById(self.what)
        found.update({number: make(each) for number, each in self.items()})
        found.absent = self.absent
        return found

    def selected(self, number: int) -> list[Described]:
        """The entities that a read request names: one, or all for 0."""
        return [self.find(number)] if number else list(self.values())


def expect_id(number: int, what: str) -> None:
    """Raise a fault for an update that does not say which entity it concerns."""
    if not number:
        raise invalid(f"{what}: the id in an update is 0: an update names one entity")


def within(number: int, least: int, most: int, what: str) -> int:
    """The number, if it lies within these bounds; else a fault."""
    if not least <= number <= most:
        raise invalid(f"{what}: {number} is not in {least} to {most}")
    return number


def copy_of(message: Message) -> Message:
    """A copy of a message, independent of the request that contains it."""
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


class UpdateKind(IntEnum):
    """The effect of an update, as in `Update.Type`."""

    INSERT = 1
    MODIFY = 2
    DELETE = 3


class Codec:
    """The entities of one kind in P4Runtime, called `member` in an `Entity`; `id_field` has the id of their kind.

    Updates raise `Fault` or `Refused`. `read` collects all state before it returns, so that its entities show one
    moment.
    """

    member = ""
    id_field = ""

    def insert(self, message: Message) -> None:
        """Add an entity."""
        raise self.only_modified(UpdateKind.INSERT, message)

    def modify(self, message: Message) -> None:
        """Change an existing entity."""
        raise NotImplementedError

    def delete(self, message: Message) -> None:
        """Remove an entity."""
        raise self.only_modified(UpdateKind.DELETE, message)

    def only_modified(self, kind: UpdateKind, message: Message) -> Fault:
        """The fault for an update that entities of this kind do not support."""
        return invalid(f"{self.member} of {self.scope(message):#010x}: {kind.name} is not possible, only MODIFY")

    def read(self, message: Message) -> Iterable[Fields]:
        """The entities that a request selects; a zero in the request selects all."""
        raise NotImplementedError

    def snapshot(self, kind: UpdateKind, message: Message) -> list[Fields]:  # noqa: ARG002
        """The entities that an update of this kind is about to change, as updates that restore them."""
        return list(self.read(message))

    def scope(self, message: Message) -> int:
        """The id in the P4Info, by which roles are limited; 0 for entities that the P4Info does not describe."""
        return int(getattr(message, self.id_field)) if self.id_field else 0


@dataclass(frozen=True)
class ArraySchema:
    """An array that statements use by index."""

    id: int
    name: str
    size: int


Array = TypeVar("Array", bound=ArraySchema)


class ArrayCodec(Codec, Generic[Array]):
    """An array that statements use by index: each cell is an entity that is modified."""

    def __init__(self, arrays: ById[Array]) -> None:
        self.arrays = arrays

    def modify(self, message: Message) -> None:
        """Write one cell, or all."""
        array = self.arrays.expect(self.scope(message))
        indices = self.indices(array, message)
        value = self.value(array, message)
        for index in indices if message.HasField("index") else (None,):
            self.put(array, index, value)

    def read(self, message: Message) -> Iterator[Fields]:
        """One cell, all cells of one array, or all cells of all arrays."""
        number = self.scope(message)
        found = []
        for array in self.arrays.selected(number):
            indices = self.indices(array, message) if number else range(array.size)
            found.append((array, indices, self.cells(array, indices)))
        return (
            {self.id_field: array.id, "index": {"index": index}} | cell
            for array, indices, cells in found
            for index, cell in zip(indices, cells, strict=True)
        )

    def value(self, array: Array, message: Message) -> Any:
        """The value that a message gives a cell."""
        raise NotImplementedError

    def put(self, array: Array, index: int | None, value: Any) -> None:
        """Write a cell, or all (`index` None)."""
        raise NotImplementedError

    def cells(self, array: Array, indices: Sequence[int]) -> Iterator[Fields]:
        """The present values of the cells at these indices."""
        raise NotImplementedError

    def indices(self, array: Array, message: Message) -> Sequence[int]:
        """The indices of an array that a message selects: one, or all."""
        if not message.HasField("index"):
            return range(array.size)
        index = message.index.index
        if index < 0:
            raise invalid(f"{array.name}: the index {index} is negative")
        if index >= array.size:
            raise Fault(Code.OUT_OF_RANGE, f"{array.name}: no index {index}, it has {array.size} cells")
        return (index,)
