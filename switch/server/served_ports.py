"""The ports of a served switch, its CPU port and the queues in front of egress, independent of its program."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import RLock
from typing import NamedTuple

from inakit.switch.control.requests import RefusalKind, Refused
from inakit.switch.server.engines import Engine
from inakit.switch.server.switch_options import Journal
from inakit.topo.errors import InakitError, UnsupportedError

ToController = Callable[[bytes], None]


class ServedPorts:
    """Interfaces by port number. They stay when another program is loaded; without a program, no packet is received."""

    def __init__(self, journal: Journal, cpu_port: int | None = None) -> None:
        self.journal, self.cpu_port = journal, cpu_port
        self.engine: Engine | None = None
        self.lock = RLock()
        self.interfaces: dict[int, str] = {}
        self.down: set[int] = set()
        self.controllers: list[ToController] = []

    def add(self, port: int, interface: str) -> None:
        """Make an interface the port with this number, or refuse."""
        with self.lock:
            if port in self.interfaces or port == self.cpu_port:
                used = self.interfaces.get(port, "the CPU port")
                raise Refused(RefusalKind.DEV_MGR_ERROR, f"port {port} is already {used}")
            try:
                if self.engine is not None:
                    self.engine.attach(port, interface)
            except InakitError as error:
                raise Refused(RefusalKind.DEV_MGR_ERROR, str(error)) from error
            self.interfaces[port] = interface

    def remove(self, port: int) -> None:
        """Release the interface of a port, or refuse."""
        with self.lock:
            if port not in self.interfaces:
                raise Refused(RefusalKind.DEV_MGR_ERROR, f"there is no port {port}")
            if self.engine is not None:
                self.engine.detach(port)
            del self.interfaces[port]
            self.down.discard(port)

    def all(self) -> dict[int, str]:
        with self.lock:
            return dict(sorted(self.interfaces.items()))

    def is_up(self, port: int) -> bool:
        """Whether packets can arrive at a port."""
        with self.lock:
            return port in self.interfaces and self.engine is not None and self.engine.is_up(port)

    def inject(self, port: int, packet: bytes) -> None:
        """Inject a packet at the CPU port, or in an interpreted switch at any port."""
        if self.engine is not None:
            self.engine.inject(port, packet)

    def to_cpu(self, packet: bytes) -> None:
        for controller in self.controllers:
            controller(packet)

    def move_to(self, engine: Engine) -> None:
        """Attach all interfaces to another engine; log those that are gone."""
        with self.lock:
            self.release()
            self.engine = engine
            for port, interface in self.interfaces.items():
                try:
                    engine.attach(port, interface)
                except InakitError as error:
                    self.journal.error(f"port {port}: {error}")

    def detach_all(self) -> None:
        """Detach all interfaces; the program's state stays."""
        with self.lock:
            if self.engine is not None:
                for port in self.interfaces:
                    self.engine.detach(port)

    def release(self) -> None:
        """Detach all interfaces, and close the engine."""
        with self.lock:
            if self.engine is not None:
                self.engine.close()
            self.engine = None

    def look_after(self) -> None:
        """Log interfaces that have gone, and attach those that are back."""
        with self.lock:
            for port, interface in self.interfaces.items():
                if self.engine is None or self.engine.is_up(port):
                    continue
                if port not in self.down:
                    self.journal.error(f"interface {interface} of port {port} is gone")
                    self.down.add(port)
                with suppress(InakitError):
                    self.engine.detach(port)
                    self.engine.attach(port, interface)
                    self.journal.info(f"interface {interface} of port {port} is back")
                    self.down.discard(port)


class QueueRequest(NamedTuple):
    """A rate (packets/s) or a depth (packets) of the queues of a port or of all, of one priority or of all."""

    what: str
    value: int
    port: int | None
    priority: int | None

    def carry_out(self, engine: Engine) -> None:
        (engine.set_rate if self.what == "rate" else engine.set_depth)(self.value, self.port, self.priority)


class ServedQueues:
    """Rates and depths of queues, which stay when another program is loaded.

    `fall_back` provides an engine with queues if the present one has none.
    """

    def __init__(self, priorities: int, fall_back: Callable[[UnsupportedError], Engine]) -> None:
        self.priorities, self.fall_back = priorities, fall_back
        self.engine: Engine | None = None
        self.requests: list[QueueRequest] = []

    def set_rate(self, packets_per_s: int, port: int | None = None, priority: int | None = None) -> None:
        """Set the rate of all queues, those of a port, or one; 0 means no limit."""
        self.request(QueueRequest("rate", packets_per_s, port, priority))

    def set_depth(self, packets: int, port: int | None = None, priority: int | None = None) -> None:
        """Set the depth of all queues, those of a port, or one."""
        self.request(QueueRequest("depth", packets, port, priority))

    def request(self, wanted: QueueRequest) -> None:
        """Carry out a request, and keep it in place of those that it overrides."""
        if wanted.value < 0 or not 0 <= (wanted.priority or 0) < self.priorities:
            why = f"a {wanted.what} of {wanted.value} for queue {wanted.priority}: each port has {self.priorities}"
            raise Refused(RefusalKind.TABLE_ERROR, why)
        try:
            if self.engine is not None:
                wanted.carry_out(self.engine)
        except UnsupportedError as error:
            wanted.carry_out(self.fall_back(error))
        self.requests = [each for each in self.requests if not overrides(wanted, each)] + [wanted]

    def move_to(self, engine: Engine) -> None:
        """Repeat all requests so far for another engine."""
        for each in self.requests:
            each.carry_out(engine)
        self.engine = engine


def overrides(new: QueueRequest, old: QueueRequest) -> bool:
    """Whether a request replaces an older one."""
    return new.what == old.what and new.port in (None, old.port) and new.priority in (None, old.priority)
