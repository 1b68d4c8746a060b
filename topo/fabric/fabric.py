"""A fabric as immutable data: hosts with addresses, switches with pipelines and chips, links.

This module does not depend on planning, packets or Mininet. Rates are in bit/s, times in seconds.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from inakit.topo.errors import FabricError

Path = tuple[str, ...]
"""The nodes that a packet passes, one after the other."""
DirectedLink = tuple[str, str]
"""One direction of a link: from the first node to the second."""

# -- The limits that a switch's chip sets for aggregators, as immutable data.
#
# Planners plan within the limits of a chip, `inakit.planner.core.check` checks plans against them, and worlds give each
# pipeline its recirculation bandwidth. Profiles are read by `inakit.topo.files.fabric_records`.

VALUES_PER_PACKET = 64
"""The number of values in an INA packet, as in `p4/ina.p4`."""

ROUNDING = 1e-9


@dataclass(frozen=True)
class Chip:
    """The limits of a chip, checked by the constructor. Values of a pipeline hold for each of its pipelines.

    - `values_per_pass`: the values of a packet that one pass through a pipeline sums
    - `slots_per_pipeline`: the slots of an aggregator's registers, over all versions
    - `children_per_slot`: the bits of a slot's bitmap
    - `recirculation_bps`: a pipeline's recirculation bandwidth in bit/s; None: packets are never recirculated
    - `pipelines`; `ports_per_pipeline`: rate in bit/s to the number of ports of a pipeline if all have this rate
    - `table_entries`: the entries of each exact table; `multicast_groups`: the groups of all trees
    - `register_bytes`: the memory of a pipeline for registers and tables; None: not known
    """

    name: str
    values_per_pass: int
    slots_per_pipeline: int
    children_per_slot: int
    pipelines: int
    table_entries: int
    multicast_groups: int
    recirculation_bps: float | None = None
    ports_per_pipeline: tuple[tuple[float, int], ...] = ()
    register_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.passes > 1 and self.recirculation_bps is None:
            raise FabricError(
                f"chip '{self.name}': {self.values_per_pass} values per pass make {self.passes} passes of a packet's "
                f"{VALUES_PER_PACKET} values: give its recirculation rate"
            )

    @property
    def passes(self) -> int:
        """The number of passes through its pipeline that sum all values of a packet."""
        return -(-VALUES_PER_PACKET // self.values_per_pass)

    @property
    def summing_bps(self) -> float:
        """A pipeline's highest summing rate in bit/s: every pass after the first recirculates each packet."""
        if self.passes == 1 or self.recirculation_bps is None:
            return math.inf
        return self.recirculation_bps / (self.passes - 1)

    def at_scale(self, factor: float) -> Chip:
        """The chip with every rate multiplied by `factor`."""
        ports = tuple((rate * factor, count) for rate, count in self.ports_per_pipeline)
        recirculation = self.recirculation_bps and self.recirculation_bps * factor
        return replace(self, recirculation_bps=recirculation, ports_per_pipeline=ports)

    def share_of_pipeline(self, rate_bps: float) -> float:
        """The fraction of a pipeline's ports that a link of this rate takes; infinite for a link faster than any port.

        Ports are broken out: if a pipeline has 16 ports of 100 Gbit/s or 64 of 25 Gbit/s, a link of 25 Gbit/s takes
        1/64 of it.
        """
        if not self.ports_per_pipeline:
            return 0.0
        counts = [count for rate, count in self.ports_per_pipeline if rate >= rate_bps * (1 - ROUNDING)]
        return 1 / max(counts) if counts else math.inf

    def fill(self, rates_bps: Mapping[int, float]) -> tuple[tuple[int, ...], ...]:
        """Fill pipelines one after the other with ports of these rates, in the order of port numbers."""
        pipelines: list[list[int]] = [[]]
        taken = 0.0
        for port, rate_bps in sorted(rates_bps.items()):
            share = self.share_of_pipeline(rate_bps)
            if taken + share > 1 + ROUNDING and pipelines[-1]:
                pipelines.append([])
                taken = 0.0
            pipelines[-1].append(port)
            taken += share
        return tuple(map(tuple, pipelines))


# -- Hosts, switches, links.

MAX_PIPELINES = 8
QUEUE_PACKETS = 400
"""The default length of a link's queue, in packets.

It takes about 50 ms at 20 Mbit/s to send. This is the depth of a real switch's buffer when rates are scaled down by a
factor of thousands.
"""
LONGEST_NAME = 40
NAME = re.compile(rf"[A-Za-z][A-Za-z0-9_-]{{0,{LONGEST_NAME - 1}}}")


