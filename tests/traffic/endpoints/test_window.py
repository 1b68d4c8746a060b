"""How often timeouts may double: until the least window sends no more than the fair share."""

from __future__ import annotations

import numpy as np
import pytest

from traffic.endpoints.window import MAX_BACKOFF, backoffs


@pytest.mark.parametrize(
    ("least", "expected"),
    [(0.5, 1), (1.0, 1), (2.0, 1), (2.001, 2), (4.0, 2), (8.0, 3), (8.001, 4), (64.0, 6), (1000.0, MAX_BACKOFF)],
)
def test_a_timeout_doubles_until_the_least_window_is_fair(least: float, expected: int) -> None:
    assert backoffs(np.array([least]), np.array([1.0])).tolist() == [expected]
