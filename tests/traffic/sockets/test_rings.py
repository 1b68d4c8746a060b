"""Receive rings of real sockets in namespaces of their own: around the end, in order, what is lost is counted."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np
import pytest

from inakit.topo.live.netlink import network_namespace
from inakit.traffic.sockets.packet_sockets import (
    LEAST_SLOTS,
    MOST_SLOTS,
    SLOT,
    ReceiveRings,
    SocketPorts,
    slots_per_ring,
)
from inakit.traffic.sockets.ports import HostPort, Outgoing
from inakit.traffic.wire.packet_format import Kind, head_of, new_frames

MAC = "02:00:00:00:00:01"


@pytest.mark.parametrize(("sockets", "slots"), [(1, 4096), (54, 4096), (100, 2048), (432, 512), (5000, LEAST_SLOTS)])
def test_slots_are_a_power_of_two_and_fewer_for_more_hosts(sockets: int, slots: int) -> None:
    assert slots_per_ring(sockets) == slots


@pytest.fixture
def loops() -> Iterator[list[HostPort]]:
    """Two hosts whose only interface is the loopback: each hears what it sends itself."""
    with ExitStack() as stack:
        ports = []
        for name in ("a", "b"):
            process = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec sleep 60"], stdout=subprocess.PIPE)
            stack.callback(process.communicate)
            stack.callback(process.kill)
            assert process.stdout is not None
            process.stdout.readline()
            subprocess.run(
                ["nsenter", f"--net=/proc/{process.pid}/ns/net", "ip", "link", "set", "lo", "up"], check=True
            )
            ports.append(HostPort(name, process.pid, "lo", MAC, "127.0.0.1"))
        yield ports


def numbered(count: int, first: int) -> Outgoing:
    """From host 0, `count` gradients whose sequence numbers count from `first`."""
    frames = new_frames(count, src_mac=MAC, dst_mac=MAC, src_ip="127.0.0.1", dst_ip="127.0.0.1")
    heads = head_of(frames)
    heads["ina"]["kind"], heads["ina"]["seq"] = Kind.GRADIENT, first + np.arange(count)
    values = np.repeat(first + np.arange(count), 64).reshape(count, 64).astype(">i4")
    return Outgoing(heads, values, np.arange(count), np.array([count, 0]))


@pytest.mark.root
def test_rings_go_round_and_keep_the_order(loops: list[HostPort]) -> None:
    with SocketPorts(loops) as ports:
        first = 0
        while first < 2.5 * MOST_SLOTS:
            assert ports.send([numbered(300, first)])[0][0] == 300
            ports.sleep(0.005)
            packets = ports.receive()
            assert packets.hosts.tolist() == [0] * 300
            assert packets.heads["ina"]["seq"].tolist() == list(range(first, first + 300))
            assert (packets.values[:, 63] == packets.heads["ina"]["seq"]).all()
            first += 300
        assert not ports.problems()


@pytest.mark.root
def test_a_full_ring_loses_the_newest_and_says_so(loops: list[HostPort]) -> None:
    with SocketPorts(loops) as ports:
        for first in range(0, (MOST_SLOTS // 100 + 6) * 100, 100):
            assert ports.send([numbered(100, first)])[0][0] == 100
        ports.sleep(0.05)
        seen: list[int] = []
        while len(packets := ports.receive()):
            seen += packets.heads["ina"]["seq"].tolist()
        assert seen == list(range(MOST_SLOTS))
        lost = (MOST_SLOTS // 100 + 6) * 100 - MOST_SLOTS
        assert ports.problems() == {"host 'a': its socket dropped received frames": lost}


@pytest.mark.root
def test_what_was_taken_outlives_the_rings(loops: list[HostPort]) -> None:
    with network_namespace(loops[0].pid):
        bare = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    with bare:
        rings = ReceiveRings([bare])
        heads, values, owners = rings.take(100)
        rings.close()
        assert (len(heads), len(values), len(owners)) == (0, 0, 0)
        rings.close()
    assert SLOT.itemsize == 512
