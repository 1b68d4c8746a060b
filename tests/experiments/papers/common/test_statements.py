"""Statements that hold or differ: orders of curves, and GOAT's Figures 4, 8 and 9 with values that were measured."""

from __future__ import annotations

from math import sqrt
from pathlib import Path

import pytest

from inakit.experiments.papers.common import statements
from inakit.experiments.papers.common.estimates import estimate, quantile, ratio_of_means

CURVES = {"high": [5.0, 6.0, 7.0], "middle": [4.0, 6.1, 7.3], "low": [1.0, 1.0, 1.0]}
PLACES = ["a", "b", "c"]


def test_an_order_has_a_statement_for_each_two_neighbours_and_names_where_it_differs() -> None:
    first, second = statements.in_order("Fig. 1", ("high", "middle", "low"), CURVES, PLACES)
    assert (first.says, first.holds) == ("Fig. 1: high above middle", False)
    assert first.ours == "at 1 of 3; equal at 1; not at c: 7 to 7.3", "2 % are no difference"
    assert (second.ours, second.holds) == ("at all 3", True)


def test_the_highest_and_the_lowest() -> None:
    assert not statements.is_highest("", "high", ("middle", "low"), CURVES, PLACES).holds
    assert statements.is_lowest("", "low", ("middle", "high"), CURVES, PLACES).holds
    differs = statements.is_lowest("", "middle", ("high",), CURVES, PLACES)
    assert (differs.holds, differs.ours) == (False, "at 1 of 3; equal at 1; not at c: 7.3 to 7")


def test_equal_curves_are_in_no_order() -> None:
    equal = {"ours": [5.0, 6.0], "theirs": [5.0, 6.0]}
    assert not statements.is_highest("", "ours", ("theirs",), equal, PLACES[:2]).holds
    assert not statements.is_lowest("", "ours", ("theirs",), equal, PLACES[:2]).holds
    half = {"ours": [5.0, 6.0, 8.0], "theirs": [5.0, 6.0, 7.0]}
    assert not statements.is_highest("", "ours", ("theirs",), half, PLACES).holds
    most = {"ours": [5.0, 7.0, 8.0], "theirs": [5.0, 6.0, 7.0]}
    assert statements.is_highest("", "ours", ("theirs",), most, PLACES).ours == "at 2 of 3; equal at 1"


@pytest.mark.parametrize("values", [[50.1, 50.1, 51.1, 50.1], [1.0, 1.0], [5, 9, 7, 8], [9.51e3, 9.5e3, 9.5e3]])
def test_noise_is_no_trend(values: list[float]) -> None:
    assert not statements.rises("", values).holds
    assert not statements.falls("", values).holds


def test_a_trend_is_beyond_the_interval_of_its_draws() -> None:
    first = estimate([1.0, 2.0, 3.0])
    shifted, noisy = estimate([1.1, 2.2, 3.3]), estimate([3.0, 1.0, 2.6])
    assert statements.rises("", [first, shifted]).holds, "each draw is 10 % higher"
    assert noisy.value / first.value > 1.09
    assert not statements.rises("", [first, noisy]).holds, "the draws move in both directions"
    assert statements.falls("", [shifted, first]).holds


@pytest.mark.parametrize(
    ("ratio", "holds"), [(1.134, True), (1.07, True), (1.06, False), (1.0, False), (0.99, False), (1.25, False)]
)
def test_an_advantage_needs_at_least_half_of_the_papers(ratio: float, holds: bool) -> None:
    assert statements.is_advantage("", ratio, 1.134).holds is holds


def test_an_advantage_is_beyond_its_interval() -> None:
    assert statements.is_advantage("", estimate([1.10, 1.13, 1.16]), 1.134).holds
    assert not statements.is_advantage("", estimate([0.90, 1.13, 1.37]), 1.134).holds
    assert statements.is_advantage("", estimate([0.55, 0.57]), 0.56).holds


def test_each_value_has_a_limit_of_its_own() -> None:
    assert statements.are_below("", [1.02, 1.15], [1.02, 1.15]).holds
    above = statements.are_below("", [1.0204, estimate([1.1, 1.12])], [1.02, 1.15])
    assert (above.holds, above.ours, above.paper) == (False, "1.020, 1.110", "at most 1.02, 1.15")


def test_crossing() -> None:
    assert statements.crosses("", [1, 3], [2, 2]).holds
    assert not statements.crosses("", [1, 1.5], [2, 2]).holds
    assert not statements.crosses("", [3, 4], [2, 2]).holds


def test_only_statements_decides_what_differs() -> None:
    folder = Path(statements.__file__).parents[1]
    naming = [path.name for path in folder.rglob("*.py") if "[red]differs[/]" in path.read_text()]
    making = [path.name for path in folder.rglob("*.py") if "Statement(" in path.read_text()]
    assert naming == making == ["statements.py"]


@pytest.mark.parametrize(
    ("freedom", "t"), [(1, 12.706), (2, 4.3027), (3, 3.1824), (5, 2.5706), (9, 2.2622), (29, 2.0452), (100, 1.984)]
)
def test_students_quantile(freedom: int, t: float) -> None:
    assert quantile(freedom) == pytest.approx(t, rel=2e-3)


def test_curves_that_end_at_zero_have_ratios() -> None:
    """A loss of 0 in all draws: a curve that falls to it falls, and two of them are equal."""
    some, none = estimate([0.1, 0.2, 0.15]), estimate([0.0, 0.0, 0.0])
    assert statements.falls("", [some, none, none]).holds
    assert statements.ratio(none, none).value == 1
    assert not statements.rises("", [none, none]).holds


def test_the_interval_is_students() -> None:
    found = estimate([1.0, 2.0, 3.0])
    assert found.value == 2
    assert found.high == pytest.approx(2 + 4.3027 / sqrt(3), rel=1e-4)
    assert found.low == pytest.approx(2 - 4.3027 / sqrt(3), rel=1e-4)
    assert (estimate([7.0]).low, estimate([7.0]).high) == (None, None)
    falling = found.map(lambda value: -value)
    assert falling.low is not None and falling.high is not None and falling.low < falling.value < falling.high


def test_a_ratio_of_paired_means_varies_less_than_its_parts() -> None:
    below = [1.0, 2.0, 3.0, 4.0]
    found = ratio_of_means([2 * value for value in below], below)
    assert found.value == pytest.approx(2)
    assert found.low == pytest.approx(2) == found.high
