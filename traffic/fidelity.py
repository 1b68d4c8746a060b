"""Whether a run's figures mean anything: VALID, or OVERLOADED with every reason, what it was and where.

After Mininet-HiFi's invariants: an emulated network behaves like a real one only as long as the
machine had time to spare, every sender kept its pace, and every packet is accounted for. All of it is
judged from two snapshots of counters, one before and one after, and samples in between.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import TracebackType
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from planner.plan import Plan
from traffic.backlog import backlog_drops
from traffic.counters import CpuTime, Interface, cpu_time, interfaces, queue_drops
from traffic.measure import LinkSample, Measured
from traffic.packet import TERMINAL, Event
from traffic.port import HostPort


@dataclass(frozen=True)
class Limits:
    """Where a run stops to be trusted.

    `idle`: the least idle share of the CPUs in any second. Below it there is always a queue for a CPU,
    and every packet's time is the scheduler's, not the network's.
    `rate_error`: relative, of a worker's sending rate. `late`: the share of its time that a paced
    sender may fall behind for good; by what it is late its rate falls short, hence the same.
    """

    idle: float = 0.05
    rate_error: float = 0.05
    late: float = 0.05


@dataclass(frozen=True)
class Excuses:
    """What faults on demand account for, and no overload does.

    `interfaces` may drop packets, `hosts` may be late, and sending `rates` may be other than planned. A `hostile`
    host may have sent what no switch, or not every switch, has an entry for. So may what comes from a node `astray`.
    """

    interfaces: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    rates: bool = False
    hostile: bool = False
    astray: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Verdict:
    """VALID without reasons."""

    reasons: tuple[str, ...]

    @property
    def valid(self) -> bool:
        return not self.reasons

    def __str__(self) -> str:
        return "VALID" if self.valid else "OVERLOADED"


# ---- snapshots ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class SwitchCounters:
    """What a switch's program counted: events by number, packets by port.

    `lost`: on demand, instead of being sent. `rejected`: of those received, by the port that does not admit them.
    """

    events: Mapping[int, int]
    received: Mapping[int, int]
    sent: Mapping[int, int]
    replicated: Mapping[int, int]
    lost: Mapping[int, int] = field(default_factory=dict)
    rejected: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Snapshot:
    """All counters at one moment. Interfaces are called as in `Watched`."""

    at_s: float
    cpu: CpuTime
    backlog: tuple[int, ...]
    interfaces: Mapping[str, Interface]
    queues: Mapping[str, int]
    switches: Mapping[str, SwitchCounters] = field(default_factory=dict)


class CounterReader(Protocol):
    """What a running switch offers (`switch.target.RunningSwitch`)."""

    def read_counter(self, name: str) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Packets and bytes of every element of a counter."""


@dataclass(frozen=True)
class Watched:
    """The network that is watched. `ports[switch][number]` is an interface of the root namespace, in `peers` its node.

    Interfaces go by their names, those of hosts by `host:interface`.
    """

    hosts: Sequence[HostPort]
    switches: Mapping[str, CounterReader] = field(default_factory=dict)
    ports: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    peers: Mapping[str, Mapping[int, str]] = field(default_factory=dict)

    def links(self) -> dict[str, Interface]:
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
        return Snapshot(
            at_s=time.monotonic(),
            cpu=cpu_time(),
            backlog=backlog_drops(),
            interfaces=self.links(),
            queues=self.queues(),
            switches={name: switch_counters(switch, self.ports[name]) for name, switch in self.switches.items()},
        )


def switch_counters(switch: CounterReader, ports: Mapping[int, str]) -> SwitchCounters:
    def packets(name: str, indices: Sequence[int]) -> dict[int, int]:
        counted = switch.read_counter(name)[0]
        return {index: int(counted[index]) for index in indices}

    return SwitchCounters(
        events=packets("InaIngress.events", list(Event)),
        received=packets("InaIngress.received", list(ports)),
        sent=packets("InaEgress.sent", list(ports)),
        replicated=packets("InaEgress.replicated", list(ports)),
        lost=packets("InaEgress.lost", list(ports)),
        rejected=packets("InaIngress.rejected", list(ports)),
    )


