"""What each directed link carried in a whole run, as the interfaces of switches counted it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from inakit.traffic.measure.counters.snapshots import Watched
from inakit.traffic.measure.monitor import Monitor

DirectedLink = tuple[str, str]


@dataclass(frozen=True)
class LinkTotal:
    """What `sender` sent to `receiver`. `drops`: by the queue before the link; None where that is a host's queue."""

    sender: str
    receiver: str
    sent_bytes: int
    packets: int
    drops: int | None = None


def link_totals(monitor: Monitor) -> Iterator[LinkTotal]:
    """Both directions of the link at every port of a switch; a link between two switches comes twice, alike."""
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
    """The two nodes of every interface by its name: the one that sends there, and the one that it sends to."""
    ends = {name: (s, watched.peers[s][port]) for s, ports in watched.ports.items() for port, name in ports.items()}
    tors = {peer: switch for switch, peer in ends.values() if peer not in watched.ports}
    names = {f"{host.name}:{host.interface}": host.name for host in watched.hosts}
    return ends | {name: (host, tors[host]) for name, host in names.items() if host in tors}


def link_bytes(monitor: Monitor) -> dict[DirectedLink, int]:
    """The bytes that every directed link carried."""
    return {(each.sender, each.receiver): each.sent_bytes for each in link_totals(monitor)}
