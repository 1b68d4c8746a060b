"""Pairs of virtual Ethernet to the ports of a switch, for tests that send real packets; they need root."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from pyroute2 import IPRoute
from small_programs import Packets

from inakit.switch.fast.load.kernel_switch import KernelSwitch


class Wires:
    """Pairs of virtual Ethernet: a switch's ports on one side, raw sockets on the other."""

    def __init__(self, ports: Sequence[int]) -> None:
        self.exits = ExitStack()
        self.names = {port: f"ikt{os.getpid() % 100000}p{port}" for port in ports}
        self.sockets: dict[int, socket.socket] = {}

    def __enter__(self) -> Wires:
        with ExitStack() as stack:
            netlink = stack.enter_context(IPRoute())
            for port, name in self.names.items():
                netlink.link("add", ifname=name, kind="veth", peer={"ifname": f"{name}h"})
                self.exits.callback(remove, name)
                for end in (name, f"{name}h"):
                    Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1")
                    netlink.link("set", index=netlink.link_lookup(ifname=end)[0], state="up")
                self.sockets[port] = raw_socket(f"{name}h")
                self.exits.callback(self.sockets[port].close)
        return self

    def __exit__(self, *_error: object) -> None:
        self.exits.close()

    def attach(self, switch: KernelSwitch) -> None:
        """Make the interfaces ports of the switch, which is closed with the wires."""
        for port, name in self.names.items():
            switch.add_port(port, name)
        self.exits.callback(switch.close)

    def send(self, port: int, packet: bytes) -> None:
        """Let a packet arrive at a port."""
        self.sockets[port].send(packet)

    def receive(self, port: int, count: int, patience_s: float = 10.0) -> list[bytes]:
        """Up to `count` packets that left by a port; those that are there already, if `count` is 0."""
        receiver = self.sockets[port]
        packets: list[bytes] = []
        end = time.monotonic() + patience_s
        while len(packets) < count or count == 0:
            receiver.settimeout(max(end - time.monotonic(), 0.001) if count else 0.001)
            try:
                packets.append(receiver.recv(65536))
            except TimeoutError:
                break
        return packets


def raw_socket(interface: str) -> socket.socket:
    """A socket that sees what arrives at an interface, and nothing that leaves it."""
    found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # hears nothing until it is bound
    found.setsockopt(263, 23, 1)  # SOL_PACKET, PACKET_IGNORE_OUTGOING
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    found.bind((interface, 3))  # ETH_P_ALL
    return found


def remove(interface: str) -> None:
    """Delete an interface, if it is there."""
    with IPRoute() as netlink:
        for index in netlink.link_lookup(ifname=interface):
            netlink.link("del", index=index)


def in_kernel(wires: Wires, packets: Packets, expected: Packets) -> dict[int, list[bytes]]:
    """Send packets one after the other; returns what came, by port.

    The packets of one sender keep their order, whatever their ports: all wait in the queue of the switch's CPU.
    """
    for port, packet in packets:
        wires.send(port, packet)
    counts = {port: sum(out == port for out, _ in expected) for port in wires.sockets}
    came = {port: wires.receive(port, count) if count else [] for port, count in counts.items()}
    return {port: [*packets, *wires.receive(port, 0)] for port, packets in came.items()}
