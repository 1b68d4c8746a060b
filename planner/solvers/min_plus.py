"""The (min, +) product of two tables: the least sum over all ways to divide a number between them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


def min_plus(sums: Numbers, below: Numbers) -> Numbers:
    """For every i, the least of sums(i - j) + below(j) over j, along the last axis, which keeps its length."""
    found = sums + below[..., :1]
    for j in range(1, min(below.shape[-1], sums.shape[-1])):
        np.minimum(found[..., j:], sums[..., : sums.shape[-1] - j] + below[..., j : j + 1], out=found[..., j:])
    return found
