"""The kernel's counters of traffic: interfaces, queueing disciplines, processors; all of a network at one moment."""

from __future__ import annotations

import os
import re
import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from inakit.planner.install.ina_program import EVENTS, LOST, RECEIVED, REJECTED, REPLICATED, SENT
from inakit.topo.errors import RunError
from inakit.topo.live.netlink import network_namespace
from inakit.traffic.sockets.packet_sockets import backlog_drops
from inakit.traffic.sockets.ports import HostPort
from inakit.traffic.wire.packet_format import Event

# -- Interfaces and processors.


@dataclass(frozen=True)
class InterfaceCounters:
    """Counters of one interface. A drop on receipt is counted at the receiver of a veth pair."""

    received_bytes: int
    received_packets: int
    receive_drops: int
    sent_bytes: int
    sent_packets: int
    send_drops: int


@dataclass(frozen=True)
class CpuTime:
    """The time of one processor, in ticks since some moment. Time that a hypervisor takes away counts as busy.

    The kernel only samples `softirq`, in which switches of target fast work, so it is only an indication.
    """

    idle: int
    total: int
    softirq: int = 0

    def idle_since(self, earlier: CpuTime) -> float:
        """The share of the time since `earlier` that was idle, 0 to 1."""
        passed = self.total - earlier.total
        return min(1.0, (self.idle - earlier.idle) / passed) if passed else 1.0


def interfaces(pid: int | None = None) -> dict[str, InterfaceCounters]:
    """Every interface, by name, of the network namespace of process `pid`, or of this one's. Raises `RunError`."""
    path = Path("/proc", "self" if pid is None else str(pid), "net", "dev")
    try:
        lines = path.read_text().splitlines()[2:]
    except (FileNotFoundError, ProcessLookupError) as error:
        raise RunError(f"process {pid} is gone, and its host with it: start the network again") from error
    return {name.strip(): interface(numbers) for name, _, numbers in (line.partition(":") for line in lines)}


def interface(numbers: str) -> InterfaceCounters:
    """The counters in a row of /proc/net/dev: eight received (bytes, packets, errors, drops, ...), eight sent."""
    columns = [int(number) for number in numbers.split()]
    return InterfaceCounters(columns[0], columns[1], columns[3], columns[8], columns[9], columns[11])


def processor_times() -> dict[int, CpuTime]:
    """The time of each processor by its number, from /proc/stat: user nice system idle iowait irq softirq steal ...

    The kernel measures idle time. It only samples busy time, which misses interrupts between two ticks of its clock. So
    all time that is not idle counts as busy.
    """
    passed = round(time.monotonic() * os.sysconf("SC_CLK_TCK"))
    rows = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    return {
        int(name[3:]): CpuTime(int(numbers[3]) + int(numbers[4]), passed, int(numbers[6]))
        for name, *numbers in rows
        if re.fullmatch(r"cpu\d+", name)
    }


def queue_drops(pid: int | None = None) -> Mapping[str, int]:
    """Packets that the queueing disciplines of each interface dropped, in the namespace of `pid` or of this process."""
    with QueueReader(pid) as queues:
        return queues.drops()


# -- The drops of queueing disciplines by interface, from one dump over netlink, without an object for every queue.
#
# pyroute2 takes 6.7 ms to open a socket and list the queues of a namespace, this 0.6 ms. A network of 320 switches has
# 1,024 hosts, each with a namespace, which are read before and after every run.

NLM_F_REQUEST, NLM_F_DUMP, NLMSG_ERROR, NLMSG_DONE, RTM_GETQDISC = 0x1, 0x300, 0x2, 0x3, 38
"""Constants of linux/netlink.h and linux/rtnetlink.h."""
HEADER = struct.Struct("=IHHII")  # struct nlmsghdr: length, type, flags, sequence, port
QUEUE = struct.Struct("=BxxxiIII")  # struct tcmsg: family, interface, handle, parent, info
ATTRIBUTE = struct.Struct("=HH")  # struct rtattr: length, type
STATS2, STATS_QUEUE, DROPS_AT = 7, 3, 8  # TCA_STATS2, TCA_STATS_QUEUE, and `drops` in struct gnet_stats_queue
HOOK = 0xFFFF
"""The handle of clsact and ingress, which are no queues: packets that a switch's program consumes count as dropped."""
REQUEST = HEADER.pack(HEADER.size + QUEUE.size, RTM_GETQDISC, NLM_F_REQUEST | NLM_F_DUMP, 0, 0)
REQUEST += QUEUE.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
ANSWER_BYTES = 1 << 16


