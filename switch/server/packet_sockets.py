"""Network interfaces as ports: packets as they are on the wire, captured in the files that BMv2 writes.

A port is a packet socket. Further sockets capture packets that only the kernel processes. The CPU port of a program in
the kernel is a TAP interface whose other end is this process.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator
from fcntl import ioctl
from pathlib import Path
from threading import Thread

from inakit.topo.errors import MachineError, RunError, writing
from inakit.topo.live.netlink import index_of, inside, set_up, switch_off_ipv6

DEVICE = Path("/dev/net/tun")
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_TAP, IFF_NO_PI = 0x0001, 0x0002, 0x1000
MAX_PACKET = 65536
LEAST_FRAME, MOST_FRAME = 14, 1514
"""The frame bytes that an Ethernet interface carries: its header, and the header plus Linux's default MTU."""


def open_tun(kind: int = IFF_TUN) -> tuple[int, str]:
    """A new interface, by default a TUN: its descriptor, and its name from the kernel."""
    try:
        descriptor = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise MachineError(f"{DEVICE}: {error.strerror}; a switch on its own needs TUN: modprobe tun") from error
    try:
        answer = ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", b"inakit%d", kind))
    except OSError as error:
        os.close(descriptor)
        way_out = "run as root" if error.errno == errno.EPERM else "is another interface of that name in the way?"
        raise MachineError(f"no TUN interface can be made: {error.strerror}; {way_out}") from error
    return descriptor, answer[:16].rstrip(b"\0").decode()


ALL_PROTOCOLS = 0x0003
SOL_PACKET = 263
ADD_MEMBERSHIP, AUXDATA, IGNORE_OUTGOING = 1, 8, 23
PROMISCUOUS = struct.Struct("iHH8s")
PROMISCUOUS_TYPE = 1
FORCED_RECEIVE_BUFFER = 33
AUXILIARY = struct.Struct("=IIIHHHH")
"""struct tpacket_auxdata: status, length, captured, mac, net, tag, protocol of the tag"""
TAGGED, TAG_PROTOCOL_KNOWN = 0x10, 0x40
VLAN = 0x8100
TAG_AT = 12
OUTGOING = 4
MOST_BYTES = 65536 + 18
BUFFER_BYTES = 16 << 20
BATCH = 32
MOST_UNSENT = 128
"""The packets that may wait for an interface behind egress before others wait in front of egress."""


class PacketSocket:
    """A packet socket on `interface`; with `outgoing` it also sees what this host sends by it.

    While the socket is open, the interface takes packets for any address.
    """

    def __init__(self, interface: str, outgoing: bool = False) -> None:
        self.interface = interface
        try:
            self.index = socket.if_nametoindex(interface)
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0)
        except PermissionError as error:
            raise MachineError(f"interface '{interface}': only root may open it: run as root") from error
        except (OSError, ValueError) as error:
            raise MachineError(f"interface {interface!r}: {error}; is there one of this name?") from error
        self.unsent: deque[bytes] = deque()
        self.socket.setsockopt(SOL_PACKET, AUXDATA, 1)
        self.socket.setsockopt(SOL_PACKET, IGNORE_OUTGOING, int(not outgoing))
        self.socket.setsockopt(socket.SOL_SOCKET, FORCED_RECEIVE_BUFFER, BUFFER_BYTES)
        membership = PROMISCUOUS.pack(self.index, PROMISCUOUS_TYPE, 0, b"")
        self.socket.setsockopt(SOL_PACKET, ADD_MEMBERSHIP, membership)
        self.socket.bind((interface, ALL_PROTOCOLS))

    def fileno(self) -> int:
        """The descriptor on which to wait for packets."""
        return self.socket.fileno()

    def receive(self) -> Iterator[tuple[bool, bytes]]:
        """Up to `BATCH` received packets, each with whether this host sent it; `OSError` if the interface is gone."""
        for _ in range(BATCH):
            try:
                data, about, _, address = self.socket.recvmsg(MOST_BYTES, 64)
            except BlockingIOError:
                return
            yield address[2] == OUTGOING, with_tag(data, about)

    def send(self, packet: bytes) -> None:
        """Send a packet, or queue it for `flush` if the interface has too many unsent packets.

        `OSError` if the interface refuses it: it is down, or the packet is too long.
        """
        self.unsent.append(packet)
        if len(self.unsent) == 1:
            self.flush()

    def flush(self) -> None:
        """Send waiting packets until the interface is full; `OSError` for a packet that it refuses."""
        while self.unsent:
            try:
                self.socket.send(self.unsent[0])
            except BlockingIOError:
                return
            except OSError:
                self.unsent.popleft()
                raise
            self.unsent.popleft()

    @property
    def full(self) -> bool:
        """Whether BMv2's maximum of packets wait."""
        return len(self.unsent) >= MOST_UNSENT

    def is_there(self) -> bool:
        """Whether the interface still exists."""
        try:
            return socket.if_nametoindex(self.interface) == self.index
        except OSError:
            return False

    def close(self) -> None:
        """Release the interface."""
        self.socket.close()


