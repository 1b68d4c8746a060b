"""Captures what arrives at and leaves interfaces whose packets do not pass through this process."""

from __future__ import annotations

import os
import select
from threading import Thread

from inakit.switch.server.ports.packet_socket import PacketSocket
from inakit.switch.server.ports.pcap_files import PcapFiles


class Capture:
    """Writes the packets of interfaces into pcaps, until `close`."""

    def __init__(self, files: PcapFiles) -> None:
        self.files = files
        self.sockets: dict[int, PacketSocket] = {}
        self.poll = select.epoll()
        self.ending, self.end = os.pipe2(os.O_CLOEXEC)
        self.poll.register(self.ending, select.EPOLLIN)
        self.thread = Thread(target=self.run, name="pcaps", daemon=True)
        self.thread.start()

    def add(self, interface: str) -> None:
        """Capture an interface as well."""
        self.files.begin(interface)
        socket = PacketSocket(interface, outgoing=True)
        self.sockets[socket.fileno()] = socket
        self.poll.register(socket.fileno(), select.EPOLLIN)

    def run(self) -> None:
        """Write packets until `close`."""
        ready: set[int] = set()
        while self.ending not in ready:
            ready = {descriptor for descriptor, _ in self.poll.poll()}
            for descriptor in ready & set(self.sockets):
                self.write(self.sockets[descriptor])
        for socket in list(self.sockets.values()):
            while self.write(socket):
                pass

    def write(self, socket: PacketSocket) -> int:
        """Write what has come, and return how much; an interface that is gone is captured no longer."""
        written = 0
        try:
            for outgoing, packet in socket.receive():
                self.files.write(socket.interface, "out" if outgoing else "in", packet)
                written += 1
        except OSError:
            if not socket.is_there():
                del self.sockets[socket.fileno()]
                socket.close()
        return written

    def close(self) -> None:
        """End the capture."""
        os.close(self.end)
        self.thread.join()
        for socket in self.sockets.values():
            socket.close()
        self.poll.close()
        os.close(self.ending)
