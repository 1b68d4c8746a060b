"""Of several verdicts the worst counts, whatever their order is."""

from __future__ import annotations

from itertools import permutations

import pytest

from inakit.traffic.measure.verdict import Verdict, worst_of


def test_the_worst_of_several_is_found_in_any_order() -> None:
    for verdicts in permutations(("VALID", "OVERLOADED", "WRONG", "DIFFERS")):
        assert worst_of(verdicts) is Verdict.WRONG


def test_a_run_that_did_not_end_is_worse_than_one_that_was_overloaded() -> None:
    assert worst_of([Verdict.INTERRUPTED, Verdict.OVERLOADED]) is Verdict.INTERRUPTED
    assert worst_of([Verdict.OVERLOADED, Verdict.UNPROVEN, Verdict.VALID]) is Verdict.OVERLOADED


def test_nothing_speaks_against_what_has_no_verdicts() -> None:
    assert worst_of([]) is Verdict.VALID
    assert worst_of(["VALID", "VALID"]) is Verdict.VALID


def test_a_word_that_is_no_verdict_is_refused() -> None:
    with pytest.raises(ValueError, match="'FINE' is not a valid Verdict"):
        worst_of(["VALID", "FINE"])
