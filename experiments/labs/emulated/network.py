"""A Mininet network whose switches run a student's program, and whose hosts send and receive raw frames."""

from __future__ import annotations

import select
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from inakit.experiments.labs.course.packets import TYPE_AGG
from inakit.experiments.labs.runners.entry_format import with_whole_names
from inakit.switch.entries import SwitchEntries
from inakit.switch.program.read import read_program
from inakit.switch.targets import choose_target
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch
from inakit.topo.live.network import Network, RunningHost
from inakit.topo.live.wires import network_namespace
from inakit.traffic.sockets.packet_sockets import Messages, send_all

RATE_BPS = 100e6
MOST_BYTES = 2048
PATIENCE_S = 3.0
"""How long packets that have to come are waited for."""
QUIET_S = 0.02
"""How long packets that must not come are waited for."""

Arrived = list[tuple[str, bytes]]
"""Packets, and the hosts that they have come to."""


def star(workers: int) -> Fabric:
    """A switch with a host at each of the ports from 1 on."""
    names = [f"h{n + 1}" for n in range(workers)]
    links = tuple(Link(name, "s1", 0, n + 1, RATE_BPS, RATE_BPS) for n, name in enumerate(names))
    switch = Switch("s1", 1, (tuple(range(1, workers + 1)),))
    return Fabric("star", tuple(Host(name) for name in names), (switch,), links)


class HostFrames:
    """The hosts' sockets, which hear packets of aggregations only."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.sockets = {name: open_socket(host) for name, host in network.hosts.items()}
        self.names = {each: name for name, each in self.sockets.items()}
        self.outbox = Messages()

    def send(self, host: str, packet: bytes) -> None:
        """Send a packet from a host. Raises `RunError` where its link takes none."""
        self.outbox.point_at(np.frombuffer(packet, np.uint8)[np.newaxis], len(packet))
        send_all(self.sockets[host].fileno(), self.outbox.address, 1, host)

    def received(self, wait_s: float, enough: int = 1 << 30) -> Arrived:
        """What comes to hosts until nothing has for so long, or `enough` packets have come."""
        found: Arrived = []
        while len(found) < enough:
            ready = select.select(list(self.names), (), (), wait_s)[0]
            if not ready:
                return found
            found += [(self.names[each], each.recv(MOST_BYTES)) for each in ready]
        return found

    def exchange(self, host: str, packet: bytes, expected: int) -> Arrived:
        """What comes to hosts when one sends a packet, and so many packets are expected for it."""
        self.send(host, packet)
        first = self.received(PATIENCE_S, expected) if expected else []
        return first + self.received(QUIET_S)

    def close(self) -> None:
        """Close the sockets."""
        for each in self.names:
            each.close()


def open_socket(host: RunningHost) -> socket.socket:
    """A raw socket at a host's interface."""
    with network_namespace(host.pid):
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(TYPE_AGG))
        opened.bind((host.interface, TYPE_AGG))
    return opened


@contextmanager
def running(
    fabric: Fabric, text: str, name: str, entries: Mapping[str, SwitchEntries], target: str
) -> Iterator[HostFrames]:
    """A network that runs the BMv2 JSON `text` in all switches, filled with entries; needs root and Mininet.

    Raises `MachineError` where this machine cannot, `UnsupportedError` where the target does not take the program.
    """
    with ExitStack() as stack:
        path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="inakit-lab-")), f"{name}.json")
        path.write_text(text)
        switch_class = choose_target(target, path).node_class()

        def node(switch: str, **params: Any) -> Any:
            return switch_class(switch, program=path, **params)

        program = read_program(path)
        network = stack.enter_context(Network(fabric, node, run_dir=path.parent))
        for switch, each in entries.items():
            network.switches[switch].install(with_whole_names(program, each))
        frames = HostFrames(network)
        stack.callback(frames.close)
        time.sleep(QUIET_S)
        yield frames
