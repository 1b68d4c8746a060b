"""The judgement of a run: VALID, or OVERLOADED with every reason and its place.

The invariants follow Mininet-HiFi: an emulated network behaves like a real one only if it never waits long for a
processor, every sender keeps its pace, and every packet is accounted for. They are judged from a `Monitor`'s record:
counters before and after the run, and the processors in every second between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields

from inakit.planner.core.plan import Plan
from inakit.topo.files.quantities import in_words
from inakit.traffic.measure.contention import blame, overload_reasons
from inakit.traffic.measure.counters import Snapshot, Watched, difference
from inakit.traffic.measure.measured import Measured
from inakit.traffic.measure.monitor import Monitor
from inakit.traffic.measure.verdict import Limits
from inakit.traffic.wire.packet_format import TERMINAL, Event


@dataclass(frozen=True)
class Excuses:
    """Effects of faults on demand, which do not count against a run.

    `interfaces` can drop packets, `hosts` can be late, and if `rates` is true sending rates can differ from the plan.
    If `congestion`, queues of switches can overflow: packets that are sent again, and fragments that are not summed
    where planned, add to the planned load of links. If `hostile`, a host can have sent packets for which some or all
    switches have no entry, and so can nodes `astray`.
    """

    interfaces: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    rates: bool = False
    congestion: bool = False
    hostile: bool = False
    astray: frozenset[str] = frozenset()

    def __or__(self, other: Excuses) -> Excuses:
        """The union of both."""
        return Excuses(*(getattr(self, each.name) | getattr(other, each.name) for each in fields(Excuses)))


def judge(
    monitor: Monitor, measured: Measured, plan: Plan, limits: Limits | None = None, excuses: Excuses | None = None
) -> tuple[str, ...]:
    """Return every reason not to trust the run; if other programs took the processors, the first names them."""
    limits, excuses = limits or Limits(), excuses or Excuses()
    seconds = tuple(monitor.seconds)
    found = (
        *overload_reasons(seconds, limits),
        *(() if excuses.rates else slow_senders(measured, plan, limits.rate_error)),
        *late_senders(measured, limits.late, excuses.hosts),
        *drops(monitor, excuses),
        *(f"{what}: {count}" for what, count in measured.problems.items()),
        *not_conserved(monitor, excuses),
    )
    return (*blame(seconds, limits), *found) if found else ()


def not_conserved(monitor: Monitor, excuses: Excuses) -> Iterator[str]:
    """Yield reasons for packets that a switch's counters, its interfaces or the plan's entries do not account for."""
    before, after = monitor.before, monitor.after
    for name in after.switches:
        yield from unaccounted(name, before, after)
    if not excuses.hostile:
        yield from disagreements(monitor, excuses.astray)
    yield from lost_on_the_way(monitor.watched, before, after, excuses.interfaces)


def planned_rates(plan: Plan) -> dict[tuple[int, str], float]:
    """The sending rate of each job number and worker, in bit/s over all trees."""
    rates: dict[tuple[int, str], float] = {}
    for each in plan.trees:
        for host in dict.fromkeys(each.tree.workers.values()):
            rates[each.job, host] = rates.get((each.job, host), 0.0) + each.rate_bps
    return rates


def slow_senders(measured: Measured, plan: Plan, tolerance: float) -> Iterator[str]:
    """Yield reasons for workers whose mean rate deviates from the planned one by more than the share `tolerance`.

    A worker that sends one packet, which is measured as 0 bit/s, has no rate.
    """
    for (job, host), planned in planned_rates(plan).items():
        own = [i for i in measured.iterations if i.job == job]
        found = [i.sending_rate_bps[host] for i in own if i.sending_rate_bps[host] or not i.sent_bytes[host]]
        mean = sum(found) / len(found) if found else 0.0
        if (found or not own) and abs(mean - planned) > tolerance * planned:
            yield (
                f"worker '{host}' of job {job} sent at {in_words(mean, 'bit/s', 3)}, "
                f"planned were {in_words(planned, 'bit/s', 3)}"
            )


def late_senders(measured: Measured, tolerance: float, excused: Collection[str] = ()) -> Iterator[str]:
    """Yield reasons for paced senders that fell behind for good although their windows were open."""
    for host, late_s in measured.late_s.items():
        total_s = sum(i.communication_time_s for i in measured.iterations if host in i.sending_rate_bps)
        if late_s > tolerance * total_s and host not in excused:
            yield f"worker '{host}' was {in_words(late_s, 's', 3)} behind its pace in {in_words(total_s, 's', 3)}"


def switch_interfaces(watched: Watched) -> Iterator[str]:
    """The names of the interfaces of all switches' ports."""
    return (name for ports in watched.ports.values() for name in ports.values())


