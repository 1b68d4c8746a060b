"""Circuits as data: what can exist at once, which stay when others change, and what is plugged in."""

from __future__ import annotations

from collections import Counter

import pytest

from inakit.topo.errors import FabricError
from inakit.topo.fabric.circuits import (
    INTERCONNECT,
    Fibre,
    Interconnect,
    cables,
    circuit,
    nodes_of,
    optical_ports,
    patch_panel,
    with_ports,
)
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import leaf_spine, named_fabric, units

UNITS = ("u1", "u2", "u3", "u4")


def interconnect(ports: int = 2) -> Interconnect:
    return optical_ports(units(4, servers=3), dict.fromkeys(UNITS, ports), 8e6, 0.01)


def test_units_have_circuits_as_far_as_ports_reach() -> None:
    def degrees(fabric: Fabric) -> set[int]:
        ends = Counter(node for link in fabric.links if link.optical for node in (link.a, link.b))
        return {ends[unit] for unit in fabric.switch_by_name}

    assert [degrees(units(6, ports=ports)) for ports in (1, 2, 3, 5)] == [{1}, {2}, {2, 3}, {5}]
    assert degrees(named_fabric("units", units=5, servers=1)) == {4}
    assert len(units(4, servers=3).hosts) == 12
    assert {link.capacity_ab_bps for link in units(port_bps=7e6).links if link.optical} == {7e6}


def test_optical_ports_come_behind_the_others() -> None:
    found = interconnect()
    assert found.ports == dict.fromkeys(UNITS, (4, 5))
    assert sorted(found.port_of.values()) == list(range(1, 9))
    assert not found.circuits


def test_a_switch_gets_the_ports_that_its_fabric_does_not_know() -> None:
    unit = units(3, servers=2).switch_by_name["u1"]
    assert unit.pipelines == ((1, 2, 3, 4),)
    assert with_ports(unit, (3, 4, 5, 6)).pipelines == ((1, 2, 3, 4, 5, 6),)
    assert with_ports(unit, unit.ports) == unit


def test_circuits_that_are_wanted_again_stay() -> None:
    panel = interconnect()
    before = panel.between([("u1", "u3"), ("u3", "u1"), ("u2", "u4")])
    after = panel.between([("u1", "u3"), ("u1", "u4"), ("u2", "u4")], before)
    assert Counter(map(nodes_of, after)) == {("u1", "u3"): 1, ("u1", "u4"): 1, ("u2", "u4"): 1}
    assert Counter(map(nodes_of, after - before)) == {("u1", "u4"): 1}
    assert panel.between([("u1", "u3")] * 2 + [("u4", "u2")], before) == before


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("u1", "u2")] * 3, "3 circuits at 'u1': it has 2 optical ports"),
        ([("u1", "u9")], "unknown unit with optical ports 'u9': choose from u1, u2"),
        ([("u1", "u1")], "a circuit from 'u1' to itself"),
    ],
)
def test_pairs_that_cannot_be_joined_are_refused(pairs: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(FabricError, match=message):
        interconnect().between(pairs)


@pytest.mark.parametrize(
    ("circuits", "message"),
    [
        ([(("u1", 4), ("u2", 4)), (("u1", 4), ("u3", 4))], "optical port 4 of 'u1' is in 2 circuits"),
        ([(("u1", 4), ("u1", 4))], "optical port 4 of 'u1' is in 2 circuits"),
        ([(("u1", 4), ("u2", 7))], "'u2' has no optical port 7: it has 4-5"),
        ([(("u1", 4), ("v2", 4))], "unknown unit with optical ports 'v2'"),
    ],
)
def test_circuits_that_cannot_exist_are_refused(
    circuits: list[tuple[tuple[str, int], tuple[str, int]]], message: str
) -> None:
    with pytest.raises(FabricError, match=message):
        interconnect().check([circuit(*each) for each in circuits])


def test_an_interconnect_that_cannot_exist_is_refused() -> None:
    with pytest.raises(FabricError, match="optical port 1 of 'u1' has 2 fibres"):
        Interconnect((Fibre("u1", 1, 1e6), Fibre("u1", 1, 1e6)))
    with pytest.raises(FabricError, match="reconfiguration in -1 s"):
        Interconnect((), -1)
    with pytest.raises(FabricError, match="unknown switch 'u7': choose from u1"):
        optical_ports(units(4), {"u7": 1}, 8e6)
    with pytest.raises(FabricError, match="has no optical link"):
        patch_panel(leaf_spine(2, 2, 1))


def test_a_patch_panel_keeps_every_link_and_its_rate() -> None:
    fabric = units(3, servers=2, port_bps=5e6)
    panel = patch_panel(fabric)
    plugged = cables(fabric, panel)
    optical = [link for link in fabric.links if link.optical]
    assert len(panel.circuits) == len(optical) == 3
    assert [link for link in plugged if not link.optical] == [link for link in fabric.links if not link.optical]
    fibres = {(link.a, link.a_port): link for link in plugged if link.b == INTERCONNECT}
    assert {fibre.capacity_ab_bps for fibre in fibres.values()} == {5e6}
    for link in optical:
        assert circuit((link.a, link.a_port), (link.b, link.b_port)) in panel.circuits
        assert {(link.a, link.a_port), (link.b, link.b_port)} <= set(fibres)
    assert cables(fabric, None) == fabric.links
