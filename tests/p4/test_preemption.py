"""Aggregators whose slots a higher priority takes: what was summed leaves as a partial sum."""

from __future__ import annotations

import pytest
from scenario_packets import columns, events, first_value, gradient, result, run
from scenarios import ROOT_PORT
from sequences import PacketSwitch, Step

from inakit.traffic.wire.packet_format import Event, Flag

pytest_plugins = ["switches"]


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
