"""The generators give the fabrics they promise."""

from __future__ import annotations

from collections import Counter

import pytest

from inakit.topo.errors import FabricError, InputError
from inakit.topo.fabric.fabric import Fabric
from inakit.topo.fabric.generators import (
    FABRICS,
    aro_figure1,
    fat_tree,
    goat_testbed,
    inart_testbed,
    leaf_spine,
    named_fabric,
    pipelines_trap,
    rail_pods,
    units,
)
from inakit.topo.fabric.variations import (
    with_aggregators,
    with_capacities,
    with_capacity,
    with_delay,
    with_ina,
    with_pipelines,
    with_scale,
)


@pytest.mark.parametrize(("k", "switches", "hosts", "links"), [(2, 5, 2, 6), (4, 20, 16, 48), (6, 45, 54, 162)])
def test_fat_tree_sizes(k: int, switches: int, hosts: int, links: int) -> None:
    fabric = fat_tree(k)
    assert (len(fabric.switches), len(fabric.hosts), len(fabric.links)) == (switches, hosts, links)
    assert all(len(fabric.neighbors[s.name]) == k for s in fabric.switches)


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_each_pod_reaches_each_core_once(k: int) -> None:
    fabric = fat_tree(k)
    for core in (s.name for s in fabric.switches if s.tier == 3):
        pods = [peer.removeprefix("agg").split("_")[0] for peer in fabric.neighbors[core]]
        assert pods == [str(pod) for pod in range(1, k + 1)]


def test_leaf_spine_is_complete_bipartite() -> None:
    fabric = leaf_spine(3, 2, 4)
    uplinks = {(link.a, link.b) for link in fabric.links if link.a in fabric.switch_by_name}
    assert uplinks == {(f"leaf{i}", f"spine{j}") for i in (1, 2, 3) for j in (1, 2)}
    assert Counter(map(fabric.tor_of, sorted(fabric.host_names))) == {"leaf1": 4, "leaf2": 4, "leaf3": 4}
    assert fabric.port_numbers["leaf2", "spine1"] == 5
    assert fabric.port_numbers["spine2", "leaf3"] == 3


@pytest.mark.parametrize("fabric", [leaf_spine(4, 2, 3, oversubscription=2.5), fat_tree(4, oversubscription=2.5)])
def test_oversubscription_is_host_over_uplink_capacity(fabric: Fabric) -> None:
    for tor in (s.name for s in fabric.switches if s.tier == 1):
        down = sum(c for (a, b), c in fabric.capacities_bps.items() if b == tor and a in fabric.host_names)
        up = sum(c for (a, b), c in fabric.capacities_bps.items() if a == tor and fabric.tiers[b] == 2)
        assert down / up == pytest.approx(2.5)


def test_oversubscription_by_hosts() -> None:
    assert len(fat_tree(4, hosts_per_edge=5).hosts) == 8 * 5


