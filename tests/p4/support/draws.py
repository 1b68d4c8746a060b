"""What strategies draw again and again: chances, and numbers of so many bits."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

PERCENT = st.integers(0, 99)


@cache
def rarely(percent: int) -> SearchStrategy[bool]:
    """True in `percent` of 100 cases; examples shrink to False."""
    return PERCENT.map(lambda number: number >= 100 - percent)


@cache
def anything(bits: int) -> SearchStrategy[int]:
    """A number of `bits` bits: a small one, the largest, or any."""
    largest = 2**bits - 1
    return st.one_of(st.integers(0, min(8, largest)), st.just(largest), st.integers(0, largest))
