"""The tests that you see: run them in this folder with `inakit p4c forward.p4 && pytest tests`."""

from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import ARP, Ether

PROGRAM = Path(__file__).parents[1] / "forward.json"
HOST, ROUTER, NEXT = "02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03"


@pytest.fixture
def switch(p4_switch):
    """A switch that runs your program, with one route."""
    switch = p4_switch(PROGRAM)
    switch.table("ipv4_lpm").add({"hdr.ipv4.dst": "10.0.1.0/24"}, "forward", mac=NEXT, port=2)
    return switch


def test_a_packet_is_routed(switch):
    switch.send(1, Ether(src=HOST, dst=ROUTER) / IP(src="10.0.9.9", dst="10.0.1.7", ttl=9) / UDP() / b"hello")
    switch.expect(2, Ether(src=ROUTER, dst=NEXT) / IP(src="10.0.9.9", dst="10.0.1.7", ttl=8) / UDP() / b"hello")
    switch.expect_nothing_else()


def test_what_is_not_routed_is_dropped(switch):
    switch.send(1, Ether(src=HOST, dst=ROUTER) / IP(dst="10.0.2.7"))
    switch.send(1, Ether(src=HOST, dst=ROUTER) / IP(dst="10.0.1.7", ttl=1))
    switch.send(1, Ether(src=HOST, dst=ROUTER) / ARP())
    switch.expect_nothing_else()


def test_packets_are_counted(switch):
    switch.send(1, Ether(src=HOST, dst=ROUTER) / IP(dst="10.0.1.7"))
    switch.send(1, Ether(src=HOST, dst=ROUTER) / IP(dst="10.0.3.7"))
    assert switch.counter("sent")[2] == (1, 34)
    assert switch.counter("sent")[0] == (0, 0)
