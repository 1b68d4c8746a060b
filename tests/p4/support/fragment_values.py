"""The values of one fragment, as strategies draw them: simple ones, and ones at which sums overflow."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from numpy.typing import NDArray

from inakit.traffic.wire.packet_format import FRAGMENT

CORNERS = (0, 1, -1, 2**31 - 1, -(2**31), 2**30, -(2**30))


def constant(number: int) -> NDArray[np.int64]:
    """The same small value everywhere."""
    return np.full(FRAGMENT.values, number % 2001 - 1000)


def ramp(number: int) -> NDArray[np.int64]:
    """Values that rise or fall evenly."""
    return np.arange(FRAGMENT.values) * (number - 2**15)


def corners(number: int) -> NDArray[np.int64]:
    """The numbers at which sums overflow, in another order for each `number`."""
    return np.roll(np.resize(np.array(CORNERS), FRAGMENT.values), number)


def spike(number: int) -> NDArray[np.int64]:
    """One large element, the others 0."""
    found = np.zeros(FRAGMENT.values, np.int64)
    found[number % FRAGMENT.values] = CORNERS[number // FRAGMENT.values % len(CORNERS)]
    return found


def noise(number: int) -> NDArray[np.int64]:
    """Any 32-bit values."""
    return np.random.default_rng(number).integers(-(2**31), 2**31, FRAGMENT.values)


# As often as they stand here; the first is the simplest.
PATTERNS = (*[constant] * 10, ramp, *[corners] * 3, *[spike] * 3, noise)

# A fragment's values, by a pattern and a number, so that they shrink as one.
VALUES: SearchStrategy[NDArray[np.int64]] = st.tuples(st.sampled_from(PATTERNS), st.integers(0, 2**16 - 1)).map(
    lambda drawn: drawn[0](drawn[1])
)