def dropped_by_queues(monitor: Monitor) -> int:
    """The number of packets that the queues of the switches' interfaces dropped during the run."""
    before, after = monitor.before.queues, monitor.after.queues
    return sum(after.get(name, 0) - before.get(name, 0) for name in switch_interfaces(monitor.watched))


def drops(monitor: Monitor, excuses: Excuses) -> Iterator[str]:
    """Yield reasons for packets that interfaces, queues and input queues of CPUs dropped.

    A run that follows its plan and its pace drops no packets.
    """
    before, after = monitor.before, monitor.after
    for name, now in after.interfaces.items():
        then = before.interfaces[name]
        for what, count in (
            ("received", now.receive_drops - then.receive_drops),
            ("to be sent", now.send_drops - then.send_drops),
        ):
            if count and name not in excuses.interfaces:
                yield f"interface {name} dropped {count} packets {what}"
    may_overflow = excuses.interfaces.union(switch_interfaces(monitor.watched) if excuses.congestion else ())
    for name, dropped in after.queues.items():
        if dropped != before.queues[name] and name not in may_overflow:
            yield f"the queue of interface {name} dropped {dropped - before.queues[name]} packets"
    for cpu, (then_dropped, now_dropped) in enumerate(zip(before.backlog, after.backlog, strict=True)):
        if now_dropped != then_dropped:
            yield f"CPU {cpu} dropped {now_dropped - then_dropped} packets: its input queue was full"


def unaccounted(switch: str, before: Snapshot, after: Snapshot) -> Iterator[str]:
    """Yield reasons for packets of a switch that its own counters do not account for."""
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
    """Packets that a switch did not admit at a port, and their sender: a host, or a switch that let them through."""

    switch: str
    port: int
    sender: str
    by_host: bool
    packets: int


def turned_away(monitor: Monitor) -> Iterator[TurnedAway]:
    """The packets that were not admitted, for every port where that happened."""
    watched, hosts = monitor.watched, {host.name for host in monitor.watched.hosts}
    for switch, after in monitor.after.switches.items():
        rejected = difference(monitor.before.switches[switch].rejected, after.rejected)
        for port, packets in rejected.items():
            if packets:
                sender = watched.peers[switch][port]
                yield TurnedAway(switch, port, sender, sender in hosts, packets)


def disagreements(monitor: Monitor, excused: Collection[str] = ()) -> Iterator[str]:
    """Yield reasons for packets that one switch admits, but another does not admit or cannot forward.

    A host itself causes packets that its first switch does not admit: they are dropped on purpose and change no figure.
    A worker whose own packets no entry admits never ends its iteration.
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


def lost_on_the_way(
    watched: Watched, before: Snapshot, after: Snapshot, excused: Collection[str] = ()
) -> Iterator[str]:
    """Yield reasons for ports whose interface and program received different numbers of packets."""
    for switch in after.switches:
        ports = watched.ports[switch]
        received = difference(before.switches[switch].received, after.switches[switch].received)
        for port, name in ports.items():
            arrived = after.interfaces[name].received_packets - before.interfaces[name].received_packets
            if arrived != received[port] and name not in excused:
                yield f"switch {switch}, port {port}: {arrived} packets arrived, its program saw {received[port]}"
