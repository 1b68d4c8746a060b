"""Engines run the program of a served switch on its ports: in the kernel if possible, else interpreted.

The engine in the kernel uses the interfaces themselves: no packet enters this process.
"""

from __future__ import annotations

import os
import select
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from typing import Protocol

from inakit.switch.control.data_plane import DataPlane
from inakit.switch.fast.layout.field_usage import used_fields
from inakit.switch.fast.load.kernel_switch import Compiled, HostPackets, KernelSwitch
from inakit.switch.fast.load.port_queues import PortQueues
from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.interpret.packet import PacketPlaces, TraceLines
from inakit.switch.interpret.switch_state import Clock, Target
from inakit.switch.program.program import DROP_PORT, Constant, Program
from inakit.switch.server.packet_sockets import Capture, CpuInterface, PacketSocket, PcapFiles, Promiscuous
from inakit.switch.server.switch_options import Journal, Options
from inakit.switch.targets import TARGETS
from inakit.topo.errors import InakitError, InputError, RunError
from inakit.topo.live.priority import switch_processors

VARIABLE = "INAKIT_SWITCH"
QUEUE_DEPTHS = ("enq_qdepth", "deq_qdepth")
KERNELS_HEADERS = 128
"""The greatest size in bytes of a host's headers (Ethernet, VLAN tags, IP, TCP) on which the kernel relies."""
CHOICES = ("auto", "kernel", "interpreted")


@dataclass(frozen=True)
class Choice:
    """The way to run a program: `compiled` for the kernel, or interpreted (None) for the reason `why`."""

    compiled: Compiled | None
    why: str


def choose(program: Program, options: Options) -> Choice:
    """The kernel if possible, else interpreted; the environment variable INAKIT_SWITCH can demand one of them."""
    wanted = os.environ.get(VARIABLE, "auto")
    if wanted not in CHOICES:
        raise InputError(f"{VARIABLE}={wanted}: expected one of {', '.join(CHOICES)}")
    if wanted == "interpreted":
        return Choice(None, f"{VARIABLE} says so")
    reason = only_interpreted(options) or only_interpreted_of(program) or TARGETS["fast"].missing()
    if reason is not None and wanted == "auto":
        return Choice(None, reason)
    from inakit.switch.fast.load.kernel_switch import compile_program  # noqa: PLC0415, needs libbpf

    try:
        return Choice(compile_program(program), "it is faster")
    except InakitError as error:
        if wanted == "kernel":
            raise
        return Choice(None, str(error))


def only_interpreted_of(program: Program) -> str | None:
    """The reason why the kernel would treat packets of hosts differently from BMv2; None if it would not.

    In the kernel, queues in front of egress have no depth, and a packet cannot be cut shorter than the headers that a
    host's stack has made in it.
    """
    for field in sorted(used_fields(program), key=str):
        if field.name in QUEUE_DEPTHS:
            return f"it reads '{field}', and a program in the kernel has no queues in front of egress"
    for action in program.actions:
        for primitive in action.primitives:
            if primitive.name != "truncate":
                continue
            length = primitive.arguments[0]
            if not isinstance(length, Constant) or length.value < KERNELS_HEADERS:
                cut = primitive.source or primitive.name
                return f"the kernel does not cut packets within their headers, as its statement '{cut}' may"
    return None


def only_interpreted(options: Options) -> str | None:
    """The option that a program in the kernel does not support; None if there is none."""
    if options.log.every_step:
        return f"-L {options.log.level} asks for every step of every packet"
    if options.priority_queues > 1:
        return "--priority-queues asks for queues in front of egress"
    if options.drop_port != DROP_PORT:
        return f"--drop-port {options.drop_port} is compiled into no program"
    if options.log.packet_bytes and options.log.wanted:
        return "--dump-packet-data asks for the bytes of every packet"
    return None


ToCpu = Callable[[bytes], None]
"""Takes packets that leave by the CPU port."""


class Engine(Protocol):
    """A running program. `what` is a short description of its engine."""

    what: str

    @property
    def data_plane(self) -> DataPlane:
        """The state of the program while it runs."""

    def attach(self, port: int, interface: str) -> None:
        """Make an interface the port of this number. Raises `MachineError`."""

    def detach(self, port: int) -> None:
        """Release a port's interface if it is still there."""

    def is_up(self, port: int) -> bool:
        """Whether packets can arrive at a port."""

    def inject(self, port: int, packet: bytes) -> None:
        """Inject a packet at a port."""

    def set_rate(self, packets_per_s: int, port: int | None, priority: int | None) -> None:
        """Set the rate of all queues, those of a port, or one; 0 means no limit. Raises `UnsupportedError`."""

    def set_depth(self, packets: int, port: int | None, priority: int | None) -> None:
        """Set the depth of queues."""

    def close(self) -> None:
        """Release all interfaces, and remove the program."""


PASSES = 64
"""The greatest number of passes before the next packet is received, so that a recirculating packet blocks no other."""

Task = Callable[[], None]


