"""The CPU port of a program in the kernel: an interface whose other end is this process."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from threading import Thread

from inakit.switch.standalone.interfaces import IFF_NO_PI, IFF_TAP, LEAST_FRAME, MAX_PACKET, open_tun
from inakit.topo.errors import RunError
from inakit.topo.live.wires import index_of, inside, set_up, switch_off_ipv6


class CpuInterface:
    """A TAP interface, called `name`, until `close`; what leaves by it goes to `to_cpu`.

    It is Ethernet: the kernel takes the first 14 bytes away from what is redirected to an interface of another kind.
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
        """Let a packet arrive at the CPU port."""
        if len(packet) < LEAST_FRAME:
            raise RunError(f"a packet of {len(packet)} bytes for the CPU port: the kernel takes {LEAST_FRAME} or more")
        os.write(self.descriptor, packet)

    def run(self) -> None:
        """Take what leaves by the CPU port until `close`."""
        while self.ending not in (ready := select.select([self.descriptor, self.ending], [], [])[0]):
            if self.descriptor in ready:
                self.to_cpu(os.read(self.descriptor, MAX_PACKET))

    def close(self) -> None:
        """Remove the interface."""
        os.close(self.end)
        self.thread.join()
        os.close(self.ending)
        os.close(self.descriptor)
