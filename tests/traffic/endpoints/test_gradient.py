"""Gradients become integers and back, sums are exact, and what does not fit is refused."""

from __future__ import annotations

import numpy as np
import pytest
from traffic_cases import one_job

from inakit.topo.errors import InputError
from inakit.traffic.endpoints.gradient import FixedPoint, RandomGradients, exact_sum

JOB = one_job(workers=3, fragments=2)[0].jobs[0]
COUNT = JOB.gradient_bytes // 4


def test_random_gradients_differ_and_repeat() -> None:
    gradients = RandomGradients(seed=5, magnitude=100)
    first = gradients.of(JOB, 0, 0)
    assert first.shape == (COUNT,)
    assert np.array_equal(first, RandomGradients(5, 100).of(JOB, 0, 0))
    assert not np.array_equal(first, gradients.of(JOB, 1, 0))
    assert not np.array_equal(first, gradients.of(JOB, 0, 1))
    assert -100 <= first.min() < first.max() < 100


def test_sums_leave_32_bits() -> None:
    largest = np.full(4, 2**31 - 1, np.int32)
    assert (exact_sum([largest] * 3) == 3 * (2**31 - 1)).all()


def test_no_sum_overflows_at_the_chosen_scale() -> None:
    values = np.array([3.75, -1.5, 0.001])
    fixed_point = FixedPoint.clipping_at(3.75, 14)
    assert 2**29 < 14 * fixed_point.round(values).max() < 2**31
    mean = fixed_point.mean(exact_sum([fixed_point.round(values)] * 14))
    assert mean == pytest.approx(values, abs=fixed_point.error)


def test_a_magnitude_that_no_value_has() -> None:
    with pytest.raises(InputError, match="magnitude 0"):
        RandomGradients(magnitude=0)
