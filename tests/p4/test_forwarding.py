"""Results and notices on their way from the root, packets that are not admitted, and packets of other protocols."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scapy.layers.inet import ICMP, IP, UDP, IPOption_NOP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw
from scenario_packets import events, gradient, packet, ports_of, result, run
from scenarios import ROOT_PORT, SERVER_IP, worker_ip
from sequences import PacketSwitch, Step

from inakit.traffic.wire.packet_format import FRAGMENT, Event, Flag, Kind
from inakit.traffic.wire.scapy_layers import INA

pytest_plugins = ["switches"]

RAMP = np.arange(FRAGMENT.values, dtype=np.int64) - 20


def test_a_result_goes_to_every_worker(switch: PacketSwitch) -> None:
    step = result(3, RAMP)
    seen = run(switch, step)
    assert {port: packets for port, packets in seen.sent.items() if packets} == {
        port: [step.packet] for port in (1, 2, 3, 5, 6)
    }
    replicated = seen.counters["InaEgress.replicated"][0]
    assert np.flatnonzero(replicated).tolist() == [1, 2, 3, 5, 6]


def test_a_result_asked_for_again_goes_to_one_worker(switch: PacketSwitch) -> None:
    seen = run(switch, result(3, flags=Flag.RETRANSMITTED, dst_ip=worker_ip(2)))
    assert ports_of(seen) == {2}


def test_a_notice_goes_to_every_worker(switch: PacketSwitch) -> None:
    step = packet(ROOT_PORT, kind=Kind.NOTICE, job=1, tree=2, seq=9, flags=Flag.OVERFLOW)
    seen = run(switch, step)
    assert (seen.sent[1], seen.sent[2], ports_of(seen)) == ([step.packet], [step.packet], {1, 2})


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(gradient(2, 11, 0), id="other port"),
        pytest.param(gradient(1, 11, 0, job=9), id="unknown job"),
        pytest.param(gradient(1, 20, 0), id="label of an aggregator"),
        pytest.param(packet(1, values=0, kind=Kind.RESULT, job=1, tree=1), id="result from a worker"),
        pytest.param(packet(ROOT_PORT, kind=77, job=1, tree=1), id="unknown kind"),
        pytest.param(gradient(1, 11, 0, slot=4), id="slot beyond the tree's"),
        pytest.param(gradient(1, 11, 0, slot=2**32 - 1), id="slot far beyond"),
    ],
)
def test_what_is_not_admitted_is_dropped_and_counted(switch: PacketSwitch, step: Step) -> None:
    seen = run(switch, step)
    assert (events(seen), ports_of(seen)) == ({Event.REJECTED: 1}, set())


def test_without_an_aggregator_a_gradient_is_forwarded(switch: PacketSwitch) -> None:
    step = gradient(1, 11, 0, RAMP, job=3, slot=10**6)
    assert run(switch, step).sent[8] == [step.packet]


def ethernet(payload: Packet) -> bytes:
    return bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:64") / payload)


def to_server(payload: Packet, **fields: Any) -> bytes:
    return ethernet(IP(src=worker_ip(1), dst=SERVER_IP, **fields) / payload)


INA_BYTES = bytes(INA(kind=Kind.GRADIENT, job=1, tree=1, label=11, workers=1)) + bytes(4 * FRAGMENT.values)


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(to_server(ICMP()), id="not UDP"),
        pytest.param(to_server(UDP(dport=53) / Raw(b"x" * 300)), id="other port"),
        pytest.param(to_server(UDP(dport=0x494E) / Raw(INA_BYTES), options=[IPOption_NOP()] * 4), id="IP options"),
        pytest.param(to_server(UDP(dport=0x494E) / Raw(INA_BYTES), frag=3), id="later fragment"),
    ],
)
def test_other_ipv4_is_routed_unchanged(switch: PacketSwitch, frame: bytes) -> None:
    seen = run(switch, Step(1, frame))
    assert (seen.sent[8], ports_of(seen)) == ([frame], {ROOT_PORT})


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(ethernet(ARP()), id="not IPv4"),
        pytest.param(to_server(Raw(b""))[:20], id="IPv4 header cut"),
        pytest.param(to_server(UDP())[:38], id="UDP header cut"),
        pytest.param(gradient(1, 11, 0).packet[:60], id="INA header cut"),
        pytest.param(gradient(1, 11, 0).packet[:-1], id="values cut"),
    ],
)
def test_malformed_packets_are_dropped_and_counted(switch: PacketSwitch, frame: bytes) -> None:
    seen = run(switch, Step(1, frame))
    assert (events(seen), ports_of(seen)) == ({Event.MALFORMED: 1}, set())


def test_bytes_behind_the_values_stay(switch: PacketSwitch) -> None:
    step = gradient(1, 11, 0, job=3)
    seen = run(switch, Step(1, step.packet + b"behind"))
    assert seen.sent[8] == [step.packet + b"behind"]


def test_an_address_without_route_is_counted(switch: PacketSwitch) -> None:
    seen = run(switch, Step(1, ethernet(IP(dst="192.0.2.1") / UDP())))
    assert events(seen) == {Event.UNROUTABLE: 1}


def test_ports_count_packets_and_bytes(switch: PacketSwitch) -> None:
    seen = run(switch, gradient(2, 12, 0), gradient(2, 12, 1), gradient(3, 13, 0))
    packets, octets = seen.counters["InaIngress.received"]
    assert (packets[2], octets[2], packets[3], octets[3]) == (2, 2 * FRAGMENT.wire_bytes, 1, FRAGMENT.wire_bytes)
