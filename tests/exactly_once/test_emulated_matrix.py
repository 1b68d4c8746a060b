"""The exactness matrix on emulated networks, in short: sums are exact, and counters prove that the faults happened."""

from __future__ import annotations

import pytest
from tiers import long_unless

from inakit.experiments.bench.exactness import Cell, attempt

pytestmark = [pytest.mark.root, pytest.mark.beside]

CASES = [
    ("atp", 2, "1 % loss", 1000, ("lost", "added", "completed")),
    ("esa", 1, "duplicates", 600, ("doubled", "evicted", "completed")),
    ("switchml", 1, "reordering", 600, ("overtaken", "added", "sent_multicast")),
    ("goat", 3, "switches wiped", 600, ("added", "completed")),
    ("p4inc-aoi", 1, "PS restarted", 400, ("lost", "added", "completed")),
    ("shadow-copy", 2, "all at once", 400, ("lost", "doubled", "overtaken", "answered")),
    ("goat", 1, "worker paused", 400, ("unheard",)),
]
"""Policy, levels, condition, fragments, and the events that must have been counted."""
LASTING = "worker paused"
"""The condition that takes longest; in virtual time it is tried under every policy."""
CASES_OF_BMV2 = [
    ("atp", 1, "1 % loss", 100, ("lost", "added", "completed")),
    ("switchml", 2, "duplicates", 100, ("doubled", "added", "sent_multicast")),
    ("goat", 1, "switches wiped", 100, ("added", "completed")),
]
ALL = [long_unless(LASTING not in case, "fast", *case) for case in CASES] + [
    pytest.param("bmv2", *case, marks=pytest.mark.bmv2) for case in CASES_OF_BMV2
]


@pytest.mark.parametrize(("switch", "policy", "levels", "condition", "fragments", "counted"), ALL)
def test_sums_are_exact(
    switch: str, policy: str, levels: int, condition: str, fragments: int, counted: tuple[str, ...]
) -> None:
    tried = attempt(Cell(policy, levels, condition, switch), fragments)
    assert not tried.failure
    assert min(tried.counts[what] for what in counted) > 0, tried.counts
