"""Which packets say a wrong number of workers."""

from __future__ import annotations

import numpy as np

from traffic.endpoints.wrong_sums import NOT_COUNTED, is_miscounted


def test_a_sum_may_say_that_its_workers_were_not_counted() -> None:
    said, covered = np.array([4, 3, NOT_COUNTED]), np.array([4, 4, 4])
    assert is_miscounted(said, covered).tolist() == [False, True, False]
