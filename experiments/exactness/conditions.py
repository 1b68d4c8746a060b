"""The conditions under which exactness is tested: faults on all links, and events such as a restart of the PS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from inakit.experiments.exactness.networks import SERVER
from inakit.experiments.faults.fault_plan import Event, FaultPlan, Moment
from inakit.planner.install.fault_entries import LinkFaults
from inakit.topo.fabric.fabric import Fabric

Events = Callable[[Fabric, float], tuple[Event, ...]]
"""A function that gives the events for a fabric whose workers, without faults, send for this many seconds."""

WIPED_AT, PAUSED_AT, RESTARTED_AT = (0.3, 0.5), 0.4, 0.4
"""When these events happen, as shares of the time for which workers send without faults."""
PAUSED, PAUSED_S = "w1", 5.0
NO_FAULTS = LinkFaults()


def switches_wiped(fabric: Fabric, sending_s: float) -> tuple[Event, ...]:
    """The top switch, and later one of the lowest tier, lose all registers while fragments are under way.

    In virtual time all workers send at the same moments: only where packets are lost does a slot wait for the others.
    """
    ends = (fabric.switches[0], fabric.switches[-1])
    return tuple(
        Event(Moment(at * sending_s), "restart", (switch.name,)) for at, switch in zip(WIPED_AT, ends, strict=True)
    )


def worker_paused(_: Fabric, sending_s: float) -> tuple[Event, ...]:
    """One worker neither sends nor receives anything for `PAUSED_S` seconds."""
    return (Event(Moment(PAUSED_AT * sending_s), "pause", (PAUSED,), PAUSED_S),)


def server_restarted(_: Fabric, sending_s: float) -> tuple[Event, ...]:
    """The PS loses all its sums."""
    return (Event(Moment(RESTARTED_AT * sending_s), "restart", (SERVER,)),)


@dataclass(frozen=True)
class Condition:
    """What goes wrong in a run: `links`, the faults of each direction of every link; `events`, which gives events."""

    links: LinkFaults = NO_FAULTS
    events: Events = lambda _fabric, _sending_s: ()

    def faults(self, fabric: Fabric, sending_s: float) -> FaultPlan:
        """The condition as a fault plan for a fabric. Only switches reorder packets: links to hosts do not."""
        to_hosts = replace(self.links, reorder=0.0)
        links = {
            (node, peer): to_hosts if peer in fabric.host_names else self.links for node, peer in fabric.capacities_bps
        }
        return FaultPlan(links=links, events=self.events(fabric, sending_s))


CONDITIONS = {
    "no loss": Condition(),
    "1 % loss": Condition(LinkFaults(drop=0.01)),
    "10 % loss": Condition(LinkFaults(drop=0.1)),
    "30 % loss": Condition(LinkFaults(drop=0.3)),
    "duplicates": Condition(LinkFaults(duplicate=0.1)),
    "reordering": Condition(LinkFaults(reorder=0.1)),
    "switches wiped": Condition(LinkFaults(drop=0.01), switches_wiped),
    "worker paused": Condition(events=worker_paused),
    "PS restarted": Condition(LinkFaults(drop=0.01), server_restarted),
    "all at once": Condition(LinkFaults(drop=0.05, duplicate=0.05, reorder=0.05), server_restarted),
}
HEAVY = {"10 % loss": 10, "30 % loss": 50, "all at once": 5}
"""By how much the number of fragments is divided under a condition, because loss makes runs slow: 6 % of the packets
pass eight links with 30 % loss each, and windows stay small."""
