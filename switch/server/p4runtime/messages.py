"""The messages of P4Runtime, made of the descriptions that the package `p4runtime` carries; byte strings and faults.

The classes in that package were generated for protobuf before 4, and no later protobuf loads them, so that only the
serialized descriptions are taken from its files. `v1.TableEntry` is the class of the message `p4.v1.TableEntry`,
`config.P4Info` that of `p4.config.v1.P4Info`.
"""

from __future__ import annotations

import ast
from enum import IntEnum
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from google.protobuf import any_pb2, descriptor_pool, message_factory
from google.rpc import status_pb2

from inakit.switch.control.requests import RefusalKind, Refused
from inakit.topo.errors import InputError, UnsupportedError
from inakit.topo.extras import lacking


class Code(IntEnum):
    """The canonical codes that a P4Runtime server answers with."""

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
    """What a server answers instead of carrying out a request, or one update of it."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


def invalid(message: str) -> Fault:
    """The fault of a malformed request."""
    return Fault(Code.INVALID_ARGUMENT, message)


def not_found(message: str) -> Fault:
    """The fault of a request for something that is not there."""
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
"""The codes of what the control plane refuses; every other refusal is of an invalid argument."""


def fault_of(error: Exception) -> Fault:
    """The fault that an error amounts to, whoever raised it."""
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
    """The canonical string of an unsigned number."""
    return number.to_bytes((number.bit_length() + 7) // 8 or 1, "big")


def decode(octets: bytes, bits: int, what: str) -> int:
    """The unsigned number in a string of any length; a fault if it is empty or has more than `bits` bits."""
    number = int.from_bytes(octets, "big")
    if not octets or number >> bits:
        raise Fault(Code.OUT_OF_RANGE, f"{what}: {shown(octets)} does not fit bit<{bits}>")
    return number


def encode_signed(number: int, bits: int) -> bytes:
    """The canonical string of a number of type int<bits>, given by its two's complement."""
    signed = number - (1 << bits) if number >> bits - 1 else number
    length = (signed if signed >= 0 else ~signed).bit_length() // 8 + 1
    return signed.to_bytes(length, "big", signed=True)


def decode_signed(octets: bytes, bits: int, what: str) -> int:
    """The two's complement in `bits` bits of the signed number in a string; a fault if it does not fit."""
    number = int.from_bytes(octets, "big", signed=True)
    if not octets or not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise Fault(Code.OUT_OF_RANGE, f"{what}: {shown(octets)} does not fit int<{bits}>")
    return number & (1 << bits) - 1


def shown(octets: bytes) -> str:
    """A string for people: its first bytes in hexadecimal."""
    return f"0x{octets[:32].hex()}{'...' if len(octets) > 32 else ''}" if octets else "an empty byte string"


Message = Any
"""A message of a class that is made while the program runs."""

FILES = ("p4.config.v1.p4types_pb2", "p4.config.v1.p4info_pb2", "p4.v1.p4data_pb2", "p4.v1.p4runtime_pb2")
"""The modules with the descriptions, each after those that it needs."""


def description(module: str) -> bytes:
    """The serialized description in a generated module: the longest bytes that it writes down."""
    found = find_spec(module)
    if found is None or found.origin is None:
        raise lacking("p4", "P4Runtime")
    tree = ast.parse(Path(found.origin).read_text())
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, bytes))
    return max(texts, key=len)


def classes(*files: str) -> Message:
    """The classes of the messages that files of one package describe, as attributes."""
    found = [message for file in files for message in POOL.FindFileByName(file).message_types_by_name.values()]
    return SimpleNamespace(**{message.name: kept_class(message) for message in found})


def kept_class(described: Message) -> Message:
    """The class of a message; it stays for good, as do those of the messages inside it.

    protobuf's C extension finds a class that is made at run time by a pointer that does not hold it. Such a class is
    garbage while there is no message of it, and one that a thread finds while the collector takes it apart in another
    ends the process: seen with 6.33 and 7.36. Classes of generated modules are held by these.
    """
    found = message_factory.GetMessageClass(described)
    KEPT.append(found)
    for inner in described.nested_types:
        kept_class(inner)
    return found


KEPT: list[Message] = []
"""All classes that were made."""
POOL = descriptor_pool.Default()
for _file in FILES:
    POOL.AddSerializedFile(description(_file))
v1 = classes("p4/v1/p4data.proto", "p4/v1/p4runtime.proto")
config = classes("p4/config/v1/p4types.proto", "p4/config/v1/p4info.proto")
Any_, Status = any_pb2.Any, status_pb2.Status


def packed(message: Message) -> Message:
    wrapped = Any_()
    wrapped.Pack(message)
    return wrapped
