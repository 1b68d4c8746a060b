"""Messages of clients to answers: which function of which service is called, with which arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from traceback import format_exc
from typing import Any

from thriftpy2.protocol.cybin import TCyBinaryProtocol
from thriftpy2.thrift import TApplicationException, TType
from thriftpy2.transport.memory import TCyMemoryBuffer

from inakit.switch.server.thrift.description import description
from inakit.switch.server.thrift.refusal_codes import exception_of
from inakit.topo.errors import InakitError

SERVICES = {
    "standard": "Standard",
    "simple_pre": "SimplePre",
    "simple_pre_lag": "SimplePreLAG",
    "simple_switch": "SimpleSwitch",
}
"""What clients call each service of the description."""

CALL, REPLY, EXCEPTION, ONEWAY = 1, 2, 3, 4
"""Kinds of messages."""

EMPTY: dict[int, object] = {TType.LIST: (), TType.BINARY: b"", TType.BOOL: False, TType.DOUBLE: 0.0}
"""What stands for an argument that the client left out, by its type; 0 for all others."""


class Dispatcher:
    """Calls the functions of handlers, one for each service by the name that clients call it; of any thread."""

    def __init__(self, handlers: Mapping[str, object]) -> None:
        self._handlers = handlers

    def answer(self, message: bytes) -> bytes:
        """The answer to a message whose shape was checked; empty if the client waits for none."""
        # What is text is decoded here, for the library decodes what it can and leaves the rest.
        incoming = TCyBinaryProtocol(TCyMemoryBuffer(message), decode_response=False)
        name, kind, sequence = incoming.read_message_begin()
        service, _, function = str(name).rpartition(":")
        try:
            answer = written(function, sequence, self._result(service, function, kind, incoming))
        except Exception:  # a mistake of this code must not end the connection of whoever met it
            answer = written(function, sequence, failure(format_exc()))
        return b"" if kind == ONEWAY else answer

    def _result(self, service: str, function: str, kind: int, incoming: Any) -> Any:
        """The result structure of a call, or the error that the client gets instead."""
        if kind not in (CALL, ONEWAY):
            return TApplicationException(TApplicationException.INVALID_MESSAGE_TYPE, f"a message of type {kind}")
        declared = getattr(description(), SERVICES[service], None) if service in self._handlers else None
        if declared is None or function not in declared.thrift_services:
            why = f"no function '{service}:{function}': services are {', '.join(self._handlers)}"
            return TApplicationException(TApplicationException.UNKNOWN_METHOD, why)
        arguments = getattr(declared, f"{function}_args")()
        arguments.read(incoming)
        result = getattr(declared, f"{function}_result")()
        return self._call(getattr(self._handlers[service], function), arguments_of(arguments), result)

    def _call(self, function: Any, arguments: Mapping[str, Any], result: Any) -> Any:
        """Call a function, and fill its result structure with what it returns or why it refuses."""
        if arguments.get("cxt_id", 0) != 0:
            return failure(f"no context {arguments['cxt_id']}: the switch has one, 0")
        try:
            result.success = function(*(value for name, value in arguments.items() if name != "cxt_id"))
        except InakitError as error:
            result.ouch = exception_of(error, result)
            if result.ouch is None:
                return failure(str(error))
        return result


def arguments_of(read: Any) -> dict[str, Any]:
    """The arguments of a call by name; one that the client left out is 0 or empty, as in BMv2."""
    return {field[1]: argument(getattr(read, field[1]), field) for field in read.thrift_spec.values()}


def argument(value: Any, field: Sequence[Any]) -> Any:
    """One argument; `field` is its type, its name, and for a structure its class."""
    if field[0] == TType.STRUCT:
        return field[2]() if value is None else value
    if field[0] == TType.STRING:
        return (value or b"").decode(errors="replace")
    return EMPTY.get(field[0], 0) if value is None else value


def failure(why: str) -> Any:
    """The error for what no service declares."""
    return TApplicationException(TApplicationException.INTERNAL_ERROR, why)


def written(function: str, sequence: int, result: Any) -> bytes:
    """The message that answers a call."""
    outgoing = TCyBinaryProtocol(TCyMemoryBuffer())
    kind = EXCEPTION if isinstance(result, TApplicationException) else REPLY
    outgoing.write_message_begin(function, kind, sequence)
    result.write(outgoing)
    outgoing.write_message_end()
    message: bytes = outgoing.trans.getvalue()
    return message
