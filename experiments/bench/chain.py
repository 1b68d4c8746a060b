"""A chain of switches without rate limits: two workers at the first switch, the parameter server at the last.

One process sends all packets, through packet sockets in the workers' namespaces. The last switch's interface towards
the server counts what arrives. Every fragment crosses every switch and no link is shaped, so that only the switches
and the sending process limit the rate.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from inakit.planner.install.data_plane_program import INA, DataPlaneProgram
from inakit.planner.install.program import (
    ADMISSION,
    ADMIT,
    AGGREGATE,
    AGGREGATION,
    FORWARD,
    IPV4_ROUTE,
    PIPELINE,
    SEND,
    SET_PIPELINE,
)
from inakit.switch.entries import SwitchEntries, TableEntry
from inakit.switch.targets import Target
from inakit.topo.fabric.fabric import Fabric, Host, Link, Switch, contiguous_pipelines
from inakit.topo.live.namespaces import network_namespace
from inakit.topo.live.netlink import index_of, inside
from inakit.topo.live.network import Network
from inakit.topo.live.processors import steer_packets, steering_file
from inakit.topo.live.shaping import remove_shaping
from inakit.traffic.wire.frames import FRAGMENT, Frames, new_frames
from inakit.traffic.wire.packet_format import Kind

WORKERS = ("w1", "w2")
SERVER = "ps"
UNSHAPED_BPS = 1e10
JOB = TREE = 1
SLOTS = 256
FRAMES_PER_CALL = 32


def chain(length: int) -> Fabric:
    """A fabric of `length` switches in a row: workers at the first, server at the last. Port 3 leads onwards."""
    names = [f"s{number}" for number in range(1, length + 1)]
    switches = tuple(Switch(name, 1, contiguous_pipelines(3, 1)) for name in names)
    onwards = [(a, b, 3, 1) for a, b in pairwise(names)]
    cables = [
        *((worker, "s1", 0, port) for port, worker in enumerate(WORKERS, start=1)),
        *onwards,
        (names[-1], SERVER, 3, 0),
    ]
    links = tuple(Link(a, b, at_a, at_b, UNSHAPED_BPS, UNSHAPED_BPS) for a, b, at_a, at_b in cables)
    return Fabric(f"chain of {length}", tuple(Host(name) for name in (*WORKERS, SERVER)), switches, links)


def entries_of(number: int, server_ipv4: int) -> SwitchEntries:
    """The entries of switch `number` of the chain, from 1. It aggregates its children under label 100 + number."""
    children = {1: 1, 2: 2} if number == 1 else {100 + number - 1: 1}
    tables = [TableEntry(PIPELINE, (port,), SET_PIPELINE, (0,)) for port in (1, 2, 3)]
    for bit, (label, port) in enumerate(children.items()):
        own = (1 << bit, (1 << len(children)) - 1, 0, SLOTS, 100 + number, SLOTS, 0)
        tables.append(TableEntry(ADMISSION, (port, Kind.GRADIENT, JOB, TREE, label), ADMIT))
        tables.append(TableEntry(AGGREGATION, (0, JOB, TREE, label), AGGREGATE, own))
    tables.append(TableEntry(FORWARD, (JOB, TREE, 100 + number), SEND, (3,)))
    tables.append(TableEntry(IPV4_ROUTE, (server_ipv4,), SEND, (3,)))
    return SwitchEntries(f"s{number}", tuple(tables))


class Bench:
    """A running chain, as a context manager. `network_s` and `entries_s` are the seconds that its set-up took."""

    def __init__(self, target: Target, length: int, program: DataPlaneProgram = INA) -> None:
        self.fabric = chain(length)
        node_class: Callable[..., Any] = target.node_class()
        self.network = Network(self.fabric, partial(node_class, program=program.path))
        self.network_s = self.entries_s = 0.0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            start = time.perf_counter()
            stack.enter_context(self.network)
            started = time.perf_counter()
            for number, switch in enumerate(self.network.switches.values(), start=1):
                switch.install(entries_of(number, self.network.addresses[SERVER].ipv4))
            self.network_s, self.entries_s = started - start, time.perf_counter() - started
            self._remove_shaping()
            self._leave_arrivals()
            self.sockets = [stack.enter_context(self._sender(worker)) for worker in WORKERS]
            last = self.network.interface(self.fabric.switches[-1].name, SERVER).name
            self.counter = Path(f"/sys/class/net/{last}/statistics/tx_packets")
            self._exits = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._exits.close()

    def _remove_shaping(self) -> None:
        for link in self.fabric.links:
            for node, peer in ((link.a, link.b), (link.b, link.a)):
                interface = self.network.interface(node, peer)
                with inside(interface.pid) as netlink:
                    remove_shaping(netlink, index_of(interface.name))

    def _leave_arrivals(self) -> None:
        """Let the CPU that sends a packet also drop it at the server, where no socket reads it: steering costs time."""
        server = self.network.hosts[SERVER]
        if steering_file(server.interface, server.pid).exists():
            steer_packets(server.interface, None, server.pid)

    def _sender(self, worker: str) -> socket.socket:
        host = self.network.hosts[worker]
        with network_namespace(host.pid):
            sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            sender.bind((host.interface, 0))
        return sender

    def frames(self, worker: str, udp_port: int) -> Frames:
        """The frames that one `sendmmsg` call sends. No host has their destination MAC address, so no host answers."""
        source, server = self.network.addresses[worker], self.network.addresses[SERVER]
        frames = new_frames(
            FRAMES_PER_CALL,
            src_mac=source.mac_text, dst_mac="02:ff:ff:ff:ff:ff",
            src_ip=source.ipv4_text, dst_ip=server.ipv4_text,
            ina={"kind": Kind.GRADIENT, "job": JOB, "tree": TREE, "workers": 1, "label": 1 + WORKERS.index(worker)},
        )  # fmt: skip
        frames["udp"]["dst_port"] = udp_port
        frames["values"] = np.arange(FRAGMENT.values)
        return frames

    def arrived(self) -> int:
        """How many packets the last switch has sent to the server since its interface was created."""
        return int(self.counter.read_text())