def with_tag(data: bytes, about: list[tuple[int, int, bytes]]) -> bytes:
    """The packet with the VLAN tag that the kernel has removed and reports separately."""
    for level, kind, value in about:
        if (level, kind) == (SOL_PACKET, AUXDATA):
            status, _, _, _, _, tag, protocol = AUXILIARY.unpack_from(value)
            if status & TAGGED:
                named = protocol if status & TAG_PROTOCOL_KNOWN else VLAN
                return data[:TAG_AT] + struct.pack("!HH", named, tag) + data[TAG_AT:]
    return data


class Promiscuous:
    """Makes an interface promiscuous until `close`, without receiving packets."""

    def __init__(self, interface: str) -> None:
        membership = PROMISCUOUS.pack(socket.if_nametoindex(interface), PROMISCUOUS_TYPE, 0, b"")
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.setsockopt(SOL_PACKET, ADD_MEMBERSHIP, membership)

    def close(self) -> None:
        """Restore the interface."""
        self.socket.close()


HEADER = struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
"""The header of a pcap file with microseconds and Ethernet frames."""


FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC


class PcapFiles:
    """The two files of each interface in `folder`. Each packet is written at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[tuple[str, str], int] = {}

    def write(self, interface: str, direction: str, packet: bytes) -> None:
        """Add a packet to the file of an interface; `direction` is `in` or `out`."""
        now = time.time_ns() // 1000
        head = struct.pack("=IIII", now // 1_000_000, now % 1_000_000, len(packet), len(packet))
        os.write(self.file(interface, direction), head + packet)

    def file(self, interface: str, direction: str) -> int:
        """The descriptor of a file, which is created on first use."""
        if (interface, direction) not in self.files:
            path = self.folder / f"{interface}_{direction}.pcap"
            with writing(path):
                self.files[interface, direction] = os.open(path, FLAGS, 0o644)
            os.write(self.files[interface, direction], HEADER)
        return self.files[interface, direction]

    def begin(self, interface: str) -> None:
        self.file(interface, "in")
        self.file(interface, "out")

    def close(self) -> None:
        for descriptor in self.files.values():
            os.close(descriptor)
        self.files.clear()


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
        for tap in list(self.sockets.values()):
            while self.write(tap):
                pass

    def write(self, socket: PacketSocket) -> int:
        """Write the packets that have arrived, and return their number; stop capturing an interface that is gone."""
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
        for tap in self.sockets.values():
            tap.close()
        self.poll.close()
        os.close(self.ending)


class CpuInterface:
    """A TAP interface, called `name`, until `close`; packets that leave by it go to `to_cpu`.

    It is Ethernet: the kernel removes the first 14 bytes of packets redirected to an interface of another kind.
    """

    def __init__(self, to_cpu: Callable[[bytes], None]) -> None:
        self.descriptor, self.name = open_tun(IFF_TAP | IFF_NO_PI)
        self.to_cpu = to_cpu
        switch_off_ipv6(self.name)
        with inside(None) as netlink:
            set_up(netlink, index_of(self.name))
        self.ending, self.end = os.pipe2(os.O_CLOEXEC)
        self.thread = Thread(target=self.run, name="packets to the CPU port", daemon=True)
        self.thread.start()

    def inject(self, packet: bytes) -> None:
        if len(packet) < LEAST_FRAME:
            raise RunError(f"a packet of {len(packet)} bytes for the CPU port: the kernel takes {LEAST_FRAME} or more")
        os.write(self.descriptor, packet)

    def run(self) -> None:
        """Receive the packets that leave by the CPU port until `close`."""
        while self.ending not in (ready := select.select([self.descriptor, self.ending], [], [])[0]):
            if self.descriptor in ready:
                self.to_cpu(os.read(self.descriptor, MAX_PACKET))

    def close(self) -> None:
        """Remove the interface."""
        os.close(self.end)
        self.thread.join()
        os.close(self.ending)
        os.close(self.descriptor)
