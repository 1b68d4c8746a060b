"""All counters of a network at one moment, by which its packets are accounted for."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from inakit.planner.install.program import EVENTS, LOST, RECEIVED, REJECTED, REPLICATED, SENT
from inakit.traffic.measure.counters.kernel_counters import InterfaceCounters, interfaces, queue_drops
from inakit.traffic.sockets.backlog import backlog_drops
from inakit.traffic.sockets.ports import HostPort
from inakit.traffic.wire.packet_format import Event


@dataclass(frozen=True)
class SwitchCounters:
    """What a switch's program counted: `events` by their number (`Event`), packets by port.

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
    """What a running switch offers (`inakit.switch.running_switch.RunningSwitch`)."""

    def read_counter(self, name: str, count: int | None = None) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Packets and bytes of the first `count` elements of a counter, by default of all."""


@dataclass(frozen=True)
class Watched:
    """The network that is watched.

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
    """What a switch has counted so far; the keys of `ports` are the numbers of its ports."""

    def packets(name: str, indices: Sequence[int]) -> dict[int, int]:
        # A counter has an element for every port that a switch may have; BMv2 is asked for each by itself.
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
    """What each count has grown by."""
    return {key: count - then.get(key, 0) for key, count in now.items()}
