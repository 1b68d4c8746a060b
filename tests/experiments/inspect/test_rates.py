"""Rates between two samples, and the screen that shows them."""

from __future__ import annotations

from dataclasses import replace

from inakit.experiments.inspect.top import Rates, Sample, rates, screen, widths_of, widths_within
from inakit.topo.live.ledger import HostFacts, PortFacts, RunningNetwork, SwitchFacts
from inakit.traffic.measure.counters import CpuTime, InterfaceCounters

NETWORK = RunningNetwork(
    id="ab3d",
    fabric="small",
    owner=1,
    endpoint_processors=(0,),
    switch_processors=(1,),
    hosts={"h1": HostFacts(1, "eth0")},
    switches={
        "leaf1": SwitchFacts((PortFacts(1, "l-1", "h1", 1e6, 2e6), PortFacts(2, "l-2", "spine1", 1e6, 4e6)), {}),
        "spine1": SwitchFacts((PortFacts(1, "s-1", "leaf1", 4e6, 1e6),), {}),
    },
)
BEFORE = Sample(
    at_s=10.0,
    interfaces={
        "l-1": InterfaceCounters(1000, 10, 0, 500, 5, 0),
        "l-2": InterfaceCounters(0, 0, 0, 0, 0, 0),
        "s-1": InterfaceCounters(0, 0, 3, 0, 0, 0),
    },
    queues={"l-1": 0, "l-2": 7},
    host_queues={"h1": 0},
    processors={0: CpuTime(100, 1000, 10), 1: CpuTime(0, 1000, 0)},
    backlog=(0, 0),
)
AFTER = Sample(
    at_s=12.0,
    interfaces={
        "l-1": InterfaceCounters(1000 + 250_000, 10 + 800, 0, 500, 5, 0),
        "l-2": InterfaceCounters(0, 0, 0, 125_000, 400, 2),
        "s-1": InterfaceCounters(125_000, 400, 3, 0, 0, 0),
    },
    queues={"l-1": 0, "l-2": 9},
    host_queues={"h1": 11},
    processors={0: CpuTime(150, 1200, 60), 1: CpuTime(4, 1200, 150)},
    backlog=(0, 5),
)


def test_links_have_their_rate_load_and_drops_in_each_direction() -> None:
    links = {(link.sender, link.receiver): link for link in rates(NETWORK, BEFORE, AFTER).links}
    assert set(links) == {("leaf1", "h1"), ("h1", "leaf1"), ("leaf1", "spine1"), ("spine1", "leaf1")}
    assert {pair: (link.rate_bps, link.load, link.drops) for pair, link in links.items()} == {
        ("h1", "leaf1"): (1e6, 0.5, 11),
        ("leaf1", "h1"): (0.0, 0.0, 0),
        ("leaf1", "spine1"): (0.5e6, 0.5, 2 + 9),
        ("spine1", "leaf1"): (0.0, 0.0, 0),
    }


def test_the_busiest_come_first() -> None:
    found = rates(NETWORK, BEFORE, AFTER)
    assert [link.load for link in found.links] == [0.5, 0.5, 0.0, 0.0]
    assert [(s.name, s.in_pps, s.out_pps, s.drops) for s in found.switches] == [
        ("leaf1", 400.0, 200.0, 2 + 9),
        ("spine1", 200.0, 0.0, 3),
    ]


def test_processors_have_their_role_and_shares() -> None:
    found = [(p.number, p.role, p.idle, p.softirq, p.drops) for p in rates(NETWORK, BEFORE, AFTER).processors]
    assert found == [(0, "endpoints", 0.25, 0.25, 0), (1, "switches", 0.02, 0.75, 5)]


def test_an_interface_that_is_gone_is_left_out() -> None:
    rest = {name: counted for name, counted in AFTER.interfaces.items() if name != "s-1"}
    found = rates(NETWORK, BEFORE, replace(AFTER, interfaces=rest))
    assert len(found.links) == 3
    assert found.switches[-1].in_pps == 0


def many() -> Rates:
    """More of everything than a small screen has lines for."""
    found = rates(NETWORK, BEFORE, AFTER)
    named = replace(found.links[0], sender="a-switch-with-a-name-of-40-characters-12")
    return Rates((named, *found.links * 100), found.switches * 100, found.processors * 16)


def test_the_screen_fits_every_terminal() -> None:
    for columns, rows in ((80, 24), (100, 50), (237, 61)):
        lines = screen(NETWORK, many(), widths_within(columns), rows).plain.splitlines()
        assert len(lines) == rows
        assert max(map(len, lines)) <= columns
        assert any("leaf1 → spine1" in line for line in lines)
        assert sum("spine1  " in line for line in lines) > 1


def test_what_needs_attention_is_coloured_and_the_busiest_processor_is_first() -> None:
    shown = screen(NETWORK, rates(NETWORK, BEFORE, AFTER), widths_within(80), 24)
    lines = shown.plain.splitlines()
    assert lines[0] == "small: 2 switches, 1 hosts; network ab3d"
    assert lines[1].split() == ["CPU", "1", "switches", "idle", "2%", "softirq", "75%", "drops", "5"]
    assert lines[2].split() == ["CPU", "0", "endpoints", "idle", "25%", "softirq", "25%", "drops", "0"]
    red = {shown.plain[span.start : span.end].split("  ")[0] for span in shown.spans if span.style == "red"}
    assert red == {"CPU 1", "h1 → leaf1", "leaf1 → spine1", "leaf1", "spine1"}


def test_nothing_is_cut_where_there_is_room() -> None:
    shown = screen(NETWORK, many(), widths_of(many()), 1000).plain
    assert "a-switch-with-a-name-of-40-characters-12 → leaf1    1.000   50%" in shown
