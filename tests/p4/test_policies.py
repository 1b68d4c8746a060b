"""What aggregators do with their slots under each policy: kept sums, preemption, notices, release."""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scenarios import (
    ROOT_PORT,
    SERVER_IP,
    SLOTS,
    columns,
    events,
    gradient,
    ports_of,
    result,
    run,
    values_of,
    worker_ip,
)
from sequences import PacketSwitch, Seen, Step

from traffic.wire.packet_format import Event, Flag, Kind

pytest_plugins = ["switches"]

AGAIN = int(Flag.RETRANSMITTED)


def first_value(seen: Seen, port: int) -> list[int]:
    return [int(row[0]) for row in values_of(seen.sent[port])]


# ---- finished sums that stay -------------------------------------------------------------------


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


# ---- preemption --------------------------------------------------------------------------------


def esa(port: int, seq: int, value: int, tree: int, priority: int, **ina: int) -> Step:
    return gradient(port, 10 + port, seq, value, job=5, tree=tree, priority=priority, **ina)


def test_a_higher_priority_takes_the_slot_and_the_partial_sum_leaves(switch: PacketSwitch) -> None:
    seen = run(switch, esa(1, 2, 10, 1, 3), esa(2, 6, 7, 2, 4), esa(1, 6, 8, 2, 4))
    names = ("tree", "label", "seq", "flags", "bitmap", "workers", "priority")
    assert columns(seen.sent[ROOT_PORT], *names) == [(1, 20, 2, Flag.PARTIAL, 0b01, 1, 3), (2, 21, 6, 0, 0, 2, 4)]
    assert first_value(seen, ROOT_PORT) == [10, 15]
    assert events(seen)[Event.EVICTED] == 1


def test_an_overflow_leaves_with_the_partial_sum(switch: PacketSwitch) -> None:
    other = gradient(3, 13, 2, 0)
    steps = [gradient(1, 11, 2, 2**31 - 1), gradient(2, 12, 2, 1), esa(1, 2, 5, 2, 4), other]
    seen = run(switch, *steps)
    assert columns(seen.sent[ROOT_PORT], "job", "label", "flags", "bitmap")[0] == (
        1, 20, Flag.PARTIAL | Flag.OVERFLOW, 0b011,
    )  # fmt: skip


@pytest.mark.parametrize("priority", [2, 3])
def test_no_higher_priority_goes_on_unaggregated(switch: PacketSwitch, priority: int) -> None:
    seen = run(switch, esa(1, 2, 10, 1, 3), esa(2, 6, 7, 2, priority), esa(2, 2, 32, 1, 3))
    names = ("tree", "label", "flags")
    assert columns(seen.sent[ROOT_PORT], *names) == [(2, 12, Flag.COLLISION), (1, 20, 0)]
    assert first_value(seen, ROOT_PORT) == [7, 42]


def test_who_is_in_the_way_loses_priority(switch: PacketSwitch) -> None:
    steps = [esa(1, 2, 10, 1, 3), *[esa(2, 6 + 4 * n, 7, 2, 1) for n in range(3)]]
    seen = run(switch, *steps)
    assert columns(seen.sent[ROOT_PORT], "tree", "flags") == [
        (2, Flag.COLLISION),
        (2, Flag.COLLISION),
        (1, Flag.PARTIAL),
    ]


def test_a_result_frees_the_slot_of_its_fragment(switch: PacketSwitch) -> None:
    late, others = gradient(5, 14, 2, 100), [gradient(5, 14, 2, 1), gradient(6, 15, 2, 4)]
    seen = run(switch, late, result(2, slot=2), *others)
    assert first_value(seen, ROOT_PORT) == [5]
    assert events(seen)[Event.RELEASED] == 1


def test_a_result_frees_no_other_slot(switch: PacketSwitch) -> None:
    early = [gradient(5, 14, 2, 100), gradient(1, 11, 3, 7)]
    seen = run(switch, *early, result(6, slot=2), result(3, slot=3), gradient(6, 15, 2, 4))
    assert first_value(seen, ROOT_PORT) == [104]
    assert Event.RELEASED not in events(seen)


# ---- notices -----------------------------------------------------------------------------------


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
