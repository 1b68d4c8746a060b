"""An interpreted program on packet sockets: one thread takes packets in and sends what leaves."""

from __future__ import annotations

import os
import select
import time
import traceback
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread

from inakit.switch.interpret.interpreted_switch import InterpretedSwitch
from inakit.switch.interpret.state.packets.packet import PacketPlaces
from inakit.switch.interpret.state.packets.trace import TraceLines
from inakit.switch.interpret.state.switch_state import Clock
from inakit.switch.interpret.state.target import Target
from inakit.switch.program.program import Program
from inakit.switch.server.engines.engine import ToCpu
from inakit.switch.server.journal import Journal
from inakit.switch.server.ports.packet_socket import PacketSocket
from inakit.switch.server.ports.pcap_files import PcapFiles

PASSES = 64
"""A packet makes at most so many passes before the next is taken in: one that recirculates stops no other."""

Task = Callable[[], None]


class JournalTrace(TraceLines):
    """A trace that goes into the log as it happens."""

    def __init__(self, places: PacketPlaces, journal: Journal) -> None:
        super().__init__(places)
        self.journal, self.packet = journal, -1

    def note(self, line: str) -> None:
        """Write a line into the log."""
        self.journal.step(f"[{self.packet}.0] [cxt 0] {line}")


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
        """Make an interface the port of this number."""
        socket = self.opened(interface)
        if self.pcaps is not None:
            self.pcaps.begin(interface)
        self.sockets[port] = socket
        self.poll.register(socket.fileno(), select.EPOLLIN)

    def opened(self, interface: str) -> PacketSocket:
        """The socket by which packets of an interface come and go.

        As for BMv2, what others on this host send by the interface has come to the port as well.
        """
        return PacketSocket(interface, outgoing=True)

    def detach(self, port: int) -> None:
        """Give a port's interface back to the host."""
        socket = self.sockets.pop(port, None)
        if socket is not None:
            self.do(lambda: self.switch.queues.release(port))
            self.do(socket.close)  # which ends its registration as well

    def is_up(self, port: int) -> bool:
        """Whether the port's interface is there."""
        return port in self.sockets and self.sockets[port].is_there()

    def inject(self, port: int, packet: bytes) -> None:
        """Let a packet arrive at a port."""
        self.do(lambda: self.arrive(port, packet))

    def set_rate(self, packets_per_s: int, port: int | None, priority: int | None) -> None:
        """Give queues a rate."""
        self.do(lambda: self.data_plane.queues.set_rate(packets_per_s, port, priority))

    def set_depth(self, packets: int, port: int | None, priority: int | None) -> None:
        """Let queues hold so many packets."""
        self.do(lambda: self.data_plane.queues.set_depth(packets, port, priority))

    def close(self) -> None:
        """End the thread, and give all interfaces back."""
        self.running = False
        self.do(lambda: None)
        self.thread.join()
        for socket in self.sockets.values():
            socket.close()
        self.poll.close()
        os.close(self.wake)

    def do(self, task: Task) -> None:
        """Let the thread of the packets do something between two of them."""
        self.tasks.put(task)
        os.eventfd_write(self.wake, 1)

    def run(self) -> None:
        """Take packets in until `close`."""
        while self.running:
            ready = dict(self.poll.poll(self.patience_s()))
            if self.wake in ready:
                os.eventfd_read(self.wake)
            self.do_tasks()
            for port, socket in list(self.sockets.items()):
                events = ready.get(socket.fileno(), 0)
                if events & select.EPOLLOUT:
                    self.flush(port, socket)
                if events & ~select.EPOLLOUT:
                    self.receive(port, socket)
            self.advance()

    def patience_s(self) -> float | None:
        """How long nothing happens by itself; None: until a packet comes."""
        if self.switch.incoming:
            return 0.0
        due_us = self.switch.queues.due_us()
        return None if due_us is None else max(0.0, (due_us - self.data_plane.now_us()) / 1e6)

    def do_tasks(self) -> None:
        """Do what other threads have asked for."""
        while True:
            try:
                self.tasks.get_nowait()()
            except Empty:
                return

    def receive(self, port: int, socket: PacketSocket) -> None:
        """Take in the packets that wait at a port. An interface that is gone is left alone."""
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
        """Take in a packet, and send what leaves."""
        if self.trace is not None:
            self.trace.packet += 1
            self.dump("Received", port, packet)
        self.advance((port, packet))

    def advance(self, *arrivals: tuple[int, bytes]) -> None:
        """Let packets arrive and go on, and send what leaves; a packet that the program fails on is lost."""
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
        """Send a packet by a port; one for a port without an interface is lost."""
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
        """Send what waits for a port's interface, which takes packets again."""
        try:
            socket.flush()
        except OSError as error:
            self.tell_lost(port, len(socket.unsent), error)
        self.wait_for(port, socket)

    def wait_for(self, port: int, socket: PacketSocket) -> None:
        """Learn when an interface takes packets again, if some wait; while too many do, hold the port's queues."""
        more = select.EPOLLOUT if socket.unsent else 0
        self.poll.modify(socket.fileno(), select.EPOLLIN | more)
        (self.switch.queues.hold if socket.full else self.switch.queues.release)(port)

    def tell_lost(self, port: int, octets: int, error: OSError) -> None:
        """Tell of a packet that a port's interface does not take, once for each port and reason."""
        if (port, error.errno) not in self.told:
            self.told.add((port, error.errno))
            self.journal.warn(f"packets are lost at port {port}, the first of {octets} bytes: {error.strerror}")

    def dump(self, done: str, port: int, packet: bytes) -> None:
        """Write the first bytes of a packet into the log, if they were asked for."""
        if count := self.journal.options.packet_bytes:
            self.journal.info(f"{done} packet of length {len(packet)} on port {port}: {packet[:count].hex(' ')}")
