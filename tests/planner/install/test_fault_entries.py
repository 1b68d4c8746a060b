"""Faults of links and background traffic become entries of the right switch and port."""

from __future__ import annotations

from itertools import pairwise

import pytest

from inakit.planner.core.method import Options
from inakit.planner.core.problem import FragmentFormat, Job, Problem
from inakit.planner.install.fault_entries import (
    Flow,
    LinkFaults,
    background_routes,
    doubled_by_hosts,
    flow_links,
    with_background,
    with_faults,
)
from inakit.planner.install.plan_entries import entries
from inakit.planner.registry import find_method
from inakit.switch.control.entry_check import check_entries
from inakit.switch.entries import SwitchEntries
from inakit.switch.program.bmv2_json import read_program
from inakit.switch.running_switch import PROGRAM
from inakit.topo.errors import InputError
from inakit.topo.fabric.fabric import addresses
from inakit.topo.fabric.generators import named_fabric

FABRIC = named_fabric("aro-figure1")
PROBLEM = Problem(FABRIC, (Job(1, ("w0", "w1", "w2"), ("ps",), 4000),), FragmentFormat(64, 326))
PLAN = find_method("aro").plan(PROBLEM, Options(seed=0))
INSTALLED = entries(PROBLEM, PLAN)


def rows(switch: SwitchEntries, table: str) -> dict[tuple[int, ...], tuple[int, ...]]:
    return {entry.exact_key: entry.params for entry in switch.tables if entry.table.endswith(f".{table}")}


def test_no_fault_changes_nothing() -> None:
    assert with_faults(FABRIC, INSTALLED, {}) == INSTALLED


def test_losses_are_where_the_packets_arrive() -> None:
    found = with_faults(FABRIC, INSTALLED, {("w0", "l1"): LinkFaults(drop=0.5), ("l1", "s0"): LinkFaults(drop=1)})
    assert rows(found.of("l1"), "arriving") == {(FABRIC.port_numbers["l1", "w0"],): (2**31, 0)}
    assert rows(found.of("s0"), "arriving") == {(FABRIC.port_numbers["s0", "l1"],): (2**32 - 1, 0)}
    assert found.of("s1") == INSTALLED.of("s1")


def test_losses_on_the_last_hop_are_where_they_leave() -> None:
    found = with_faults(FABRIC, INSTALLED, {("l1", "w0"): LinkFaults(drop=0.25)})
    assert rows(found.of("l1"), "leaving") == {(FABRIC.port_numbers["l1", "w0"],): (2**30,)}
    assert not rows(found.of("l1"), "arriving")


def test_duplicates_are_of_unicast_and_of_every_multicast() -> None:
    found = with_faults(FABRIC, INSTALLED, {("l1", "w0"): LinkFaults(duplicate=0.5)}).of("l1")
    port, old = FABRIC.port_numbers["l1", "w0"], INSTALLED.of("l1").groups
    ways = rows(found, "ways")
    assert set(ways) == {(port, 0), *((0, group.group) for group in old if port in group.ports)}
    assert {share for share, _ in ways.values()} == {2**31}
    groups = {group.group: group for group in found.groups}
    single = groups[ways[port, 0][1]]
    assert (single.ports, single.more) == ((port,), ((0, port),))
    for group in old:
        doubled = groups[ways[0, group.group][1]]
        assert (doubled.ports, doubled.more) == (group.ports, ((2, port),))
    assert set(rows(found, "arriving")) == {(p,) for p in FABRIC.switch_by_name["l1"].ports}


def test_what_hosts_send_is_doubled_by_them() -> None:
    faults = {("w0", "l1"): LinkFaults(duplicate=0.2), ("l1", "w1"): LinkFaults(duplicate=0.3)}
    assert doubled_by_hosts(FABRIC, faults) == {"w0": 0.2}


def test_each_port_begins_elsewhere_as_the_seed_says() -> None:
    faults = {link: LinkFaults(0.1, 0, 0.1) for link in FABRIC.capacities_bps}
    one, same, other = (with_faults(FABRIC, INSTALLED, faults, seed) for seed in (1, 1, 2))
    begins = [preset.value for switch in one.switches for preset in switch.registers]
    assert one == same != other
    assert len(set(begins)) == len(begins) > 0


def test_the_program_takes_all_of_it() -> None:
    faults = {(a, b): LinkFaults(0.1, 0 if b in FABRIC.host_names else 0.1, 0.1) for a, b in FABRIC.capacities_bps}
    for switch in with_faults(FABRIC, INSTALLED, faults).switches:
        check_entries(read_program(PROGRAM), switch)


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"drop": 1.5}, "drop 1.5: a share from 0 to 1 is expected"),
        ({"duplicate": -0.1}, "duplicate -0.1: a share"),
        ({"drop": 0.6, "reorder": 0.6}, "are more than 1 together"),
    ],
)
def test_shares_that_cannot_be(shares: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LinkFaults(**shares)


def test_no_packet_overtakes_on_the_way_to_a_host() -> None:
    with pytest.raises(InputError, match="link l1-w0: a host cannot delay packets"):
        with_faults(FABRIC, INSTALLED, {("l1", "w0"): LinkFaults(reorder=0.1)})


def test_background_traffic_finds_its_way_by_entries() -> None:
    flows = [Flow("w4", "w0", 1e6), Flow("w0", "ps", 1e6)]
    routes = background_routes(PROBLEM, PLAN, flows)
    found = with_background(PROBLEM, INSTALLED, routes)
    for flow in flows:
        links = flow_links(PROBLEM, routes, flow)
        assert (links[0][0], links[-1][1]) == (flow.source, flow.destination)
        assert all(left[1] == right[0] for left, right in pairwise(links))
        address = addresses(FABRIC)[flow.destination].ipv4
        for switch, following in links[1:]:
            assert rows(found.of(switch), "ipv4_route")[address,] == (FABRIC.port_numbers[switch, following],)
    for before in INSTALLED.switches:
        assert found.of(before.switch).tables[: len(before.tables)] == before.tables


def test_background_traffic_between_strangers_is_refused() -> None:
    with pytest.raises(InputError, match="'w9' is not a host of fabric"):
        background_routes(PROBLEM, PLAN, [Flow("w9", "w0", 1e6)])
