"""Slots that are busy, and fragments that are sent again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scenario_packets import columns, events, gradient, run, values_of
from scenarios import example_entries
from sequences import PacketSwitch

from inakit.switch.entries import RegisterPreset
from inakit.traffic.wire.packet_format import Event, Flag

pytest_plugins = ["switches"]


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
