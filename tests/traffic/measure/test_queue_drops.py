"""Drops of queues: what `tc` says, read without it."""

from __future__ import annotations

import json
import socket
import subprocess

import pytest

pytest.importorskip("mininet", reason="needs Mininet")

from mininet.node import Switch as MininetSwitch

from inakit.topo.fabric.generators import leaf_spine
from inakit.topo.live.netlink import network_namespace
from inakit.topo.live.network import Network
from inakit.traffic.measure.counters import QueueReader, queue_drops

FRAME = b"\xff" * 12 + b"\x88\xb5" + bytes(312)


class IdleSwitch(MininetSwitch):  # type: ignore[misc]
    """A switch that forwards nothing."""

    def start(self, _controllers: list[object]) -> None:
        self.started = True


def flood(interface: str, packets: int) -> None:
    """Send at once what no queue of 17 packets takes."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        sender.bind((interface, 0))
        for _ in range(packets):
            try:
                sender.send(FRAME)
            except OSError:  # the queue is full, and dropped it
                continue


def said_by_tc(interface: str) -> int:
    shown = subprocess.run(["tc", "-s", "-j", "qdisc", "show", "dev", interface], check=True, capture_output=True)
    return max(int(queue["drops"]) for queue in json.loads(shown.stdout))


@pytest.mark.root
def test_drops_are_those_that_tc_shows() -> None:
    with Network(leaf_spine(1, 1, 1), IdleSwitch, queue_packets=17) as network:
        host, port = network.hosts["h1"], network.interface("leaf1", "h1").name
        with QueueReader(host.pid) as inside, QueueReader() as outside:
            assert inside.drops()["eth0"] == outside.drops()[port] == 0
            flood(port, 500)
            with network_namespace(host.pid):
                flood("eth0", 300)
                assert inside.drops()["eth0"] == said_by_tc("eth0") > 100
            assert outside.drops()[port] == said_by_tc(port) > 300
            assert outside.drops()[port] == queue_drops()[port]