class JournalTrace(TraceLines):
    """A trace that is logged as it happens."""

    def __init__(self, places: PacketPlaces, journal: Journal) -> None:
        super().__init__(places)
        self.journal, self.packet = journal, -1

    def note(self, line: str) -> None:
        """Write a line into the log."""
        self.journal.debug(f"[{self.packet}.0] [cxt 0] {line}")


class InterpretedEngine:
    """Runs a program in this process, until `close`. Packets to `cpu_port` go to `to_cpu`."""

    def __init__(
        self,
        program: Program,
        journal: Journal,
        clock: Clock,
        target: Target,
        cpu_port: int | None,
        to_cpu: ToCpu,
        pcaps: PcapFiles | None = None,
    ) -> None:
        self.what = "interpreted in this process"
        self.journal, self.cpu_port, self.to_cpu, self.pcaps = journal, cpu_port, to_cpu, pcaps
        self.interpreted = InterpretedSwitch(program, clock=clock, seed=time.time_ns(), target=target)
        self.data_plane = self.interpreted.state
        self.trace = JournalTrace(PacketPlaces(program), journal) if journal.options.every_step else None
        self.switch = self.interpreted.switch if self.trace is None else self.interpreted.made(self.trace)
        self.sockets: dict[int, PacketSocket] = {}
        self.told: set[tuple[int, int | None]] = set()
        self.tasks: SimpleQueue[Task] = SimpleQueue()
        self.wake, self.poll = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC), select.epoll()
        self.poll.register(self.wake, select.EPOLLIN)
        self.running = True
        self.thread = Thread(target=self.run, name="packets", daemon=True)
        self.thread.start()

    def attach(self, port: int, interface: str) -> None:
        socket = self.opened(interface)
        if self.pcaps is not None:
            self.pcaps.begin(interface)
        self.sockets[port] = socket
        self.poll.register(socket.fileno(), select.EPOLLIN)

    def opened(self, interface: str) -> PacketSocket:
        """The socket for packets of an interface.

        As in BMv2, packets that others on this host send by the interface arrive at the port too.
        """
        return PacketSocket(interface, outgoing=True)

    def detach(self, port: int) -> None:
        socket = self.sockets.pop(port, None)
        if socket is not None:
            self.do(lambda: self.switch.queues.release(port))
            self.do(socket.close)  # this also ends its registration

    def is_up(self, port: int) -> bool:
        """Whether the port's interface is there."""
        return port in self.sockets and self.sockets[port].is_there()

    def inject(self, port: int, packet: bytes) -> None:
        self.do(lambda: self.arrive(port, packet))

    def set_rate(self, packets_per_s: int, port: int | None, priority: int | None) -> None:
        self.do(lambda: self.data_plane.queues.set_rate(packets_per_s, port, priority))

    def set_depth(self, packets: int, port: int | None, priority: int | None) -> None:
        self.do(lambda: self.data_plane.queues.set_depth(packets, port, priority))

    def close(self) -> None:
        """End the thread, and release all interfaces."""
        self.running = False
        self.do(lambda: None)
        self.thread.join()
        for socket in self.sockets.values():
            socket.close()
        self.poll.close()
        os.close(self.wake)

    def do(self, task: Task) -> None:
        """Run a task in the thread that processes packets, between two of them."""
        self.tasks.put(task)
        os.eventfd_write(self.wake, 1)

    def run(self) -> None:
        """Process packets until `close`."""
        while self.running:
            ready = dict(self.poll.poll(self.patience_s()))
            if self.wake in ready:
                os.eventfd_read(self.wake)
            while not self.tasks.empty():
                self.tasks.get()()
            for port, socket in list(self.sockets.items()):
                events = ready.get(socket.fileno(), 0)
                if events & select.EPOLLOUT:
                    self.flush(port, socket)
                if events & ~select.EPOLLOUT:
                    self.receive(port, socket)
            self.advance()

    def patience_s(self) -> float | None:
        """The time until the next timed event; None if only a packet can be next."""
        if self.switch.incoming:
            return 0.0
        due_us = self.switch.queues.due_us()
        return None if due_us is None else max(0.0, (due_us - self.data_plane.now_us()) / 1e6)

    def receive(self, port: int, socket: PacketSocket) -> None:
        """Receive the waiting packets of a port. An interface that is gone is dropped."""
        try:
            for _, packet in socket.receive():
                if self.pcaps is not None:
                    self.pcaps.write(socket.interface, "in", packet)
                self.arrive(port, packet)
        except OSError as error:
            if not socket.is_there():
                self.journal.error(f"interface '{socket.interface}' of port {port} is gone: {error.strerror}")
                self.sockets.pop(port, None)
                socket.close()

    def arrive(self, port: int, packet: bytes) -> None:
        if self.trace is not None:
            self.trace.packet += 1
            self.dump("Received", port, packet)
        self.advance((port, packet))

    def advance(self, *arrivals: tuple[int, bytes]) -> None:
        """Process arriving packets, and send leaving ones; a packet on which the program fails is lost."""
        sent: list[tuple[int, bytes]] = []
        try:
            with self.data_plane.turnstile.passing():
                for arrival in arrivals:
                    self.switch.take_in(*arrival)
                sent = self.switch.advance(PASSES)
        except Exception as error:
            self.journal.error(f"a packet is lost: {error}\n{traceback.format_exc()}")
            self.switch.incoming.clear()
        for port, packet in sent:
            self.send(port, packet)

    def send(self, port: int, packet: bytes) -> None:
        """Send a packet by a port; it is lost if the port has no interface."""
        self.dump("Sending", port, packet)
        if port == self.cpu_port:
            self.to_cpu(packet)
        elif (socket := self.sockets.get(port)) is not None:
            if self.pcaps is not None:
                self.pcaps.write(socket.interface, "out", packet)
            try:
                socket.send(packet)
            except OSError as error:
                self.tell_lost(port, len(packet), error)
            if socket.unsent:
                self.wait_for(port, socket)

    def flush(self, port: int, socket: PacketSocket) -> None:
        """Send the waiting packets of a port, whose interface takes packets again."""
        try:
            socket.flush()
        except OSError as error:
            self.tell_lost(port, len(socket.unsent), error)
        self.wait_for(port, socket)

    def wait_for(self, port: int, socket: PacketSocket) -> None:
        """Poll for room if packets wait for an interface; hold the port's queues while too many wait."""
        more = select.EPOLLOUT if socket.unsent else 0
        self.poll.modify(socket.fileno(), select.EPOLLIN | more)
        (self.switch.queues.hold if socket.full else self.switch.queues.release)(port)

    def tell_lost(self, port: int, octets: int, error: OSError) -> None:
        """Log that a port's interface refuses packets, once for each port and reason."""
        if (port, error.errno) not in self.told:
            self.told.add((port, error.errno))
            self.journal.warning(f"packets are lost at port {port}, the first of {octets} bytes: {error.strerror}")

    def dump(self, done: str, port: int, packet: bytes) -> None:
        """Write the first bytes of a packet into the log, if requested."""
        if count := self.journal.options.packet_bytes:
            self.journal.info(f"{done} packet of length {len(packet)} on port {port}: {packet[:count].hex(' ')}")