def test_capacities_are_drawn_by_seed() -> None:
    fabric = fat_tree(4)
    first, again, other = (with_capacities(fabric, 10e6, 30e6, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert all(10e6 <= c <= 30e6 for c in first.capacities_bps.values())
    assert len(set(first.capacities_bps.values())) == len(fabric.links)


def test_ina_by_share_by_name_and_off() -> None:
    fabric = fat_tree(4)
    half = with_ina(fabric, share=0.5, seed=3)
    assert sum(s.ina for s in half.switches) == 10
    assert half == with_ina(fabric, share=0.5, seed=3) != with_ina(fabric, share=0.5, seed=4)
    assert [s.name for s in with_ina(fabric, ["core1"]).switches if s.ina] == ["core1"]
    assert not any(s.ina for s in with_ina(fabric, ()).switches)


@pytest.mark.parametrize("pipelines", range(1, 9))
def test_pipelines_are_contiguous_and_even(pipelines: int) -> None:
    for switch in with_pipelines(leaf_spine(8, 8, 4), pipelines).switches:
        assert switch.ports == tuple(range(1, len(switch.ports) + 1))
        sizes = [len(ports) for ports in switch.pipelines]
        assert len(sizes) == pipelines
        assert max(sizes) - min(sizes) <= 1


def test_variations_leave_the_original() -> None:
    fabric = leaf_spine(2, 2, 1)
    changed = with_delay(with_aggregators(with_capacity(fabric, 1e6), slots=7, rate_bps=5e6), 0.001)
    assert fabric == leaf_spine(2, 2, 1)
    assert {link.capacity_ba_bps for link in changed.links} == {1e6}
    assert {link.delay_s for link in changed.links} == {0.001}
    assert {(s.aggregator_slots, s.aggregation_rate_bps) for s in changed.switches} == {(7, 5e6)}
    assert {s.aggregation_rate_bps for s in with_scale(changed, 0.1).switches} == {5e5}


@pytest.mark.parametrize("name", FABRICS)
def test_every_named_fabric_exists(name: str) -> None:
    assert named_fabric(name).links


def test_inart_testbed_has_its_example_capacities() -> None:
    fabric = inart_testbed(6.0)
    assert fabric.capacities_bps["v1", "ps1"] == fabric.capacities_bps["v2", "ps2"] == pytest.approx(4)
    assert fabric.capacities_bps["v1", "v2"] == fabric.switch_by_name["v2"].aggregation_rate_bps == 6
    assert [host for host in sorted(fabric.host_names) if fabric.tor_of(host) == "v2"] == ["ps2", "w5", "w6"]


def test_goat_testbed_is_a_triangle() -> None:
    fabric = goat_testbed()
    assert len(fabric.hosts) == 9
    assert all({"s1", "s2", "s3"} - {name} <= set(fabric.neighbors[name]) for name in ("s1", "s2", "s3"))


def test_aro_figure1_placement() -> None:
    fabric = aro_figure1()
    assert {host: fabric.tor_of(host) for host in fabric.host_names} == {
        "ps": "l0", "w0": "l1", "w1": "l1", "w2": "l2", "w3": "l2", "w4": "l3",
    }  # fmt: skip
    assert {s.name for s in fabric.switches if s.ina} == {"l1", "l2", "s1"}


def test_pipelines_trap_splits_one_spine() -> None:
    fabric = pipelines_trap()
    arrivals = {
        spine: [fabric.ingress_pipeline(spine, leaf) for leaf in ("leaf2", "leaf3", "leaf4")]
        for spine in ("spine1", "spine2")
    }
    assert len(set(arrivals["spine1"])) == 3
    assert len(set(arrivals["spine2"])) == 1
    assert not fabric.switch_by_name["leaf1"].ina


def test_rails_join_the_same_nic_of_every_server_of_a_pod() -> None:
    fabric = rail_pods(pods=2, servers=3, gpus=8)
    assert len(fabric.hosts) == 2 * 3 * 8
    assert set(fabric.neighbors["rail2_5"]) == {*(f"nvswitch2_{i}" for i in (1, 2, 3)), "spine1", "spine2", "spine3"}
    assert fabric.capacities_bps["h1", "nvswitch1_1"] == 9 * fabric.capacities_bps["nvswitch1_1", "rail1_1"]


TOO_MANY = "links: at most 2,000,000 are made, choose smaller sizes"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: fat_tree(5), "fat-tree with k = 5: k must be even, try 4 or 6"),
        (lambda: fat_tree(0), "k = 0: at least 1 is expected"),
        (lambda: leaf_spine(spines=0), "spines = 0: at least 1 is expected"),
        (lambda: leaf_spine(99_999_999), f"a network of 1,199,999,988 {TOO_MANY}"),
        (lambda: fat_tree(4, hosts_per_edge=10**9), f"a network of 8,000,000,032 {TOO_MANY}"),
        (lambda: units(10**6), f"a network of 500,003,000,000 {TOO_MANY}"),
        (lambda: rail_pods(servers=10**6), f"a network of 48,000,000 {TOO_MANY}"),
        (lambda: leaf_spine(oversubscription=0), "oversubscription 0: it must be greater than 0; 1 is non-blocking"),
        (lambda: with_pipelines(fat_tree(), 9), "9 pipelines: a switch has 1 to 8"),
        (lambda: with_ina(fat_tree(), share=2), "INA on a share of 2 of the switches: 0 to 1 is expected"),
        (lambda: with_capacity(fat_tree(), 0), "link h1-edge1_1: capacity 0 bit/s; it must be greater than 0"),
        (
            lambda: with_capacities(fat_tree(), 5, 1, 0),
            "capacities from 5 to 1 bit/s: 0 < low <= high is expected",
        ),
    ],
)
def test_impossible_fabrics_are_refused(build: object, message: str) -> None:
    assert callable(build)
    with pytest.raises(FabricError) as refused:
        build()
    assert str(refused.value) == message


def test_unknown_names_come_with_the_nearest() -> None:
    with pytest.raises(InputError, match="unknown fabric 'fatree': did you mean 'fattree'"):
        named_fabric("fatree")
    with pytest.raises(InputError, match="unknown option of fabric 'leafspine' 'spine': did you mean 'spines'"):
        named_fabric("leafspine", spine=3)
    with pytest.raises(FabricError, match=r"unknown switch 'core9': did you mean 'core\d'"):
        with_ina(fat_tree(4), ["core9"])
