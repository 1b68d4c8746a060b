"""The Thrift server of a running switch: its services, all on one port, and its notifications.

Each client has a thread, as in BMv2. Refusals become the exceptions that the functions of the services declare.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from threading import Lock, Thread
from time import sleep
from traceback import format_exc
from typing import Any

from thriftpy2.protocol.cybin import TCyBinaryProtocol
from thriftpy2.thrift import TApplicationException, TType
from thriftpy2.transport.memory import TCyMemoryBuffer

from inakit.switch.control.requests import Refused
from inakit.switch.server.served_switch import ServedSwitch
from inakit.switch.server.thrift.message_reader import MalformedMessageError, MessageReader
from inakit.switch.server.thrift.notifications import Notifier, Publisher
from inakit.switch.server.thrift.services import Services, SwitchIdentity, description
from inakit.topo.errors import InakitError, MachineError

SERVICES = {
    "standard": "Standard",
    "simple_pre": "SimplePre",
    "simple_pre_lag": "SimplePreLAG",
    "simple_switch": "SimpleSwitch",
}
"""The services by the names that clients use."""


def exception_of(error: InakitError, result: Any) -> Any | None:
    """The exception that a function with this result structure declares for an error.

    Its code is that of the refusal, or ERROR if the exception has no such code; None if it has neither.
    """
    declared = next((field[2] for field in result.thrift_spec.values() if field[1] == "ouch"), None)
    if declared is None:
        return None
    (_, _, enumeration, _) = declared.thrift_spec[1]
    codes: dict[str, int] = enumeration._NAMES_TO_VALUES
    named = error.kind.code.upper() if isinstance(error, Refused) else ""
    code = codes.get(named, codes.get("ERROR"))
    return None if code is None else declared(code)


CALL, REPLY, EXCEPTION, ONEWAY = 1, 2, 3, 4
"""Kinds of messages."""

EMPTY: dict[int, object] = {TType.LIST: (), TType.BINARY: b"", TType.BOOL: False, TType.DOUBLE: 0.0}
"""The value of an omitted argument, by type; 0 for all other types."""


class Dispatcher:
    """Decodes clients' messages, and encodes the services' answers; safe for any thread."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def answer(self, message: bytes) -> bytes:
        """The answer to a message of checked shape; empty if the client expects none."""
        # Text is decoded here, because the library decodes only valid text and leaves the rest as bytes.
        incoming = TCyBinaryProtocol(TCyMemoryBuffer(message), decode_response=False)
        name, kind, sequence = incoming.read_message_begin()
        service, _, function = str(name).rpartition(":")
        try:
            answer = written(function, sequence, self._result(service, function, kind, incoming))
        except Exception:  # a bug here must not end the connection
            answer = written(function, sequence, failure(format_exc()))
        return b"" if kind == ONEWAY else answer

    def _result(self, service: str, function: str, kind: int, incoming: Any) -> Any:
        """The result structure of a call, or the error that the client gets in its place."""
        if kind not in (CALL, ONEWAY):
            return TApplicationException(TApplicationException.INVALID_MESSAGE_TYPE, f"a message of type {kind}")
        declared = getattr(description(), SERVICES[service]) if service in SERVICES else None
        if declared is None or function not in declared.thrift_services:
            why = f"no function '{service}:{function}': services are {', '.join(SERVICES)}"
            return TApplicationException(TApplicationException.UNKNOWN_METHOD, why)
        read = getattr(declared, f"{function}_args")()
        read.read(incoming)
        result = getattr(declared, f"{function}_result")()
        arguments = {field[1]: argument(getattr(read, field[1]), field) for field in read.thrift_spec.values()}
        if (context := arguments.pop("cxt_id", 0)) != 0:
            return failure(f"no context {context}: the switch has one, 0")
        try:
            result.success = self._services.call(service, function, arguments)
        except InakitError as error:
            result.ouch = exception_of(error, result)
            if result.ouch is None:
                return failure(str(error))
        return result


