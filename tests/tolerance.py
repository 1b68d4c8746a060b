"""Compares a measurement with what was expected, and repeats measurements that other processes have disturbed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def assert_within(measured: float, expected: float, tolerance: float, what: str, unit: str = "") -> None:
    """Fail, with the measurement and both bounds, unless `measured` is within `tolerance` (a share) of `expected`."""
    low, high = expected * (1 - tolerance), expected * (1 + tolerance)
    assert low <= measured <= high, (
        f"{what}: measured {measured:g} {unit}, expected {expected:g} {unit}, "
        f"which allows {low:g} to {high:g} (off by {measured / expected - 1:+.2%})"
    )


def undisturbed(measure: Callable[[], T], near: Callable[[T], bool], tries: int = 3) -> T:
    """The first of up to `tries` measurements that is `near` what is expected, or the last of them.

    Other processes may spoil one measurement of time. A fault of the kit spoils all of them.
    """
    for _ in range(tries - 1):
        measured = measure()
        if near(measured):
            return measured
    return measure()
