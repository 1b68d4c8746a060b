"""The CPU port of a program in the kernel: an interface whose other end is this process."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from threading import Thread

from switch.standalone.interfaces import HEAD, MAX_PACKET, open_tun
from topo.live.netlink import index_of, inside, set_up, switch_off_ipv6


class CpuInterface:
    """An interface, called `name`, until `close`; what leaves by it goes to `to_cpu`."""

    def __init__(self, to_cpu: Callable[[bytes], None]) -> None:
        self.descriptor, self.name = open_tun()
        self.to_cpu = to_cpu
        switch_off_ipv6(self.name)
        with inside(None) as netlink:
            set_up(netlink, index_of(self.name))
        self.ending, self.end = os.pipe2(os.O_CLOEXEC)
        self.thread = Thread(target=self.run, name="packets to the CPU port", daemon=True)
        self.thread.start()

    def inject(self, packet: bytes) -> None:
        """Let a packet arrive at the CPU port."""
        os.write(self.descriptor, HEAD + packet)

    def run(self) -> None:
        """Take what leaves by the CPU port until `close`."""
        while self.ending not in (ready := select.select([self.descriptor, self.ending], [], [])[0]):
            if self.descriptor in ready:
                self.to_cpu(os.read(self.descriptor, MAX_PACKET)[len(HEAD) :])

    def close(self) -> None:
        """Remove the interface."""
        os.close(self.end)
        self.thread.join()
        os.close(self.ending)
        os.close(self.descriptor)