class QueueReader:
    """Reads the queues of one network namespace: that of process `pid`, or this one's. A context manager.

    It knows the interfaces that exist at its construction.
    """

    def __init__(self, pid: int | None = None) -> None:
        with nullcontext() if pid is None else network_namespace(pid):
            self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
            self.names = dict(socket.if_nameindex())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def drops(self) -> dict[str, int]:
        """Packets that the queues of each interface dropped.

        Parents also count their children's drops, so an interface's largest number is the total.
        """
        self.socket.send(REQUEST)
        found: dict[str, int] = {}
        for message in self._messages():
            _, index, handle, _, _ = QUEUE.unpack_from(message)
            if handle >> 16 != HOOK and index in self.names:
                name = self.names[index]
                found[name] = max(found.get(name, 0), dropped(message))
        return found

    def _messages(self) -> Iterator[bytes]:
        """The contents of each message of the answer."""
        while True:
            data = self.socket.recv(ANSWER_BYTES)
            while data:
                length, kind, *_ = HEADER.unpack_from(data)
                if kind == NLMSG_ERROR:
                    raise OSError(-struct.unpack_from("=i", data, HEADER.size)[0], "reading queues")
                if kind == NLMSG_DONE:
                    return
                yield data[HEADER.size : length]
                data = data[-(-length // 4) * 4 :]


def dropped(message: bytes) -> int:
    """The drops of the queue that a message is about; 0 for one without statistics."""
    stats = attribute(message[QUEUE.size :], STATS2)
    queue = attribute(stats, STATS_QUEUE)
    return int.from_bytes(queue[DROPS_AT : DROPS_AT + 4], "little") if queue else 0


def attribute(data: bytes, wanted: int) -> bytes:
    """The content of the attribute `wanted`; empty if it is not there."""
    at = 0
    while at < len(data):
        length, kind = ATTRIBUTE.unpack_from(data, at)
        if kind == wanted:
            return data[at + ATTRIBUTE.size : at + length]
        at += -(-length // 4) * 4
    return b""


# -- All counters of a network at one moment, which account for its packets.


@dataclass(frozen=True)
class SwitchCounters:
    """The counts of a switch's program: `events` by their number (`Event`), packets by port.

    `replicated`: copies that multicast made. `lost`: packets that a fault on demand dropped instead of sending them.
    `rejected`: packets received at a port that does not admit them.
    """

    events: Mapping[int, int]
    received: Mapping[int, int]
    sent: Mapping[int, int]
    replicated: Mapping[int, int]
    lost: Mapping[int, int] = field(default_factory=dict)
    rejected: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Snapshot:
    """All counters at one moment.

    `backlog`: drops of each processor's input queue. `queues`: drops of each interface's queues. Interfaces have the
    names that `Watched` gives them.
    """

    at_s: float
    backlog: tuple[int, ...]
    interfaces: Mapping[str, InterfaceCounters]
    queues: Mapping[str, int]
    switches: Mapping[str, SwitchCounters] = field(default_factory=dict)


class CounterReader(Protocol):
    """The counters of a running switch (`inakit.switch.running_switch.RunningSwitch`)."""

    def read_counter(self, name: str, count: int | None = None) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Packets and bytes of the first `count` elements of a counter, by default of all."""


@dataclass(frozen=True)
class Watched:
    """The observed network.

    `ports[switch][number]` is the interface of a port, in the root namespace; `peers[switch][number]` is the node at
    the other end of its link. Interfaces are called by their names, those of hosts `host:interface`.
    """

    hosts: Sequence[HostPort]
    switches: Mapping[str, CounterReader] = field(default_factory=dict)
    ports: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    peers: Mapping[str, Mapping[int, str]] = field(default_factory=dict)

    def links(self) -> dict[str, InterfaceCounters]:
        """The counters of all interfaces of the network."""
        own = interfaces()
        found = {name: own[name] for ports in self.ports.values() for name in ports.values()}
        return found | {f"{h.name}:{h.interface}": interfaces(h.pid)[h.interface] for h in self.hosts}

    def queues(self) -> dict[str, int]:
        """The drops of all queues of the network."""
        own = queue_drops()
        found = {name: own.get(name, 0) for ports in self.ports.values() for name in ports.values()}
        return found | {f"{h.name}:{h.interface}": queue_drops(h.pid).get(h.interface, 0) for h in self.hosts}

    def snapshot(self) -> Snapshot:
        """All counters of the network now."""
        return Snapshot(
            at_s=time.monotonic(),
            backlog=backlog_drops(),
            interfaces=self.links(),
            queues=self.queues(),
            switches={name: switch_counters(switch, self.ports[name]) for name, switch in self.switches.items()},
        )


def switch_counters(switch: CounterReader, ports: Mapping[int, str]) -> SwitchCounters:
    """The present counts of a switch; the keys of `ports` are the numbers of its ports."""

    def packets(name: str, indices: Sequence[int]) -> dict[int, int]:
        # A counter has an element for every possible port; BMv2 is asked for each element separately.
        counted = switch.read_counter(name, 1 + max(indices, default=0))[0]
        return {index: int(counted[index]) for index in indices}

    return SwitchCounters(
        events=packets(EVENTS, list(Event)),
        received=packets(RECEIVED, list(ports)),
        sent=packets(SENT, list(ports)),
        replicated=packets(REPLICATED, list(ports)),
        lost=packets(LOST, list(ports)),
        rejected=packets(REJECTED, list(ports)),
    )


def difference(then: Mapping[int, int], now: Mapping[int, int]) -> dict[int, int]:
    """The growth of each count."""
    return {key: count - then.get(key, 0) for key, count in now.items()}