@dataclass(frozen=True)
class Host:
    """A server. Jobs say which hosts are workers and which are parameter servers."""

    name: str


@dataclass(frozen=True)
class Switch:
    """A switch. `pipelines[p]` lists the numbers of the ports that belong to pipeline p.

    `tier` is 1 for a switch with hosts (ToR, leaf, edge) and grows upwards. `aggregator_slots` is in fragments, per
    pipeline. A packet leaves the switch `latency_s` after its arrival, not counting time in queues. `chip` limits its
    aggregators; None means no such limits.
    """

    name: str
    tier: int
    pipelines: tuple[tuple[int, ...], ...]
    ina: bool = True
    aggregator_slots: int = 512
    aggregation_rate_bps: float | None = None
    latency_s: float = 0.0
    chip: Chip | None = None

    def pipeline_of(self, port: int) -> int:
        """The pipeline that `port` belongs to. Raises `FabricError` for a port that the switch does not have."""
        for number, ports in enumerate(self.pipelines):
            if port in ports:
                return number
        raise FabricError(f"switch '{self.name}' has no port {port}: it has {sorted(self.ports)}")

    @property
    def ports(self) -> tuple[int, ...]:
        """All port numbers, pipeline by pipeline."""
        return tuple(port for ports in self.pipelines for port in ports)

    @property
    def slots_per_pipeline(self) -> int:
        """The slots of each pipeline: the smaller of `aggregator_slots` and the chip's slots."""
        return min(self.aggregator_slots, self.chip.slots_per_pipeline) if self.chip else self.aggregator_slots

    @property
    def pipeline_summing_bps(self) -> float:
        """The highest summing rate of each pipeline in bit/s, infinite if no packet is recirculated."""
        return self.chip.summing_bps if self.chip else math.inf


@dataclass(frozen=True)
class Link:
    """A cable from `a` to `b`, with a capacity each way. A host's port number is 0."""

    a: str
    b: str
    a_port: int
    b_port: int
    capacity_ab_bps: float
    capacity_ba_bps: float
    delay_s: float = 0.0
    optical: bool = False

    @property
    def ends(self) -> tuple[tuple[str, int, float], tuple[str, int, float]]:
        """For both ends: the node, its port, and the rate at which it sends into the link, in bit/s."""
        return (self.a, self.a_port, self.capacity_ab_bps), (self.b, self.b_port, self.capacity_ba_bps)

    def peer_of(self, node: str) -> str:
        return self.b if node == self.a else self.a


@dataclass(frozen=True)
class Fabric:
    """Hosts, switches and links. The constructor checks them and raises `FabricError` for a mistake."""

    name: str
    hosts: tuple[Host, ...]
    switches: tuple[Switch, ...]
    links: tuple[Link, ...]

    def __post_init__(self) -> None:
        check_names(self)
        check_switches(self)
        check_links(self)
        check_hosts(self)
        check_chips(self)

    def __repr__(self) -> str:
        counts = f"{len(self.switches)} switches, {len(self.hosts)} hosts, {len(self.links)} links"
        return f"<Fabric {self.name}: {counts}>"

    @cached_property
    def switch_by_name(self) -> dict[str, Switch]:
        """Every switch by its name, in the order of `switches`."""
        return {switch.name: switch for switch in self.switches}

    @cached_property
    def host_names(self) -> frozenset[str]:
        return frozenset(host.name for host in self.hosts)

    @cached_property
    def ina_names(self) -> frozenset[str]:
        return frozenset(switch.name for switch in self.switches if switch.ina)

    @cached_property
    def capacities_bps(self) -> dict[tuple[str, str], float]:
        """Capacity of every directed link (from, to)."""
        forth = {(link.a, link.b): link.capacity_ab_bps for link in self.links}
        back = {(link.b, link.a): link.capacity_ba_bps for link in self.links}
        return forth | back

    @cached_property
    def port_numbers(self) -> dict[tuple[str, str], int]:
        """`port_numbers[node, peer]`: the port of `node` that leads to `peer`."""
        forth = {(link.a, link.b): link.a_port for link in self.links}
        back = {(link.b, link.a): link.b_port for link in self.links}
        return forth | back

    @cached_property
    def neighbors(self) -> dict[str, tuple[str, ...]]:
        peers: dict[str, list[str]] = {node: [] for node in self.tiers}
        for link in self.links:
            peers[link.a].append(link.b)
            peers[link.b].append(link.a)
        return {node: tuple(found) for node, found in peers.items()}

    @cached_property
    def tiers(self) -> dict[str, int]:
        return {host.name: 0 for host in self.hosts} | {s.name: s.tier for s in self.switches}

    @cached_property
    def port_rates_bps(self) -> dict[str, dict[int, float]]:
        """The rate of each port that has a link, by node: the greater of its two directions."""
        return {node: {} for node in self.tiers} | port_rates_bps(self.links)

    def ingress_pipeline(self, switch: str, peer: str) -> int:
        """The pipeline of `switch` in which packets from `peer` arrive."""
        return self.switch_by_name[switch].pipeline_of(self.port_numbers[switch, peer])

    def tor_of(self, host: str) -> str:
        return self.neighbors[host][0]


