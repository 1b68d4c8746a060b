"""Confidence intervals of means by the bootstrap: no distribution of the values is assumed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inakit.experiments.papers.common.estimates import CONFIDENCE, Estimate

INTERVAL = "95 % interval (bootstrap)"
RESAMPLES = 10_000
MOST_AT_ONCE = 1 << 22
"""The largest number of values that are drawn in one step, which bounds the memory."""


def bootstrapped(values: Sequence[float]) -> Estimate:
    """The mean of one or more values, and the percentile interval of the means of `RESAMPLES` samples.

    The samples are drawn with a fixed seed, so that the same values have the same interval. A single value has none.
    """
    given = np.asarray(values, dtype=float)
    mean = float(given.mean())
    if len(given) < 2:
        return Estimate(mean, None, None, tuple(values))
    tails = (1 - CONFIDENCE) / 2
    low, high = np.quantile(resampled_means(given), (tails, 1 - tails))
    return Estimate(mean, float(low), float(high), tuple(values))


def resampled_means(
    given: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The means of `RESAMPLES` samples with replacement, each as large as the given one."""
    draw = np.random.default_rng(0)
    rows = max(1, MOST_AT_ONCE // len(given))
    parts = [min(rows, RESAMPLES - start) for start in range(0, RESAMPLES, rows)]
    return np.concatenate([given[draw.integers(len(given), size=(part, len(given)))].mean(axis=1) for part in parts])
