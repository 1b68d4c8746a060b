"""A network interface as a port: all packets that arrive at it, as they were on the wire, and packets to send."""

from __future__ import annotations

import socket
import struct
from collections import deque
from collections.abc import Iterator

from inakit.topo.errors import MachineError

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
"""So many packets that have passed egress wait for an interface, then others wait in front of egress."""


class PacketSocket:
    """A packet socket on `interface`; with `outgoing` it also sees what this host sends by it.

    The interface takes packets for any address as long as the socket is open.
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
        """The descriptor, to wait for packets with."""
        return self.socket.fileno()

    def receive(self) -> Iterator[tuple[bool, bytes]]:
        """Up to `BATCH` packets that have arrived, each with whether this host sent it; `OSError` if it is gone."""
        for _ in range(BATCH):
            try:
                data, about, _, address = self.socket.recvmsg(MOST_BYTES, 64)
            except BlockingIOError:
                return
            yield address[2] == OUTGOING, with_tag(data, about)

    def send(self, packet: bytes) -> None:
        """Send a packet, or let it wait for `flush` if the interface has too many that it has not sent yet.

        `OSError` if the interface does not take it: it is down, or the packet is too long.
        """
        self.unsent.append(packet)
        if len(self.unsent) == 1:
            self.flush()

    def flush(self) -> None:
        """Send packets that wait, as far as the interface takes them; `OSError` for one that it does not take."""
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
        """Whether as many packets wait as BMv2 lets wait."""
        return len(self.unsent) >= MOST_UNSENT

    def is_there(self) -> bool:
        """Whether the interface still exists."""
        try:
            return socket.if_nametoindex(self.interface) == self.index
        except OSError:
            return False

    def close(self) -> None:
        """Give the interface back to the host."""
        self.socket.close()


def with_tag(data: bytes, about: list[tuple[int, int, bytes]]) -> bytes:
    """The packet with the VLAN tag that the kernel has taken out of it and tells beside it."""
    for level, kind, value in about:
        if (level, kind) == (SOL_PACKET, AUXDATA):
            status, _, _, _, _, tag, protocol = AUXILIARY.unpack_from(value)
            if status & TAGGED:
                named = protocol if status & TAG_PROTOCOL_KNOWN else VLAN
                return data[:TAG_AT] + struct.pack("!HH", named, tag) + data[TAG_AT:]
    return data


class Promiscuous:
    """Lets an interface take packets for any address until `close`, without looking at them."""

    def __init__(self, interface: str) -> None:
        membership = PROMISCUOUS.pack(socket.if_nametoindex(interface), PROMISCUOUS_TYPE, 0, b"")
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.setsockopt(SOL_PACKET, ADD_MEMBERSHIP, membership)

    def close(self) -> None:
        """Let the interface take only what is addressed to it."""
        self.socket.close()
