"""Wires to the ports of one switch that runs on network interfaces: packets in, packets out, no network.

Each port is a TUN interface, which carries any bytes at all: also frames that are shorter than an Ethernet header,
which no other interface would take. It vanishes with this process, or when closed.
"""

from __future__ import annotations

import errno
import os
import select
import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from fcntl import ioctl
from pathlib import Path

from inakit.topo.errors import MachineError
from inakit.topo.live.wires import index_of, inside, set_up, switch_off_ipv6

DEVICE = Path("/dev/net/tun")
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_TAP, IFF_NO_PI = 0x0001, 0x0002, 0x1000
HEAD = struct.pack("!HH", 0, 0x88B5)
"""Flags and a protocol number, one for experiments, which the device wants before each packet.

Neither reaches the switch. With the number of IPv4, Linux would look for headers and not let the switch remove them.
"""
MAX_PACKET = 65536
LEAST_FRAME, MOST_FRAME = 14, 1514
"""The bytes of a frame that an Ethernet interface carries: its header, and what Linux lets one be behind it."""
MOST_BYTES_LEAVING = 9216
"""Packets may grow in the switch: so many bytes leave it by a wire."""


class Wires:
    """One TUN interface per port; `interfaces` has their names, `descriptors` the other ends."""

    def __init__(self, descriptors: dict[int, int], interfaces: dict[int, str]) -> None:
        self.interfaces = interfaces
        self.descriptors = descriptors
        self._ports = {descriptor: port for port, descriptor in descriptors.items()}

    def send(self, port: int, packet: bytes) -> None:
        """Let `packet` arrive at the switch's `port`."""
        os.write(self.descriptors[port], HEAD + packet)

    def received(self, quiet_s: float) -> Iterator[tuple[int, bytes]]:
        """What leaves the switch, as (port, packet), until nothing has for `quiet_s`. Ports are in no order."""
        deadline = time.monotonic() + quiet_s
        while (left := deadline - time.monotonic()) > 0:
            for descriptor in select.select(self.descriptors.values(), (), (), left)[0]:
                yield self._ports[descriptor], os.read(descriptor, MAX_PACKET)[len(HEAD) :]
                deadline = time.monotonic() + quiet_s


@contextmanager
def open_wires(ports: Iterable[int]) -> Iterator[Wires]:
    """A wire to each of `ports`; needs root. None of them is left behind."""
    descriptors, interfaces = {}, {}
    with ExitStack() as stack:
        for port in ports:
            descriptors[port], interfaces[port] = open_tun()
            stack.callback(os.close, descriptors[port])
        with inside(None) as netlink:
            for name in interfaces.values():
                switch_off_ipv6(name)
                set_up(netlink, index_of(name), mtu=MOST_BYTES_LEAVING)
        yield Wires(descriptors, interfaces)


def open_tun(kind: int = IFF_TUN) -> tuple[int, str]:
    """A new interface, by default a TUN: its descriptor, and the name that the kernel gave it."""
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