class Monitor:
    """Samples CPU time and link counters every second, and takes the snapshots before and after.

    with Monitor(watched) as monitor:
        measured = run_reliable(...)
    verdict = judge(monitor, measured, plan)
    """

    def __init__(self, watched: Watched, period_s: float = 1.0) -> None:
        self.watched, self.period_s = watched, period_s
        self.cpu: list[tuple[float, CpuTime]] = []
        self.links: list[LinkSample] = []
        self.before: Snapshot
        self.after: Snapshot
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="fidelity monitor", daemon=True)

    def __enter__(self) -> Self:
        self.before = self.watched.snapshot()
        self._sample()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        if error is None:
            self._sample()
            self.after = self.watched.snapshot()

    def _watch(self) -> None:
        while not self._over.wait(self.period_s):
            self._sample()

    def _sample(self) -> None:
        at_s = time.monotonic()
        self.cpu.append((at_s, cpu_time()))
        sent = {name: interface.sent_bytes for name, interface in self.watched.links().items()}
        self.links.append(LinkSample(at_s, sent))


# ---- the verdict -------------------------------------------------------------------------------


def judge(
    monitor: Monitor, measured: Measured, plan: Plan, limits: Limits | None = None, excuses: Excuses | None = None
) -> Verdict:
    """Every reason not to trust the run that `monitor` watched."""
    limits, excuses = limits or Limits(), excuses or Excuses()
    before, after = monitor.before, monitor.after
    return Verdict(
        (
            *busy_seconds(monitor.cpu, limits.idle),
            *(() if excuses.rates else slow_senders(measured, plan, limits.rate_error)),
            *late_senders(measured, limits.late, excuses.hosts),
            *drops(before, after, excuses.interfaces),
            *(f"{what}: {count}" for what, count in measured.problems.items()),
            *(reason for name in after.switches for reason in unaccounted(name, before, after)),
            *(() if excuses.hostile else disagreements(monitor, excuses.astray)),
            *lost_on_the_way(monitor.watched, before, after, excuses.interfaces),
        )
    )


def busy_seconds(samples: Sequence[tuple[float, CpuTime]], least_idle: float) -> Iterator[str]:
    """Seconds without spare CPU time. Intervals too short for the clock of /proc/stat do not count."""
    for (earlier_s, earlier), (later_s, later) in pairwise(samples):
        idle = later.idle_since(earlier)
        if later_s - earlier_s >= 0.5 and idle < least_idle:
            start = earlier_s - samples[0][0]
            yield f"CPU: {idle:.1%} idle in the second from {start:.0f} s on, at least {least_idle:.0%} is needed"


def planned_rates(plan: Plan) -> dict[tuple[int, str], float]:
    """`[job, worker]`: the sending rate in bit/s over all shards."""
    rates: dict[tuple[int, str], float] = {}
    for shard in plan.shards:
        for host in {host for tree in shard.trees for host in tree.workers.values()}:
            rates[shard.job, host] = rates.get((shard.job, host), 0.0) + shard.rate_bps
    return rates


def slow_senders(measured: Measured, plan: Plan, tolerance: float) -> Iterator[str]:
    """Workers whose mean sending rate is not the planned one."""
    for (job, host), planned in planned_rates(plan).items():
        found = [i.sending_rate_bps[host] for i in measured.iterations if i.job == job]
        mean = sum(found) / len(found) if found else 0.0
        if abs(mean - planned) > tolerance * planned:
            yield (
                f"worker '{host}' of job {job} sent at {mean / 1e6:.3g} Mbit/s, planned were {planned / 1e6:.3g} Mbit/s"
            )


def late_senders(measured: Measured, tolerance: float, excused: Collection[str] = ()) -> Iterator[str]:
    """Paced senders that fell behind for good although their windows were open."""
    for host, late_s in measured.late_s.items():
        total_s = sum(i.communication_time_s for i in measured.iterations if host in i.sending_rate_bps)
        if late_s > tolerance * total_s and host not in excused:
            yield f"worker '{host}' was {late_s:.3f} s behind its pace in {total_s:.3f} s"