def argument(value: Any, field: Sequence[Any]) -> Any:
    """One argument; `field` is its type, its name, and for a structure its class."""
    if field[0] == TType.STRUCT:
        return field[2]() if value is None else value
    if field[0] == TType.STRING:
        return (value or b"").decode(errors="replace")
    return EMPTY.get(field[0], 0) if value is None else value


def failure(why: str) -> Any:
    """The error for a failure that no service declares."""
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


WAITING = 128
"""The number of clients that can wait to be accepted."""

RETRY_S = 0.05
"""The time between two attempts to accept a client."""


class Listener:
    """A TCP port of all addresses (0: a free one, see `port`), on which clients are answered."""

    def __init__(self, port: int) -> None:
        self._listening = listen(port)
        self.port: int = self._listening.getsockname()[1]
        self._clients: set[socket.socket] = set()
        self._lock = Lock()
        self._closed = False

    def start(self, dispatcher: Dispatcher) -> None:
        """Answer clients until `close`."""
        Thread(target=self._accept, args=(dispatcher,), name=f"thrift-{self.port}", daemon=True).start()

    def close(self) -> None:
        """Refuse new clients, and end the present connections."""
        with self._lock:
            self._closed = True
            ending = [self._listening, *self._clients]
        for each in ending:
            end(each)
        self._listening.close()

    def _accept(self, dispatcher: Dispatcher) -> None:
        """Start a thread for each new client; without a free thread, reject the client."""
        while not self._closed:
            try:
                client, _ = self._listening.accept()
            except OSError:  # closed, or out of file descriptors: try again
                sleep(RETRY_S)
                continue
            try:
                Thread(target=self._serve, args=(client, dispatcher), daemon=True).start()
            except RuntimeError:
                client.close()

    def _serve(self, client: socket.socket, dispatcher: Dispatcher) -> None:
        """Answer a client until its connection ends or it sends a malformed message."""
        with client, self._known(client), suppress(OSError, MalformedMessageError):
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with client.makefile("rb") as stream:
                reader = MessageReader(stream)
                while message := reader.read():
                    client.sendall(dispatcher.answer(message))

    @contextmanager
    def _known(self, client: socket.socket) -> Iterator[None]:
        """Inside the block, `close` ends the client's connection."""
        with self._lock:
            self._clients.add(client)
        if self._closed:
            end(client)
        try:
            yield
        finally:
            with self._lock:
                self._clients.discard(client)


def listen(port: int) -> socket.socket:
    """A socket that listens on a port of all addresses, of IPv4 and, if available, IPv6."""
    try:
        return socket.create_server(
            ("", port),
            family=socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET,
            dualstack_ipv6=socket.has_dualstack_ipv6(),
            backlog=WAITING,
        )
    except (OSError, OverflowError) as error:
        why = (
            f"TCP port {port} is not available ({error}): end the program that uses it, or choose another --thrift-port"
        )
        raise MachineError(why) from error


def end(connection: socket.socket) -> None:
    """Shut a connection down; this wakes up threads that wait for it."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class ThriftServer:
    """Answers Thrift clients of a switch on a TCP `port` (0: a free one), and publishes its notifications."""

    def __init__(self, served: ServedSwitch, port: int, device_id: int, notifications: str) -> None:
        self._served, self.port = served, port
        self._device_id, self._notifications = device_id, notifications
        self._open = ExitStack()

    def start(self) -> None:
        """Listen and publish; `MachineError` if the port or the address is in use."""
        with ExitStack() as opened:
            publisher = Publisher(self._notifications)
            opened.callback(publisher.close)
            listener = Listener(self.port)
            opened.callback(listener.close)
            self.port = listener.port
            opened.callback(Notifier(self._served, publisher, self._device_id).close)
            identity = SwitchIdentity(self._device_id, self.port, self._notifications)
            listener.start(Dispatcher(Services(self._served, identity)))
            self._open = opened.pop_all()

    def close(self) -> None:
        """End all connections, and stop publishing."""
        self._open.close()
