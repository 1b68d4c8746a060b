"""Observes a run from before its first packet until after its last: counters, links and processors."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from types import TracebackType
from typing import Self

from inakit.planner.core.evaluate import SwitchAggregation
from inakit.topo.fabric.fabric import DirectedLink
from inakit.topo.live.priority import ahead_of_others
from inakit.traffic.measure.contention import clear_overload
from inakit.traffic.measure.counters import InterfaceCounters, Snapshot, Watched
from inakit.traffic.measure.measured import Measured
from inakit.traffic.measure.processor_observer import Observer
from inakit.traffic.measure.processors import Second
from inakit.traffic.measure.verdict import Limits
from inakit.traffic.wire.packet_format import Event

QUIET_S, PATIENCE_S = 0.1, 3.0
"""The seconds without a counted packet after which a network is quiet, and the most seconds to wait for that."""


class Monitor:
    """Samples processors and link counters every second, and takes the snapshots before and after.

    with Monitor(watched) as monitor:
        measured = run_reliable(...)
    judgement = judge(monitor, measured, plan)

    The thread that enters it must be the one that drives the endpoints, and runs before other work until it leaves. Its
    work before the first packet is observed, too.
    """

    def __init__(self, watched: Watched, period_s: float = 1.0) -> None:
        self.watched, self.period_s = watched, period_s
        self.links: list[LinkSample] = []
        self.before: Snapshot
        self.after: Snapshot
        self._observer = Observer(period_s)
        self._exits = ExitStack()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="fidelity monitor", daemon=True)

    @property
    def seconds(self) -> Sequence[Second]:
        """The processors' use in each finished second."""
        return self._observer.seconds

    def overloaded_so_far(self, planned_s: float | None = None, limits: Limits | None = None) -> tuple[str, ...]:
        """Return the reasons why the running run is clearly overloaded; empty if that is not clear.

        A single second decides the verdict at the end; here several of the last ten are required. `planned_s` is the
        planned time of the progress so far: a run that needs much longer is overloaded too. This is cheap enough to be
        called at every report of progress.
        """
        elapsed_s = time.monotonic() - self.before.at_s
        return tuple(clear_overload(self.seconds, limits or Limits(), elapsed_s, planned_s))

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self._observer)
            stack.enter_context(ahead_of_others())
            self.before = self.watched.snapshot()
            self._sample()
            self._thread.start()
            self._exits = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self._exits.__exit__(kind, error, trace)
        if error is None:
            self._sample()
            self.after = settled(self.watched)

    def _watch(self) -> None:
        while not self._over.wait(self.period_s):
            self._sample()

    def _sample(self) -> None:
        sent = {name: interface.sent_bytes for name, interface in self.watched.links().items()}
        self.links.append(LinkSample(time.monotonic(), sent))


def settled(watched: Watched) -> Snapshot:
    """All counters of the network once it is quiet: copies of packets can still be in flight when a run ends.

    Counters are read one after the other, so a packet that moves meanwhile would be in only some of them.
    """
    patience = time.monotonic() + PATIENCE_S
    now = watched.links()
    while time.monotonic() < patience:
        time.sleep(QUIET_S)
        earlier, now = now, watched.links()
        if now == earlier:
            break
    return watched.snapshot()


# -- The load of every interface of a network, from samples of its counters.


@dataclass(frozen=True)
class LinkSample:
    """Bytes that have left each interface by `at_s`."""

    at_s: float
    sent_bytes: Mapping[str, int]


def link_rows(samples: Sequence[LinkSample], ends: Mapping[str, tuple[str, str]]) -> Iterator[dict[str, object]]:
    """Yield a row for each interface and each two successive samples: bytes between them, and bit/s.

    `ends`: by interface, the sending and the receiving node.
    """
    for earlier, later in pairwise(samples):
        for interface, sent in later.sent_bytes.items():
            grown = sent - earlier.sent_bytes.get(interface, 0)
            rate = 8 * grown / (later.at_s - earlier.at_s)
            sender, receiver = ends.get(interface, ("", ""))
            row = {"at_s": later.at_s, "interface": interface, "bytes": grown, "rate_bps": rate}
            yield row | {"sender": sender, "receiver": receiver}


# -- The totals of each directed link in a whole run, as the interfaces of switches counted them.


@dataclass(frozen=True)
class LinkTotal:
    """The traffic from `sender` to `receiver`. `drops`: of the queue before the link; None for a host's queue."""

    sender: str
    receiver: str
    sent_bytes: int
    packets: int
    drops: int | None = None


def link_totals(monitor: Monitor) -> Iterator[LinkTotal]:
    """Yield both directions of the link at every port of a switch; a link between two switches comes twice."""
    before, after, watched = monitor.before, monitor.after, monitor.watched
    for switch, ports in watched.ports.items():
        for port, name in ports.items():
            peer, then, now = watched.peers[switch][port], before.interfaces[name], after.interfaces[name]
            drops = after.queues.get(name, 0) - before.queues.get(name, 0)
            sent, packets = now.sent_bytes - then.sent_bytes, now.sent_packets - then.sent_packets
            yield LinkTotal(switch, peer, sent, packets, drops)
            if peer not in watched.ports:
                received = now.received_packets - then.received_packets
                yield LinkTotal(peer, switch, now.received_bytes - then.received_bytes, received)


def ends_of_interfaces(watched: Watched) -> dict[str, DirectedLink]:
    """The two nodes of every interface by its name: the sending and the receiving one."""
    ends = {name: (s, watched.peers[s][port]) for s, ports in watched.ports.items() for port, name in ports.items()}
    tors = {peer: switch for switch, peer in ends.values() if peer not in watched.ports}
    names = {f"{host.name}:{host.interface}": host.name for host in watched.hosts}
    return ends | {name: (host, tors[host]) for name, host in names.items() if host in tors}


def link_bytes(monitor: Monitor) -> dict[DirectedLink, int]:
    """The bytes that every directed link carried in a run."""
    then, now = (carried_bytes(monitor.watched, each.interfaces) for each in (monitor.before, monitor.after))
    return {link: count - then[link] for link, count in now.items()}


def carried_bytes(watched: Watched, interfaces: Mapping[str, InterfaceCounters]) -> dict[DirectedLink, int]:
    """The bytes that every directed link has carried since the network came up, given the counters of `interfaces`."""
    found = {}
    for switch, ports in watched.ports.items():
        for port, name in ports.items():
            peer = watched.peers[switch][port]
            found[switch, peer] = interfaces[name].sent_bytes
            if peer not in watched.ports:
                found[peer, switch] = interfaces[name].received_bytes
    return found


# -- The aggregation of switches in a run, from the counts of their programs.


def measured_aggregation(events: Mapping[int, int]) -> SwitchAggregation:
    """The gradient packets of a whole run, from the counts of a switch's `Event`s.

    Results leave a switch by multicast and gradients by unicast, so all unicast packets are gradients.
    """
    sent = events[Event.SENT_UNICAST]
    return SwitchAggregation(sent + events[Event.ABSORBED] + events[Event.DUPLICATE], sent)


def gradient_bytes_on_links(measured: Measured, switches: Iterable[SwitchAggregation], wire_bytes: int) -> int:
    """The volume of gradients on all links in bytes (InArt's network throughput), sent by workers and switches.

    `wire_bytes`: the size of a whole frame.
    """
    by_workers = sum(sum(i.sent_bytes.values()) for i in measured.iterations)
    return by_workers + wire_bytes * sum(switch.packets_out for switch in switches)