def drops(before: Snapshot, after: Snapshot, excused: Collection[str] = ()) -> Iterator[str]:
    """Packets dropped by interfaces, queues and CPUs. A paced run within the plan needs no drop anywhere."""
    for name, now in after.interfaces.items():
        then = before.interfaces[name]
        for what, count in (
            ("received", now.receive_drops - then.receive_drops),
            ("to be sent", now.send_drops - then.send_drops),
        ):
            if count and name not in excused:
                yield f"interface {name} dropped {count} packets {what}"
    for name, dropped in after.queues.items():
        if dropped != before.queues[name] and name not in excused:
            yield f"the queue of interface {name} dropped {dropped - before.queues[name]} packets"
    for cpu, (then_dropped, now_dropped) in enumerate(zip(before.backlog, after.backlog, strict=True)):
        if now_dropped != then_dropped:
            yield f"CPU {cpu} dropped {now_dropped - then_dropped} packets: its input queue was full"


def unaccounted(switch: str, before: Snapshot, after: Snapshot) -> Iterator[str]:
    """Packets of a switch that its counters do not account for."""
    then, now = before.switches[switch], after.switches[switch]
    events = difference(then.events, now.events)
    received, sent = difference(then.received, now.received), difference(then.sent, now.sent)
    sent_or_lost = sum(sent.values()) + sum(difference(then.lost, now.lost).values())
    ended = sum(events[event] for event in TERMINAL)
    if ended != sum(received.values()):
        yield f"switch {switch} received {sum(received.values())} packets and finished {ended}"
    leaving = events[Event.SENT_UNICAST] + sum(difference(then.replicated, now.replicated).values())
    if leaving != sent_or_lost:
        yield f"switch {switch} was to send {leaving} packets and sent {sent_or_lost}"
    by_port = sum(difference(then.rejected, now.rejected).values())
    if events[Event.REJECTED] != by_port:
        yield f"switch {switch} turned away {events[Event.REJECTED]} packets, by its ports {by_port}"


@dataclass(frozen=True)
class TurnedAway:
    """Packets that a switch did not admit at a port, and who is there: a host, or a switch that let them through."""

    switch: str
    port: int
    sender: str
    by_host: bool
    packets: int


def turned_away(monitor: Monitor) -> Iterator[TurnedAway]:
    """Whose packets were not admitted, by every port where that happened."""
    watched, hosts = monitor.watched, {host.name for host in monitor.watched.hosts}
    for switch, after in monitor.after.switches.items():
        rejected = difference(monitor.before.switches[switch].rejected, after.rejected)
        for port, packets in rejected.items():
            if packets:
                sender = watched.peers[switch][port]
                yield TurnedAway(switch, port, sender, sender in hosts, packets)


def disagreements(monitor: Monitor, excused: Collection[str] = ()) -> Iterator[str]:
    """Packets that the plan's entries admit at one switch and have no place for at another.

    What a switch does not admit from a host is that host's doing: it is lost on purpose and changes no figure. (A
    worker whose own packets no entry admits never ends.)
    """
    for away in turned_away(monitor):
        if not away.by_host and away.sender not in excused:
            yield (
                f"switch {away.switch} turned away {away.packets} packets that switch {away.sender} let through "
                f"(port {away.port})"
            )
    for switch, after in monitor.after.switches.items():
        lost = difference(monitor.before.switches[switch].events, after.events)[Event.UNROUTABLE]
        if lost:
            yield f"switch {switch}: {lost} packets unroutable"


def difference(then: Mapping[int, int], now: Mapping[int, int]) -> dict[int, int]:
    return {key: count - then.get(key, 0) for key, count in now.items()}


def lost_on_the_way(
    watched: Watched, before: Snapshot, after: Snapshot, excused: Collection[str] = ()
) -> Iterator[str]:
    """Ports whose interface received other than what the switch's program did."""
    for switch in after.switches:
        ports = watched.ports[switch]
        received = difference(before.switches[switch].received, after.switches[switch].received)
        for port, name in ports.items():
            arrived = after.interfaces[name].received_packets - before.interfaces[name].received_packets
            if arrived != received[port] and name not in excused:
                yield f"switch {switch}, port {port}: {arrived} packets arrived, its program saw {received[port]}"
