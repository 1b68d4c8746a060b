"""Hosts with several links in fabric files."""

from __future__ import annotations

from pathlib import Path

import pytest

from inakit.topo.errors import FabricError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.up_down import up_down_paths
from inakit.topo.files.fabrics import load_fabric, save_fabric


def dual(tmp_path: Path, *links: str, hosts: str = "h1, h2, h3") -> tuple[Fabric, list[str]]:
    """Leaves 1 and 2 with h2 and h3, and these further links; and what was told."""
    lines = ["{a: h2, b: leaf1, capacity: 10G}", "{a: leaf2, b: h3, capacity: 10G}", *links]
    text = f"name: dual\nhosts: [{hosts}]\nswitches: {{leaf1: {{tier: 1}}, leaf2: {{}}}}\nlinks:\n"
    path = tmp_path / "fabric.yml"
    path.write_text(text + "".join(f"  - {line}\n" for line in lines))
    told: list[str] = []
    return load_fabric(path, told.append), told


TWO = ("{a: h1, b: leaf1, capacity: 10G, capacity_back: 1G}", "{a: leaf2, b: h1, capacity: 2G, delay: 1ms}")


def test_a_host_with_two_links_reaches_both_and_nobody_passes_it(tmp_path: Path) -> None:
    fabric, told = dual(tmp_path, *TWO)
    assert up_down_paths(fabric, "h1", "h2") == [("h1", "h1-nic", "leaf1", "h2")]
    assert up_down_paths(fabric, "h3", "h1") == [("h3", "leaf2", "h1-nic", "h1")]
    assert up_down_paths(fabric, "h2", "h3") == []
    assert not fabric.switch_by_name["h1-nic"].ina
    assert fabric.capacities_bps["h1", "h1-nic"] == 12e9
    assert fabric.capacities_bps["h1-nic", "h1"] == 3e9
    assert [fabric.port_numbers["h1-nic", peer] for peer in ("leaf1", "leaf2", "h1")] == [1, 2, 3]
    assert len(told) == 1
    save_fabric(fabric, tmp_path / "again.yml")
    assert load_fabric(tmp_path / "again.yml") == fabric


def test_a_host_may_give_its_ports(tmp_path: Path) -> None:
    ports = (TWO[0].replace("}", ", a_port: 1}"), TWO[1].replace("}", ", b_port: 0}"))
    fabric, _ = dual(tmp_path, *ports)
    assert [fabric.port_numbers["h1-nic", peer] for peer in ("leaf1", "leaf2", "h1")] == [2, 1, 3]


def test_a_fabric_whose_hosts_have_one_link_is_as_written(tmp_path: Path) -> None:
    fabric, told = dual(tmp_path, hosts="h2, h3")
    assert set(fabric.switch_by_name) == {"leaf1", "leaf2"}
    assert {switch.tier for switch in fabric.switches} == {1}
    assert not told


def test_cards_have_names_of_their_own(tmp_path: Path) -> None:
    fabric, told = dual(tmp_path, *TWO, "{a: h1-nic, b: leaf1, capacity: 1G}", hosts="h1, h2, h3, h1-nic")
    assert fabric.tor_of("h1") == "h1-nic_2"
    assert "'h1-nic_2'" in told[0]


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ((TWO[0], TWO[0]), "link h1-leaf1: two nodes are joined by at most one link"),
        ((TWO[0], "{a: h1, b: h2, capacity: 1G}"), "host 'h1' is linked to host 'h2': a host hangs from switches"),
    ],
)
def test_links_that_no_card_has_are_refused(links: tuple[str, ...], message: str, tmp_path: Path) -> None:
    with pytest.raises(FabricError, match=message):
        dual(tmp_path, *links)
