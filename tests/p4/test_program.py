"""What the P4 program does with gradients, results and everything else, on every target."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scapy.layers.inet import ICMP, IP, UDP, IPOption_NOP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw
from scenarios import (
    ROOT_PORT,
    SERVER_IP,
    columns,
    events,
    example_entries,
    gradient,
    packet,
    ports_of,
    result,
    run,
    values_of,
    worker_ip,
)
from sequences import PacketSwitch, Step

from switch.entries import RegisterPreset
from traffic.wire.packet_format import FRAGMENT, Event, Flag, Kind
from traffic.wire.scapy_layers import INA

pytest_plugins = ["switches"]

RAMP = np.arange(FRAGMENT.values, dtype=np.int64) - 20
LARGEST, SMALLEST = 2**31 - 1, -(2**31)


# ---- sums --------------------------------------------------------------------------------------


def test_a_full_sum_leaves_under_the_aggregators_label(switch: PacketSwitch) -> None:
    seen = run(
        switch, gradient(1, 11, 5, RAMP), gradient(2, 12, 5, RAMP * 1000), gradient(3, 13, 5, -7, workers=3, bitmap=9)
    )
    assert ports_of(seen) == {ROOT_PORT}
    assert columns(seen.sent[8], "kind", "flags", "label", "seq", "workers", "bitmap") == [
        (Kind.GRADIENT, 0, 20, 5, 5, 0)
    ]
    assert values_of(seen.sent[8])[0].tolist() == (RAMP * 1001 - 7).tolist()
    assert events(seen) == {Event.ADDED: 3, Event.ABSORBED: 2, Event.COMPLETED: 1, Event.SENT_UNICAST: 1}


def test_a_child_is_added_once(switch: PacketSwitch) -> None:
    seen = run(switch, *[gradient(1, 11, 0, 10)] * 3, gradient(2, 12, 0, 100), gradient(3, 13, 0, 1000))
    assert values_of(seen.sent[8])[0].tolist() == [1110] * FRAGMENT.values
    assert events(seen)[Event.DUPLICATE] == 2


def test_a_freed_slot_serves_the_next_fragment(switch: PacketSwitch) -> None:
    steps = [gradient(port, label, seq, seq) for seq in (2, 6, 10) for port, label in ((1, 11), (2, 12), (3, 13))]
    seen = run(switch, *steps)
    assert [(seq, values_of([p])[0, 0]) for p in seen.sent[8] for (seq,) in columns([p], "seq")] == [
        (2, 6),
        (6, 18),
        (10, 30),
    ]


def test_fragments_in_different_slots_do_not_mix(switch: PacketSwitch) -> None:
    steps = [gradient(port, label, seq, 10**seq) for port, label in ((1, 11), (2, 12), (3, 13)) for seq in (3, 1, 2, 0)]
    seen = run(switch, *steps)
    assert columns(seen.sent[8], "seq") == [(3,), (1,), (2,), (0,)]
    assert values_of(seen.sent[8])[:, 0].tolist() == [3000, 30, 300, 3]


def test_pipelines_do_not_share_slots(switch: PacketSwitch) -> None:
    seen = run(switch, gradient(1, 11, 0, 1), gradient(5, 14, 0, 10), gradient(2, 12, 0, 2), gradient(6, 15, 0, 20),
               gradient(3, 13, 0, 3))  # fmt: skip
    assert columns(seen.sent[8], "label", "workers") == [(21, 2), (20, 3)]
    assert values_of(seen.sent[8])[:, 0].tolist() == [30, 6]


def test_an_in_network_root_sends_results_to_all_workers(switch: PacketSwitch) -> None:
    seen = run(switch, gradient(1, 11, 0, 1, job=2), gradient(2, 12, 0, 2, job=2))
    assert ports_of(seen) == {1, 2}
    assert columns(seen.sent[1], "kind", "label", "workers") == [(Kind.RESULT, 0, 2)]
    assert seen.sent[1] == seen.sent[2]
    assert values_of(seen.sent[1])[0, 0] == 3


def test_a_single_child_completes_at_once(switch: PacketSwitch) -> None:
    seen = run(switch, gradient(1, 11, 5, RAMP, tree=3, workers=4, bitmap=9))
    assert columns(seen.sent[8], "label", "workers", "bitmap", "flags") == [(20, 4, 0, 0)]
    assert values_of(seen.sent[8])[0].tolist() == RAMP.tolist()


def test_an_in_network_root_answers_a_single_child(switch: PacketSwitch) -> None:
    seen = run(switch, gradient(1, 11, 5, RAMP, job=2, tree=2))
    assert columns(seen.sent[1], "kind", "label", "seq") == [(Kind.RESULT, 0, 5)]
    assert ports_of(seen) == {1}


def test_the_highest_child_bits_work(switch: PacketSwitch) -> None:
    seen = run(switch, gradient(1, 11, 0, 1, tree=2), gradient(2, 12, 0, 2, tree=2))
    assert values_of(seen.sent[8])[0, 0] == 3


# ---- slots that are busy -----------------------------------------------------------------------


def test_another_tree_in_the_slot_is_a_collision(switch: PacketSwitch) -> None:
    seen = run(switch, gradient(1, 11, 0, 1), gradient(2, 12, 0, 2, tree=2))
    assert columns(seen.sent[8], "tree", "label", "flags", "workers") == [(2, 12, Flag.COLLISION, 1)]
    assert events(seen)[Event.COLLISION] == 1


def test_an_older_fragment_does_not_displace_a_newer_one(switch: PacketSwitch) -> None:
    seen = run(switch, gradient(1, 11, 4, 1), gradient(2, 12, 0, 2), gradient(2, 12, 4, 2), gradient(3, 13, 4, 4))
    assert columns(seen.sent[8], "seq", "flags") == [(0, Flag.COLLISION), (4, 0)]


def test_a_newer_fragment_takes_a_stale_slot(switch: PacketSwitch) -> None:
    seen = run(switch, gradient(1, 11, 0, 1), *(gradient(p, 10 + p, 4, 5) for p in (1, 2, 3)))
    assert columns(seen.sent[8], "seq", "workers") == [(4, 3)]
    assert values_of(seen.sent[8])[0, 0] == 15
    assert events(seen)[Event.RECLAIMED] == 1


def test_a_stale_slot_is_free_after_a_single_child(switch: PacketSwitch) -> None:
    """What the slot held is as if the tree had had two children before."""
    stale = {"slot_bitmap": 2, "slot_owner": 1 << 16 | 3, "slot_seq": 1}
    presets = tuple(RegisterPreset(f"InaIngress.{name}", 1, value) for name, value in stale.items())
    bitmap = "InaIngress.slot_bitmap"
    seen = switch.run(replace(example_entries(), registers=presets), [gradient(1, 11, 5, 7, tree=3)], (bitmap,))
    assert columns(seen.sent[8], "label", "seq") == [(20, 5)]
    assert events(seen)[Event.RECLAIMED] == 1
    assert not seen.registers[bitmap].any()


def test_sequence_numbers_wrap(switch: PacketSwitch) -> None:
    newest = 2**32 - 4
    seen = run(switch, gradient(1, 11, newest, 1), *(gradient(p, 10 + p, 0, 5) for p in (1, 2, 3)))
    assert columns(seen.sent[8], "seq", "workers") == [(0, 3)]
    assert events(seen)[Event.RECLAIMED] == 1


# ---- retransmissions ---------------------------------------------------------------------------


@pytest.mark.parametrize(("label", "port"), [(11, 1), (31, 1)])
def test_a_retransmission_lets_the_partial_sum_go(switch: PacketSwitch, label: int, port: int) -> None:
    seen = run(
        switch, gradient(1, 11, 0, 1), gradient(2, 12, 0, 10), gradient(port, label, 0, 77, flags=Flag.RETRANSMITTED)
    )
    assert columns(seen.sent[8], "label", "flags", "workers", "bitmap") == [
        (20, Flag.PARTIAL | Flag.RETRANSMITTED, 2, 0b011)
    ]
    assert values_of(seen.sent[8])[0, 0] == 11
    assert events(seen)[Event.FLUSHED] == 1


def test_a_retransmission_of_a_missing_child_joins_and_flushes(switch: PacketSwitch) -> None:
    seen = run(switch, gradient(1, 11, 0, 1), gradient(2, 12, 0, 10, flags=Flag.RETRANSMITTED))
    assert columns(seen.sent[8], "flags", "workers", "bitmap") == [(Flag.PARTIAL | Flag.RETRANSMITTED, 2, 0b011)]
    assert values_of(seen.sent[8])[0, 0] == 11


def test_the_last_child_completes_though_retransmitted(switch: PacketSwitch) -> None:
    seen = run(switch, gradient(1, 11, 0), gradient(2, 12, 0), gradient(3, 13, 0, flags=Flag.RETRANSMITTED))
    assert columns(seen.sent[8], "flags", "workers", "bitmap") == [(Flag.RETRANSMITTED, 3, 0)]


def test_a_retransmission_never_claims_a_slot(switch: PacketSwitch) -> None:
    seen = run(switch, gradient(1, 11, 0, 9, flags=Flag.RETRANSMITTED), *(gradient(p, 10 + p, 0, 1) for p in (1, 2, 3)))
    assert columns(seen.sent[8], "label", "workers") == [(11, 1), (20, 3)]
    assert values_of(seen.sent[8])[:, 0].tolist() == [9, 3]


def test_a_descendants_gradient_passes(switch: PacketSwitch) -> None:
    seen = run(switch, gradient(1, 11, 0), gradient(1, 31, 0, 5))
    assert columns(seen.sent[8], "label", "flags") == [(31, 0)]


def test_a_partial_sum_is_not_aggregated_again(switch: PacketSwitch) -> None:
    seen = run(switch, gradient(1, 11, 0, flags=Flag.PARTIAL, bitmap=5), gradient(2, 12, 0, flags=Flag.OVERFLOW))
    assert columns(seen.sent[8], "label", "flags", "bitmap") == [(11, Flag.PARTIAL, 5), (12, Flag.OVERFLOW, 0)]


# ---- overflow ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "addends", [(LARGEST, 1, 0), (SMALLEST, -1, 0), (LARGEST, 1, SMALLEST), (0, SMALLEST, SMALLEST)]
)
def test_overflow_of_one_element_is_flagged(switch: PacketSwitch, addends: tuple[int, int, int]) -> None:
    values = np.zeros((3, FRAGMENT.values), np.int64)
    values[:, 63] = addends
    seen = run(switch, *(gradient(p, 10 + p, 0, values[p - 1]) for p in (1, 2, 3)))
    assert columns(seen.sent[8], "flags") == [(Flag.OVERFLOW,)]


@pytest.mark.parametrize("addends", [(LARGEST, 0, 0), (SMALLEST, 0, 0), (LARGEST, SMALLEST, 1), (-5, 5, LARGEST)])
def test_the_range_of_32_bits_is_used_in_full(switch: PacketSwitch, addends: tuple[int, int, int]) -> None:
    seen = run(switch, *(gradient(p, 10 + p, 0, addends[p - 1]) for p in (1, 2, 3)))
    assert columns(seen.sent[8], "flags") == [(0,)]
    assert values_of(seen.sent[8])[0].tolist() == [sum(addends)] * FRAGMENT.values


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([gradient(2, 12, 0, 1), gradient(1, 11, 0, flags=Flag.RETRANSMITTED)], id="of before"),
        pytest.param([gradient(2, 12, 0, 1, flags=Flag.RETRANSMITTED)], id="by the retransmission"),
    ],
)
def test_overflow_of_a_partial_sum_is_flagged(switch: PacketSwitch, steps: list[Step]) -> None:
    seen = run(switch, gradient(1, 11, 0, LARGEST), *steps)
    assert columns(seen.sent[8], "flags") == [(Flag.PARTIAL | Flag.RETRANSMITTED | Flag.OVERFLOW,)]


def test_overflow_is_flagged_whichever_element_it_is(switch: PacketSwitch) -> None:
    alone = np.eye(FRAGMENT.values, dtype=np.int64) * LARGEST
    steps = [gradient(port, 10 + port, seq, values) for seq, values in enumerate(alone) for port in (1, 2, 3)]
    seen = run(switch, *steps)
    assert columns(seen.sent[8], "seq", "flags") == [(seq, Flag.OVERFLOW) for seq in range(FRAGMENT.values)]


def test_overflow_does_not_stick_to_the_slot(switch: PacketSwitch) -> None:
    steps = [gradient(p, 10 + p, seq, LARGEST if seq == 0 else 1) for seq in (0, 4) for p in (1, 2, 3)]
    assert columns(run(switch, *steps).sent[8], "flags") == [(Flag.OVERFLOW,), (0,)]


# ---- results and notices -----------------------------------------------------------------------


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


# ---- admission ---------------------------------------------------------------------------------


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


# ---- other packets -----------------------------------------------------------------------------


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
