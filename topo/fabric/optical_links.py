"""The optical links of a fabric: fixed circuits of a patch panel, or ports of an interconnect whose circuits change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from inakit.topo.errors import FabricError, unknown_name
from inakit.topo.fabric.circuits import INTERCONNECT, Fibre, Interconnect, circuit
from inakit.topo.fabric.fabric import Fabric, Link, Switch


def patch_panel(fabric: Fabric, reconfiguration_s: float = 0.0) -> Interconnect:
    """An interconnect that has a circuit for each optical link of a fabric. Raises `FabricError` if there is none."""
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
    """An interconnect without circuits, where `ports` says how many optical ports each switch has.

    A switch's optical ports have the numbers after its electrical ones. The fabric's optical links only say which
    circuits may be made; there may be more of them than ports. Raises `FabricError` for an unknown switch.
    """
    for unit in ports:
        if unit not in fabric.switch_by_name:
            raise FabricError(str(unknown_name("switch", unit, fabric.switch_by_name)))
    fibres = (
        Fibre(unit, last_electrical_port(fabric, unit) + number, rate_bps)
        for unit, count in ports.items()
        for number in range(1, count + 1)
    )
    return Interconnect(tuple(fibres), reconfiguration_s)


def last_electrical_port(fabric: Fabric, node: str) -> int:
    """The highest port of a node's links that are not optical; 0 without any."""
    ends = ((link.a, link.a_port) if link.a == node else (link.b, link.b_port) for link in electrical(fabric))
    return max((port for name, port in ends if name == node), default=0)


def electrical(fabric: Fabric) -> tuple[Link, ...]:
    """The links that are not optical."""
    return tuple(link for link in fabric.links if not link.optical)


def with_ports(switch: Switch, ports: Iterable[int]) -> Switch:
    """The switch with these ports, too, in its last pipeline: a fabric does not list all ports of an interconnect."""
    more = tuple(sorted(set(ports) - set(switch.ports)))
    return replace(switch, pipelines=(*switch.pipelines[:-1], switch.pipelines[-1] + more))


def cables(fabric: Fabric, interconnect: Interconnect | None) -> tuple[Link, ...]:
    """The cables to plug in: all links, or, with an interconnect, a fibre per optical port instead of optical links.

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
