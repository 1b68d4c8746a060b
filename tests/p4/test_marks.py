"""Marks of congestion: by the length of the queue behind a port, through sums and results."""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scenario_packets import columns, gradient, result, run
from scenarios import MARKED, ROOT_PORT
from sequences import PacketSwitch

from inakit.traffic.wire.packet_format import FRAME, Flag, Kind

pytest_plugins = ["switches"]

LONG = -(-MARKED // FRAME.itemsize)
"""So many packets make a long queue."""
CAPABLE, MARK = 2, 3
AGAIN = int(Flag.RETRANSMITTED)


def tos_of(packets: list[bytes]) -> list[int]:
    """The two bits of ECN of each packet, whose IP checksum has to be right."""
    for packet in packets:
        ip = Ether(packet)[IP]
        sent, ip.chksum = ip.chksum, None
        assert IP(bytes(ip)).chksum == sent
    return [Ether(packet)[IP].tos for packet in packets]


def test_packets_that_find_a_long_queue_are_marked(switch: PacketSwitch) -> None:
    seen = run(switch, *(gradient(1, 11, seq, job=3, capable=True) for seq in range(LONG + 2)))
    packets = seen.sent[ROOT_PORT][: LONG + 2]
    assert tos_of(packets) == [CAPABLE] * LONG + [MARK] * 2
    assert columns(packets, "flags") == [(0,)] * LONG + [(Flag.ECN,)] * 2


def test_whose_sender_does_not_heed_marks_has_none(switch: PacketSwitch) -> None:
    seen = run(switch, *(gradient(1, 11, seq, job=3) for seq in range(LONG + 2)))
    assert set(tos_of(seen.sent[ROOT_PORT][: LONG + 2])) == {0}


@pytest.mark.parametrize("marked", [0, 1, 2])
def test_a_sum_has_the_mark_of_any_of_its_packets(switch: PacketSwitch, marked: int) -> None:
    flags = [Flag.ECN if child == marked else 0 for child in range(3)]
    seen = run(switch, *(gradient(1 + child, 11 + child, 0, flags=flags[child]) for child in range(3)))
    assert columns(seen.sent[ROOT_PORT][:1], "label", "flags") == [(20, Flag.ECN)]


def test_the_next_sum_of_a_slot_has_no_mark(switch: PacketSwitch) -> None:
    first = [gradient(1 + child, 11 + child, 0, flags=Flag.ECN) for child in range(3)]
    second = [gradient(1 + child, 11 + child, 4) for child in range(3)]
    seen = run(switch, *first, *second)
    assert columns(seen.sent[ROOT_PORT][:2], "flags") == [(Flag.ECN,), (0,)]


@pytest.mark.parametrize("tree", [1, 2])
def test_a_sum_that_is_kept_keeps_its_mark(switch: PacketSwitch, tree: int) -> None:
    first, second, again = (gradient(1, 11, 5, job=4, tree=tree, flags=flags) for flags in (Flag.ECN, 0, AGAIN))
    seen = run(switch, first, gradient(2, 12, 5, job=4, tree=tree), second, again)
    answer = seen.sent[1 if tree == 1 else ROOT_PORT][1]
    assert columns([answer], "flags") == [(Flag.ECN | AGAIN,)]


def test_a_root_tells_all_workers(switch: PacketSwitch) -> None:
    seen = run(switch, gradient(1, 11, 0, job=2, flags=Flag.ECN), gradient(2, 12, 0, job=2))
    assert columns([*seen.sent[1][:1], *seen.sent[2][:1]], "kind", "flags") == [(Kind.RESULT, Flag.ECN)] * 2


def test_results_are_marked_on_their_way_to_workers(switch: PacketSwitch) -> None:
    seen = run(switch, *(result(seq, capable=True) for seq in range(LONG + 1)))
    assert columns(seen.sent[1][LONG : LONG + 1], "flags") == [(Flag.ECN,)]
    assert columns(seen.sent[2][LONG : LONG + 1], "flags") == [(0,)]


def test_a_sum_that_is_evicted_takes_its_mark_along(switch: PacketSwitch) -> None:
    low = gradient(1, 11, 0, job=5, tree=1, priority=1, flags=Flag.ECN)
    seen = run(switch, low, gradient(1, 11, 0, job=5, tree=2, priority=9))
    assert columns(seen.sent[ROOT_PORT][:1], "label", "flags") == [(20, Flag.PARTIAL | Flag.ECN)]
