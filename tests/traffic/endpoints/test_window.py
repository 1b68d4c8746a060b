"""Windows: how often timeouts may double, and how marks of congestion make them smaller."""

from __future__ import annotations

import numpy as np
import pytest

from inakit.traffic.endpoints.windows import MAX_BACKOFF, NEWEST, PANAMA, PLANNED, Windows, backoffs


@pytest.mark.parametrize(
    ("least", "expected"),
    [(0.5, 1), (1.0, 1), (2.0, 1), (2.001, 2), (4.0, 2), (8.0, 3), (8.001, 4), (64.0, 6), (1000.0, MAX_BACKOFF)],
)
def test_a_timeout_doubles_until_the_least_window_is_fair(least: float, expected: int) -> None:
    assert backoffs(np.array([least]), np.array([1.0])).tolist() == [expected]


def windows() -> Windows:
    """One window that heeds marks, and one that does not, both of 32 fragments."""
    return Windows(np.array([32, 32]), np.array([2.0, 2.0]), [PANAMA, PLANNED])


def heed(found: Windows, results: int, marked: int) -> list[float]:
    """The sizes after this many results have come to each window, of which some are marked."""
    found.heed(np.arange(2), np.array([results] * 2), np.array([marked] * 2))
    return [float(size) for size in found.size]


def test_a_window_that_heeds_marks_halves_at_the_first_ones() -> None:
    found = windows()
    assert heed(found, 31, 31) == [32, 32]
    assert heed(found, 1, 1) == [16, 32]
    assert found.threshold.tolist() == [16, 32]


def test_a_window_shrinks_by_half_of_the_smoothed_share_of_marks() -> None:
    found = windows()
    for _ in range(200):
        assert heed(found, 32, 0) == [32, 32]
    assert found.share[0] == pytest.approx((1 - NEWEST) ** 200)
    assert heed(found, 32, 16)[0] == pytest.approx(32 * (1 - NEWEST / 2 / 2), rel=1e-3)


def test_a_window_keeps_its_least_size() -> None:
    found = windows()
    for _ in range(20):
        heed(found, 32, 32)
    assert found.size.tolist() == [2, 32]
