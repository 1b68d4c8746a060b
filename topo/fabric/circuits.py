"""An all-optical interconnect (AOI) as data: a circuit switch, optical ports, circuits; and fabrics' optical links.

A circuit joins two optical ports, both ways, at the rate of a port; a port has one circuit at most. A port whose
circuit changes carries nothing for the time of a reconfiguration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from inakit.topo.errors import FabricError, unknown_name
from inakit.topo.fabric.fabric import Fabric, Link, Switch

INTERCONNECT = "aoi"
"""The circuit switch's name as a node of a network."""

Port = tuple[str, int]
"""A node, and the number of one of its ports."""
Circuit = tuple[Port, Port]
"""The two ports that are joined, the lower one first; `circuit` makes one."""


def circuit(one: Port, other: Port) -> Circuit:
    return (one, other) if one < other else (other, one)


@dataclass(frozen=True)
class Fibre:
    """A fibre from an optical port of a node to the circuit switch; it carries `rate_bps` each way."""

    node: str
    port: int
    rate_bps: float
    delay_s: float = 0.0

    @property
    def end(self) -> Port:
        return self.node, self.port


@dataclass(frozen=True)
class Interconnect:
    """A circuit switch: `fibres[n]` is at its port n + 1; `circuits` are the initial circuits.

    The constructor checks it. Raises `FabricError`.
    """

    fibres: tuple[Fibre, ...]
    reconfiguration_s: float = 0.0
    circuits: frozenset[Circuit] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        if self.reconfiguration_s < 0:
            raise FabricError(f"reconfiguration in {self.reconfiguration_s:g} s: it must not be negative")
        for end, count in Counter(fibre.end for fibre in self.fibres).items():
            if count > 1:
                raise FabricError(f"optical port {named(end)} has {count} fibres: a port has one")
        self.check(self.circuits)

    @cached_property
    def port_of(self) -> dict[Port, int]:
        """The circuit switch's port at the other end of each optical port's fibre."""
        return {fibre.end: number for number, fibre in enumerate(self.fibres, start=1)}

    @cached_property
    def ports(self) -> dict[str, tuple[int, ...]]:
        nodes = dict.fromkeys(fibre.node for fibre in self.fibres)
        return {node: tuple(sorted(fibre.port for fibre in self.fibres if fibre.node == node)) for node in nodes}

    def check(self, circuits: Collection[Circuit]) -> None:
        """Raise `FabricError` unless these circuits can exist at once."""
        for end, count in Counter(end for each in circuits for end in each).items():
            self.check_node(end[0])
            if end not in self.port_of:
                raise FabricError(f"'{end[0]}' has no optical port {end[1]}: it has {listed(self.ports[end[0]])}")
            if count > 1:
                raise FabricError(f"optical port {named(end)} is in {count} circuits: a port can be in one")

    def check_node(self, node: str) -> None:
        """Raise `FabricError` unless the node has optical ports."""
        if node not in self.ports:
            raise FabricError(str(unknown_name("unit with optical ports", node, self.ports)))

    def between(self, pairs: Iterable[tuple[str, str]], before: Collection[Circuit] = ()) -> frozenset[Circuit]:
        """Return one circuit for each pair of nodes; keep as many of the circuits `before` as possible.

        Raises `FabricError` for an unknown node, or for a node with fewer ports than circuits.
        """
        wanted = Counter((min(pair), max(pair)) for pair in pairs)
        self.check_pairs(wanted)
        kept = set(self.kept(wanted, before))
        free = {node: list(ports) for node, ports in self.ports.items()}
        for node, port in (end for each in kept for end in each):
            free[node].remove(port)
        wanted.subtract(nodes_of(each) for each in kept)
        new = {circuit((a, free[a].pop(0)), (b, free[b].pop(0))) for a, b in sorted(wanted.elements())}
        return frozenset(kept | new)

    def check_pairs(self, wanted: Counter[tuple[str, str]]) -> None:
        """Raise `FabricError` unless every node exists, is joined to other nodes only, and has enough ports."""
        for pair in wanted:
            for node in pair:
                self.check_node(node)
            if pair[0] == pair[1]:
                raise FabricError(f"a circuit from '{pair[0]}' to itself: a circuit joins two units")
        for node, count in Counter(node for pair in wanted.elements() for node in pair).items():
            if count > len(self.ports[node]):
                raise FabricError(f"{count} circuits at '{node}': it has {len(self.ports[node])} optical ports")

    @staticmethod
    def kept(wanted: Counter[tuple[str, str]], before: Collection[Circuit]) -> Iterator[Circuit]:
        """Yield the circuits of `before` that join wanted pairs, each pair at most as often as it is wanted."""
        left = Counter(wanted)
        for each in sorted(before):
            if left[nodes_of(each)] > 0:
                left[nodes_of(each)] -= 1
                yield each


