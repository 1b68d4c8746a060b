"""The fixture `p4_switch`, used as graders would."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from single_targets import PROGRAMS

from inakit.switch.entries import MirrorSession, SwitchEntries
from inakit.switch.testing.packet_test import PacketTest
from inakit.topo.errors import InputError

Make = Callable[[Path], PacketTest]
NEAR, FAR, NEXT = "02:00:00:00:00:01", "02:00:00:00:00:09", "02:00:00:00:00:02"


@pytest.fixture
def router(p4_switch: Make) -> PacketTest:
    switch = p4_switch(PROGRAMS / "router.json")
    switch.table("ipv4_lpm").add({"dst": "10.0.1.0/24"}, "forward", mac=NEXT, port=2)
    return switch


def test_a_packet_is_routed(router: PacketTest) -> None:
    router.send(1, Ether(dst=NEAR, src=FAR) / IP(dst="10.0.1.9", ttl=64))
    router.expect(2, Ether(dst=NEXT, src=NEAR) / IP(dst="10.0.1.9", ttl=63))
    router.expect_nothing_else()
    assert router.register("routed")[:4] == [0, 0, 1, 0]


def test_a_table_that_p4c_left_out_is_told(p4_switch: Make) -> None:
    with pytest.raises(InputError, match=r"unknown table 'ipv5_lpm': .*p4c leaves out a table that the program never"):
        p4_switch(PROGRAMS / "router.json").table("ipv5_lpm")


def test_priorities_and_defaults(router: PacketTest) -> None:
    router.table("acl").add({"src": "0x0a******"}, "drop", priority=1)
    router.table("acl").add({"src": "10.0.0.1"}, "permit", priority=2)
    router.table("ipv4_lpm").set_default("forward", mac=NEXT, port=3)
    for source in ("10.0.0.1", "10.0.0.2", "11.0.0.1"):
        router.send(1, Ether() / IP(src=source, dst="10.0.1.9"))
    router.send(1, Ether(dst=NEAR) / IP(dst="9.9.9.9"))
    assert IP(router.expect(2, "**")[14:]).src == "10.0.0.1"
    assert IP(router.expect(2, "**")[14:]).src == "11.0.0.1"
    router.expect(3, "020000000002 020000000001 0800")
    router.expect_nothing_else()


def test_what_is_missing_wrong_or_too_much_fails_with_the_packets(p4_switch: Make) -> None:
    switch = p4_switch(PROGRAMS / "clones.json")
    switch.install(SwitchEntries("switch", mirrors=(MirrorSession(7, 4),)))
    switch.send(1, b"\0\0\xaa")
    with pytest.raises(AssertionError, match=r"no packet left port 3(.|\n)*port 4: 01 00 aa"):
        switch.expect(3, "**")
    with pytest.raises(AssertionError, match=r"there are more packets(.|\n)*port 4: 01 00 aa"):
        switch.expect_nothing_else()
    with pytest.raises(AssertionError, match=r"byte 2 differs(.|\n)*expected 01 00 AB(.|\n)*got      01 00 AA"):
        switch.expect(4, b"\1\0\xab")
    switch.expect_nothing_else()