class KernelEngine:
    """Runs a program in the kernel, until `close`. Packets to `cpu_port` go to `to_cpu`.

    `turn` spreads the switches of a network over the processors.
    """

    def __init__(
        self, compiled: Compiled, turn: int, cpu_port: int | None, to_cpu: ToCpu, pcaps: PcapFiles | None = None
    ) -> None:
        cpus = switch_processors()
        self.what = "compiled, in the kernel"
        self.switch = KernelSwitch(compiled, cpu=cpus[turn % len(cpus)])
        self.data_plane: DataPlane = self.switch.state
        self.promiscuous: dict[int, Promiscuous] = {}
        self.host_packets, self.queues = HostPackets(), PortQueues(self.switch.state.program)
        self.capture = Capture(pcaps) if pcaps is not None else None
        self.cpu_port, self.cpu = cpu_port, None if cpu_port is None else CpuInterface(to_cpu)
        if self.cpu is not None and cpu_port is not None:
            self.switch.add_port(cpu_port, self.cpu.name)
            self.queues.add(cpu_port, self.cpu.name)

    def attach(self, port: int, interface: str) -> None:
        try:
            self.switch.add_port(port, interface)
            self.host_packets.take_in(interface)
            self.queues.add(port, interface)
            self.promiscuous[port] = Promiscuous(interface)
            if self.capture is not None:
                self.capture.add(interface)
        except OSError as error:
            raise InputError(f"interface '{interface}': {error.strerror}; is there one of this name?") from error

    def detach(self, port: int) -> None:
        if port in self.switch.interfaces:
            self.queues.remove(port)
            self.host_packets.leave(self.switch.interfaces[port])
            self.switch.remove_port(port)
            self.promiscuous.pop(port).close()

    def is_up(self, port: int) -> bool:
        """Whether packets of the port's interface pass through the program."""
        return port in self.switch.attached and self.switch.attached[port].is_there()

    def inject(self, port: int, packet: bytes) -> None:
        """Inject a packet at the CPU port; the kernel accepts none at other ports."""
        if self.cpu is None or port != self.cpu_port:
            raise RunError(f"packets reach port {port} only by its interface: only the CPU port takes injected packets")
        self.cpu.inject(packet)

    def set_rate(self, packets_per_s: int, port: int | None, priority: int | None) -> None:  # noqa: ARG002
        """Set the rate of queues; each port has one. Raises `UnsupportedError` for other requests."""
        self.queues.set_rate(packets_per_s, port)

    def set_depth(self, packets: int, port: int | None, priority: int | None) -> None:  # noqa: ARG002
        self.queues.set_depth(packets, port)

    def close(self) -> None:
        """Release all interfaces, and remove the program from the kernel."""
        if self.capture is not None:
            self.capture.close()
        self.queues.close()
        self.host_packets.close()
        self.switch.close()
        for each in self.promiscuous.values():
            each.close()
        if self.cpu is not None:
            self.cpu.close()
