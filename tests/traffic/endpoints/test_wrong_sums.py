"""Which packets say a wrong number of workers."""

from __future__ import annotations

import numpy as np

from inakit.traffic.endpoints.sum_check import NOT_COUNTED, is_miscounted


def test_a_sum_may_say_that_its_workers_were_not_counted_where_the_program_cannot_count() -> None:
    said, covered = np.array([4, 3, NOT_COUNTED]), np.array([4, 4, 4])
    assert is_miscounted(said, covered, np.array([False] * 3)).tolist() == [False, True, False]
    assert is_miscounted(said, covered, np.array([True] * 3)).tolist() == [False, True, True]
