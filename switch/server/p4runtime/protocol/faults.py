"""Why a server does not do what a client asks: canonical codes of gRPC, and the error that carries one."""

from __future__ import annotations

from enum import IntEnum

from inakit.switch.control.refusals import RefusalKind, Refused
from inakit.topo.errors import InputError, UnsupportedError


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