def contiguous_pipelines(ports: int, pipelines: int) -> tuple[tuple[int, ...], ...]:
    """Ports 1 to `ports` split into `pipelines` contiguous groups whose sizes differ by at most one."""
    if not 1 <= pipelines <= MAX_PIPELINES:
        raise FabricError(f"{pipelines} pipelines: a switch has 1 to {MAX_PIPELINES}")
    bounds = [ports * p // pipelines for p in range(pipelines + 1)]
    return tuple(tuple(range(low + 1, high + 1)) for low, high in pairwise(bounds))


def check_names(fabric: Fabric) -> None:
    """Raise `FabricError` unless names are well formed and no two nodes have the same."""
    names = [host.name for host in fabric.hosts] + [switch.name for switch in fabric.switches]
    for name in names:
        if not NAME.fullmatch(name):
            raise FabricError(
                f"name {name!r}: a letter, then letters, digits, '_' or '-' are expected, {LONGEST_NAME} at most"
            )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise FabricError(f"name '{twice[0]}' is used twice: every host and switch needs its own")


def check_switches(fabric: Fabric) -> None:
    """Raise `FabricError` unless tiers, slots, rates and pipelines of all switches are valid."""
    for switch in fabric.switches:
        if switch.tier < 1:
            raise FabricError(f"switch '{switch.name}': tier {switch.tier}; 1 is the lowest, hosts hang from it")
        if switch.aggregator_slots < 1:
            raise FabricError(
                f"switch '{switch.name}': {switch.aggregator_slots} aggregator slots; at least 1 is expected"
            )
        rate = switch.aggregation_rate_bps
        if rate is not None and not 0 < rate < math.inf:
            raise FabricError(f"switch '{switch.name}': aggregation rate {rate:g} bit/s; it must be greater than 0")
        if not 0 <= switch.latency_s < math.inf:
            raise FabricError(f"switch '{switch.name}': latency {switch.latency_s:g} s; it must not be negative")
        if not 1 <= len(switch.pipelines) <= MAX_PIPELINES:
            raise FabricError(
                f"switch '{switch.name}' has {len(switch.pipelines)} pipelines: 1 to {MAX_PIPELINES} are possible"
            )
        for port, count in Counter(switch.ports).items():
            if count > 1:
                raise FabricError(
                    f"switch '{switch.name}': port {port} is in two pipelines; "
                    "a port belongs to exactly one, remove it from the others"
                )


def check_links(fabric: Fabric) -> None:
    """Raise `FabricError` unless every link joins two different nodes, at free ports, at a finite rate."""
    used: set[tuple[str, int]] = set()
    pairs: set[frozenset[str]] = set()
    for link in fabric.links:
        name = f"link {link.a}-{link.b}"
        for capacity in (link.capacity_ab_bps, link.capacity_ba_bps):
            if not 0 < capacity < math.inf:
                raise FabricError(f"{name}: capacity {capacity:g} bit/s; it must be greater than 0")
        if not 0 <= link.delay_s < math.inf:
            raise FabricError(f"{name}: delay {link.delay_s:g} s; it must not be negative")
        if frozenset((link.a, link.b)) in pairs or link.a == link.b:
            raise FabricError(f"{name}: two nodes are joined by at most one link, and none to itself")
        pairs.add(frozenset((link.a, link.b)))
        for node, port, _ in link.ends:
            check_end(fabric, name, node, port, used)


def check_end(fabric: Fabric, name: str, node: str, port: int, used: set[tuple[str, int]]) -> None:
    """Raise `FabricError` unless the end of a link is a port that exists and is not in `used`; add it to `used`."""
    if node not in fabric.tiers:
        raise FabricError(f"{name}: no host or switch is called '{node}'")
    if (node, port) in used:
        raise FabricError(f"{name}: port {port} of '{node}' already has a link")
    used.add((node, port))
    if node in fabric.switch_by_name:
        fabric.switch_by_name[node].pipeline_of(port)
    elif port != 0:
        raise FabricError(f"{name}: host '{node}' has one port, number 0, not {port}")


def check_hosts(fabric: Fabric) -> None:
    """Raise `FabricError` unless every host has a link to a switch."""
    for host in fabric.hosts:
        peers = fabric.neighbors[host.name]
        if not peers:
            raise FabricError(f"host '{host.name}' has no link: join it to a switch")
        if peers[0] in fabric.host_names:
            raise FabricError(f"host '{host.name}' is linked to host '{peers[0]}': a host hangs from a switch")


def port_rates_bps(links: Iterable[Link]) -> dict[str, dict[int, float]]:
    """The rate of each port that one of these links has, by node: the greater of its two directions."""
    rates: dict[str, dict[int, float]] = {}
    for link in links:
        for node, port, _ in link.ends:
            rates.setdefault(node, {})[port] = max(link.capacity_ab_bps, link.capacity_ba_bps)
    return rates


def check_chips(fabric: Fabric) -> None:
    """Raise `FabricError` unless chips fit the pipelines and ports of their switches and have unique names."""
    named: dict[str, Chip] = {}
    for switch in fabric.switches:
        if switch.chip is not None:
            check_chip(switch, switch.chip, fabric.port_rates_bps[switch.name])
            if named.setdefault(switch.chip.name, switch.chip) != switch.chip:
                raise FabricError(f"two different chips are called '{switch.chip.name}': every chip needs its own name")


def check_chip(switch: Switch, chip: Chip, rates_bps: Mapping[int, float]) -> None:
    """Raise `FabricError` unless a chip has the pipelines and ports of a switch with links of these rates."""
    where = f"switch '{switch.name}', chip '{chip.name}'"
    shares = {port: chip.share_of_pipeline(rate_bps) for port, rate_bps in rates_bps.items()}
    for port, share in shares.items():
        if share == math.inf:
            fastest = chip.ports_per_pipeline[0][0]
            raise FabricError(
                f"{where}: port {port} has {rates_bps[port] / 1e9:g} Gbit/s; the chip's fastest have "
                f"{fastest / 1e9:g}: choose slower links, or another chip"
            )
    if len(switch.pipelines) > chip.pipelines:
        raise FabricError(
            f"{where}: its {len(rates_bps)} ports are in {len(switch.pipelines)} pipelines; the chip has "
            f"{chip.pipelines}: join fewer or slower links to the switch, or choose another chip"
        )
    for number, ports in enumerate(switch.pipelines):
        needed = sum(shares.get(port, 0.0) for port in ports)
        if needed > 1 + ROUNDING:
            raise FabricError(
                f"{where}: the {len(ports)} ports of pipeline {number} are {needed:.3g} times those that the chip has; "
                "spread them over more pipelines, or join fewer links to the switch"
            )


# -- The MAC and IPv4 addresses of hosts: a pure function of the fabric, the same on every machine.

NETWORK = 10 << 24
PREFIX_LENGTH = 8
HOSTS_PER_BLOCK = 254
"""Hosts have the numbers 1 to 254 of each block 10.x.y; .0 and .255 stay unused because they look like networks."""
MAX_HOSTS = HOSTS_PER_BLOCK << 16
LOCAL_MAC = 0x0200 << 32


@dataclass(frozen=True)
class Address:
    """A host's addresses: numbers for table entries, and texts for people."""

    mac: int
    ipv4: int

    @property
    def mac_text(self) -> str:
        """The MAC address as in 02:00:0a:00:00:01."""
        return ":".join(f"{byte:02x}" for byte in self.mac.to_bytes(6, "big"))

    @property
    def ipv4_text(self) -> str:
        """The IPv4 address as in 10.0.0.1."""
        return ".".join(str(byte) for byte in self.ipv4.to_bytes(4, "big"))


def addresses(fabric: Fabric) -> dict[str, Address]:
    """10.x.y.z and 02:00:0a:xx:yy:zz for every host, in the order of `fabric.hosts`: 10.0.0.1 is the first.

    Raises `FabricError` if the network 10.0.0.0/8 has too few addresses.
    """
    if len(fabric.hosts) > MAX_HOSTS:
        raise FabricError(f"fabric '{fabric.name}' has {len(fabric.hosts)} hosts: 10.0.0.0/8 addresses {MAX_HOSTS}")
    return {host.name: address(index) for index, host in enumerate(fabric.hosts)}


def address(index: int) -> Address:
    """The addresses of the host at this index, from 0, of `fabric.hosts`."""
    block, number = divmod(index, HOSTS_PER_BLOCK)
    ipv4 = NETWORK | block << 8 | number + 1
    return Address(LOCAL_MAC | ipv4, ipv4)
