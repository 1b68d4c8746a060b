"""Rates, loads and drops of a running network, from two samples of counters that the kernel keeps anyway.

A sample reads three small files, and makes one netlink dump of the root namespace and one of each host. It asks
nothing of the switches or of the process that runs the network.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from inakit.topo.live.running import PortFacts, RunningNetwork
from inakit.traffic.measure.counters import CpuTime, InterfaceCounters, QueueReader, interfaces, processor_times
from inakit.traffic.sockets.backlog import backlog_drops


@dataclass(frozen=True)
class Sample:
    """The counters at one moment, `at_s` of the monotonic clock.

    `queues`: drops of the queue of each interface in the root namespace. `host_queues`: drops of each host's queues.
    `backlog`: what the input queue of each processor has dropped since the sampler began.
    """

    at_s: float
    interfaces: Mapping[str, InterfaceCounters]
    queues: Mapping[str, int]
    host_queues: Mapping[str, int]
    processors: Mapping[int, CpuTime]
    backlog: tuple[int, ...]


@dataclass(frozen=True)
class LinkRate:
    """One direction of a link: bits of frames per second, their share of the capacity, and all drops so far."""

    sender: str
    receiver: str
    rate_bps: float
    load: float
    drops: int


@dataclass(frozen=True)
class SwitchRate:
    """Packets per second into and out of a switch, and what its ports and their queues dropped so far."""

    name: str
    in_pps: float
    out_pps: float
    drops: int


@dataclass(frozen=True)
class ProcessorRate:
    """Shares of a processor's time since the last sample, and what its input queue dropped since the sampler began."""

    number: int
    role: str
    idle: float
    softirq: float
    drops: int


@dataclass(frozen=True)
class Rates:
    """What happened between two samples; links and switches with the busiest first."""

    links: tuple[LinkRate, ...]
    switches: tuple[SwitchRate, ...]
    processors: tuple[ProcessorRate, ...]


class Sampler:
    """Takes samples of a network. A context manager: it keeps a socket in the namespace of every host."""

    def __init__(self, network: RunningNetwork) -> None:
        self.network = network
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._queues = stack.enter_context(QueueReader())
            self._hosts = {
                name: stack.enter_context(QueueReader(host.pid)) for name, host in self.network.hosts.items()
            }
            self._exits = stack.pop_all()
        self._backlog = backlog_drops()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._exits.close()

    def sample(self) -> Sample:
        """All counters now."""
        return Sample(
            at_s=time.monotonic(),
            interfaces=interfaces(),
            queues=self._queues.drops(),
            host_queues={name: sum(reader.drops().values()) for name, reader in self._hosts.items()},
            processors=processor_times(),
            backlog=tuple(now - then for now, then in zip(backlog_drops(), self._backlog, strict=True)),
        )


def rates(network: RunningNetwork, before: Sample, after: Sample) -> Rates:
    """What happened from `before` to `after`. Interfaces that are gone by now are left out."""
    links = sorted(link_rates(network, before, after), key=lambda link: (-link.load, link.sender, link.receiver))
    switches = sorted(switch_rates(network, before, after), key=lambda switch: (-switch.in_pps, switch.name))
    return Rates(tuple(links), tuple(switches), tuple(processor_rates(network, before, after)))


def link_rates(network: RunningNetwork, before: Sample, after: Sample) -> Iterator[LinkRate]:
    """The rate of every direction of every link, once: what each switch sends, and what it receives from a host."""
    seconds = after.at_s - before.at_s
    for switch, port, then, now in ports(network, before, after):
        sent_bps = 8 * (now.sent_bytes - then.sent_bytes) / seconds
        drops = now.send_drops + after.queues.get(port.interface, 0)
        yield LinkRate(switch, port.peer, sent_bps, sent_bps / port.out_bps, drops)
        if port.peer in network.hosts:
            received_bps = 8 * (now.received_bytes - then.received_bytes) / seconds
            drops = now.receive_drops + after.host_queues.get(port.peer, 0)
            yield LinkRate(port.peer, switch, received_bps, received_bps / port.in_bps, drops)


def switch_rates(network: RunningNetwork, before: Sample, after: Sample) -> Iterator[SwitchRate]:
    """Packets per second in and out of every switch between two samples, and what its ports have dropped so far."""
    seconds = after.at_s - before.at_s
    received, sent, drops = (dict.fromkeys(network.switches, 0) for _ in range(3))
    for switch, port, then, now in ports(network, before, after):
        received[switch] += now.received_packets - then.received_packets
        sent[switch] += now.sent_packets - then.sent_packets
        drops[switch] += now.receive_drops + now.send_drops + after.queues.get(port.interface, 0)
    for name in network.switches:
        yield SwitchRate(name, received[name] / seconds, sent[name] / seconds, drops[name])


def ports(
    network: RunningNetwork, before: Sample, after: Sample
) -> Iterator[tuple[str, PortFacts, InterfaceCounters, InterfaceCounters]]:
    """Every port of every switch, and what its interface had counted in both samples."""
    for name, switch in network.switches.items():
        for port in switch.ports:
            then, now = (sample.interfaces.get(port.interface) for sample in (before, after))
            if then is not None and now is not None:
                yield name, port, then, now


def processor_rates(network: RunningNetwork, before: Sample, after: Sample) -> Iterator[ProcessorRate]:
    """How idle each processor was between two samples, and what it works on."""
    # Both /proc/net/softnet_stat and /proc/stat have a row for each processor that is online, in the same order.
    dropped = dict(zip(after.processors, after.backlog, strict=False))
    for number, now in after.processors.items():
        then = before.processors[number]
        passed = max(1, now.total - then.total)
        softirq = (now.softirq - then.softirq) / passed
        yield ProcessorRate(number, role(network, number), now.idle_since(then), softirq, dropped.get(number, 0))


def role(network: RunningNetwork, processor: int) -> str:
    """What a network uses a processor for."""
    uses = {"endpoints": network.endpoint_processors, "switches": network.switch_processors}
    return ", ".join(use for use, processors in uses.items() if processor in processors)
