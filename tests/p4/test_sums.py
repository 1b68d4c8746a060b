"""Sums of gradients in slots, on every target, and sums that overflow."""

from __future__ import annotations

import numpy as np
import pytest
from scenario_packets import columns, events, gradient, ports_of, run, values_of
from scenarios import ROOT_PORT
from sequences import PacketSwitch, Step

from inakit.traffic.wire.packet_format import FRAGMENT, Event, Flag, Kind

pytest_plugins = ["switches"]

RAMP = np.arange(FRAGMENT.values, dtype=np.int64) - 20
LARGEST, SMALLEST = 2**31 - 1, -(2**31)


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
