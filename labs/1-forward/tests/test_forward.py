"""The visible tests, by step: run them in this folder with `inakit p4c forward.p4 && pytest tests`."""

from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP, IPOption_NOP
from scapy.layers.l2 import ARP, Ether

PROGRAM = Path(__file__).parents[1] / "forward.json"
HOST, ROUTER, NEXT = "02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03"


@pytest.fixture
def switch(p4_switch):
    """A switch that runs your program, with one route."""
    switch = p4_switch(PROGRAM)
    switch.table("ipv4_lpm").add({"hdr.ipv4.dst": "10.0.1.0/24"}, "forward", mac=NEXT, port=2)
    return switch


def packet(dst="10.0.1.7", ttl=9):
    """A packet that a host sends to the router."""
    return Ether(src=HOST, dst=ROUTER) / IP(src="10.0.9.9", dst=dst, ttl=ttl) / UDP() / b"hello"


def routed(switch):
    """The packet that leaves by port 2 for a packet that matches the route."""
    switch.send(1, packet())
    left = Ether(switch.expect(2, "**"))
    switch.expect_nothing_else()
    return left


def test_step_1_other_packets_are_dropped(switch):
    switch.send(1, Ether(src=HOST, dst=ROUTER) / ARP())
    switch.send(1, Ether(src=HOST, dst=ROUTER) / IP(dst="10.0.1.7", options=[IPOption_NOP()] * 4))
    switch.expect_nothing_else()


def test_steps_1_and_2_a_packet_leaves_by_the_port_of_the_entry(switch):
    left = routed(switch)
    assert (left[IP].src, left[IP].dst, left[UDP].payload.load) == ("10.0.9.9", "10.0.1.7", b"hello")


def test_step_2_what_no_entry_fits_is_dropped(switch):
    switch.send(1, packet(dst="10.0.2.7"))
    switch.expect_nothing_else()


def test_step_3_the_ethernet_addresses_are_those_of_the_next_link(switch):
    left = routed(switch)
    assert (left.src, left.dst) == (ROUTER, NEXT)


def test_step_4_the_time_to_live_is_one_less(switch):
    assert routed(switch).ttl == 8


def test_step_5_an_expired_packet_is_dropped(switch):
    switch.send(1, packet(ttl=1))
    switch.expect_nothing_else()


def test_step_6_the_whole_packet_is_right_with_its_checksum(switch):
    switch.send(1, packet())
    switch.expect(2, Ether(src=ROUTER, dst=NEXT) / IP(src="10.0.9.9", dst="10.0.1.7", ttl=8) / UDP() / b"hello")


def test_step_7_what_leaves_is_counted(switch):
    switch.send(1, packet())
    switch.send(1, packet(dst="10.0.3.7"))
    assert switch.counter("sent")[2] == (1, len(packet()))
    assert switch.counter("sent")[0] == (0, 0)
