"""Packets that this host itself sends by a port's interface: simple_switch takes them in as well, by that port."""

from __future__ import annotations

import socket

from inakit.switch.fast.load.build import EBPF
from inakit.switch.fast.load.kernel.attach import Attachment, attach_egress
from inakit.switch.fast.load.kernel.libbpf import BpfObject, failure
from inakit.topo.c_library import build

PROGRAM = "from_host"
SOURCE = '#include "host_packets.h"\n'


class HostPackets:
    """Lets what this host sends by the interfaces of a switch come in by them, until `close`."""

    def __init__(self) -> None:
        self.loaded = BpfObject(build(SOURCE, EBPF))
        self.attached: dict[str, Attachment] = {}
        if code := self.loaded.load():
            self.loaded.close()
            raise failure("loading what takes in the host's packets", code)

    def take_in(self, interface: str) -> None:
        """Let what is sent by an interface come in by it, too."""
        program = self.loaded.program_fd(PROGRAM)
        self.attached[interface] = attach_egress(socket.if_nametoindex(interface), program)

    def leave(self, interface: str) -> None:
        """Let what is sent by an interface only be sent."""
        self.attached.pop(interface).remove()

    def close(self) -> None:
        """Leave all interfaces."""
        for interface in list(self.attached):
            self.leave(interface)
        self.loaded.close()