def nodes_of(each: Circuit) -> tuple[str, str]:
    """The two nodes that a circuit joins, in the order of their names."""
    return each[0][0], each[1][0]


def named(end: Port) -> str:
    """An optical port as error messages write it."""
    return f"{end[1]} of '{end[0]}'"


def listed(ports: Iterable[int]) -> str:
    """Port numbers as text: contiguous ones as a range (1-3), others separated by commas."""
    numbers = sorted(ports)
    contiguous = len(numbers) > 1 and all(b == a + 1 for a, b in pairwise(numbers))
    return f"{numbers[0]}-{numbers[-1]}" if contiguous else ", ".join(map(str, numbers))


# -- The optical links of a fabric: fixed circuits of a patch panel, or ports of an interconnect whose circuits
# change.


def patch_panel(fabric: Fabric, reconfiguration_s: float = 0.0) -> Interconnect:
    """Return an interconnect with a circuit per optical link of a fabric. Raises `FabricError` if there is none."""
    optical = [link for link in fabric.links if link.optical]
    if not optical:
        raise FabricError(f"fabric '{fabric.name}' has no optical link: nothing would go through the circuit switch")
    fibres = [fibre for link in optical for fibre in (
        Fibre(link.a, link.a_port, link.capacity_ab_bps, link.delay_s),
        Fibre(link.b, link.b_port, link.capacity_ba_bps, link.delay_s),
    )]  # fmt: skip
    circuits = (circuit((link.a, link.a_port), (link.b, link.b_port)) for link in optical)
    return Interconnect(tuple(fibres), reconfiguration_s, frozenset(circuits))


def optical_ports(
    fabric: Fabric, ports: Mapping[str, int], rate_bps: float, reconfiguration_s: float = 0.0
) -> Interconnect:
    """Return an interconnect without circuits; `ports` maps each switch to its number of optical ports.

    A switch's optical ports have the numbers after its electrical ones. The fabric's optical links only state the
    possible circuits; there can be more of them than ports. Raises `FabricError` for an unknown switch.
    """
    for unit in ports:
        if unit not in fabric.switch_by_name:
            raise FabricError(str(unknown_name("switch", unit, fabric.switch_by_name)))
    last = dict.fromkeys(ports, 0)  # the highest electrical port
    for node, port, _ in (end for link in electrical(fabric) for end in link.ends):
        last[node] = max(last.get(node, 0), port)
    fibres = (
        Fibre(unit, last[unit] + number, rate_bps) for unit, count in ports.items() for number in range(1, count + 1)
    )
    return Interconnect(tuple(fibres), reconfiguration_s)


def electrical(fabric: Fabric) -> tuple[Link, ...]:
    return tuple(link for link in fabric.links if not link.optical)


def with_ports(switch: Switch, ports: Iterable[int]) -> Switch:
    """Add these ports to the switch's last pipeline: a fabric does not list all ports of an interconnect."""
    more = tuple(sorted(set(ports) - set(switch.ports)))
    return replace(switch, pipelines=(*switch.pipelines[:-1], switch.pipelines[-1] + more))


def cables(fabric: Fabric, interconnect: Interconnect | None) -> tuple[Link, ...]:
    """Return the cables: all links, or, with an interconnect, one fibre per optical port instead of the optical links.

    Raises `FabricError` for a node that has the name of the circuit switch.
    """
    if interconnect is None:
        return fabric.links
    if INTERCONNECT in fabric.tiers:
        raise FabricError(f"a node is called '{INTERCONNECT}', as the circuit switch is: give it another name")
    fibres = (
        Link(fibre.node, INTERCONNECT, fibre.port, number, fibre.rate_bps, fibre.rate_bps, fibre.delay_s, optical=True)
        for number, fibre in enumerate(interconnect.fibres, start=1)
    )
    return (*electrical(fabric), *fibres)
