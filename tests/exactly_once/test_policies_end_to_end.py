"""Every slot policy over one to three levels, under every fault, on real switches in virtual time: exact sums."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tiers import long_unless

from inakit.experiments.bench.exactness import CONDITIONS, LEVELS, Cell, attempt, cells
from inakit.planner.core.slot_policies import POLICIES
from inakit.topo.errors import InputError

pytestmark = pytest.mark.compiler

FRAGMENTS = 60
HAPPENED = {
    "duplicates": "doubled",
    "reordering": "overtaken",
    "worker paused": "unheard",
    "forged questions": "rejected",
    "no loss": "added",
}
"""The event by which a condition shows; that of the others is "lost"."""


def every_cell() -> Iterator[Any]:
    """All policies under all conditions, at one of the levels in turn; at the other ones in the long form."""
    for row, policy in enumerate(POLICIES):
        for column, condition in enumerate(CONDITIONS):
            for levels in LEVELS:
                in_turn = levels == LEVELS[(row + column) % len(LEVELS)]
                yield long_unless(in_turn, policy, condition, levels)


@pytest.mark.parametrize(("policy", "condition", "levels"), list(every_cell()))
def test_sums_are_exact(policy: str, condition: str, levels: int) -> None:
    tried = attempt(Cell(policy, levels, condition), FRAGMENTS)
    assert not tried.failure
    assert min(tried.counts["added"], tried.counts[HAPPENED.get(condition, "lost")]) > 0


@pytest.mark.parametrize("policy", ["switchml", long_unless(False, "shadow-copy"), long_unless(False, "p4inc-aoi")])
def test_with_one_percent_loss_most_of_the_rate_is_kept(policy: str) -> None:
    """Times are virtual time, which the load of the machine does not change."""
    times = {condition: attempt(Cell(policy, 1, condition), 2000).time_s for condition in ("no loss", "1 % loss")}
    assert times["no loss"] >= 0.8 * times["1 % loss"]


def test_where_most_questions_are_lost_too_they_are_asked_again_soon() -> None:
    """Virtual time. Over three levels one question in twenty is answered."""
    assert attempt(Cell("shadow-copy", 3, "30 % loss"), 8).time_s < 60


def test_switches_that_are_wiped_lose_parts_of_sums() -> None:
    """The other parts leave when a worker asks again; what is lost on a link is sent again before any sum leaves."""
    flushed = {
        name: attempt(Cell("goat", 1, name), FRAGMENTS).counts["flushed"] for name in ("1 % loss", "switches wiped")
    }
    assert flushed["1 % loss"] == 0 < flushed["switches wiped"]


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InputError, match=r"unknown slot policy 'atpp': did you mean 'atp'"):
        cells(["atpp"], [1], ["no loss"])
    with pytest.raises(InputError, match="unknown condition 'los'"):
        cells(["atp"], [1], ["los"])
