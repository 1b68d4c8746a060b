"""Aggregators that send early fragments back: notices to the senders."""

from __future__ import annotations

from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scenario_packets import columns, events, first_value, gradient, run
from scenarios import worker_ip
from sequences import PacketSwitch

from inakit.traffic.wire.packet_format import Event, Flag, Kind

pytest_plugins = ["switches"]

AGAIN = int(Flag.RETRANSMITTED)


def test_a_fragment_that_is_early_goes_back_as_a_notice(switch: PacketSwitch) -> None:
    early = {"job": 6, "slot": 1}
    seen = run(
        switch, gradient(1, 11, 1, 10, **early), gradient(1, 11, 2, 20, **early), gradient(2, 12, 1, 32, **early)
    )
    assert columns(seen.sent[1], "kind", "flags", "label", "seq") == [
        (Kind.NOTICE, Flag.ECN | AGAIN, 0, 2),
        (Kind.RESULT, 0, 0, 1),
    ]
    assert first_value(seen, 1)[1] == 42
    assert Ether(seen.sent[1][0])[IP].dst == worker_ip(1)
    assert events(seen)[Event.NOTIFIED] == 1
