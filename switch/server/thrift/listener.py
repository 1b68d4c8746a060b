"""The listening socket of the Thrift services: a thread for each client, as BMv2 has it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Thread
from time import sleep

from inakit.switch.server.thrift.dispatch import Dispatcher
from inakit.switch.server.thrift.message_reader import MalformedMessageError, MessageReader
from inakit.topo.errors import MachineError

WAITING = 128
"""Clients that may wait to be accepted."""

RETRY_S = 0.05
"""The time between two attempts to accept a client."""


class Listener:
    """A TCP port of all addresses (0: one that is free, see `port`), on which clients are answered."""

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
        """Refuse new clients, and end the connections of those that are there."""
        with self._lock:
            self._closed = True
            ending = [self._listening, *self._clients]
        for each in ending:
            end(each)
        self._listening.close()

    def _accept(self, dispatcher: Dispatcher) -> None:
        """Start a thread for each new client; one for which the machine has no thread or file left is turned away."""
        while not self._closed:
            try:
                client, _ = self._listening.accept()
            except OSError:  # closed, or no file is left: those who wait are accepted when one is
                sleep(RETRY_S)
                continue
            try:
                Thread(target=self._serve, args=(client, dispatcher), daemon=True).start()
            except RuntimeError:
                client.close()

    def _serve(self, client: socket.socket, dispatcher: Dispatcher) -> None:
        """Answer a client until its connection ends, or it sends what is no message."""
        with client, self._known(client), suppress(OSError, MalformedMessageError):
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            answer_all(client, dispatcher)

    @contextmanager
    def _known(self, client: socket.socket) -> Iterator[None]:
        """Within the block `close` ends the client's connection."""
        with self._lock:
            self._clients.add(client)
        if self._closed:
            end(client)
        try:
            yield
        finally:
            with self._lock:
                self._clients.discard(client)


def answer_all(client: socket.socket, dispatcher: Dispatcher) -> None:
    """Answer each message of a client."""
    with client.makefile("rb") as stream:
        reader = MessageReader(stream)
        while message := reader.read():
            client.sendall(dispatcher.answer(message))


def listen(port: int) -> socket.socket:
    """A socket that listens on a port of all addresses, of IPv4 and, where there is it, of IPv6."""
    try:
        return socket.create_server(
            ("", port),
            family=socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET,
            dualstack_ipv6=socket.has_dualstack_ipv6(),
            backlog=WAITING,
        )
    except (OSError, OverflowError) as error:
        why = f"TCP port {port} cannot be listened on ({error}): end what has it, or choose another --thrift-port"
        raise MachineError(why) from error


def end(connection: socket.socket) -> None:
    """Wake up whoever waits for a connection, for it has ended."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
