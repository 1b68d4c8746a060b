"""Table entries that are added to those of a plan: link faults (`p4/faults.p4`) and background traffic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count, pairwise
from random import Random

from inakit.planner.core.plan import Plan
from inakit.planner.core.problem import Problem
from inakit.planner.install import ina_program
from inakit.planner.install.plan_entries import Routes, add_route, plan_routes, route_rows, unicast_path
from inakit.switch.entries import Entries, MulticastGroup, RegisterPreset, SwitchEntries, TableEntry
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import DirectedLink, Fabric
from inakit.topo.fabric.up_down import up_down_paths

# -- Faults of links.
#
# A fault belongs to one direction of a link. A receiving switch drops or delays packets on arrival; packets to a host
# are dropped by the switch that sends them; a sending switch duplicates packets. Packets from a host can be duplicated
# only by the host itself.

LARGEST = (1 << 32) - 1
ORIGINAL, COPY = 0, 2
"""The replica number of a packet to one port, and that of an additional copy of a multicast packet."""


@dataclass(frozen=True)
class LinkFaults:
    """The fractions of INA packets in one direction of a link, each 0 to 1, that are lost, delayed, or duplicated."""

    drop: float = 0.0
    reorder: float = 0.0
    duplicate: float = 0.0

    def __post_init__(self) -> None:
        for name, share in (("drop", self.drop), ("reorder", self.reorder), ("duplicate", self.duplicate)):
            if not 0 <= share <= 1:
                raise InputError(f"{name} {share:g}: a share from 0 to 1 is expected")
        if self.drop + self.reorder > 1:
            raise InputError(f"drop {self.drop:g} and reorder {self.reorder:g} are more than 1 together: lower one")

    def __bool__(self) -> bool:
        return self != LinkFaults()


Doubled = tuple[tuple[int, int], tuple[int, ...], tuple[tuple[int, int], ...]]
"""A way (port and group), the ports of its group, and the additional replicas."""
Faults = Mapping[DirectedLink, LinkFaults]
"""`[node, peer]`: the faults of packets from the node to its peer."""


def with_faults(fabric: Fabric, installed: Entries, faults: Faults, seed: int = 0) -> Entries:
    """Add the entries of the faults. Every port draws from its own random sequence, derived from `seed`.

    Raises `InputError` for reordering on a link to a host: only a switch can let other packets overtake.
    """
    for (node, peer), found in faults.items():
        if found.reorder and peer in fabric.host_names:
            raise InputError(f"link {node}-{peer}: a host cannot delay packets; reorder on links to switches")
    own = {switch.name: switch_faults(fabric, installed.of(switch.name), faults, seed) for switch in fabric.switches}
    unused = {name for name, entries in own.items() if entries == SwitchEntries(name)}
    return Entries(tuple(entries for name, entries in own.items() if name not in unused))


def switch_faults(fabric: Fabric, installed: SwitchEntries, faults: Faults, seed: int) -> SwitchEntries:
    name = installed.switch
    peers = {fabric.port_numbers[name, peer]: peer for peer in fabric.neighbors[name]}
    arriving = {port: faults.get((peer, name), LinkFaults()) for port, peer in peers.items()}
    leaving = {port: faults.get((name, peer), LinkFaults()) for port, peer in peers.items()}
    to_hosts = {port: found for port, found in leaving.items() if peers[port] in fabric.host_names}
    twice = {port: found.duplicate for port, found in leaving.items() if found.duplicate}
    doubling, groups = doubled_ways(installed, twice)
    rows = [
        TableEntry(
            ina_program.ARRIVING, (port,), ina_program.ARRIVAL_FAULTY, (share_of(found.drop), share_of(found.reorder))
        )
        for port, found in arriving.items()
        if twice or found.drop or found.reorder  # a switch duplicates only packets from a port with this entry
    ]
    rows += [
        TableEntry(ina_program.LEAVING, (port,), ina_program.DEPARTURE_FAULTY, (share_of(found.drop),))
        for port, found in to_hosts.items()
        if found.drop
    ]
    rows += doubling
    if not rows:
        return installed
    random = Random(f"{seed} {name}")
    beginnings = (
        RegisterPreset(register, port, random.getrandbits(32))
        for register in ina_program.DRAWS
        for port in sorted(peers)
    )
    return replace(
        installed,
        tables=(*installed.tables, *rows),
        groups=(*installed.groups, *groups),
        registers=(*installed.registers, *beginnings),
    )


def doubled_ways(installed: SwitchEntries, twice: Mapping[int, float]) -> tuple[list[TableEntry], list[MulticastGroup]]:
    """For each way by which a packet can leave, an entry and a group in which ports with duplicates occur twice.

    All copies of a multicast to such ports are duplicated together, with the largest of their fractions.
    """
    rows: list[TableEntry] = []
    groups: list[MulticastGroup] = []
    numbers = count(max((group.group for group in installed.groups), default=0) + 1)
    ways: list[Doubled] = [((port, 0), (port,), ((ORIGINAL, port),)) for port in twice]
    for group in installed.groups:
        more = tuple((COPY, port) for port in group.ports if port in twice)
        if more:
            ways.append(((0, group.group), group.ports, more))
    for (way, ports, more), number in zip(ways, numbers, strict=False):
        share = share_of(max(twice[port] for _, port in more))
        rows.append(TableEntry(ina_program.WAYS, way, ina_program.DOUBLED, (share, number)))
        groups.append(MulticastGroup(number, ports, more))
    return rows, groups


def share_of(share: float) -> int:
    """A fraction in the P4 program's units of 2^-32; a fraction of 1 becomes one unit less."""
    return min(round(share * (LARGEST + 1)), LARGEST)


