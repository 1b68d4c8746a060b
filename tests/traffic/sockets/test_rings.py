"""Receive rings of real sockets in namespaces of their own: around the end, in order, what is lost is counted."""

from __future__ import annotations

import ctypes
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from inakit.topo.live.netlink import network_namespace
from inakit.traffic.sockets.packet_sockets import (
    LEAST_SLOTS,
    MOST_SLOTS,
    Messages,
    ReceiveRings,
    SocketPorts,
    send_batch,
    slots_per_ring,
)
from inakit.traffic.sockets.ports import HostPort
from inakit.traffic.wire.packet_format import BARE_FRAME, FRAME, Kind, new_frames

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


class Listener:
    """Endpoints that only note the sequence number of what comes, and to which host."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []
        self.library = self
        self.address = 0

    def rings_take(self, address: int, rings: int, positions: int, slots: int, slot: int, at: int, now: int) -> None:
        del address, now
        of = np.ctypeslib.as_array((ctypes.c_uint64 * 2).from_address(positions))
        for host in range(2):
            while (place := rings + (host * slots + int(of[host]) % slots) * slot) and self.filled(place):
                head = np.frombuffer(ctypes.string_at(place + at, BARE_FRAME.itemsize), BARE_FRAME)
                self.seen.append((host, int(head["ina"]["seq"][0])))
                ctypes.c_uint32.from_address(place).value = 0
                of[host] += 1

    @staticmethod
    def filled(place: int) -> bool:
        return bool(ctypes.c_uint32.from_address(place).value & 1)


def send(ports: SocketPorts, count: int, first: int) -> int:
    """Send gradients from host 0 whose sequence numbers count from `first`; returns how many were sent."""
    frames = new_frames(count, src_mac=MAC, dst_mac=MAC, src_ip="127.0.0.1", dst_ip="127.0.0.1")
    frames["ina"]["kind"], frames["ina"]["seq"] = Kind.GRADIENT, first + np.arange(count)
    messages = Messages()
    messages.point_at(frames, FRAME.itemsize)
    return send_batch(ports.descriptors[0], messages.address, count, "a").packets


def take(ports: SocketPorts, listener: Any) -> list[tuple[int, int]]:
    """The hosts and the sequence numbers of what has come since the last call."""
    ports.rings.take(listener, 0)
    seen, listener.seen = listener.seen, []
    found: list[tuple[int, int]] = seen
    return found


@pytest.mark.root
def test_rings_go_round_and_keep_the_order(loops: list[HostPort]) -> None:
    with SocketPorts(loops) as ports:
        first, listener = 0, Listener()
        while first < 2.5 * MOST_SLOTS:
            assert send(ports, 300, first) == 300
            time.sleep(0.005)
            assert take(ports, listener) == [(0, seq) for seq in range(first, first + 300)]
            first += 300
        assert not ports.problems()


@pytest.mark.root
def test_a_full_ring_loses_the_newest_and_says_so(loops: list[HostPort]) -> None:
    with SocketPorts(loops) as ports:
        for first in range(0, (MOST_SLOTS // 100 + 6) * 100, 100):
            assert send(ports, 100, first) == 100
        time.sleep(0.05)
        assert take(ports, Listener()) == [(0, seq) for seq in range(MOST_SLOTS)]
        lost = (MOST_SLOTS // 100 + 6) * 100 - MOST_SLOTS
        assert ports.problems() == {"host 'a': its socket dropped received frames": lost}


@pytest.mark.root
def test_rings_can_be_closed_twice(loops: list[HostPort]) -> None:
    with network_namespace(loops[0].pid):
        bare = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    with bare:
        rings = ReceiveRings([bare])
        rings.close()
        rings.close()
