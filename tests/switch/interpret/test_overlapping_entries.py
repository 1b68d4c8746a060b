"""Entries whose keys overlap are found as if each were compared with the packet's key, one after the other."""

from __future__ import annotations

from random import Random

import pytest

from inakit.switch.control.entry_check import Test, matches
from inakit.switch.interpret.table_state import Order, OverlappingEntries


@pytest.mark.parametrize("seed", range(5))
def test_the_entry_that_wins_is_found_while_others_come_and_go(seed: int) -> None:
    draw, entries = Random(seed), OverlappingEntries[int]()
    kept: dict[Order, tuple[Test, ...]] = {}
    for number in range(400):
        if kept and draw.random() < 0.4:
            order = draw.choice(list(kept))
            entries.remove(kept.pop(order), order)
        else:
            order = (draw.randrange(5), number)
            kept[order] = (drawn_test(draw), drawn_test(draw))
            entries.add(kept[order], order, number)
        key = (draw.randrange(16), draw.randrange(16))
        wins = min((order for order, tests in kept.items() if matches(tests, key)), default=None)
        assert entries.first(key) == (None if wins is None else wins[1])


def drawn_test(draw: Random) -> Test:
    """The test of a range, or of some bits, of a number of four bits."""
    low = draw.randrange(16)
    if draw.random() < 0.3:
        return 15, low, draw.randrange(low, 16)
    mask = draw.choice((0, 8, 12, 15))
    return mask, low & mask, low & mask