def doubled_by_hosts(fabric: Fabric, faults: Faults) -> dict[str, float]:
    """The fraction of its packets that each host sends twice."""
    return {
        node: found.duplicate for (node, _), found in faults.items() if node in fabric.host_names and found.duplicate
    }


# -- Plain traffic between hosts beside that of the jobs: its links, and the entries that forward it.


@dataclass(frozen=True)
class Flow:
    """Plain UDP from one host to another at a steady rate (bit/s of whole frames)."""

    source: str
    destination: str
    rate_bps: float
    frame_bytes: int = 1000


def background_routes(problem: Problem, plan: Plan, flows: Iterable[Flow]) -> Routes:
    """The routes of the plan's entries, and the additional routes of the flows.

    A flow takes a shortest up-down path to the first node that already has a route to its destination. Raises
    `InputError` for an unknown host, and for a flow without a path.
    """
    routes = plan_routes(problem.fabric, plan)
    for flow in flows:
        for host in (flow.source, flow.destination):
            if host not in problem.fabric.host_names:
                raise InputError(f"background traffic: '{host}' is not a host of fabric '{problem.fabric.name}'")
        paths = up_down_paths(problem.fabric, flow.source, flow.destination)
        if not paths or flow.source == flow.destination:
            raise InputError(f"background traffic: no path from '{flow.source}' to '{flow.destination}'")
        add_route(problem.fabric, routes, paths[0])
    return routes


def with_background(problem: Problem, installed: Entries, routes: Routes) -> Entries:
    """Add the entries of `routes` that are missing."""
    rows = list(route_rows(problem.fabric, routes))
    names = dict.fromkeys([*(entries.switch for entries in installed.switches), *(switch for switch, _ in rows)])
    own = {name: [*installed.of(name).tables, *(row for switch, row in rows if switch == name)] for name in names}
    return Entries(
        tuple(replace(installed.of(name), tables=tuple(dict.fromkeys(tables))) for name, tables in own.items())
    )


def flow_links(problem: Problem, routes: Routes, flow: Flow) -> tuple[DirectedLink, ...]:
    return tuple(pairwise(unicast_path(problem.fabric, flow.source, flow.destination, routes)))
