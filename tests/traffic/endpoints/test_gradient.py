"""Gradients become integers and back, sums are exact, and what does not fit is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from traffic_cases import one_job

from inakit.topo.errors import InputError
from inakit.traffic.endpoints.gradient import FileGradients, RandomGradients, exact_sum, from_fixed, scale_for, to_fixed

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
    scale = scale_for(3.75, 14)
    assert 2**29 < 14 * to_fixed(values, scale).max() < 2**31
    total = exact_sum([to_fixed(values, scale)] * 14)
    assert from_fixed(total, scale) == pytest.approx(14 * values, abs=14 / scale)


def test_floats_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "gradient.npy"
    values = np.random.default_rng(1).normal(size=(2, COUNT))
    np.save(path, values)
    gradients = FileGradients(path)
    scale = scale_for(float(np.abs(values).max()), 3)
    assert gradients.of(JOB, 1, 7) == pytest.approx(values[1] * scale, abs=0.5)
    assert np.array_equal(gradients.of(JOB, 2, 0), gradients.of(JOB, 0, 0))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones(3, np.int32), "has 3 per worker"),
        (np.full(COUNT, 2**40), "32-bit range"),
        (np.full(COUNT, np.nan), "not finite"),
        (np.zeros((2, 2, 2)), "shape"),
    ],
)
def test_bad_files(tmp_path: Path, values: np.ndarray, message: str) -> None:
    path = tmp_path / "gradient.npy"
    np.save(path, values)
    with pytest.raises(InputError, match=message):
        FileGradients(path, scale=1.0).of(JOB, 0, 0)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "text.npy").write_text("hello")
    with pytest.raises(InputError, match="cannot be read"):
        FileGradients(tmp_path / "text.npy")
    with pytest.raises(InputError, match="cannot be read"):
        FileGradients(tmp_path / "none.npy")


def test_a_magnitude_that_no_value_has() -> None:
    with pytest.raises(InputError, match="magnitude 0"):
        RandomGradients(magnitude=0)
