"""Aggregators that keep finished sums: a sum that is asked for again goes out again."""

from __future__ import annotations

from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scenario_packets import columns, events, first_value, gradient, packet, ports_of, run
from scenarios import ROOT_PORT, SERVER_IP, SLOTS, worker_ip
from sequences import PacketSwitch, Step

from inakit.traffic.wire.packet_format import Event, Flag, Kind

pytest_plugins = ["switches"]

AGAIN = int(Flag.RETRANSMITTED)


def root(port: int, seq: int, value: int, **ina: int) -> Step:
    return gradient(port, 10 + port, seq, value, job=4, **ina)


def below(port: int, seq: int, value: int, **ina: int) -> Step:
    return gradient(port, 10 + port, seq, value, job=4, tree=2, **ina)


def test_a_root_answers_who_asks_again_from_its_finished_sum(switch: PacketSwitch) -> None:
    seen = run(switch, root(1, 5, 10), root(2, 5, 32), root(2, 5, 32, flags=AGAIN))
    assert columns(seen.sent[1], "kind", "flags", "seq") == [(Kind.RESULT, 0, 5)]
    assert columns(seen.sent[2], "kind", "flags", "seq") == [(Kind.RESULT, 0, 5), (Kind.RESULT, AGAIN, 5)]
    assert first_value(seen, 2) == [42, 42]
    assert events(seen)[Event.ANSWERED] == 1


def test_an_answer_goes_to_the_address_that_asked(switch: PacketSwitch) -> None:
    seen = run(switch, root(1, 5, 1), root(2, 5, 2), root(2, 5, 2, flags=AGAIN))
    answer = Ether(seen.sent[2][-1])
    assert (answer[IP].src, answer[IP].dst) == (SERVER_IP, worker_ip(2))
    checksum = answer[IP].chksum
    del answer[IP].chksum
    assert Ether(bytes(answer))[IP].chksum == checksum


def test_a_kept_sum_goes_up_again(switch: PacketSwitch) -> None:
    seen = run(switch, below(1, 5, 10), below(2, 5, 32), below(1, 5, 10, flags=AGAIN))
    assert columns(seen.sent[ROOT_PORT], "label", "flags", "bitmap") == [(20, 0, 0), (20, AGAIN, 0)]
    assert first_value(seen, ROOT_PORT) == [42, 42]


def test_what_is_sent_again_waits_for_the_others(switch: PacketSwitch) -> None:
    seen = run(switch, root(1, 5, 10), root(1, 5, 10, flags=AGAIN), root(2, 5, 32, flags=AGAIN))
    assert first_value(seen, 1) == [42]
    assert columns(seen.sent[1], "kind", "flags") == [(Kind.RESULT, 0)]
    assert events(seen)[Event.DUPLICATE] == 1


def test_a_copy_gets_no_answer(switch: PacketSwitch) -> None:
    seen = run(switch, root(1, 5, 10), root(2, 5, 32), root(2, 5, 32))
    assert first_value(seen, 2) == [42]
    assert events(seen)[Event.DUPLICATE] == 1


def test_a_kept_sum_makes_room_for_a_fragment_that_is_a_window_newer(switch: PacketSwitch) -> None:
    seen = run(switch, root(1, 1, 10), root(2, 1, 32), root(1, 1 + SLOTS, 5), root(2, 1 + SLOTS, 6),
               root(1, 1 + SLOTS, 5, flags=AGAIN))  # fmt: skip
    assert first_value(seen, 1) == [42, 11, 11]
    assert events(seen)[Event.RECLAIMED] == 1


def test_a_fragment_that_all_have_the_result_of_disturbs_nobody(switch: PacketSwitch) -> None:
    late = root(1, 1, 10, flags=AGAIN)
    seen = run(switch, root(1, 1, 10), root(2, 1, 32), root(1, 1 + SLOTS, 5), late, root(2, 1 + SLOTS, 6))
    assert first_value(seen, 1) == [42, 11]
    assert ports_of(seen) == {1, 2}


def hops(port: int, seq: int, value: int, **ina: int) -> Step:
    """A gradient of a root that repairs losses."""
    return gradient(port, 9 + port, seq, value, job=7, tree=2, **ina)


def named(last: int, before: int) -> int:
    """The bitmap of a packet that names two fragments, so many before it."""
    return (0x8000 + last) << 48 | (0x8000 + before) << 32


def test_a_question_has_no_values_and_its_answer_has(switch: PacketSwitch) -> None:
    asks = packet(5, kind=Kind.QUESTION, job=7, tree=2, label=14, seq=5, slot=5, workers=1)
    seen = run(switch, hops(5, 5, 10), hops(6, 5, 32), asks)
    assert first_value(seen, 5)[-1] == 42
    answer = Ether(seen.sent[5][-1])
    assert answer[IP].len == len(answer) - 14
    assert answer["UDP"].len == answer[IP].len - 20
    checksum = answer[IP].chksum
    del answer[IP].chksum
    assert Ether(bytes(answer))[IP].chksum == checksum


def test_a_child_is_asked_for_what_its_next_packet_names_and_has_not_come(switch: PacketSwitch) -> None:
    seen = run(switch, hops(5, 0, 1), hops(5, 3, 1, bitmap=named(1, 2)))
    asked = columns(seen.sent[5], "kind", "seq", "bitmap")
    assert asked == [(Kind.NOTICE, 2, 1 << 32)]  # and the one before it
    assert events(seen)[Event.NOTIFIED] == 1


def test_a_child_is_not_asked_for_what_has_come(switch: PacketSwitch) -> None:
    seen = run(switch, hops(5, 0, 1), hops(5, 1, 1, bitmap=named(1, 1)), hops(5, 2, 1, bitmap=named(1, 2)))
    assert not seen.sent.get(5)


def test_a_result_names_the_two_before_it(switch: PacketSwitch) -> None:
    sent = [hops(port, seq, 1) for seq in (0, 1, 3) for port in (5, 6)]
    results = columns(run(switch, *sent).sent[5], "seq", "bitmap")
    assert [(seq, bitmap >> 32) for seq, bitmap in results] == [
        (0, 0), (1, 0x8001 << 16), (3, 0x8002 << 16 | 0x8003)
    ]  # fmt: skip
